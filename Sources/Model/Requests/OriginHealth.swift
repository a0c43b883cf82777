// Origins that currently do not answer. The first failure marks an origin, so that other requests
// are served from the store without waiting for it again; the first answer clears the mark.
//
// | state | entered by | a stale response | resources not stored | lists |
// |---|---|---|---|---|
// | up | any response of the origin, whatever its status | is revalidated first | are fetched | unchanged |
// | suspected | a refused connection, a failed name lookup, a silent transfer | is served immediately | are fetched | unchanged |
// | down | a timeout of lookup, proxy or connection, a second refusal 200 ms later, a silent probe | is served immediately | fail immediately; where failures are quick too, one request every half second is let through | offline form |
//
// An origin that has answered before is waited for in the first 30 s of a silence, where nothing
// else can be sent to a player in the middle of a title (`Mark.isAwaited`).
//
// A failure counts only if the origin has not answered any request since the failed one was sent:
// one broken file is not an outage.
import CachePolicy
import Glibc
package import HTTP
package import Posix
import Synchronization
package import Upstream
package import URISyntax

/// The origins that do not answer.
///
/// Any thread may read it; only the upstream loop changes it. Without marks, a lookup costs one
/// load.
package final class OriginHealth: Sendable {
    package enum State: Int, Sendable, Comparable {
        case up, suspected, down

        package static func < (a: State, b: State) -> Bool { a.rawValue < b.rawValue }
    }

    /// The record of an origin that does not answer.
    package struct Mark: Sendable {
        /// When the first failure was noticed.
        package let since: Monotonic
        package fileprivate(set) var state: State
        /// The last error, as the failed transfer worded it.
        package fileprivate(set) var reason: String
        /// The status of the response to a request that failed by that error.
        package fileprivate(set) var status = HTTPStatus.badGateway
        /// True if its name was not found by the last request.
        package fileprivate(set) var isOfName = false
        /// True if failures are quick, so that trying costs nothing.
        package fileprivate(set) var isQuick: Bool
        /// True if nothing was heard before the last failure: a timeout, or no way to the origin,
        /// and not a refusal.
        package fileprivate(set) var isSilent = false
        /// When the request of the first failure was sent, or its last byte received.
        package let silentSince: Monotonic
        /// The same of the first failure since it last refused a connection: its return is waited
        /// for from then on.
        package fileprivate(set) var quietSince: Monotonic
        /// When it last answered, or sent a byte of a body; nil if it has not in this run.
        package fileprivate(set) var lastHeard: Monotonic?
        /// When something was last requested from it.
        package fileprivate(set) var wanted: Monotonic
    }

    /// A failed request, as far as it concerns its origin.
    package struct Failure: Sendable {
        package let origin: Origin
        package let error: UpstreamError
        /// The start of the silence: when the request was sent, or its last byte received.
        package let silentSince: Monotonic
        package let now: Monotonic
        /// True if the request was a probe of the origin.
        package var isProbe = false

        package init(
            origin: Origin, error: UpstreamError, silentSince: Monotonic, now: Monotonic,
            isProbe: Bool = false
        ) {
            self.origin = origin
            self.error = error
            self.silentSince = silentSince
            self.now = now
            self.isProbe = isProbe
        }
    }

    /// A time in which an origin was down.
    package struct Outage: Sendable {
        package let origin: Origin
        package let since: Monotonic
        package let until: Monotonic
        package let reason: String
    }

    private struct Book: Sendable {
        var marks: [Origin: Mark] = [:]
        /// Outages that ended since they were last taken.
        var ended: [Outage] = []
        var answers = RecentMap<Origin, Monotonic>(capacity: 1_024)

        /// Removes and returns a mark; `end` tells when the outage ended that it stood for.
        mutating func removeMark(of origin: Origin, end: (Mark) -> Monotonic) -> Mark? {
            guard let mark = marks.removeValue(forKey: origin) else { return nil }
            guard mark.state == .down else { return mark }
            if ended.count >= OriginHealth.mostEnded { ended.removeFirst() }
            ended.append(
                Outage(origin: origin, since: mark.since, until: end(mark), reason: mark.reason))
            return mark
        }
    }

    /// The most origins that are marked, so that a player redirected through a list of dead hosts
    /// does not fill memory.
    private static let mostMarks = 256
    /// The most ended outages that wait to be taken; the oldest are dropped.
    private static let mostEnded = 256
    /// Two failures closer together count as one.
    package static let confirmation = Interval.milliseconds(200)
    /// Players wait for a failure that took longer.
    private static let quick = Interval.milliseconds(400)

    private let book = Mutex(Book())
    private let count = Atomic<Int>(0)
    private let changes = Atomic<Int>(0)
    private let countsTLS: Bool

    /// Makes a book without marks.
    ///
    /// - Parameter countsTLS: true if a failed TLS handshake counts like a refused connection, as
    ///   for parents: the origin is asked in place of one that is not trusted. A player is told of
    ///   each failure at an origin, in whose place nobody is asked.
    package init(countsTLS: Bool = false) { self.countsTLS = countsTLS }

    // MARK: Lookup

    /// The state of an origin.
    package func state(of origin: @autoclosure () -> Origin) -> State {
        guard count.load(ordering: .acquiring) > 0 else { return .up }
        let origin = origin()
        return book.withLock { $0.marks[origin]?.state ?? .up }
    }

    /// Returns the mark of an origin; nil while it is up.
    package func mark(of origin: Origin) -> Mark? {
        guard count.load(ordering: .acquiring) > 0 else { return nil }
        return book.withLock { $0.marks[origin] }
    }

    /// Changes whenever an origin goes down or is up again.
    package var version: Int { changes.load(ordering: .acquiring) }

    /// Returns when an origin last answered, if remembered.
    package func lastAnswer(of origin: Origin) -> Monotonic? {
        book.withLock { $0.answers[origin] }
    }

    /// The origins that do not answer, in the order in which they were marked.
    package var marked: [(origin: Origin, mark: Mark)] {
        guard count.load(ordering: .acquiring) > 0 else { return [] }
        return book.withLock { $0.marks.map { ($0.key, $0.value) } }
            .sorted { $0.mark.since < $1.mark.since }
    }

    /// True if any origin is down.
    package var hasDown: Bool { downCount > 0 }

    /// How many origins are down.
    package var downCount: Int {
        guard count.load(ordering: .acquiring) > 0 else { return 0 }
        return book.withLock { book in book.marks.values.count { $0.state == .down } }
    }

    // MARK: Updates

    /// Records an answer.
    ///
    /// - Returns: the mark that was cleared; nil if there was none.
    package func answered(_ origin: Origin, now: Monotonic) -> Mark? {
        let forgiven = book.withLock { book in
            book.answers[origin] = now
            return book.removeMark(of: origin) { _ in now }
        }
        if forgiven != nil { count.subtract(1, ordering: .releasing) }
        if forgiven?.state == .down { changes.add(1, ordering: .releasing) }
        return forgiven
    }

    /// Records a failure.
    ///
    /// - Returns: the state before and after; nil if the failure says nothing about the origin.
    package func failed(_ failure: Failure) -> (before: State, after: State)? {
        guard counts(failure.error) else { return nil }
        let took = failure.now - failure.silentSince
        return book.withLock { book in
            if let answer = book.answers[failure.origin], answer >= failure.silentSince {
                return nil
            }
            let known = book.marks[failure.origin]
            if known == nil, book.marks.count >= Self.mostMarks { return nil }
            var mark =
                known
                ?? Mark(
                    since: failure.now, state: .suspected, reason: "", isQuick: true,
                    silentSince: failure.silentSince, quietSince: failure.silentSince,
                    lastHeard: book.answers[failure.origin],
                    wanted: failure.now)
            if Self.confirms(failure, mark) { mark.state = .down }
            mark.reason = failure.error.message
            mark.status = failure.error.gatewayStatus
            mark.isOfName = failure.error.kind == .resolve
            mark.isQuick = took <= Self.quick
            if !mark.isSilent { mark.quietSince = failure.silentSince }
            mark.isSilent = failure.error.isUnanswered
            if failure.error.bytesReceived > 0 {
                mark.lastHeard = max(mark.lastHeard ?? failure.silentSince, failure.silentSince)
            }
            book.marks[failure.origin] = mark
            if known == nil { count.add(1, ordering: .releasing) }
            if mark.state != known?.state { changes.add(1, ordering: .releasing) }
            return (known?.state ?? .up, mark.state)
        }
    }

    /// True if a failure marks the origin as down.
    ///
    /// An origin that accepts connections may only be slow with one resource: for those the probe
    /// decides.
    private static func confirms(_ failure: Failure, _ mark: Mark) -> Bool {
        if failure.error.isSilence { return true }
        switch failure.error.kind {
        case .connectTimeout: return true
        case .firstByteTimeout, .stalled: return failure.isProbe
        default: return failure.now - mark.since >= confirmation
        }
    }

    private func counts(_ error: UpstreamError) -> Bool {
        switch error.kind {
        case .tls: countsTLS
        case .resolve, .connect, .connectTimeout, .proxy, .interface, .firstByteTimeout, .stalled:
            true
        default: false
        }
    }

    /// Records that something was requested from a marked origin.
    package func want(_ origin: Origin, now: Monotonic) {
        book.withLock { $0.marks[origin]?.wanted = now }
    }

    /// Returns the outages that ended since the last call.
    package func takeEnded() -> [Outage] {
        book.withLock { book in
            let ended = book.ended
            book.ended = []
            return ended
        }
    }

    /// Removes a mark without an answer, since nothing was requested for a long time.
    package func forget(_ origin: Origin) {
        // When it would have answered again is not known.
        let mark = book.withLock { $0.removeMark(of: origin) { $0.wanted } }
        if mark != nil { count.subtract(1, ordering: .releasing) }
        changes.add(1, ordering: .releasing)
    }
}

