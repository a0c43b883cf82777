// The table of ahead fetches, and how they yield to players.
import Model
import Posix
import Reactor
import Store
import Upstream

/// All ahead fetches; lives on the upstream loop.
final class AheadTable {
    private var tasks: [UInt64: AheadTask] = [:]
    /// The fetches for which a flight fills a hole, by request.
    private var taskOfFetch: [FetchID: AheadTask] = [:]
    private var changes = AheadChanges<AheadTask, Flight>()
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
        // If only waiting fetches are left in its flight, that has to pause.
        let flight = task.flight
        task.cancel()
        scheduleRoundEnd(task.table, of: flight)
    }

    /// Cancels a fetch if it still waits for players or for a slot.
    func cancelWaiting(_ number: UInt64) {
        guard tasks[number]?.waitsForTurn == true else { return }
        cancel(number)
    }

    func setYields(_ yields: Bool, _ number: UInt64) {
        guard let task = tasks[number] else { return }
        task.wanted.yields = yields
        changes.note(waiting: task)
        scheduleRoundEnd(task.table, of: task.flight)
    }

    /// Notes that a fetch began to wait for players.
    func noteWaiting(_ task: AheadTask) {
        changes.note(waiting: task)
        scheduleRoundEnd(task.table)
    }

    /// Notes that a fetch has another request.
    func follow(_ task: AheadTask, from former: FetchID?, to id: FetchID?) {
        if let former { taskOfFetch[former] = nil }
        if let id { taskOfFetch[id] = task }
    }

    /// At the end of this round, pauses or resumes ahead fetches depending on whether players wait.
    ///
    /// Must be called whenever a flight for players begins, ends or is paused, and whenever a fetch
    /// joins a flight or leaves it.
    ///
    /// - Parameters:
    ///   - table: the table of flights.
    ///   - flight: the flight, if it may have to pause or go on now.
    func scheduleRoundEnd(_ table: FlightTable, of flight: Flight? = nil) {
        guard !tasks.isEmpty else { return }
        if let flight, flight.machine.isAhead { changes.note(flight) }
        guard !isRoundEndScheduled else { return }
        isRoundEndScheduled = true
        loop.atRoundEnd { [weak self, weak table] _ in
            guard let self, let table else { return }
            isRoundEndScheduled = false
            let isBusy = table.hasPlayback
            let pause = table.concurrency.update(playersWait: isBusy)
            makeWay(
                [Lane.prefetch, .background].filter { table.isHeldBack($0, playersWait: isBusy) })
            guard let pause else { return }
            loop.schedule(after: pause) { [weak self, weak table] _ in
                if let table { self?.scheduleRoundEnd(table) }
            }
        }
    }

    /// Has the fetches of some lanes wait for players, and the others go on.
    private func makeWay(_ held: [Lane]) {
        let changed = changes.take(
            held: held, all: { Array(tasks.values) },
            sharing: { $0.machine.waiters.all.compactMap { waiter in taskOfFetch[waiter.id] } })
        let fetches = changed.map { task in
            (task: task, waits: task.wanted.yields && held.contains(task.wanted.lane))
        }
        // A flight that several fetches share continues as long as one of them need not wait, so
        // that a recording loses nothing because look-ahead wants the same bytes.
        let goingOn = Set(
            fetches.compactMap { task, waits in
                waits ? nil : task.flight.map { ObjectIdentifier($0) }
            })
        for (task, waits) in fetches { task.makeWay(waits, goingOn) }
    }
}

extension FlightTable {
    /// True if a player waits for media in transfer; ahead fetches then leave the line to it.
    ///
    /// A flight paused for slow readers does not count, nor does a live stream, which never takes
    /// more of the line than its own speed.
    var hasPlayback: Bool {
        playerFlights.values.contains { flight in
            flight.machine.lane == .playback && !flight.machine.isAhead
                && flight.machine.pausedSince == nil && flight.machine.extent != .endless
                && (flight.phase == .asking || flight.phase == .filling)
        }
    }

    /// True if fetches of a lane must pause, given whether a player waits; downloads may run beside
    /// a player that has time.
    func isHeldBack(_ lane: Lane, playersWait: Bool) -> Bool {
        lane == .background ? concurrency.holdsDownloads(playersWait: playersWait) : playersWait
    }

    /// Turns ahead flights for an object into playback because a player reads it.
    func readerJoined(_ key: ObjectKey, generation: UInt64) {
        for flight in flights(of: key) where flight.object?.generation == generation {
            flight.machine.waiters.noteReaders()
            flight.takeForPlayback(.playback)
        }
    }
}
