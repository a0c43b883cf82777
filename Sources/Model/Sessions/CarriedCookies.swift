// Cookies that an origin sets at one node of a cluster travel to the others in links.
import CachePolicy
import Numbers
package import Posix
package import Routing
import Synchronization
package import URISyntax
package import Upstream

/// The cookies of sessions, for links and out of links.
///
/// Links carry them sealed in the query: they change with each answer, and the paths of live
/// segments must not change. For a player that drops queries, only the node that received them has
/// them. The 4,096 most recent sessions with cookies are held in memory, 16 cookies each.
///
/// Any thread may use it.
package final class CarriedCookies: Sendable {
    /// A cookie as an origin set it.
    struct Cookie: Equatable, Sendable {
        /// The URL of the response.
        let url: String
        /// The value of the Set-Cookie field.
        let line: String

        /// True if the other cookie replaces this one.
        func isReplaced(by other: Cookie) -> Bool {
            line.prefix { $0 != "=" } == other.line.prefix { $0 != "=" }
                && host == other.host
        }

        private var host: Substring {
            url.drop { $0 != "/" }.dropFirst(2).prefix { $0 != "/" }
        }
    }

    private struct Known: Sendable {
        var cookies: [Cookie] = []
        /// When the last one changed, in seconds since 1970.
        var time: Int64 = 0
        /// The cookies from links that the session's jar does not have yet.
        var pending: [Cookie] = []
        /// The text for links, and the number of the key that it is sealed with.
        var sealed: (text: String, key: UInt32)?
        /// The text of a link whose cookies are known.
        var opened: String?
    }

    private static let mostCookies = 16
    private static let longestLine = 1_024

    private let sealer: SessionSealer
    private let sessions = Mutex(RecentMap<SessionID, Known>(capacity: 4_096))

    package init(_ sealer: SessionSealer) {
        self.sealer = sealer
    }

    /// Notes the cookies that a response set.
    package func note(_ received: [ReceivedCookie], of session: SessionID, now: WallTime) {
        sessions.withLock { sessions in
            var known = sessions[session] ?? Known()
            let before = known.cookies
            for cookie in received where cookie.value.utf8.count <= Self.longestLine {
                Self.put(Cookie(url: cookie.url.text, line: cookie.value), into: &known)
            }
            guard known.cookies != before else { return }
            known.time = now.seconds
            known.sealed = nil
            sessions[session] = known
        }
    }

    private static func put(_ cookie: Cookie, into known: inout Known) {
        if let index = known.cookies.firstIndex(where: { $0.isReplaced(by: cookie) }) {
            known.cookies[index] = cookie
        } else {
            known.cookies.append(cookie)
            if known.cookies.count > mostCookies { known.cookies.removeFirst() }
        }
    }

    /// Returns the text for links of a session; nil if it has no cookies, or too many for a link.
    package func text(of session: SessionID) -> String? {
        let key = sealer.firstID
        return sessions.withLock { sessions in
            guard var known = sessions[session], !known.cookies.isEmpty else { return nil }
            if let sealed = known.sealed, sealed.key == key { return sealed.text }
            let lines = ["\(known.time)"] + known.cookies.flatMap { [$0.url, $0.line] }
            guard let text = sealer.seal(cookies: lines, of: session) else { return nil }
            known.sealed = (text, key)
            sessions[session] = known
            return text
        }
    }

    /// Takes the cookies out of a link, unless newer ones are known; what cannot be opened is
    /// ignored, since the link may be played without.
    package func adopt(_ text: Substring, of session: SessionID) {
        let isKnown = sessions.withLock { sessions in
            guard let known = sessions[session] else { return false }
            return known.opened.map { $0 == text } ?? false
                || known.sealed.map { $0.text == text } ?? false
        }
        guard !isKnown, let lines = sealer.openCookies(text, of: session),
            let time = lines.first.flatMap({ ExternalNumber.integer($0, in: 0...Int64.max) })
        else { return }
        sessions.withLock { sessions in
            var known = sessions[session] ?? Known()
            known.opened = String(text)
            if time > known.time {
                known.time = time
                known.sealed = nil
                for index in stride(from: 1, to: lines.count - 1, by: 2) {
                    let cookie = Cookie(url: lines[index], line: lines[index + 1])
                    Self.put(cookie, into: &known)
                    known.pending.append(cookie)
                }
                known.pending = known.pending.suffix(Self.mostCookies)
            }
            sessions[session] = known
        }
    }

    /// Returns, once, the cookies from links that the session's jar does not have yet.
    package func takePending(
        of session: SessionID
    ) -> [(url: AbsoluteURL, value: String)] {
        sessions.withLock { sessions in
            guard var known = sessions[session], !known.pending.isEmpty else { return [] }
            let pending = known.pending
            known.pending = []
            sessions[session] = known
            return pending.compactMap { cookie in
                (try? AbsoluteURL(cookie.url)).map { (url: $0, value: cookie.line) }
            }
        }
    }
}
