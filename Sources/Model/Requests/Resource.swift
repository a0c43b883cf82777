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
    /// What a resource is made of; others are made from it by `changing`.
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

    // Stored one by one, since other modules read stored properties of a class in place, and call a function
    // for others. `ResourceTests` holds that `changing` forgets none.
    package let url: AbsoluteURL
    package let cacheKey: CacheKey
    package let session: Session
    package let role: ResourceRole?
    package let policy: Policy
    package let mayStore: Bool
    package let forwardedFields: Fields
    package let isMounted: Bool
    package let kind: CacheKind?
    package let mount: Mount?
    package let live: LiveTerms
    /// The digest of the cache key.
    package let key: ObjectKey
    /// The encoding of the cache key.
    package let keyText: String
    /// The extension of the origin's file name, in lower case; empty for none.
    package let nameExtension: String

    package init(_ parts: Parts) {
        url = parts.url
        cacheKey = parts.cacheKey
        session = parts.session
        role = parts.role
        policy = parts.policy
        mayStore = parts.mayStore
        forwardedFields = parts.forwardedFields
        isMounted = parts.isMounted
        kind = parts.kind
        mount = parts.mount
        live = parts.live
        keyText = parts.cacheKey.text
        key = ObjectKey(sha256Of: keyText)
        nameExtension = parts.url.nameExtension
    }

    /// The resource that differs from this one in what `change` sets.
    package func changing(_ change: (inout Parts) -> Void) -> Resource {
        var parts = Parts(
            url: url, cacheKey: cacheKey, session: session, role: role, policy: policy,
            mayStore: mayStore, forwardedFields: forwardedFields, isMounted: isMounted, kind: kind,
            mount: mount, live: live)
        change(&parts)
        return Resource(parts)
    }

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
