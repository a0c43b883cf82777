// From names to resources and back: what a URL, a playback link or a handle means, with the key rules
// and what live lists say in force.
package import CachePolicy
package import HLS
package import HTTP
package import Routing
package import Store
package import URISyntax

/// What a playback URL names.
package struct PlaybackTarget {
    package let url: AbsoluteURL
    package let role: ResourceRole?
    /// Raw `_HLS_` query items that came with it.
    package var directives: [QueryItem] = []
    package var epoch = Epoch.first

    package init(
        url: AbsoluteURL, role: ResourceRole?, directives: [QueryItem] = [],
        epoch: Epoch = .first
    ) {
        self.url = url
        self.role = role
        self.directives = directives
        self.epoch = epoch
    }
}

/// Makes resources of names, and handles of URLs.
///
/// Any thread may use it. A short handle asks the store's index, which may block for a moment.
package final class ResourceNames: Sendable {
    package let keys: KeyTable
    package let live: LiveMemory
    package let store: ObjectStore
    private let addresses: OwnAddresses

    package init(
        keys: KeyTable, live: LiveMemory, store: ObjectStore, addresses: OwnAddresses
    ) {
        self.keys = keys
        self.live = live
        self.store = store
        self.addresses = addresses
    }

    // MARK: Resources

    /// The key of a resource's name: shared by all sessions, except where credentials may make a
    /// playlist its viewer's own; user information in a URL counts by its digest.
    package func cacheKey(
        _ url: AbsoluteURL, session: Session, role: ResourceRole?, isMounted: Bool = false
    ) -> CacheKey {
        keys.cacheKey(of: url, session: session, role: role, isMounted: isMounted)
    }

    /// The key of what a playlist names, in the epoch that its name is in now, and what live lists
    /// say of it.
    func currentKey(
        _ url: AbsoluteURL, session: Session, role: ResourceRole?
    ) -> (key: CacheKey, terms: LiveTerms) {
        var key = cacheKey(url, session: session, role: role)
        guard role != .playlist else { return (key, .none) }
        let name = ObjectKey(key)
        key.epoch = live.epoch(of: name)
        return (key, live.terms(of: name) ?? .none)
    }

    /// The resource of a URL in a session, as players ask for it under playback URLs.
    package func resource(
        _ url: AbsoluteURL, _ session: Session, role: ResourceRole?, forwarding fields: Fields
    ) -> Resource {
        var fields = fields
        fields.set(.cdnLoop, addresses.loopMark)
        let named = currentKey(url, session: session, role: role)
        return Resource(
            .init(
                url: url, cacheKey: named.key, session: session, role: role,
                policy: keys.policy(of: url, in: KeyPlace()), forwardedFields: fields,
                live: named.terms))
    }

    /// The fields that go to the origin with a request for a playback URL.
    package func forwardedFields(_ request: RequestHead) -> Fields {
        var forwarded = Fields()
        if let agent = request.fields.first(.userAgent) { forwarded.append(.userAgent, agent) }
        forwarded.append(.cdnLoop, addresses.cdnLoop(after: request))
        return forwarded
    }

    /// The resource that a player asks for; nil where its directives make no URL.
    ///
    /// - Parameters:
    ///   - target: what it asks for.
    ///   - session: whose it is.
    ///   - request: the request, for what a link says of itself.
    ///   - forwarded: what `forwardedFields` gave for it.
    ///   - isOver: whether what the session plays has ended, so that nothing is fetched for it.
    /// - Returns: the resource.
    package func resource(
        for target: PlaybackTarget, session: Session, _ request: RequestHead, forwarded: Fields,
        isOver: Bool
    ) -> Resource? {
        guard let url = target.url.adding(target.directives) else { return nil }
        var live = LiveTerms.none
        var keyed = url
        if target.role == .playlist || target.role == nil {
            live.delivery = DeliveryDirectives(target.directives)
            if live.delivery != nil { keyed = target.url }
        }
        // Policies hold in all scopes, and directives change no origin.
        let inForce = keys.inForce(for: keyed, in: KeyPlace(scope: target.role.keyScope))
        var key = keys.cacheKey(of: keyed, session: session, role: target.role, by: inForce)
        key.skip = live.delivery?.skip
        key.epoch = target.epoch
        let resource = Resource(
            .init(
                url: url, cacheKey: key, session: session, role: target.role,
                policy: isOver ? .offline : inForce.policy,
                mayStore: (target.directives.isEmpty || live.delivery != nil)
                    && !KeptHead.isUnkept(request),
                forwardedFields: forwarded, live: live))
        guard resource.role != .playlist, let known = self.live.terms(of: resource.nameKey) else {
            return resource
        }
        return resource.changing {
            $0.live.growth = known.growth
            $0.live.longestHold = known.longestHold
        }
    }

    /// What was asked for, at another URL that it is found under now; delivery directives stand in
    /// both URLs.
    package func resource(_ asked: Resource, movedTo url: AbsoluteURL) -> Resource {
        let delivery = asked.live.delivery
        let named = delivery == nil ? url : url.withoutDirectives
        var (key, terms) = currentKey(named, session: asked.session, role: asked.role)
        key.skip = delivery?.skip
        terms.delivery = delivery
        return asked.changing {
            $0.url = url
            $0.cacheKey = key
            $0.live = terms
        }
    }

    // MARK: Handles

    /// The handle of a URL in a session; long URLs go to the persistent table.
    package func handle(
        for url: AbsoluteURL, session: SessionID, epoch: Epoch = .first
    ) -> Handle {
        guard url.bytes.count > Handle.longestURL else {
            return Handle(session: session, target: .url(url), epoch: epoch)
        }
        let name = Array(SHA256Digest.of(url.bytes).prefix(16))
        store.saveLongURL(id: name, url: url.text)
        return Handle(session: session, target: .name(name), epoch: epoch)
    }

    /// The URL of a handle; nil for a short form that the table does not know (any more), and for
    /// that of a live list, which names no URL.
    package func url(of handle: Handle) -> AbsoluteURL? {
        switch handle.target {
        case .url(let url): url
        case .name(let name): store.longURL(id: name).flatMap { try? AbsoluteURL($0) }
        case .list: nil
        }
    }
}
