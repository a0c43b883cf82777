import HTTP
import Posix
import Reactor

/// How much of the slots those transfers may have that no player waits for, and what they have.
struct AheadShare: Sendable {
    /// The most at once, all hosts together.
    var limit = Int.max
    /// The most background ones of them.
    var backgroundLimit = Int.max
    /// The most at once to single hosts; others have the limit of all.
    var hostLimits: [String: Int] = [:]
    private(set) var inUse = 0
    private(set) var background = 0
    private(set) var byHost: [String: Int] = [:]

    /// Whether one more of a lane may run.
    func hasRoom(in lane: Lane) -> Bool {
        switch lane {
        case .express, .playback: true
        case .prefetch: inUse < limit
        case .background: inUse < limit && background < backgroundLimit
        }
    }

    /// Whether one more may run to the host of a waiter; those of players always may.
    func hasRoom(for entry: AdmissionQueue.Entry) -> Bool {
        guard entry.lane >= .prefetch, let limit = hostLimits[entry.host] else { return true }
        return (byHost[entry.host] ?? 0) < limit
    }

    /// Notes that transfers began or ended; those of players do not count.
    mutating func count(_ lane: Lane, to host: String, by change: Int) {
        guard lane >= .prefetch else { return }
        inUse += change
        if lane == .background { background += change }
        let left = (byHost[host] ?? 0) + change
        byHost[host] = left > 0 ? left : nil
    }
}

/// What a controller of concurrency wants to know of one host, since it last asked.
package struct AheadFigures: Sendable, Hashable {
    /// Body bytes, those for players included.
    package var bytes: Int64 = 0
    /// Transfers ahead of players that came to a good end.
    package var finished = 0
    /// Those that broke, timed out or were turned away as too many.
    package var errors = 0
    /// First bytes that came, and the seconds that they took together.
    package var answers = 0
    package var answerSeconds = 0.0
    /// Transfers ahead of players in flight at this moment.
    package var inFlight = 0

    package init() {}
}

/// Measures while anything runs ahead of players.
struct AheadMeter {
    private(set) var hosts: [String: AheadFigures] = [:]

    mutating func add(bytes: Int, from host: String) {
        hosts[host, default: AheadFigures()].bytes += Int64(bytes)
    }

    mutating func add(answerAfter seconds: Double, from host: String, isRefusal: Bool) {
        hosts[host, default: AheadFigures()].answers += 1
        hosts[host, default: AheadFigures()].answerSeconds += seconds
        if isRefusal { hosts[host, default: AheadFigures()].errors += 1 }
    }

    mutating func add(_ result: TransferResult, from host: String) {
        switch result {
        case .success: hosts[host, default: AheadFigures()].finished += 1
        case .failure(let error) where error.isOfTheLink:
            hosts[host, default: AheadFigures()].errors += 1
        case .failure: break
        }
    }

    mutating func take() -> [String: AheadFigures] {
        let taken = hosts
        hosts = [:]
        return taken
    }
}

extension UpstreamError {
    /// Whether fewer transfers at once might have spared it.
    fileprivate var isOfTheLink: Bool {
        switch kind {
        case .connect, .connectTimeout, .reset, .truncated, .firstByteTimeout, .stalled: true
        default: false
        }
    }
}

extension UpstreamClient {
    /// Notes what has come of a body in this round.
    func measureBytes(_ transfer: Transfer) {
        let count = transfer.bytesReceived - transfer.bytesMeasured
        transfer.bytesMeasured = transfer.bytesReceived
        if count > 0, aheadInFlight > 0 { meter.add(bytes: Int(count), from: transfer.host) }
    }

    /// Notes how long a head took that has just come.
    func measureAnswer(_ transfer: Transfer) {
        guard transfer.lane >= .prefetch else { return }
        let seconds = (loop.now - transfer.hopStartedAt).inSeconds
        let status = transfer.parser.status.rawValue
        meter.add(
            answerAfter: seconds, from: transfer.host, isRefusal: status == 429 || status == 503)
    }

    /// Changes how many prefetch and background transfers may run at once: in all, background ones of
    /// them, and to single hosts.
    ///
    /// Those in flight are left alone; those that wait are admitted at the end of this round.
    package func limitAhead(
        _ all: Int, background: Int = .max, hosts: [String: Int] = [:]
    ) {
        queue.limitAhead(all, background: background, hosts: hosts)
        setNeedsSettle()
    }

    /// Takes the slots of the newest background transfers back until so many are left.
    package func preemptBackground(over most: Int) {
        let excess = queue.ahead.background - max(0, most)
        guard excess > 0 else { return }
        let running = live.values.filter { $0.lane == .background && $0.state == .running }
        for transfer in running.sorted(by: { $0.id > $1.id }).prefix(excess) {
            counters.preempted += 1
            fail(transfer, UpstreamError(.preempted, host: transfer.host))
        }
    }

    /// Prefetch and background transfers in flight.
    package var aheadInFlight: Int { queue.ahead.inUse }

    /// Prefetch and background transfers that wait for a slot.
    package var aheadWaiting: Int { queue.waiting(in: .prefetch) + queue.waiting(in: .background) }

    /// What was measured by host since the last call; those with transfers in flight are all there.
    package func takeAheadFigures() -> [String: AheadFigures] {
        var taken = meter.take()
        for (host, count) in queue.ahead.byHost {
            taken[host, default: AheadFigures()].inFlight = count
        }
        return taken
    }
}
