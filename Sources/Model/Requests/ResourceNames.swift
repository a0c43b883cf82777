// Conversion between names and resources: the meaning of a URL, a playback link or a handle, given
// the key rules and the state of live lists.
import CachePolicy
package import HLS
package import HTTP
package import Routing
package import Store
package import URISyntax

/// The content of a playback URL.
package struct PlaybackTarget {
    package let url: AbsoluteURL
    package let role: ResourceRole?
    /// The raw `_HLS_` query items of the request.
    package var directives: [QueryItem] = []
    package var epoch = Epoch.first
    /// True for a link that this daemon wrote: its query is not the origin's.
    package let isLink: Bool

    package init(
        url: AbsoluteURL, role: ResourceRole?, directives: [QueryItem] = [],
        epoch: Epoch = .first, isLink: Bool = false
    ) {
        self.url = url
        self.role = role
        self.directives = directives
        self.epoch = epoch
        self.isLink = isLink
    }
}

/// Makes resources from names, and handles from URLs.
///
/// Any thread may use it. Resolving a short handle reads the store's index, which may block
/// briefly.
package final class ResourceNames: Sendable {
    package let keys: KeyTable
    package let live: LiveMemory
    package let store: ObjectStore
    private let addresses: OwnAddresses
    /// True if other nodes read the handles, so that none may name a URL in the local table.
    private let isShared: Bool

    package init(
        keys: KeyTable, live: LiveMemory, store: ObjectStore, addresses: OwnAddresses,
        isShared: Bool = false
    ) {
        self.keys = keys
        self.live = live
        self.store = store
        self.addresses = addresses
        self.isShared = isShared
    }

    // MARK: Resources

    /// Returns the key of a resource that a playlist names, in the current epoch of its name, with
    /// its live terms.
    ///
    /// `mountUser` is the user of a mount that the URL stands for; keys of segments have none.
    func currentKey(
        _ url: AbsoluteURL, session: Session, role: ResourceRole?, as mountUser: MountUser?
    ) -> (key: CacheKey, terms: LiveTerms) {
        var key = keys.cacheKey(of: url, session: session, role: role, as: mountUser)
        guard role != .playlist else { return (key, .none) }
        let name = ObjectKey(key)
        key.epoch = live.epoch(of: name)
        return (key, live.terms(of: name) ?? .none)
    }

    /// Returns the resource of a URL in a session, as players request it under playback URLs.
    package func resource(
        _ url: AbsoluteURL, _ session: Session, role: ResourceRole?, forwarding fields: Fields
    ) -> Resource {
        var fields = fields
        fields.set(.cdnLoop, addresses.loopMark)
        let mountUser = keys.mountUsers.user(of: url)
        let named = currentKey(url, session: session, role: role, as: mountUser)
        return Resource(
            .init(
                url: url, cacheKey: named.key, session: session, role: role,
                policy: keys.policy(of: url, in: KeyPlace()), forwardedFields: fields,
                live: named.terms, mountUser: mountUser))
    }

    /// Returns the fields of a request for a playback URL that are forwarded to the origin.
    package func forwardedFields(_ request: RequestHead) -> Fields {
        var forwarded = Fields()
        if let agent = request.fields.first(.userAgent) { forwarded.append(.userAgent, agent) }
        forwarded.append(.cdnLoop, addresses.cdnLoop(after: request))
        return forwarded
    }

    /// Returns the resource that a player requests; nil if its directives do not form a URL.
    ///
    /// - Parameters:
    ///   - target: the content of the playback URL.
    ///   - session: its session.
    ///   - request: the request; the query of a link may mark it.
    ///   - forwarded: the result of `forwardedFields`.
    ///   - isOver: whether the session's stream has ended, so that nothing is fetched for it.
    /// - Returns: the resource.
    package func resource(
        for target: PlaybackTarget, session: Session, _ request: RequestHead, forwarded: Fields,
        isOver: Bool
    ) -> Resource? {
        guard let url = target.url.adding(target.directives) else { return nil }
        var live = LiveTerms.none
        var keyed = url
        if target.role == .playlist || target.role.isOpen {
            live.directives = DeliveryDirectives(target.directives)
            if live.directives != nil { keyed = target.url }
        }
        // Policies are the same in all scopes, and directives do not change the origin.
        let inForce = keys.inForce(for: keyed, in: KeyPlace(scope: target.role.keyScope))
        var policy = isOver ? Policy.offline : inForce.policy
        if !target.directives.isEmpty, target.role == .playlist || target.role == .json,
            policy != .rfc
        {
            live.playQuery = InterstitialQuery.text(of: target.directives)
            if live.playQuery != nil { keyed = target.url }
        }
        let mountUser = keys.mountUsers.user(of: keyed)
        var key = keys.cacheKey(
            of: keyed, session: session, role: target.role, as: mountUser, by: inForce)
        key.skip = live.directives?.skip
        key.epoch = target.epoch
        if live.playQuery != nil {
            // The answer may be for one playback: kept for when the origin is gone, and asked for
            // again until then.
            key = CacheKey(url: key.url, audience: .session(session.id.text))
            if policy == .media { policy = .refresh }
        }
        let resource = Resource(
            .init(
                url: url, cacheKey: key, session: session, role: target.role,
                policy: policy,
                mayStore: (target.directives.isEmpty || live.directives != nil
                    || live.playQuery != nil)
                    && !(target.isLink && KeptHead.isUnkept(request)),
                forwardedFields: forwarded, live: live, mountUser: mountUser))
        guard resource.role != .playlist, let known = self.live.terms(of: resource.nameKey) else {
            return resource
        }
        return resource.changing {
            $0.live.growth = known.growth
            $0.live.longestHold = known.longestHold
        }
    }

    /// Returns the requested resource at another URL where it is found now; both URLs contain the
    /// delivery directives.
    ///
    /// Its epoch is not before the requested one: after a restart, the list that named it may not
    /// have been read yet, and what is stored of an earlier epoch is something else.
    package func resource(_ asked: Resource, movedTo url: AbsoluteURL) -> Resource {
        let directives = asked.live.directives
        let playQuery = asked.live.playQuery
        let named = directives == nil && playQuery == nil ? url : url.withoutDirectives
        let isOfSameUser = asked.mountUser?.isMeant(by: url) ?? false
        let mountUser = isOfSameUser ? asked.mountUser : keys.mountUsers.user(of: url)
        var (key, terms) = currentKey(
            named, session: asked.session, role: asked.role, as: mountUser)
        key.skip = directives?.skip
        key.epoch = max(key.epoch, asked.epoch)
        if playQuery != nil {
            key = CacheKey(url: key.url, audience: .session(asked.session.id.text))
        }
        terms.directives = directives
        terms.playQuery = playQuery
        return asked.changing {
            $0.url = url
            $0.cacheKey = key
            $0.live = terms
            $0.mountUser = mountUser
        }
    }

    /// Returns an interstitial under the key that it has for players which add nothing to its URL;
    /// nil for all else.
    package func common(_ resource: Resource) -> Resource? {
        guard resource.live.playQuery != nil else { return nil }
        let key = keys.cacheKey(
            of: resource.url.withoutDirectives, session: resource.session, role: resource.role)
        return resource.changing { $0.cacheKey = key }
    }

    // MARK: Handles

    /// Returns the handle of a URL in a session.
    ///
    /// A long URL is saved in the persistent table. Nodes of a cluster write it into the handle
    /// unless it is too long for that, and so does every daemon while the index cannot be written
    /// or the table is full of names in use.
    package func handle(for url: AbsoluteURL, session: SessionID, epoch: Epoch) -> Handle {
        guard url.bytes.count > Handle.longestURL else {
            return Handle(session: session, target: .url(url), epoch: epoch)
        }
        if isShared || !store.takesLongURLs, let target = LongURL.target(url) {
            return Handle(session: session, target: target, epoch: epoch)
        }
        let name = Array(SHA256Digest.of(url.bytes).prefix(16))
        store.saveLongURL(id: name, url: url.text)
        return Handle(session: session, target: .name(name), epoch: epoch)
    }

    /// Returns the URL of a handle's target; nil for a short form that the table of a store does
    /// not contain (any more), and for a live list.
    ///
    /// - Throws: `UnreadableIndex` for a short form while the table cannot be read.
    package static func url(
        of target: Handle.Target, in store: ObjectStore
    ) throws(UnreadableIndex) -> AbsoluteURL? {
        switch target {
        case .url(let url): return url
        case .packed(let packed): return LongURL.url(of: packed)
        case .name(let name):
            guard let text = try store.savedURL(id: name) else { return nil }
            return try? AbsoluteURL(text)
        case .list: return nil
        }
    }
}
