// Which origins do not answer just now: noticed with the first failure, so that everybody else is
// answered from the store without waiting for it again, and forgiven with the first answer.
//
// | state | entered by | a stale response | what is not stored | lists |
// |---|---|---|---|---|
// | up | any answer of the origin, whatever its status | asks first | is fetched | as they are |
// | suspected | a refused connection, a failed name, a silent transfer | serves at once | is fetched | as they are |
// | down | a connection nobody answers, a second refusal 200 ms later, a silent probe | serves at once | fails at once; where failures come at once too, requests take turns, one in half a second | offline form |
//
// A failure counts only if the origin has not answered anybody since the request went out: one
// broken file is no outage.
import CachePolicy
import HTTP
package import Posix
import Synchronization
package import Upstream
package import URISyntax

/// The origins that do not answer.
///
/// Any thread may ask; only the upstream loop changes it. With none marked, asking costs one load.
package final class OriginHealth: Sendable {
    package enum State: Int, Sendable, Comparable {
        case up, suspected, down

        package static func < (a: State, b: State) -> Bool { a.rawValue < b.rawValue }
    }

    /// What is known of an origin that does not answer.
    package struct Mark: Sendable {
        /// When the first failure was noticed.
        package let since: Monotonic
        package fileprivate(set) var state: State
        /// What failed last, in the words of the failed transfer.
        package fileprivate(set) var reason: String
        /// True where failures come at once, so that trying costs nothing.
        package fileprivate(set) var isQuick: Bool
        /// When somebody last wanted something of it.
        package fileprivate(set) var wanted: Monotonic
    }

    /// A failed request, as far as it tells of its origin.
    package struct Failure: Sendable {
        package let origin: Origin
        package let error: UpstreamError
        /// Since when nothing came: when the request went out, or its last byte came.
        package let silentSince: Monotonic
        package let now: Monotonic
        /// Whether this was the question whether the origin is there.
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

    private struct Book: Sendable {
        var marks: [Origin: Mark] = [:]
        var answers = RecentMap<Origin, Monotonic>(capacity: 1_024)
    }

    /// The most origins that are marked; a player that is sent through a list of dead hosts must
    /// not fill memory.
    private static let mostMarks = 256
    /// Two failures closer together are one.
    package static let confirmation = Interval.milliseconds(200)
    /// A failure that took longer is one that players wait for.
    private static let quick = Interval.milliseconds(400)

    private let book = Mutex(Book())
    private let count = Atomic<Int>(0)
    private let changes = Atomic<Int>(0)

    package init() {}

    // MARK: Asking

    /// The state of an origin.
    package func state(of origin: @autoclosure () -> Origin) -> State {
        guard count.load(ordering: .acquiring) > 0 else { return .up }
        let origin = origin()
        return book.withLock { $0.marks[origin]?.state ?? .up }
    }

    /// What is known of an origin; nil while it is up.
    package func mark(of origin: Origin) -> Mark? {
        guard count.load(ordering: .acquiring) > 0 else { return nil }
        return book.withLock { $0.marks[origin] }
    }

    /// Changes whenever an origin goes down or is up again.
    package var version: Int { changes.load(ordering: .acquiring) }

    /// When an origin answered last, as far as that is remembered.
    package func lastAnswer(of origin: Origin) -> Monotonic? {
        book.withLock { $0.answers[origin] }
    }

    /// The origins that do not answer, in the order in which that was noticed.
    package var marked: [(origin: Origin, mark: Mark)] {
        guard count.load(ordering: .acquiring) > 0 else { return [] }
        return book.withLock { $0.marks.map { ($0.key, $0.value) } }
            .sorted { $0.mark.since < $1.mark.since }
    }

    /// Whether any origin is down.
    package var hasDown: Bool {
        guard count.load(ordering: .acquiring) > 0 else { return false }
        return book.withLock { $0.marks.values.contains { $0.state == .down } }
    }

    /// How many origins are down.
    package var downCount: Int {
        guard count.load(ordering: .acquiring) > 0 else { return 0 }
        return book.withLock { book in book.marks.values.count { $0.state == .down } }
    }

    // MARK: Learning

    /// Takes note of an answer.
    ///
    /// - Returns: the mark that is forgiven; nil where there was none.
    package func answered(_ origin: Origin, now: Monotonic) -> Mark? {
        let forgiven = book.withLock { book in
            book.answers[origin] = now
            return book.marks.removeValue(forKey: origin)
        }
        if forgiven != nil { count.subtract(1, ordering: .releasing) }
        if forgiven?.state == .down { changes.add(1, ordering: .releasing) }
        return forgiven
    }

    /// Takes note of a failure.
    ///
    /// - Returns: the state before and after; nil where the failure says nothing of the origin.
    package func failed(_ failure: Failure) -> (before: State, after: State)? {
        guard Self.counts(failure.error) else { return nil }
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
                    wanted: failure.now)
            if Self.confirms(failure, mark) { mark.state = .down }
            mark.reason = failure.error.message
            mark.isQuick = took <= Self.quick
            book.marks[failure.origin] = mark
            if known == nil { count.add(1, ordering: .releasing) }
            if mark.state != known?.state { changes.add(1, ordering: .releasing) }
            return (known?.state ?? .up, mark.state)
        }
    }

    /// An origin that takes connections may only be slow with one thing: there the probe decides.
    private static func confirms(_ failure: Failure, _ mark: Mark) -> Bool {
        switch failure.error.kind {
        case .connectTimeout: true
        case .firstByteTimeout, .stalled: failure.isProbe
        default: failure.now - mark.since >= confirmation
        }
    }

    private static func counts(_ error: UpstreamError) -> Bool {
        switch error.kind {
        case .resolve, .connect, .connectTimeout, .proxy, .interface, .firstByteTimeout, .stalled:
            true
        default: false
        }
    }

    /// Notes that somebody wants something of a marked origin.
    package func want(_ origin: Origin, now: Monotonic) {
        book.withLock { $0.marks[origin]?.wanted = now }
    }

    /// Forgets a mark without an answer, since nobody has asked for a long time.
    package func forget(_ origin: Origin) {
        let mark = book.withLock { $0.marks.removeValue(forKey: origin) }
        if mark != nil { count.subtract(1, ordering: .releasing) }
        changes.add(1, ordering: .releasing)
    }
}

extension OriginHealth.Mark {
    /// What a request for something that is not stored is told.
    ///
    /// - Parameters:
    ///   - url: what was asked for.
    ///   - place: where that led, if it is elsewhere.
    ///   - isList: true for a playlist that is stored itself, while nothing that it names is.
    ///   - now: the time that the silence is told for.
    /// - Returns: a 504 that is the origin's fault.
    package func refusal(
        of url: AbsoluteURL, at place: AbsoluteURL? = nil, isList: Bool = false, now: Monotonic
    ) -> ProxyFailure {
        let seconds = max(1, (now - since).nanoseconds / 1_000_000_000)
        let missing =
            isList
            ? "nothing that \(url.redacted) names is stored" : "\(url.redacted) is not stored"
        var failure = ProxyFailure(
            .origin, .gatewayTimeout,
            "\(missing), and \((place ?? url).asciiHost) has not answered for \(seconds) s "
                + "(\(reason)); it is asked every few seconds, so try again soon",
            allowsStale: true)
        failure.proxyError = .destinationUnavailable
        failure.retryAfter = 2
        return failure
    }
}
