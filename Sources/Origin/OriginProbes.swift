// Asks origins that do not answer whether they do again: in the background, one request at a time
// for each origin, ever more seldom, and at once when somebody wants something of it.
import CachePolicy
import HTTP
import Logging
import Model
import Posix
import Reactor
import Upstream
import URISyntax

/// Watches over the health of origins; lives on the upstream loop.
final class OriginProbes {
    /// One origin that is being asked.
    private final class Probe {
        let origin: Origin
        let url: AbsoluteURL
        var delay: Interval
        var timer: TimerID?
        var asking: Asking?
        var lastEnd: Monotonic

        init(_ origin: Origin, _ url: AbsoluteURL, now: Monotonic) {
            self.origin = origin
            self.url = url
            delay = OriginProbes.firstDelay
            lastEnd = now
        }
    }

    /// Hears what became of one request.
    final class Asking: TransferDelegate {
        private let done: (TransferHead?, UpstreamError?) -> Void
        private var head: TransferHead?
        var transfer: Transfer?
        let startedAt: Monotonic

        init(now: Monotonic, _ done: @escaping (TransferHead?, UpstreamError?) -> Void) {
            startedAt = now
            self.done = done
        }

        func transfer(_ transfer: Transfer, didReceive head: TransferHead) { self.head = head }

        func transfer(_ transfer: Transfer, didReceive bytes: UnsafeRawBufferPointer) -> BodyVerdict
        {
            .consumed
        }

        func transfer(_ transfer: Transfer, didFinish result: TransferResult) {
            self.transfer = nil
            if case .failure(let error) = result { return done(head, error) }
            done(head, nil)
        }
    }

    /// After the tries of the request that failed first.
    fileprivate static let firstDelay = Interval.milliseconds(500)
    /// Players should see the origin again within seconds of its return.
    private static let longestDelay = Interval.seconds(4 as Int64)
    /// Wishes do not hurry probes on more often than this.
    private static let shortestPause = Interval.seconds(1 as Int64)
    /// Nobody has wanted anything for so long: the next who does pays one more first failure.
    private static let idleLimit = Interval.seconds(600 as Int64)
    /// Probes under way over all origins: they hold slots while they wait.
    private static let mostAtOnce = 4

    /// Between two requests to an origin that refuses connections.
    private static let turnWhileDown = Interval.milliseconds(500)
    /// As soon as a second failure counts.
    private static let turnWhileSuspected = Interval.milliseconds(200)
    private static let shortestTurn = Interval.milliseconds(20)

    private let health: OriginHealth
    private unowned let table: FlightTable
    private var probes: [Origin: Probe] = [:]
    /// When origins that do not answer were asked last.
    private var tries = RecentMap<Origin, Monotonic>(capacity: 256)

    init(_ health: OriginHealth, table: FlightTable) {
        self.health = health
        self.table = table
    }

    private var now: Monotonic { table.loop.now }

    // MARK: What flights tell

    /// An origin has answered, whatever it said.
    func answered(_ origin: Origin) {
        guard let mark = health.answered(origin, now: now) else { return }
        if let probe = probes.removeValue(forKey: origin) {
            if let timer = probe.timer { table.loop.cancel(timer) }
            probe.asking?.transfer?.cancel()
        }
        guard mark.state == .down else { return }
        table.log.notice(
            "an origin answers again",
            metadata: [
                "origin": "\(origin)", "after_ms": "\((now - mark.since).nanoseconds / 1_000_000)",
            ])
    }

    /// A request has failed.
    ///
    /// - Returns: true where its origin counts as down, so that trying again is of no use.
    func failed(
        _ error: UpstreamError, at url: AbsoluteURL, silentSince: Monotonic, isProbe: Bool = false
    ) -> Bool {
        let failure = OriginHealth.Failure(
            origin: url.origin, error: error, silentSince: silentSince, now: now, isProbe: isProbe)
        return take(failure, at: url)
    }

    private func take(_ failure: OriginHealth.Failure, at url: AbsoluteURL) -> Bool {
        let (origin, error) = (failure.origin, failure.error)
        guard let (before, after) = health.failed(failure) else { return false }
        tries[origin] = now
        if probes[origin] == nil, let root = Self.root(of: url) {
            let probe = Probe(origin, root, now: now)
            probes[origin] = probe
            // One that takes connections and is silent is asked at once whether it is there.
            if error.kind == .firstByteTimeout || error.kind == .stalled { probe.delay = .zero }
            schedule(probe)
        }
        if before < .down, after == .down {
            table.counters.add(.originOutages)
            table.log.warning(
                "an origin does not answer; what is stored of it is served",
                metadata: ["origin": "\(origin)", "reason": "\(error.message)"])
            table.giveUp(on: origin, failure: ProxyFailure(error, subject: url.redacted))
        }
        return after == .down
    }

    /// What becomes of a request to an origin.
    enum Turn {
        case now
        /// Another request has just failed; what becomes of this one is decided after that time.
        case later(Interval)
        case refused(ProxyFailure)
    }

    /// Whether a request may go to its origin now.
    ///
    /// Where failing costs nothing, requests of players are as good as probes; but one of them at a
    /// time is enough.
    func turn(of request: FetchRequest) -> Turn {
        let origin = request.resource.url.origin
        guard let mark = health.mark(of: origin) else { return .now }
        health.want(origin, now: now)
        let isPlayers = request.lane <= .playback && !request.revalidates
        if mark.isQuick, isPlayers { return pause(before: origin).map { .later($0) } ?? .now }
        guard mark.state == .down else { return .now }
        hurry(origin)
        return .refused(mark.refusal(of: request.resource.url, now: now))
    }

