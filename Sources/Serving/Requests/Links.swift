// The targets of links in playlists: from their handles, or from the memory of live lists.
import CachePolicy
import HLS
import HTTP
import Model
import Routing
import Store
import Synchronization
import TimeShifting
import URISyntax

/// The decoded target of a link.
struct LinkTarget {
    let session: SessionID
    /// The session that the link carries; nil if only its ID is known.
    var opened: Session?
    let url: AbsoluteURL
    let epoch: Epoch
    /// True if the link itself contains the target; otherwise it may lead elsewhere the next time.
    var isSteady = true
}

/// The result of resolving a link without reading a long text.
enum LinkLookup {
    case target(LinkTarget)
    /// The stored list must be read first.
    case inLongList(StoredObject)
}

/// Resolves the daemon's own URLs by the current mounts.
///
/// Any thread may use it.
package final class Links: Sendable {
    /// Replaced as a whole; a request that was routed before is not affected.
    private let routes: Mutex<Router>
    let addresses: OwnAddresses
    private let names: ResourceNames
    let sessions: SessionTable
    private let live: LiveMemory
    private let store: ObjectStore
    private let timeShift: TimeShiftTable
    private let memory: PlaylistMemory
    private let limits: PlaylistLimits
    private let signer: Signer?
    /// The access token, which a user may give in the URLs of orders as a player does.
    let token: String?
    private let basePath: String
    /// True if other nodes write the same links, at addresses that are not known here.
    let hasNodes: Bool

    init(
        mounts: [Mount], basePath: String, addresses: OwnAddresses, names: ResourceNames,
        sessions: SessionTable, live: LiveMemory, store: ObjectStore, timeShift: TimeShiftTable,
        memory: PlaylistMemory, limits: PlaylistLimits, signer: Signer?, token: String?,
        hasNodes: Bool = false
    ) {
        routes = Mutex(Self.router(mounts, basePath))
        self.basePath = basePath
        self.addresses = addresses
        self.names = names
        self.sessions = sessions
        self.live = live
        self.store = store
        self.timeShift = timeShift
        self.memory = memory
        self.limits = limits
        self.signer = signer
        self.token = token
        self.hasNodes = hasNodes
    }

    /// Routes request targets by the current mounts; leaves the access token in entries.
    var router: Router { routes.withLock { $0 } }

    private static func router(_ mounts: [Mount], _ basePath: String) -> Router {
        var router = Router(mounts: mounts, basePath: basePath)
        router.keepsTokens = true
        return router
    }

    /// Replaces the mounts for requests from now on.
    func replace(mounts: [Mount]) {
        let router = Self.router(mounts, basePath)
        routes.withLock { $0 = router }
    }

    /// Returns the origin's URL for a player's reference relative to the URL of its request.
    ///
    /// It is fetched with the session's headers, so that only a link that the daemon wrote for this
    /// session counts.
    func originURL(
        ofNext text: String, after request: RequestHead, in session: SessionID
    ) -> AbsoluteURL? {
        guard let base = try? AbsoluteURL("http://localhost\(request.path)"),
            let url = try? base.resolving(text)
        else { return nil }
        guard case .rewritten(let link) = router.route(given: url),
            case .target(let target)? = try? lookUp(link), target.session == session
        else { return nil }
        return target.url
    }

    /// Resolves a link; blocks if a stored list must be read for that.
    ///
    /// - Parameters:
    ///   - link: the link.
    ///   - isChecked: whether signatures are verified; false if a user or the daemon itself
    ///     resolves it. Those that a mount's user information takes are verified always.
    /// - Returns: session, URL and epoch.
    /// - Throws: why it cannot be resolved: it is malformed, unsigned, or names something unknown.
    func target(
        of link: RewrittenLink, isChecked: Bool = true
    ) throws(ProxyFailure) -> LinkTarget {
        switch try lookUp(link, isChecked: isChecked, readsLongLists: true) {
        case .target(let target): return target
        case .inLongList: throw Self.unknownList
        }
    }

    /// Resolves a link as far as possible without reading a long list.
    func lookUp(_ link: RewrittenLink) throws(ProxyFailure) -> LinkLookup {
        try lookUp(link, isChecked: true, readsLongLists: false)
    }

    private func lookUp(
        _ link: RewrittenLink, isChecked: Bool, readsLongLists: Bool
    ) throws(ProxyFailure) -> LinkLookup {
        let signer: Signer?
        if isChecked {
            signer = try self.signer(of: link)
        } else {
            signer = try? self.signer(of: link)
        }
        let path = try handle(link.handle, for: .link(link.role), signer, isChecked: isChecked)
        let opened = isChecked ? try session(of: link, path.session) : nil
        guard case .list(let list) = path.target else {
            let url = try namedURL(of: path)
            guard !isChecked || link.mayName(url) else { throw Self.otherName }
            return .target(
                LinkTarget(session: path.session, opened: opened, url: url, epoch: path.epoch))
        }
        guard let place = link.place else {
            throw ProxyFailure(
                .client, .notFound, "the URL's file name is no place in a live playlist")
        }
        if let text = link.origin {
            let origin = try handle(text, for: link.originUse, signer, isChecked: isChecked)
            guard origin.session == path.session else {
                throw ProxyFailure(
                    .client, .badRequest, "the URL's path and query are of two playlists")
            }
            return .target(
                LinkTarget(
                    session: origin.session, opened: opened, url: try namedURL(of: origin),
                    epoch: origin.epoch))
        }
        // Needs no signature for the user of a mount: the link leads only to what the list names,
        // as the mount does.
        let id = LiveListID(name: list, epoch: path.epoch)
        if !readsLongLists,
            let list = unreadLongList(
                place, role: link.role, in: id, of: path.session)
        {
            return .inLongList(list)
        }
        let (url, epoch) = try find(place, role: link.role, in: id, session: path.session)
        return .target(
            LinkTarget(
                session: path.session, opened: opened, url: url, epoch: epoch, isSteady: false))
    }

    // MARK: Sealed sessions

    /// Returns the signer of a link's handles; nil if they need no signature.
    private func signer(of link: RewrittenLink) throws(ProxyFailure) -> Signer? {
        guard let text = link.sealed else { return signer }
        guard let sealer = sessions.sealer else {
            throw ProxyFailure(
                .client, .notFound,
                "the URL carries a sealed session, which takes the --cluster-key of the daemon that wrote it"
            )
        }
        do throws(SealFault) {
            return try sealer.signer(of: text)
        } catch {
            throw Self.failure(error)
        }
    }

    /// Returns the session that a link carries, whose handle's signature was verified; nil if it
    /// carries none.
    private func session(
        of link: RewrittenLink, _ id: SessionID
    ) throws(ProxyFailure) -> Session? {
        guard let text = link.sealed else {
            // Anybody could write such a link, and have the session's headers sent to any URL.
            guard sessions.mustBeCarried(id) else { return nil }
            throw ProxyFailure(
                .client, .forbidden,
                "the URL lacks its sealed session; reload the playlist from its entry URL")
        }
        do throws(SealFault) {
            let session = try sessions.opened(text, of: id)
            if let variables = session.seal?.variables, !variables.isEmpty {
                memory.remember(variables, definedIn: nil, of: id)
            }
            return session
        } catch {
            throw Self.failure(error)
        }
    }

    private static func failure(_ fault: SealFault) -> ProxyFailure {
        switch fault {
        case .malformed:
            ProxyFailure(
                .client, .notFound,
                "the URL's sealed session cannot be read; open the entry URL again")
        case .unknownKey(let name):
            ProxyFailure(
                .client, .gone,
                "the URL's session is sealed with the key \(name), which is not in this daemon's --cluster-key (any more); open the entry URL again"
            )
        case .forged:
            ProxyFailure(
                .client, .forbidden,
                "the URL's sealed session is not of this link; open the entry URL again")
        }
    }

    /// Decodes a handle.
    ///
    /// - Throws: a refusal if it is malformed, or not signed for this use of this link.
    func handle(
        _ text: Substring, for use: HandleUse, in link: RewrittenLink
    ) throws(ProxyFailure) -> Handle {
        try handle(text, for: use, signer(of: link), isChecked: true)
    }

    private func handle(
        _ text: Substring, for use: HandleUse, _ signer: Signer?, isChecked: Bool
    ) throws(ProxyFailure) -> Handle {
        let sign: (([UInt8]) -> [UInt8])? =
            isChecked ? signer.map { signer in { signer.sign($0) } } : nil
        var isUnreadable = false
        do throws(Handle.Fault) {
            return try Handle(
                text: text.utf8.span, for: use, sign: sign,
                signForUser: { target in
                    let found: AbsoluteURL?
                    do throws(UnreadableIndex) {
                        found = try ResourceNames.url(of: target, in: self.store)
                    } catch {
                        isUnreadable = true
                        return nil
                    }
                    guard let url = found else { return nil }
                    return self.names.keys.mountUsers.signer(of: url).map { user in
                        { user.sign($0, with: signer) }
                    }
                }, requiresSignature: sign != nil)
        } catch {
            switch error {
            case .malformed:
                throw ProxyFailure(
                    .client, .notFound, "the URL's handle cannot be read; reload the playlist")
            case .badSignature: throw isUnreadable ? ProxyFailure.unreadableIndex : Self.unsigned
            }
        }
    }

    private static var unsigned: ProxyFailure {
        ProxyFailure(
            .client, .forbidden, "the URL was not signed by this daemon; reload the playlist")
    }

    private static var otherName: ProxyFailure {
        ProxyFailure(
            .client, .notFound,
            "the URL's file name is not that of its link; relative URLs in a file cannot be resolved "
                + "against a link: open the file as /https://host/path")
    }

    /// Returns the URL of a handle that has one, in full or by name.
    func namedURL(of handle: Handle) throws(ProxyFailure) -> AbsoluteURL {
        let named: AbsoluteURL?
        do throws(UnreadableIndex) {
            named = try ResourceNames.url(of: handle.target, in: store)
        } catch {
            throw ProxyFailure.unreadableIndex
        }
        guard let url = named else {
            throw ProxyFailure(
                .client, .gone, "the URL's short name is not known any more; reload the playlist")
        }
        // Or anybody could have a mount's user information sent for any URL of its origin.
        guard !url.hasStandIn || handle.isSignedForUser else { throw Self.unsigned }
        return url
    }

    // MARK: Links without their query

    private static var unknownList: ProxyFailure {
        ProxyFailure(
            .client, .gone,
            "the URL lacks its query, and its playlist is not known any more; reload it")
    }

    /// Returns the stored list that must be read to resolve a place, if it is long and was last
    /// read by an earlier run.
    private func unreadLongList(
        _ place: LivePlace, role: ResourceRole, in list: LiveListID, of session: SessionID
    ) -> StoredObject? {
        guard let key = live.list(named: list.name, servedTo: session, in: store),
            case .unread = live.find(place, role: role, in: (key, list.epoch)),
            let object = store.peek(key), object.isComplete,
            object.total ?? 0 >= TextWorker.longText
        else { return nil }
        return object
    }

    /// Finds a place in a live list, for a player that dropped the query of its link.
    private func find(
        _ place: LivePlace, role: ResourceRole, in list: LiveListID, session: SessionID
    ) throws(ProxyFailure) -> (AbsoluteURL, Epoch) {
        let owner = sessions.session(session)
        if owner.isShifted, let found = shifted(place, role, in: list, owner) { return found }
        guard let key = live.list(named: list.name, servedTo: session, in: store) else {
            throw Self.unknownList
        }
        switch live.find(place, role: role, in: (key, list.epoch)) {
        case .url(let url, let epoch): return (url, epoch)
        case .unread(let key):
            if let found = stored(place, role, in: key, owner) { return found }
            fallthrough
        case .noPlace:
            throw ProxyFailure(
                .client, .notFound,
                "the playlist names no \(place) now; reload it, and keep the query of its URLs")
        }
    }

    /// Finds a place in an extended window.
    private func shifted(
        _ place: LivePlace, _ role: ResourceRole, in list: LiveListID, _ session: Session
    ) -> (AbsoluteURL, Epoch)? {
        let window = timeShift.all(of: session.id).first { window in
            [ResourceRole.playlist, nil].contains { role in
                let key = names.keys.cacheKey(of: window.url, session: session, role: role)
                return ObjectKey(key).listName == list.name
            }
        }
        guard let shift = window?.shift else { return nil }
        switch place {
        case .segment(let number):
            guard let segment = shift.segment(number: number), let url = segment.url else {
                return nil
            }
            return (url, Epoch(number: segment.marks.segment))
        case .section(let name):
            let segment = shift.segments.last { segment in
                segment.mapURL.map { LiveSection.name(of: $0, segment.mapRange) } == name
            }
            guard let segment, let url = segment.mapURL else { return nil }
            return (url, Epoch(number: segment.marks.map))
        case .part: return nil
        }
    }

    /// Finds a place in the stored text of a list.
    private func stored(
        _ place: LivePlace, _ role: ResourceRole, in list: ObjectKey, _ session: Session
    ) -> (AbsoluteURL, Epoch)? {
        guard let object = store.peek(list), let facts = ObjectFacts.of(object), object.isComplete,
            facts.head.isPlaylist, let base = try? AbsoluteURL(facts.head.finalURL),
            let body = try? readBody(of: object, count: Int(object.total ?? 0))
        else { return nil }
        var reading = PlaylistReading(
            limits: session.limits(ofOrigins: limits),
            variables: memory.variables(of: session.id, in: base))
        reading.isSubtitles = role == .subtitle
        var found: AbsoluteURL?
        try? Playlist(body, base: base, reading).forEachReference { reference in
            if reference.role == role, LivePlace(of: reference) == place { found = reference.url }
        }
        return found.map { url in
            let name = ObjectKey(names.keys.cacheKey(of: url, session: session, role: role))
            return (url, live.epoch(of: name))
        }
    }
}

extension LiveMemory {
    /// Returns the list that a session's link paths name; nil if it is not known, or is another
    /// viewer's.
    ///
    /// Which list was served to whom is known since the start only. A viewer's own list is stored under
    /// the shared key for the first one, and under keys of their sessions for all others.
    func list(
        named name: UInt64, servedTo session: SessionID, in store: ObjectStore
    ) -> ObjectKey? {
        guard let key = list(named: name, for: session) else { return nil }
        guard let object = store.peek(key), object.title != session.number,
            let facts = ObjectFacts.of(object), facts.head.isPlaylist, facts.isPerViewer,
            !facts.isPrepared(for: session)
        else { return key }
        let own = ObjectKey(
            CacheKey(text: object.url).changing { $0.audience = .session(session.text) })
        return list(own) == nil ? nil : own
    }
}
