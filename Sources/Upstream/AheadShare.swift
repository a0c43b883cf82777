import HTTP
import Posix
import Reactor

/// The limits and use of slots by transfers that no player waits for.
struct AheadShare: Sendable {
    /// The limit over all hosts.
    var limit = Int.max
    /// The limit of background transfers among them.
    var backgroundLimit = Int.max
    /// The limits of single hosts; others have only the overall limit.
    var hostLimits: [String: Int] = [:]
    private(set) var inUse = 0
    private(set) var background = 0
    private(set) var byHost: [String: Int] = [:]

    /// True if one more transfer of a lane may run.
    func hasRoom(in lane: Lane) -> Bool {
        switch lane {
        case .express, .playback: true
        case .prefetch: inUse < limit
        case .background: inUse < limit && background < backgroundLimit
        }
    }

    /// True if one more transfer may run to the host of a waiter; always true for players' lanes.
    func hasRoom(for entry: AdmissionQueue.Entry) -> Bool {
        guard entry.lane >= .prefetch, let limit = hostLimits[entry.host] else { return true }
        return (byHost[entry.host] ?? 0) < limit
    }

    /// Counts started or ended transfers; those of players' lanes are ignored.
    mutating func count(_ lane: Lane, to host: String, by change: Int) {
        guard lane >= .prefetch else { return }
        inUse += change
        if lane == .background { background += change }
        let left = (byHost[host] ?? 0) + change
        byHost[host] = left > 0 ? left : nil
    }
}

/// Measurements of one host for the controller of concurrency, since the last call.
package struct AheadFigures: Sendable, Hashable {
    /// Body bytes, those for players included.
    package var bytes: Int64 = 0
    /// Ahead transfers that succeeded.
    package var finished = 0
    /// Ahead transfers that failed on the link, timed out or were refused with 429 or 503.
    package var errors = 0
    /// The number of response heads, and the total time until them in seconds.
    package var answers = 0
    package var answerSeconds = 0.0
    /// Ahead transfers running now.
    package var inFlight = 0

    package init() {}
}

/// The measurements while ahead transfers run.
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
    /// True if fewer concurrent transfers might have avoided the failure.
    fileprivate var isOfTheLink: Bool {
        switch kind {
        case .connect, .connectTimeout, .reset, .truncated, .firstByteTimeout, .stalled: true
        case .resolve, .proxy: isSilence
        default: false
        }
    }
}

extension UpstreamClient {
    /// Counts the body bytes received in this round.
    func measureBytes(_ transfer: Transfer) {
        let count = transfer.bytesReceived - transfer.bytesMeasured
        transfer.bytesMeasured = transfer.bytesReceived
        if count > 0, aheadInFlight > 0 { meter.add(bytes: Int(count), from: transfer.host) }
    }

    /// Measures the time until a head that was just received.
    func measureAnswer(_ transfer: Transfer) {
        guard transfer.lane >= .prefetch else { return }
        let seconds = (loop.now - transfer.hopState.startedAt).inSeconds
        let status = transfer.hopState.parser.status.rawValue
        meter.add(
            answerAfter: seconds, from: transfer.host, isRefusal: status == 429 || status == 503)
    }

    /// Changes the limits of prefetch and background transfers: in all, of background ones among
    /// them, and per host.
    ///
    /// Running transfers continue; waiting ones are admitted at the end of this round.
    package func limitAhead(
        _ all: Int, background: Int = .max, hosts: [String: Int] = [:]
    ) {
        queue.limitAhead(all, background: background, hosts: hosts)
        scheduleRoundEnd()
    }

    /// Preempts the newest background transfers until `most` are left.
    package func preemptBackground(over most: Int) {
        let excess = queue.ahead.background - max(0, most)
        guard excess > 0 else { return }
        let running = live.values.filter { $0.lane == .background && $0.state == .running }
        for transfer in running.sorted(by: { $0.id > $1.id }).prefix(excess) {
            fail(transfer, UpstreamError(.preempted, host: transfer.host))
        }
    }

    /// The number of running prefetch and background transfers.
    package var aheadInFlight: Int { queue.ahead.inUse }

    /// The number of prefetch and background transfers that wait for a slot.
    package var aheadWaiting: Int { queue.waiting(in: .prefetch) + queue.waiting(in: .background) }

    /// Returns the measurements by host since the last call; includes every host with running
    /// transfers.
    package func takeAheadFigures() -> [String: AheadFigures] {
        var taken = meter.take()
        for (host, count) in queue.ahead.byHost {
            taken[host, default: AheadFigures()].inFlight = count
        }
        return taken
    }
}
