import HTTP
import Posix
import Reactor

/// The limits and use of slots by transfers that no player waits for.
struct AheadShare: Sendable {
    /// What goes first to a host in a session.
    private struct First: Hashable {
        let session: UInt64
        let host: String
    }

    /// The limit over all hosts.
    var limit = Int.max
    /// The limit of background transfers among them.
    var backgroundLimit = Int.max
    /// The limits of single hosts; others have only the overall limit.
    var hostLimits: [String: Int] = [:]
    private(set) var inUse = 0
    private(set) var background = 0
    private(set) var byHost = Tally<String>()
    /// Those that go first, which may be more than `limit`.
    private(set) var first = 0
    private var firstBySession = Tally<First>()

    /// True if one more transfer of a lane may run; what goes first need not ask.
    func hasRoom(in lane: Lane) -> Bool {
        switch lane {
        case .express, .playback: true
        case .prefetch: inUse < limit
        case .background: inUse < limit && background < backgroundLimit
        }
    }

    /// True if one more transfer may run to the host of a waiter; always true for players' lanes.
    ///
    /// A recording loses for good what it fetches too late: trouble at other hosts must not hold it
    /// back, and whatever is measured of its own host, it may have one transfer there. More than
    /// that could be refused by an origin that allows an account one connection.
    func hasRoom(for entry: AdmissionQueue.Entry) -> Bool { hasRoom(for: entry, at: entry.host) }

    /// True if one more transfer may run to a host, such as one that it is redirected to.
    func hasRoom(for entry: AdmissionQueue.Entry, at host: String) -> Bool {
        guard entry.lane >= .prefetch else { return true }
        let running = byHost[host]
        guard entry.isFirst else { return hostLimits[host].map { running < $0 } ?? true }
        // The overall limit is the best guess for a host that has none yet.
        return running < hostLimits[host] ?? limit
            || firstBySession[First(session: entry.session, host: host)] == 0
    }

    /// Counts transfers that have started to a host, or ended; those of players' lanes are ignored.
    mutating func count(_ entry: AdmissionQueue.Entry, to host: String, by change: Int) {
        guard entry.lane >= .prefetch else { return }
        inUse += change
        if entry.lane == .background { background += change }
        byHost.change(host, by: change)
        guard entry.isFirst else { return }
        first += change
        firstBySession.change(First(session: entry.session, host: host), by: change)
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

    /// Measures the time until a head that was just received, and notes what it tells of its host.
    func measureAnswer(_ transfer: Transfer) {
        let status = transfer.hopState.parser.status.rawValue
        if (200..<300).contains(status) { noteSuccess(transfer) }
        guard transfer.lane >= .prefetch else { return }
        let seconds = (loop.now - transfer.hopState.startedAt).inSeconds
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

    /// The number of running prefetch transfers that go first.
    package var aheadFirstInFlight: Int { queue.ahead.first }

    /// The number of prefetch and background transfers that wait for a slot.
    package var aheadWaiting: Int { queue.waiting(in: .prefetch) + queue.waiting(in: .background) }

    /// Returns the measurements by host since the last call; includes every host with running
    /// transfers.
    package func takeAheadFigures() -> [String: AheadFigures] {
        var taken = meter.take()
        for (host, count) in queue.ahead.byHost.all {
            taken[host, default: AheadFigures()].inFlight = count
        }
        return taken
    }
}