extension UpstreamError {
    /// True if nothing came back in time, or nothing could be sent, so that the line may be dead:
    /// whoever refuses is there.
    fileprivate var isUnanswered: Bool {
        switch kind {
        case .connectTimeout, .firstByteTimeout, .stalled: true
        // Without a network, lookups fail at once; only origins that have answered are waited for,
        // and their names exist.
        case .resolve: true
        // The errno of a machine that has lost its network, or whose router has (connect(2)).
        case .connect: [ENETDOWN, ENETUNREACH, EHOSTUNREACH].contains(systemCode)
        default: isSilence
        }
    }
}

extension OriginHealth.Mark {
    /// How long after the start of its silence requests wait for an origin's return.
    ///
    /// Not after its last answer: an origin whose responses are all stored may not be asked for
    /// minutes before it falls silent.
    ///
    /// Players that ask an origin directly sit out a dead line for about that long, but walk
    /// through the rest of a list in milliseconds if each request is refused. Most outages of a
    /// line, as a change of network, end sooner.
    package static let awaitedTime = Interval.seconds(30 as Int64)

    /// True if the return of an origin that has fallen silent is waited for: it has answered in
    /// this run, and refuses nothing.
    package func isAwaited(now: Monotonic) -> Bool {
        guard state == .down, isSilent, let lastHeard else { return false }
        return now - max(lastHeard, quietSince) < Self.awaitedTime
    }

