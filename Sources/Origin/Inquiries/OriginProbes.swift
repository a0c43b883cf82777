// Probes origins that do not answer, in the background: one request at a time for each origin, at
// growing intervals, and immediately when something is requested from it.
import CachePolicy
import HLS
import HTTP
import Logging
import Model
import Posix
import Reactor
import Upstream
import URISyntax

/// Maintains the health of origins; lives on the upstream loop.
final class OriginProbes {
    /// The probing of one origin.
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

    /// The delegate of one probe request.
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

        func transfer(_ transfer: Transfer, didReceive bytes: UnsafeRawBufferPointer) {}

        func transfer(_ transfer: Transfer, didFinish result: TransferResult) {
            self.transfer = nil
            if case .failure(let error) = result { return done(head, error) }
            done(head, nil)
        }
    }

    /// The first delay of a probe, after the attempts of the request that failed first.
    fileprivate static let firstDelay = Interval.milliseconds(500)
    /// The longest delay while few origins are probed: players should see one again within seconds
    /// of its return.
    private static let longestDelay = Interval.seconds(4 as Int64)
    /// The time between probes of many origins: a client that names hundreds of dead hosts must not
    /// cause as many probes.
    private static let shareOfDelay = Interval.milliseconds(100)
    /// The shortest time between probes that requests trigger.
    private static let shortestPause = Interval.seconds(1 as Int64)
    /// An origin from which nothing was requested for this long is forgotten; the next request pays
    /// for one more first failure.
    private static let idleLimit = Interval.seconds(600 as Int64)
    /// The most probes under way, over all origins: they hold slots while they wait.
    private static let mostAtOnce = 4

    /// The time between two requests to an origin that is down and refuses connections.
    private static let turnWhileDown = Interval.milliseconds(500)
    /// The time between two requests to a suspected origin: as soon as a second failure counts.
    private static let turnWhileSuspected = Interval.milliseconds(200)
    /// The time between two looks of a flight that waits for the return of an origin.
    static let returnLook = Interval.milliseconds(200)

    let health: OriginHealth
    private let watchesParents: Bool
    private unowned let table: FlightTable
    private var probes: [Origin: Probe] = [:]
    /// When origins that do not answer were last contacted.
    private var tries = RecentMap<Origin, Monotonic>(capacity: 256)
    private var asking = AskingFlights<Flight>()

    init(_ health: OriginHealth, table: FlightTable, watchesParents: Bool = false) {
        self.health = health
        self.watchesParents = watchesParents
        self.table = table
    }

    private var now: Monotonic { table.loop.now }

    // MARK: Reports from flights

    /// Records an answer of an origin, whatever its status.
    func answered(_ origin: Origin) {
        guard let mark = health.answered(origin, now: now) else { return }
        if let probe = probes.removeValue(forKey: origin) { end(probe) }
        guard mark.state == .down else { return }
        table.services.log.notice(
            watchesParents ? "a parent answers again" : "an origin answers again",
            metadata: [
                "origin": "\(origin)", "after_ms": "\((now - mark.since).nanoseconds / 1_000_000)",
            ])
    }

    /// Records a failed request.
    ///
    /// - Returns: true if its origin counts as down, so that a retry is useless.
    func failed(
        _ error: UpstreamError, at url: AbsoluteURL, silentSince: Monotonic, isProbe: Bool = false
    ) -> Bool {
        let origin = url.origin
        let failure = OriginHealth.Failure(
            origin: origin, error: error, silentSince: silentSince, now: now, isProbe: isProbe)
        guard let (before, after) = health.failed(failure) else { return false }
        tries[origin] = now
        if probes[origin] == nil, let root = Self.root(of: url) {
            let probe = Probe(origin, root, now: now)
            probes[origin] = probe
            // An origin that accepts connections but stays silent is probed immediately.
            if error.kind == .firstByteTimeout || error.kind == .stalled { probe.delay = .zero }
            schedule(probe)
        }
        if before < .down, after == .down, watchesParents {
            let advice = error.advice.isEmpty ? "" : "; \(error.advice)"
            table.services.log.warning(
                "a parent does not answer; requests go to origins directly",
                metadata: ["parent": "\(origin)", "reason": "\(error.message)\(advice)"])
        } else if before < .down, after == .down {
            table.services.counters.add(.originOutages)
            table.services.log.warning(
                "an origin does not answer; its stored responses are served",
                metadata: ["origin": "\(origin)", "reason": "\(error.message)"])
            table.giveUp(on: origin, failure: ProxyFailure(error, subject: url.redacted))
        }
        return after == .down
    }

    /// When a request to an origin may be sent.
    enum Turn {
        case now
        /// Another request has just failed; this one is decided after the given time.
        case later(Interval)
        case refused(ProxyFailure)
    }

    /// Decides when a request may be sent to its origin.
    ///
    /// If failures are quick, players' requests serve as probes; but one of them at a time is
    /// enough.
    func turn(of request: FetchRequest) -> Turn {
        let origin = request.resource.url.origin
        guard let mark = health.mark(of: origin), table.parent(for: request.resource) == nil else {
            return .now
        }
        health.want(origin, now: now)
        let way = Self.way(
            past: mark, isPlayers: request.lane <= .playback && !request.revalidates,
            awaitsReturn: request.terms.awaitsReturn, now: now)
        switch way {
        case .free: return .now
        case .inTurn: return pause(before: origin).map { .later($0) } ?? .now
        case .awaitsReturn:
            hurry(origin)
            return .later(Self.returnLook)
        case .closed:
            hurry(origin)
            return .refused(mark.refusal(of: request.resource.url, now: now))
        }
    }

    /// How a request proceeds at an origin that does not answer.
    enum Way {
        case free, inTurn, awaitsReturn, closed
    }

    /// Decides how a request proceeds.
    ///
    /// - Parameters:
    ///   - mark: the mark of its origin.
    ///   - isPlayers: whether a player waits for the response.
    ///   - awaitsReturn: whether it waits for the return of an origin that is awaited. It then
    ///     sends no request that may fail at once: the probes tell when one is worthwhile.
    ///   - now: the time.
    /// - Returns: how it proceeds.
    static func way(
        past mark: OriginHealth.Mark, isPlayers: Bool, awaitsReturn: Bool, now: Monotonic
    ) -> Way {
        guard isPlayers else { return mark.state == .down ? .closed : .free }
        if awaitsReturn, mark.isAwaited(now: now) { return .awaitsReturn }
        if mark.isQuick { return .inTurn }
        return mark.state == .down ? .closed : .free
    }

    /// Notes that a flight waits for the return of an origin, which is then probed more often.
    func noteWait(for origin: Origin) {
        health.want(origin, now: now)
        hurry(origin)
    }

    /// Returns the time until an origin that refuses connections may be contacted again; nil for
    /// now, which takes the turn.
    func pause(before origin: Origin) -> Interval? {
        guard let mark = health.mark(of: origin), mark.isQuick else { return nil }
        let gap = mark.state == .down ? Self.turnWhileDown : Self.turnWhileSuspected
        let next = tries[origin].map { $0 + gap } ?? now
        guard next <= now else { return max(next - now, OriginTurns.shortestPause) }
        if let other = flightAsking(origin) {
            return OriginTurns.pause(
                whileAskedFor: now - other.requestedAt, jitter: Double.random(in: 0...1))
        }
        tries[origin] = now
        return nil
    }

    /// Returns a flight that waits for the first response of an origin, and not of a parent.
    private func flightAsking(_ origin: Origin) -> Flight? {
        asking.find(of: origin, among: table.allFlights) {
            $0.phase == .asking && $0.resource.url.origin == origin && !$0.asksParent
        }
    }

    /// Returns the failure of a request that has waited in vain, for its turn or for the return of
    /// the origin that it was redirected to, if `place` is given; nil if it may wait longer.
    func refusal(afterWaiting url: AbsoluteURL, at place: AbsoluteURL? = nil) -> ProxyFailure? {
        let origin = (place ?? url).origin
        guard let mark = health.mark(of: origin), mark.state == .down else { return nil }
        hurry(origin)
        return mark.refusal(of: url, at: place, now: now)
    }

    /// Returns the failure of a transfer that is redirected to an origin that is down; nil if it
    /// may continue.
    ///
    /// - Parameters:
    ///   - url: where it is redirected to.
    ///   - resource: what it fetches.
    ///   - hasWaited: whether the flight waits for origins: the one that redirects has answered, so
    ///     that the other may be back too, before its probe shows that.
    /// - Returns: the failure.
    func refusal(
        ofHopTo url: AbsoluteURL, _ resource: Resource, hasWaited: Bool
    ) -> ProxyFailure? {
        guard let mark = health.mark(of: url.origin), mark.state == .down, !mark.isQuick,
            !(hasWaited && mark.isAwaited(now: now))
        else { return nil }
        health.want(url.origin, now: now)
        hurry(url.origin)
        return mark.refusal(of: resource.url, at: url, now: now)
    }

    /// Probes all marked origins now, or as soon as few enough probes are under way: the machine's
    /// network has changed.
    func hurryAll() {
        for probe in probes.values {
            // What former probes showed is no reason to wait.
            probe.delay = Self.firstDelay
            if probe.asking == nil, !hurry(probe) { schedule(probe) }
        }
    }

    func shutdown() {
        for probe in probes.values { end(probe) }
        probes = [:]
    }

    private func end(_ probe: Probe) {
        if let timer = probe.timer { table.loop.cancel(timer) }
        probe.asking?.transfer?.cancel()
    }

    // MARK: Requests

    /// Returns the longest delay of a probe where so many origins are probed, so that all together
    /// get ten a second.
    static func longestDelay(of count: Int) -> Interval {
        max(longestDelay, Interval(nanoseconds: Int64(count) * shareOfDelay.nanoseconds))
    }

    /// Returns the request that probes an origin: HEAD for its root, without anything of a session.
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
        if let timer = probe.timer { table.loop.cancel(timer) }
        let spread = Int64.random(in: 0...(probe.delay.nanoseconds / 4))
        let delay = Interval(nanoseconds: probe.delay.nanoseconds + spread)
        probe.timer = table.loop.schedule(after: delay) { [weak self, weak probe] _ in
            guard let self, let probe else { return }
            probe.timer = nil
            self.ask(probe)
        }
    }

    private func hurry(_ origin: Origin) {
        if let probe = probes[origin] { _ = hurry(probe) }
    }

    /// Probes an origin now; returns false if a probe is under way, or ended just now.
    private func hurry(_ probe: Probe) -> Bool {
        guard probe.asking == nil, now - probe.lastEnd >= Self.shortestPause else { return false }
        if let timer = probe.timer { table.loop.cancel(timer) }
        probe.timer = nil
        ask(probe)
        return true
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
        table.services.counters.add(.originProbes)
        var request = Self.question(to: probe.url, lane: .background)
        if let sluice = parent(at: probe.origin), sluice.isSluice, let url = Self.anyURL {
            request.url = url
            request.parent = ParentWay(sluice, role: ResourceRole.segment.letter)
            request.isOfParentAlone = true
        }
        request.timeouts.connect = .seconds(2 as Int64)
        let asking = Asking(now: now) { [weak self, weak probe] head, error in
            guard let self, let probe else { return }
            self.ended(probe, head, error)
        }
        probe.asking = asking
        asking.transfer = table.client.start(request, delegate: asking)
    }

    /// What another sluice is probed with; it does not ask for it.
    private static let anyURL = try? AbsoluteURL("http://example.com/")

    private func parent(at origin: Origin) -> Parent? {
        guard watchesParents else { return nil }
        return table.services.settings.parents.all.first { $0.origin == origin }
    }

    /// Why a response to a probe does not show that a parent serves this daemon; nil if it does,
    /// and for an origin.
    private func refusal(_ head: TransferHead, of probe: Probe) -> UpstreamError? {
        guard let parent = parent(at: probe.origin),
            !ParentFailure.isOver(after: head.status, isSluice: parent.isSluice)
        else { return nil }
        return ParentFailure.error(head.status, of: parent)
    }

    /// True if a response to an inquiry shows that the origin is there; a parent with an error of
    /// its own serves nobody.
    func isAnswer(_ head: TransferHead) -> Bool {
        !watchesParents || head.status.rawValue < 500
    }

    private func ended(_ probe: Probe, _ head: TransferHead?, _ error: UpstreamError?) {
        let startedAt = probe.asking?.startedAt ?? now
        probe.asking = nil
        probe.lastEnd = now
        guard probes[probe.origin] === probe else { return }
        let refusal = head.flatMap { self.refusal($0, of: probe) }
        if head != nil, refusal == nil { return answered(probe.origin) }
        if let error = refusal ?? error {
            _ = failed(error, at: probe.url, silentSince: startedAt, isProbe: true)
        }
        let next = Interval(nanoseconds: probe.delay.nanoseconds * 2)
        probe.delay = max(Self.firstDelay, min(next, Self.longestDelay(of: probes.count)))
        schedule(probe)
    }
}

extension FlightTable {
    /// Fails all flights that wait for the first response of an origin, and not of a parent.
    ///
    /// Bodies interrupted in the middle are still resumed, for as long as their players have
    /// patience. Flights that wait for the return of this origin, or of one that it redirected them
    /// to, go on waiting: their requests do not wait a second time.
    func giveUp(on origin: Origin, failure: ProxyFailure) {
        let hopeless = allFlights.filter { flight in
            !flight.hasFill && flight.resource.url.origin == origin
                && (flight.phase == .asking || flight.phase == .backingOff) && !flight.asksParent
                && !flight.awaitsReturn
        }
        for flight in hopeless {
            // The second level may have what the origin does not send.
            guard !flight.keepsBack(failure) else { continue }
            flight.fail(failure, cause: FillEnd.refused(failure))
        }
    }
}
