import CachePolicy
import HLS
import Routing
package import URISyntax

extension Resource {
    /// Returns the base URL of a playlist with this resource's user information, which is not
    /// stored but needed for resources of the playlist at the same origin.
    package func withUserinfo(_ base: AbsoluteURL) throws(URIError) -> AbsoluteURL {
        guard let userinfo = url.userinfoRange, base.origin == url.origin else { return base }
        var bytes = base.bytes
        bytes.insert(contentsOf: url.bytes[userinfo] + [0x40], at: base.hostRange.lowerBound)
        return try AbsoluteURL(bytes: bytes)
    }

    /// Playlists have no epochs, and keys are taken as the origin has them now.
    private func ownKey(_ session: Session) -> CacheKey {
        let hasEpoch = role != .key && role != .playlist
        return CacheKey(
            url: cacheKey.url, audience: .session(session.id.text),
            epoch: hasEpoch ? cacheKey.epoch : .first)
    }

    /// True if the key belongs to the session alone.
    package func isKept(for session: Session) -> Bool { cacheKey == ownKey(session) }

    /// True if a copy for its session alone may be stored beside the shared one.
    ///
    /// Among entries, that is so only for those named as playlists, so that a miss of any other
    /// looks up no second key.
    package var mayHaveOwnCopy: Bool {
        !followsHTTP && (role == .playlist || role == nil && nameExtension.hasPrefix("m3u"))
            && !isKept(for: session)
    }

    /// This resource under the key of its own session alone.
    package var ownCopy: Resource { kept(for: session) }

    /// Returns the same resource under a key of this session alone.
    package func kept(for session: Session) -> Resource {
        changing { $0.cacheKey = ownKey(session) }
    }
}
