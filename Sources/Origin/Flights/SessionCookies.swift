import HTTP
import Model
import Posix
import Reactor
import Upstream
import URISyntax

/// The cookies that sessions send to origins; lives on the upstream loop.
struct SessionCookies {
    private let jars: CookieJars
    /// The cookies that links bring and take along; nil unless this is a node of a cluster.
    private let carried: CarriedCookies?
    private let loop: EventLoop

    init(_ jars: CookieJars, carried: CarriedCookies?, loop: EventLoop) {
        self.jars = jars
        self.carried = carried
        self.loop = loop
    }

    /// Stores the cookies that a hop set.
    ///
    /// - Returns: true if requests of the session may carry other cookies than before.
    func take(_ cookies: [ReceivedCookie], of session: Session) -> Bool {
        guard !cookies.isEmpty else { return false }
        carried?.note(cookies, of: session.id, now: loop.wallNow)
        return cookies.reduce(false) { keep($1.value, from: $1.url, $1.date, of: session) || $0 }
    }

    @discardableResult
    private func keep(
        _ cookie: String, from url: AbsoluteURL, _ date: WallTime?, of session: Session
    ) -> Bool {
        jars.receive(cookie, from: url, of: session.id, now: loop.now, date: date ?? loop.wallNow)
    }

    /// Stores the cookies of a session that its links have brought.
    func takePending(of session: Session) {
        guard let carried else { return }
        for cookie in carried.takePending(of: session.id) {
            keep(cookie.value, from: cookie.url, nil, of: session)
        }
    }

    /// Returns the Cookie field for a request of a session: the cookies given at entry, then the
    /// jar's.
    ///
    /// - Parameters:
    ///   - url: the URL of the request.
    ///   - session: the session of the request.
    ///   - isRedirected: true if any redirect so far led to another origin: the cookies given at
    ///     entry are meant neither for that one (RFC 9110 section 15.4) nor for where it redirects
    ///     to.
    /// - Returns: the field's value; nil for no cookie.
    func field(for url: AbsoluteURL, session: Session, isRedirected: Bool = false) -> String? {
        takePending(of: session)
        let given = isRedirected ? nil : session.fields.first(.cookie)
        let kept = jars.field(for: url, of: session.id, now: loop.now)
        let both = [given, kept].compactMap { $0 }
        return both.isEmpty ? nil : both.joined(separator: "; ")
    }
}
