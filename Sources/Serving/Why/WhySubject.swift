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
    ///   - core: the input of explanations.
    init?(_ text: String, _ core: WhyContext) {
        // Behind one of ours, the router reads them.
        if let url = try? AbsoluteURL(text), core.isOwn(url) {
            if let own = WhySubject(own: url, core) {
                self = own
                return
            }
            guard core.guessesOwn else { return nil }
        }
        let (plain, headers) = PlayerHeaders.cut(text)
        guard PlayerHeaders.fault(of: headers) == nil, let url = try? AbsoluteURL(plain) else {
            return nil
        }
        self.init(origin: Entry(url: url, headers: headers), core)
    }

    private init?(own url: AbsoluteURL, _ core: WhyContext) {
        switch core.router().route(given: url) {
        case .entry(let asked):
            let entry = AccessToken.stripped(asked, of: core.token)
            self.init(
                playback: entry.url, SessionTable.unkept(for: entry),
                Self.role(ofEntry: entry.url), core)
        case .rewritten(let link):
            guard let handle = link.unchecked else { return nil }
            var epoch = handle.epoch
            var url = core.url(of: handle)
            if case .list(let name) = handle.target, let place = link.place, let live = core.live,
                let list = live.list(named: name, servedTo: handle.session, in: core.store),
                case .url(let known, let given) = live.find(
                    place, role: link.role, in: (list, epoch))
            {
                (url, epoch) = (known, given)
            }
            guard let url else { return nil }
            let opened = link.sealed.flatMap {
                try? core.sessions.opened($0, of: handle.session)
            }
            let session = opened ?? core.sessions.session(handle.session)
            self.init(
                playback: url, session, link.role, core, epoch: epoch,
                DeliveryDirectives(session.directives(of: link.directives)))
        case .mount(let mount, let url): self.init(mounted: url, mount, core)
        default: return nil
        }
    }

    /// A bare origin's URL: as playback, where that is stored or no mount stands for it.
    private init?(origin entry: Entry, _ core: WhyContext) {
        let url = entry.url
        let session = SessionTable.unkept(for: entry)
        for role in [Self.role(ofEntry: url), .playlist, .segment] {
            let subject = WhySubject(playback: url, session, role, core)
            guard core.store.peek(subject.resource.key) != nil else { continue }
            self = subject
            return
        }
        if let mount = core.router().mount(standingFor: url) {
            self.init(mounted: url, mount, core)
        } else {
            self.init(playback: url, session, Self.role(ofEntry: url), core)
        }
    }

    private static func role(ofEntry url: AbsoluteURL) -> ResourceRole? {
        let name = ASCII.lowercased(url.lastPathSegment)
        return name.hasSuffix(".m3u8") || name.hasSuffix(".m3u") ? .playlist : nil
    }

    private init(
        playback url: AbsoluteURL, _ session: Session, _ role: ResourceRole?, _ core: WhyContext,
        epoch given: Epoch? = nil, _ directives: DeliveryDirectives? = nil
    ) {
        place = KeyPlace(scope: role.keyScope)
        var key = core.keys.cacheKey(of: url, session: session, role: role)
        let current = role == .playlist ? nil : core.live?.epoch(of: ObjectKey(key))
        key.skip = directives?.skip
        key.epoch = given ?? current ?? .first
        resource = Resource(
            .init(
                url: url, cacheKey: key, session: session, role: role,
                policy: core.keys.policy(of: url, in: place), forwardedFields: Fields(),
                live: LiveTerms(directives: directives),
                mountUser: core.keys.mountUsers.user(of: url)))
    }

    private init(mounted url: AbsoluteURL, _ mount: Mount, _ core: WhyContext) {
        place = KeyPlace(isMounted: true)
        let session = SessionTable.unkept(for: Entry(url: url))
        let isPlaylist = Self.role(ofEntry: url) == .playlist
        let kind = isPlaylist ? nil : core.mountKind
        var key = core.keys.cacheKey(of: url, session: session, role: nil, isMounted: true)
        if let kind { key.audience = .mount(kind) }
        resource = Resource(
            .init(
                url: url, cacheKey: key, session: session,
                policy: core.keys.policy(of: url, in: place), forwardedFields: Fields(),
                isMounted: true, kind: kind, mount: mount,
                mountUser: core.keys.mountUsers.user(of: url)))
    }
}
