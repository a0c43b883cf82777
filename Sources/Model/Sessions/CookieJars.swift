package import Posix
package import Routing
import Synchronization
package import URISyntax

/// The cookies that origins set, by session.
///
/// Any thread may use it; only the upstream loop stores cookies.
package final class CookieJars: Sendable {
    private struct Book: Sendable {
        var jars: [SessionID: CookieJar] = [:]
        /// In the order of their first cookies.
        var order: [SessionID] = []
    }

    /// The most sessions whose cookies are kept; the oldest are dropped first.
    private static let most = 4_096

    private let book = Mutex(Book())

    package init() {}

    /// Stores a cookie.
    ///
    /// - Parameters:
    ///   - cookie: the value of a Set-Cookie field.
    ///   - url: the URL of the response.
    ///   - session: the session that the request belongs to.
    ///   - now: the time.
    /// - Returns: true if requests of the session may carry another cookie than before.
    package func receive(
        _ cookie: String, from url: AbsoluteURL, of session: SessionID, now: WallTime
    ) -> Bool {
        book.withLock { book in
            if book.jars[session] == nil {
                book.order.append(session)
                if book.order.count > Self.most { book.jars[book.order.removeFirst()] = nil }
            }
            return book.jars[session, default: CookieJar()].receive(cookie, from: url, now: now)
        }
    }

    /// Returns the Cookie field for a request of a session; nil if none of its cookies matches.
    package func field(for url: AbsoluteURL, of session: SessionID, now: WallTime) -> String? {
        book.withLock { $0.jars[session]?.field(for: url, now: now) }
    }

    /// True if no cookie of a session is kept.
    package func isEmpty(of session: SessionID) -> Bool {
        book.withLock { $0.jars[session]?.isEmpty ?? true }
    }
}