    /// Returns the failure for a resource that is not stored.
    ///
    /// - Parameters:
    ///   - url: the requested URL.
    ///   - place: the URL that it redirected to, if elsewhere.
    ///   - isList: true for a playlist that is stored although none of its resources is.
    ///   - now: the end of the silence in the message.
    /// - Returns: a failure caused by the origin, with the status of a request that was sent; 504
    ///   for a list of which nothing can be played.
    package func refusal(
        of url: AbsoluteURL, at place: AbsoluteURL? = nil, isList: Bool = false, now: Monotonic
    ) -> ProxyFailure {
        let seconds = max(1, (now - silentSince).nanoseconds / 1_000_000_000)
        let missing =
            isList
            ? "nothing that \(url.redacted) names is stored" : "\(url.redacted) is not stored"
        var failure = ProxyFailure(
            .origin, isList ? .gatewayTimeout : status,
            "\(missing), and \((place ?? url).asciiHost) has not answered for \(seconds) s "
                + "(\(reason)); it is asked every few seconds, so try again soon",
            allowsStale: true)
        failure.proxyError = .destinationUnavailable
        // The name of an origin that has answered is known.
        failure.tellsOfName = isOfName && lastHeard == nil
        failure.isUnasked = true
        failure.redirectedOrigin = place?.origin
        failure.retryAfter = 2
        return failure
    }
}
