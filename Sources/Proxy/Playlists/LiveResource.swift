// The resource behind a playback URL, with what live lists say of it: directives, epoch, growth.
import Library
import Model
import CachePolicy
import HLS
import HTTP
import Routing
import Store
import URISyntax

/// What a playback URL names.
struct PlaybackTarget {
    let url: AbsoluteURL
    let role: ResourceRole?
    /// Raw `_HLS_` query items that came with it.
    var directives: [QueryItem] = []
    var epoch = Epoch.first
}

extension ProxyCore {
    /// The fields that go to the origin with a request for a playback URL.
    func forwardedFields(_ request: RequestHead) -> Fields {
        var forwarded = Fields()
        if let agent = request.fields.first(.userAgent) { forwarded.append(.userAgent, agent) }
        forwarded.append(.cdnLoop, cdnLoop(after: request))
        return forwarded
    }

    /// The resource that a player asks for; nil where its directives make no URL.
    ///
    /// - Parameters:
    ///   - target: what it asks for.
    ///   - session: whose it is.
    ///   - request: the request, for what a link says of itself.
    ///   - forwarded: what `forwardedFields` gave for it.
    /// - Returns: the resource.
    func resource(
        for target: PlaybackTarget, session: Session, _ request: RequestHead, forwarded: Fields
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
                policy: keeper.isOver(session) ? .offline : inForce.policy,
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

    /// What was asked for, at another URL that it is found under now; delivery directives stand in
    /// both URLs.
    func resource(_ asked: Resource, movedTo url: AbsoluteURL) -> Resource {
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
}
