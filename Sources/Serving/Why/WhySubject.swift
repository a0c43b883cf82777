// The subject of `why`: the resource that a request for an origin's URL or one of the daemon's
// would be for.
import CachePolicy
import HLS
import HTTP
import Model
import Routing
import Store
import TimeShifting
import URISyntax

/// The resource of a URL given to `why`.
struct WhySubject {
    let resource: Resource
    /// The kind of place in which the URL is requested.
    let place: KeyPlace

    /// - Parameters:
    ///   - text: an origin's URL, or an entry, a rewritten URL or a mount's URL of this daemon.
    ///   - context: the input of explanations.
    init?(_ text: String, _ context: WhyContext) {
        // Behind one of ours, the router reads them.
        if let url = try? AbsoluteURL(text), context.isOwn(url) {
            if let own = WhySubject(own: url, context) {
                self = own
                return
            }
            guard context.guessesOwn else { return nil }
        }
        let (plain, headers) = PlayerHeaders.cut(text)
        guard PlayerHeaders.fault(of: headers) == nil, let url = try? AbsoluteURL(plain) else {
            return nil
        }
        self.init(origin: Entry(url: url, headers: headers), context)
    }

    private init?(own url: AbsoluteURL, _ context: WhyContext) {
        switch context.router().route(given: url) {
        case .entry(let asked):
            let entry = AccessToken.stripped(asked, of: context.daemon?.settings.token)
            self.init(
                playback: entry.url, SessionTable.unkept(for: entry),
                Self.role(ofEntry: entry.url), context)
        case .rewritten(let link):
            guard let handle = link.unchecked else { return nil }
            var epoch = handle.epoch
            var url = context.url(of: handle)
            if case .list(let name) = handle.target, let place = link.place,
                let live = context.live,
                let list = live.list(named: name, servedTo: handle.session, in: context.store),
                case .url(let known, let given) = live.find(
                    place, role: link.role, in: (list, epoch))
            {
                (url, epoch) = (known, given)
            }
            guard let url else { return nil }
            let opened = link.sealed.flatMap {
                try? context.sessions.opened($0, of: handle.session)
            }
            let session = opened ?? context.sessions.session(handle.session)
            self.init(
                playback: url, session, link.role, context, epoch: epoch,
                DeliveryDirectives(session.directives(of: link.directives)))
        case .mount(let mount, let url): self.init(mounted: url, mount, context)
        default: return nil
        }
    }

    /// A bare origin's URL: as playback, where that is stored or no mount stands for it.
    private init?(origin entry: Entry, _ context: WhyContext) {
        let url = entry.url
        let session = SessionTable.unkept(for: entry)
        for role in [Self.role(ofEntry: url), .playlist, .segment] {
            let subject = WhySubject(playback: url, session, role, context)
            guard context.store.peek(subject.resource.key) != nil else { continue }
            self = subject
            return
        }
        if let mount = context.router().mount(standingFor: url) {
            self.init(mounted: url, mount, context)
        } else {
            self.init(playback: url, session, Self.role(ofEntry: url), context)
        }
    }

    private static func role(ofEntry url: AbsoluteURL) -> ResourceRole? {
        url.isNamedAsPlaylist ? .playlist : nil
    }

    private init(
        playback url: AbsoluteURL, _ session: Session, _ role: ResourceRole?, _ context: WhyContext,
        epoch given: Epoch? = nil, _ directives: DeliveryDirectives? = nil
    ) {
        place = KeyPlace(scope: role.keyScope)
        var key = context.keys.cacheKey(of: url, session: session, role: role)
        let current = role == .playlist ? nil : context.live?.epoch(of: ObjectKey(key))
        key.skip = directives?.skip
        key.epoch = given ?? current ?? .first
        resource = Resource(
            .init(
                url: url, cacheKey: key, session: session, role: role,
                policy: context.keys.policy(of: url, in: place), forwardedFields: Fields(),
                live: LiveTerms(directives: directives),
                mountUser: context.keys.mountUsers.user(of: url)))
    }

    private init(mounted url: AbsoluteURL, _ mount: Mount, _ context: WhyContext) {
        place = KeyPlace(isMounted: true)
        let session = SessionTable.unkept(for: Entry(url: url))
        let kind = url.isNamedAsPlaylist ? nil : context.mountKind
        var key = context.keys.cacheKey(of: url, session: session, role: nil, isMounted: true)
        if let kind { key.audience = .mount(kind) }
        resource = Resource(
            .init(
                url: url, cacheKey: key, session: session,
                policy: context.keys.policy(of: url, in: place), forwardedFields: Fields(),
                isMounted: true, kind: kind, mount: mount,
                mountUser: context.keys.mountUsers.user(of: url)))
    }
}
