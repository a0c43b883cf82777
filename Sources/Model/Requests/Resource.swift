package import CachePolicy
package import HLS
package import HTTP
package import Routing
package import Store
package import URISyntax

/// A requested resource, with everything a fetch of it needs.
///
/// Immutable and shared: a hit passes it on a dozen times without copying its parts.
package final class Resource: Sendable {
    /// The parts of a resource; `changing` makes another resource from changed parts.
    package struct Parts: Sendable {
        package var url: AbsoluteURL
        package var cacheKey: CacheKey
        package var session: Session
        /// Nil where the URL does not tell: an entry, a mount.
        package var role: ResourceRole?
        package var policy: Policy
        /// False where each response is unique, as with delivery directives.
        package var mayStore = true
        /// The player's fields that are forwarded to the origin.
        package var forwardedFields: Fields
        package var isMounted = false
        /// The kind of cache that Sluice is for it; nil where playlist semantics apply instead of
        /// HTTP's: for playback URLs, and for resources of a mount that are named like playlists.
        package var kind: CacheKind?
        /// The mount that it was requested under, where HTTP's rules apply.
        package var mount: Mount?
        /// True where the origin's bytes are wanted whatever they are: no playlist is looked for.
        package var isVerbatim = false
        /// The terms that a live list gives the resource.
        package var live = LiveTerms.none
        /// The mount user that the stand-in in the URL names; nil without a stand-in.
        package var mountUser: MountUser?

        package init(
            url: AbsoluteURL, cacheKey: CacheKey, session: Session, role: ResourceRole? = nil,
            policy: Policy, mayStore: Bool = true, forwardedFields: Fields, isMounted: Bool = false,
            kind: CacheKind? = nil, mount: Mount? = nil, isVerbatim: Bool = false,
            live: LiveTerms = LiveTerms.none, mountUser: MountUser? = nil
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
            self.isVerbatim = isVerbatim
            self.live = live
            self.mountUser = mountUser
        }
    }

    // Separate stored properties: other modules read these of a class in place, and call a function
    // for computed ones. `ResourceTests` checks that `changing` copies all of them.
    package let url: AbsoluteURL
    package let cacheKey: CacheKey
    package let session: Session
    package let role: ResourceRole?
    package let policy: Policy
    package let mayStore: Bool
    package let forwardedFields: Fields
    package let isMounted: Bool
    package let kind: CacheKind?
    /// True if HTTP's rules apply instead of playlist semantics: it has a kind of cache.
    package let followsHTTP: Bool
    package let mount: Mount?
    package let isVerbatim: Bool
    package let live: LiveTerms
    package let mountUser: MountUser?
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
        followsHTTP = parts.kind != nil
        mount = parts.mount
        isVerbatim = parts.isVerbatim
        live = parts.live
        mountUser = parts.mountUser
        keyText = parts.cacheKey.text
        key = ObjectKey(sha256Of: keyText)
        nameExtension = parts.url.nameExtension
    }

    /// Returns a copy with the changes that `change` makes.
    package func changing(_ change: (inout Parts) -> Void) -> Resource {
        var parts = Parts(
            url: url, cacheKey: cacheKey, session: session, role: role, policy: policy,
            mayStore: mayStore, forwardedFields: forwardedFields, isMounted: isMounted, kind: kind,
            mount: mount, isVerbatim: isVerbatim, live: live, mountUser: mountUser)
        change(&parts)
        return Resource(parts)
    }

    /// True if the client keeps the cookies of the origin itself: under a mount, except for a
    /// playlist that it requests without any.
    package var leavesCookiesToClient: Bool {
        followsHTTP || (isMounted && forwardedFields.contains(.cookie))
    }

    /// True if content codings are decoded: for text that is parsed here.
    ///
    /// Media is fetched unencoded, and resources under HTTP's rules pass to the client as received.
    package var decodesContent: Bool {
        if followsHTTP { return false }
        switch role {
        case .playlist?, .json?: return true
        case nil, .media?: return !isNamedAsMedia
        default: return false
        }
    }

    /// True if the origin's file name has an extension that playlists never have.
    package var isNamedAsMedia: Bool {
        switch nameExtension {
        case "ts", "m4s", "mp4", "m4a", "m4v", "aac", "mp3", "mov", "mkv", "webm", "bin", "cmfv",
            "cmfa":
            true
        default: false
        }
    }
}

extension ResourceRole? {
    /// True if only its bytes tell whether the resource is a playlist: for what players open
    /// themselves, and for entries of channel lists.
    package var isOpen: Bool { self == nil || self == .media }
}
