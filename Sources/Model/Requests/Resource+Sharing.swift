import CachePolicy
import HLS
import Routing
import Store

extension Resource {
    /// True if the name of a resource allows that other nodes get it from the second level: it is
    /// for everyone, and playlist semantics decide how long it is used.
    ///
    /// - Parameter withKeys: whether keys may be kept there.
    /// - Returns: false for what is never read from there or written to it.
    package func mayBeShared(withKeys: Bool) -> Bool {
        guard kind == nil, mayStore, !isVerbatim, !isMounted, policy == .media,
            live.directives == nil, live.growth == nil, epoch == .first,
            cacheKey.audience == .everyone, cacheKey.skip == nil, cacheKey.detour == nil
        else { return false }
        return switch role {
        case .key?: withKeys
        case .json?, .part?: false
        case .playlist?, nil, .segment?, .initialization?, .subtitle?, .image?, .media?: true
        }
    }
}
