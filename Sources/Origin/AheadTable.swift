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
            flight.lane == .playback && !flight.isAhead && flight.heldSince == nil
                && (flight.state == .asking || flight.state == .filling)
        }
    }

    /// Whether fetches of a lane stand still for players; downloads may share with one at ease.
    func isHeldBack(_ lane: Lane) -> Bool {
        lane == .background ? concurrency.holdsDownloads(playersWait: hasPlayback) : hasPlayback
    }

    /// A player reads what was fetched ahead: from now on this is playback.
    func readerJoined(_ key: ObjectKey, generation: UInt64) {
        for flight in flights(of: key) where flight.object?.generation == generation {
            flight.isHandedOut = true
            flight.takeForPlayback(.playback)
        }
    }
}

extension Flight {
    /// Makes a flight that began for nobody a player's.
    func takeForPlayback(_ lane: Lane) {
        guard isAhead, state != .ended else { return }
        isAhead = false
        if lane < self.lane {
            self.lane = lane
            transfer?.raise(to: lane)
        }
        transfer?.resume()
        table.ahead.setNeedsSettle(table)
    }

    /// Whether this flight is for nobody but one fetch ahead.
    var isOnlyAhead: Bool {
        isAhead && waiters.count <= 1
            && object.map { table.readers.count($0.generation) == 0 } ?? true
    }

    /// Whether the rest will have come before it would pay to stop it.
    func isAboutToEnd(within limit: Interval) -> Bool {
        guard state == .filling, let transfer, !transfer.isPaused, let position, let filledSince
        else { return false }
        var end = object?.total
        if case .span(_, let wantedEnd?) = wanted { end = wantedEnd }
        guard let end else { return false }
        // The first bytes come in one burst, which says nothing of the pace.
        let elapsed = max(limit.nanoseconds, (table.loop.now - filledSince).nanoseconds)
        let perNanosecond = Double(position - firstOffset) / Double(elapsed)
        return Double(end - position) <= perNanosecond * Double(limit.nanoseconds)
    }
}
