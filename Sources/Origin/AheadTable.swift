// The fetches that no player asked for, and how they make way for players.
import Model
import Posix
import Reactor
import Store
import Upstream

/// All of them; lives on the upstream loop.
final class AheadTable {
    private var tasks: [UInt64: AheadTask] = [:]
    private let gauge: AheadGauge
    private let loop: EventLoop
    private var willSettle = false

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
        setNeedsSettle(table)
    }

    func cancel(_ number: UInt64) {
        tasks[number]?.cancel()
    }

    func setYields(_ yields: Bool, _ number: UInt64) {
        guard let task = tasks[number] else { return }
        task.wanted.yields = yields
        setNeedsSettle(task.table)
    }

    /// Looks, at the end of this round, who has to wait for players now and who need not any more.
    ///
    /// To be called whenever a flight for players begins, ends or is held back.
    func setNeedsSettle(_ table: FlightTable) {
        guard !tasks.isEmpty, !willSettle else { return }
        willSettle = true
        loop.atRoundEnd { [weak self, weak table] _ in
            guard let self, let table else { return }
            willSettle = false
            let isBusy = table.hasPlayback
            let pause = table.concurrency.hear(playersWait: isBusy)
            for task in Array(tasks.values) { task.makeWay(table.isHeldBack(task.wanted.lane)) }
            guard let pause else { return }
            loop.schedule(after: pause) { [weak self, weak table] _ in
                if let table { self?.setNeedsSettle(table) }
            }
        }
    }
}

extension FlightTable {
    /// Whether a player waits for media that is on its way: the line is its own then.
    ///
    /// A flight whose readers are far behind leaves the line to others.
    var hasPlayback: Bool {
        allFlights.contains { flight in
            flight.machine.lane == .playback && !flight.machine.isAhead
                && flight.machine.heldSince == nil
                && (flight.phase == .asking || flight.phase == .filling)
        }
    }

    /// Whether fetches of a lane stand still for players; downloads may share with one at ease.
    func isHeldBack(_ lane: Lane) -> Bool {
        lane == .background ? concurrency.holdsDownloads(playersWait: hasPlayback) : hasPlayback
    }

    /// A player reads what was fetched ahead: from now on this is playback.
    func readerJoined(_ key: ObjectKey, generation: UInt64) {
        for flight in flights(of: key) where flight.object?.generation == generation {
            flight.machine.noteReaders()
            flight.takeForPlayback(.playback)
        }
    }
}

extension Flight {
    /// Whether this flight is for nobody but one fetch ahead.
    var isOnlyAhead: Bool {
        machine.isAhead && machine.waiters.count <= 1
            && object.map { table.readers.count($0.generation) == 0 } ?? true
    }

    /// Whether the rest will have come before it would pay to stop it.
    func isAboutToEnd(within limit: Interval) -> Bool {
        guard let transfer, !transfer.isPaused else { return false }
        return progress?.isAboutToEnd(within: limit) ?? false
    }

    /// How far the flight has come; nil while no body comes, or where its end is not known.
    var progress: FlightProgress? {
        guard let position else { return nil }
        return machine.progress(at: position, total: object?.total, now: table.loop.now)
    }
}