    /// The time until a refusing origin may be asked again; nil for now, which takes the turn.
    func pause(before origin: Origin) -> Interval? {
        guard let mark = health.mark(of: origin), mark.isQuick else { return nil }
        let gap = mark.state == .down ? Self.turnWhileDown : Self.turnWhileSuspected
        let next = tries[origin].map { $0 + gap } ?? now
        guard next <= now, !table.isAsking(origin) else {
            return max(next - now, Self.shortestTurn)
        }
        tries[origin] = now
        return nil
    }

    /// The failure of a request whose turn did not come although it has waited for it; nil where it
    /// may wait on.
    func refusal(afterWaiting url: AbsoluteURL) -> ProxyFailure? {
        guard let mark = health.mark(of: url.origin), mark.state == .down else { return nil }
        hurry(url.origin)
        return mark.refusal(of: url, now: now)
    }

    /// The failure of a transfer that is sent on to an origin that is down; nil where it may go on.
    func refusal(ofHopTo url: AbsoluteURL, _ resource: Resource) -> ProxyFailure? {
        guard let mark = health.mark(of: url.origin), mark.state == .down, !mark.isQuick else {
            return nil
        }
        health.want(url.origin, now: now)
        hurry(url.origin)
        return mark.refusal(of: resource.url, at: url, now: now)
    }

    /// Asks all again: the machine's network has changed.
    func hurryAll() {
        for origin in probes.keys { hurry(origin) }
    }

    /// Ends all probes.
    func shutdown() {
        for probe in probes.values {
            if let timer = probe.timer { table.loop.cancel(timer) }
            probe.asking?.transfer?.cancel()
        }
        probes = [:]
    }

    // MARK: Asking

    /// The request that asks an origin whether it is there: for its root, with nothing of a session.
    static func question(to root: AbsoluteURL, lane: Lane) -> TransferRequest {
        var request = TransferRequest(url: root, lane: lane)
        request.method = .head
        request.followsRedirects = false
        request.timeouts.firstByte = .seconds(3 as Int64)
        request.timeouts.stall = .seconds(3 as Int64)
        return request
    }

    static func root(of url: AbsoluteURL) -> AbsoluteURL? {
        try? AbsoluteURL("\(url.origin)/")
    }

    private func schedule(_ probe: Probe) {
        let spread = Int64.random(in: 0...(probe.delay.nanoseconds / 4))
        let delay = Interval(nanoseconds: probe.delay.nanoseconds + spread)
        probe.timer = table.loop.schedule(after: delay) { [weak self, weak probe] _ in
            guard let self, let probe else { return }
            probe.timer = nil
            self.ask(probe)
        }
    }

    private func hurry(_ origin: Origin) {
        guard let probe = probes[origin], probe.asking == nil,
            now - probe.lastEnd >= Self.shortestPause
        else { return }
        if let timer = probe.timer { table.loop.cancel(timer) }
        probe.timer = nil
        ask(probe)
    }

    private func ask(_ probe: Probe) {
        guard let mark = health.mark(of: probe.origin) else {
            probes[probe.origin] = nil
            return
        }
        if now - mark.wanted > Self.idleLimit {
            probes[probe.origin] = nil
            return health.forget(probe.origin)
        }
        guard probes.values.count(where: { $0.asking != nil }) < Self.mostAtOnce else {
            return schedule(probe)
        }
        table.counters.add(.originProbes)
        var request = Self.question(to: probe.url, lane: .background)
        request.timeouts.connect = .seconds(2 as Int64)
        let asking = Asking(now: now) { [weak self, weak probe] head, error in
            guard let self, let probe else { return }
            self.ended(probe, head, error)
        }
        probe.asking = asking
        asking.transfer = table.client.start(request, delegate: asking)
    }

    private func ended(_ probe: Probe, _ head: TransferHead?, _ error: UpstreamError?) {
        let startedAt = probe.asking?.startedAt ?? now
        probe.asking = nil
        probe.lastEnd = now
        guard probes[probe.origin] === probe else { return }
        if head != nil { return answered(probe.origin) }
        if let error {
            let failure = OriginHealth.Failure(
                origin: probe.origin, error: error, silentSince: startedAt, now: now, isProbe: true)
            _ = take(failure, at: probe.url)
        }
        let next = Interval(nanoseconds: probe.delay.nanoseconds * 2)
        probe.delay = max(Self.firstDelay, min(next, Self.longestDelay))
        schedule(probe)
    }
}

extension FlightTable {
    /// Whether a flight waits for the first word of an origin.
    func isAsking(_ origin: Origin) -> Bool {
        allFlights.contains { $0.phase == .asking && $0.resource.url.origin == origin }
    }

    /// Tells everybody who waits for the first word of an origin that none will come.
    ///
    /// Bodies that broke in the middle are still taken up again, for as long as their players have
    /// patience.
    func giveUp(on origin: Origin, failure: ProxyFailure) {
        let hopeless = allFlights.filter { flight in
            !flight.hasFill && flight.resource.url.origin == origin
                && (flight.phase == .asking || flight.phase == .backingOff)
        }
        for flight in hopeless { flight.fail(failure, cause: FillEnd.refused(failure)) }
    }
}
