import CachePolicy
import Routing
package import URISyntax

extension Resource {
    /// The base of a playlist with this resource's user information, which is not stored, and
    /// which what the playlist names at the same origin needs again.
    package func withUserinfo(_ base: AbsoluteURL) throws(URIError) -> AbsoluteURL {
        guard let userinfo = url.userinfoRange, base.origin == url.origin else { return base }
        var bytes = base.bytes
        bytes.insert(contentsOf: url.bytes[userinfo] + [0x40], at: base.hostRange.lowerBound)
        return try AbsoluteURL(bytes: bytes)
    }

    private func ownKey(_ session: Session) -> CacheKey {
        CacheKey(url: cacheKey.url, audience: .session(session.id.text))
    }

    /// Whether the key is the session's own.
    package func isKept(for session: Session) -> Bool { cacheKey == ownKey(session) }

    /// The same resource under a key of the session's own.
    package func kept(for session: Session) -> Resource {
        changing { $0.cacheKey = ownKey(session) }
    }
}
