package import Posix
package import Routing
import Synchronization
package import URISyntax

/// The cookies that origins set, by session.
///
/// Any thread may use it; only the upstream loop stores cookies.
package final class CookieJars: Sendable {
    private struct Jar: Sendable {
        var cookies = CookieJar()
        /// The number of its last use.
        var lastUse: UInt64 = 0
    }

    private struct Book: Sendable {
        var jars: [SessionID: Jar] = [:]
        /// The number of uses so far.
        var uses: UInt64 = 0

        /// Uses the jar of a session, which is made if it has none.
        mutating func use<Result>(
            _ session: SessionID, _ body: (inout CookieJar) -> Result
        ) -> Result {
            if jars[session] == nil { makeRoom() }
            uses += 1
            jars[session, default: Jar()].lastUse = uses
            return body(&jars[session, default: Jar()].cookies)
        }

        /// Drops the jar that was unused longest if a new one would exceed the limit.
        private mutating func makeRoom() {
            // Searching all jars is cheap compared with the response that needs a new one.
            guard jars.count >= CookieJars.most,
                let unused = jars.min(by: { $0.value.lastUse < $1.value.lastUse })
            else { return }
            jars[unused.key] = nil
        }
    }

    /// The most sessions whose cookies are kept; those unused longest are dropped first.
    private static let most = 4_096

    private let book = Mutex(Book())

    package init() {}

    /// Stores a cookie of a session, as `CookieJar.receive` does.
    ///
    /// - Returns: true if requests of the session may carry another cookie than before.
    package func receive(
        _ cookie: String, from url: AbsoluteURL, of session: SessionID, now: Monotonic,
        date: WallTime
    ) -> Bool {
        book.withLock { book in
            book.use(session) { $0.receive(cookie, from: url, now: now, date: date) }
        }
    }

    /// Returns the Cookie field for a request of a session; nil if none of its cookies matches.
    package func field(for url: AbsoluteURL, of session: SessionID, now: Monotonic) -> String? {
        book.withLock { book in
            guard book.jars[session] != nil else { return nil }
            return book.use(session) { $0.field(for: url, now: now) }
        }
    }

    /// Gives a session the cookies of another one too; where both have one, the other's counts
    /// unless it has expired.
    package func copy(from session: SessionID, to target: SessionID, now: Monotonic) {
        book.withLock { book in
            guard let cookies = book.jars[session]?.cookies, !cookies.isEmpty else { return }
            book.use(target) { $0.add(cookies, now: now) }
        }
    }

    /// True if no cookie of a session is kept.
    package func isEmpty(of session: SessionID) -> Bool {
        book.withLock { $0.jars[session]?.cookies.isEmpty ?? true }
    }
}
