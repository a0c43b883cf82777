import CachePolicy
import HLS
import HTTP
import Routing
import Store
import URISyntax

extension Resource {
    /// True if one response may answer requests for this resource and for another one of the same
    /// key.
    ///
    /// A request under a mount carries fields of its client, and one for playback those of its
    /// session: neither waits for what the origin sends to the other. Playlists of mounts have one
    /// key for all clients, but a response to a request with credentials, even a refusal, is only
    /// for these credentials (RFC 9111 section 3.5). The head of a response tells whether anything
    /// else depends on the client. An interstitial may be made for one playback.
    package func isOneQuestion(with other: Resource) -> Bool {
        guard isMounted == other.isMounted, live.playQuery == other.live.playQuery else {
            return false
        }
        guard isMounted, !followsHTTP else { return true }
        return forwardedFields.combinedBytes(.authorization)
            == other.forwardedFields.combinedBytes(.authorization)
    }

    /// True if the name of a resource allows that other nodes get it from the second level: it is
    /// for everyone, and playlist semantics decide how long it is used.
    package func mayBeShared(withKeys: Bool) -> Bool {
        guard !followsHTTP, mayStore, !isVerbatim, !isMounted, policy == .media,
            live.directives == nil, live.growth == nil, epoch == .first,
            cacheKey.audience == .everyone, cacheKey.skip == nil, cacheKey.detour == nil
        else { return false }
        return switch role {
        // Other nodes would not check the user information that gave access to the key.
        case .key?: withKeys && url.userinfo == nil
        case .json?, .part?: false
        case .playlist?, nil, .segment?, .initialization?, .subtitle?, .image?, .media?: true
        }
    }

    /// True for what belongs to a live stream, as far as is known: the second level has only films.
    ///
    /// - Parameters:
    ///   - live: the memory of live lists, which knows the names in their windows.
    ///   - playlists: the memory of what sessions play.
    ///   - isPlaylist: whether it is a playlist; nil if that is not known yet.
    /// - Returns: false if neither memory says so.
    package func isOnAir(
        _ live: LiveMemory, _ playlists: PlaylistMemory, isPlaylist: Bool? = nil
    ) -> Bool {
        // Channels may be named like segments, and films like channels.
        if isPlaylist ?? (role.isOpen || role == .playlist), live.list(listKey) != nil {
            return true
        }
        guard isPlaylist ?? (role == .playlist || (role.isOpen && !isNamedAsMedia)) else {
            if live.isInWindow(nameKey) { return true }
            // A time shift window holds segments of hours, and names that have left the origin's
            // window are forgotten much earlier.
            return session.isShifted && playlists.isLive(session.id)
        }
        return playlists.isLive(session.id)
    }
}
