package import CachePolicy
package import HLS
package import HTTP
package import Routing
package import Store
package import URISyntax

/// The resource that is asked for, with everything a fetch of it needs.
///
/// Immutable and shared: a hit passes it on a dozen times, which must not cost a copy of all its parts.
package final class Resource: Sendable {
    /// What a resource is made of; others are made from it by `changing`, which forgets no part.
    package struct Parts: Sendable {
        package var url: AbsoluteURL
        package var cacheKey: CacheKey
        package var session: Session
        /// Nil when the place does not tell: an entry, a mount.
        package var role: ResourceRole?
        package var policy: Policy
        /// False where each answer is its own, as with delivery directives.
        package var mayStore = true
        /// The player's fields that go to the origin.
        package var forwardedFields: Fields
        package var isMounted = false
        /// The kind of cache that we are for it; nil where playlist semantics lead and not HTTP's:
        /// for playback URLs, and for what a mount names like a playlist.
        package var kind: CacheKind?
        /// The mount that it was asked for under, where HTTP's rules lead.
        package var mount: Mount?
        /// What it has from a live list that names it.
        package var live = LiveTerms.none

        package init(
            url: AbsoluteURL, cacheKey: CacheKey, session: Session, role: ResourceRole? = nil,
            policy: Policy, mayStore: Bool = true, forwardedFields: Fields, isMounted: Bool = false,
            kind: CacheKind? = nil, mount: Mount? = nil, live: LiveTerms = LiveTerms.none
        ) {
            self.url = url
            self.cacheKey = cacheKey
            self.session = session
            self.role = role
            self.policy = policy
            self.mayStore = mayStore
            self.forwardedFields = forwardedFields
            self.isMounted = isMounted
            self.kind = kind
            self.mount = mount
            self.live = live
        }
    }

    private let parts: Parts
    /// The digest of the cache key.
    package let key: ObjectKey
    /// The encoding of the cache key.
    package let keyText: String
    /// The extension of the origin's file name, in lower case; empty for none.
    package let nameExtension: String

    package init(_ parts: Parts) {
        self.parts = parts
        keyText = parts.cacheKey.text
        key = ObjectKey(sha256Of: keyText)
        nameExtension = parts.url.nameExtension
    }

    /// The resource that differs from this one in what `change` sets.
    package func changing(_ change: (inout Parts) -> Void) -> Resource {
        var parts = parts
        change(&parts)
        return Resource(parts)
    }

    package var url: AbsoluteURL { parts.url }
    package var cacheKey: CacheKey { parts.cacheKey }
    package var session: Session { parts.session }
    package var role: ResourceRole? { parts.role }
    package var policy: Policy { parts.policy }
    package var mayStore: Bool { parts.mayStore }
    package var forwardedFields: Fields { parts.forwardedFields }
    package var isMounted: Bool { parts.isMounted }
    package var kind: CacheKind? { parts.kind }
    package var mount: Mount? { parts.mount }
    package var live: LiveTerms { parts.live }

    /// Content codings are undone for text that is read here; media is asked for as it is, and
    /// whatever HTTP's rules lead for goes to the client as it came.
    package var decodesContent: Bool {
        if kind != nil { return false }
        switch role {
        case .playlist?, .json?: return true
        case nil: return !isNamedAsMedia
        default: return false
        }
    }

    /// Whether the origin's file has a name that no playlist bears.
    package var isNamedAsMedia: Bool {
        switch nameExtension {
        case "ts", "m4s", "mp4", "m4a", "m4v", "aac", "mp3", "mov", "mkv", "webm", "bin", "cmfv",
            "cmfa":
            true
        default: false
        }
    }
}
