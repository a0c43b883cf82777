// The table of ahead fetches, and how they yield to players.
import Model
import Posix
import Reactor
import Store
import Upstream

/// All ahead fetches; lives on the upstream loop.
final class AheadTable {
    private var tasks: [UInt64: AheadTask] = [:]
    private let gauge: AheadGauge
    private let loop: EventLoop
    private var isRoundEndScheduled = false

    init(gauge: AheadGauge, loop: EventLoop) {
        self.gauge = gauge
        self.loop = loop
    }

    func start(
        _ wanted: BackgroundFetch.Request, _ number: UInt64, in table: FlightTable,
        done: @escaping @Sendable (BackgroundFetch.End) -> Void
    ) {
        let task = AheadTask(wanted, table: table) { [self] end in
            if tasks.removeValue(forKey: number) != nil { gauge.add(-1) }
            done(end)
        }
        tasks[number] = task
        gauge.add(1)
        task.start()
        scheduleRoundEnd(table)
    }

    func cancel(_ number: UInt64) {
        guard let task = tasks[number] else { return }
        task.cancel()
        scheduleRoundEnd(task.table)
    }

    func setYields(_ yields: Bool, _ number: UInt64) {
        guard let task = tasks[number] else { return }
        task.wanted.yields = yields
        scheduleRoundEnd(task.table)
    }

    /// At the end of this round, pauses or resumes ahead fetches depending on whether players wait.
    ///
    /// Must be called whenever a flight for players begins, ends or is paused, and whenever a fetch
    /// joins a flight or leaves it.
    func scheduleRoundEnd(_ table: FlightTable) {
        guard !tasks.isEmpty, !isRoundEndScheduled else { return }
        isRoundEndScheduled = true
        loop.atRoundEnd { [weak self, weak table] _ in
            guard let self, let table else { return }
            isRoundEndScheduled = false
            let isBusy = table.hasPlayback
            let pause = table.concurrency.update(playersWait: isBusy)
            makeWay([Lane.prefetch, .background].filter { table.isHeldBack($0) })
            guard let pause else { return }
            loop.schedule(after: pause) { [weak self, weak table] _ in
                if let table { self?.scheduleRoundEnd(table) }
            }
        }
    }

    /// Has the fetches of some lanes wait for players, and the others go on.
    private func makeWay(_ held: [Lane]) {
        let fetches = tasks.values.map { task in
            (task: task, waits: task.wanted.yields && held.contains(task.wanted.lane))
        }
        var goingOn = AheadFlightsGoingOn()
        for (task, waits) in fetches {
            if let flight = task.flight { goingOn.note(ObjectIdentifier(flight), waits: waits) }
        }
        for (task, waits) in fetches { task.makeWay(waits, goingOn) }
    }
}

/// The flights that go on while players wait: one that several fetches share does as long as one of
/// these does not wait, so that a recording loses nothing because look-ahead wants the same.
struct AheadFlightsGoingOn {
    private var flights: Set<ObjectIdentifier> = []

    /// Notes a fetch by a flight.
    mutating func note(_ flight: ObjectIdentifier, waits: Bool) {
        if !waits { flights.insert(flight) }
    }

    func contains(_ flight: ObjectIdentifier) -> Bool { flights.contains(flight) }
}

extension FlightTable {
    /// True if a player waits for media in transfer; ahead fetches then leave the line to it.
    ///
    /// A flight paused for slow readers does not count, nor does a live stream, which never takes
    /// more of the line than its own speed.
    var hasPlayback: Bool {
        allFlights.contains { flight in
            flight.machine.lane == .playback && !flight.machine.isAhead
                && flight.machine.pausedSince == nil && flight.machine.extent != .endless
                && (flight.phase == .asking || flight.phase == .filling)
        }
    }

    /// True if fetches of a lane must pause for players; downloads may run beside a player that has
    /// time.
    func isHeldBack(_ lane: Lane) -> Bool {
        lane == .background ? concurrency.holdsDownloads(playersWait: hasPlayback) : hasPlayback
    }

    /// Turns ahead flights for an object into playback because a player reads it.
    func readerJoined(_ key: ObjectKey, generation: UInt64) {
        for flight in flights(of: key) where flight.object?.generation == generation {
            flight.machine.noteReaders()
            flight.takeForPlayback(.playback)
        }
    }
}

extension Flight {
    /// True if this flight serves a single ahead fetch and nothing else.
    var isOnlyAhead: Bool {
        machine.isAhead && machine.waiters.count <= 1 && !hasReaders
    }

    /// True if players read the object.
    var hasReaders: Bool {
        object.map { table.readers.count($0.generation) > 0 } ?? false
    }

    /// True if the rest will arrive sooner than stopping the transfer would pay.
    func isAboutToEnd(within limit: Interval) -> Bool {
        guard let transfer, !transfer.isPaused else { return false }
        return progress?.isAboutToEnd(within: limit) ?? false
    }

    /// The progress of the flight; nil while no body is received, or if its end is unknown.
    var progress: FlightProgress? {
        guard let position else { return nil }
        return machine.progress(at: position, total: object?.total, now: table.loop.now)
    }
}
