// Finds playback URLs again whose token has died: the playlist that named them is asked for anew,
// and what stands there now in their place is where they are.
//
// In order: a child answers 401, 403 or 410 · its successor is known already from an earlier death
// of the same list · else the list is found among those that the session has played, or that the
// store keeps for it · it is fetched past the cache, once for all who wait · each former child is
// paired with its successor · the request starts over there. A list whose own token is dead is
// found through its own list in the same way.
import Library
import Model
import Origin
import CachePolicy
import HLS
import HTTP
import HTTPServer
import Logging
import Posix
import Reactor
import Routing
import Store
import Synchronization
import URISyntax
import Upstream

/// What is remembered of lists and of what took the place of their children.
///
/// Any thread may use it. Bounded: 12 lists each of the 256 sessions that played last, 16,384 URLs.
final class Revival: Sendable {
    private struct State {
        var lists = RecentMap<SessionID, [Resource]>(capacity: 256)
        /// By digest of the former URL.
        var successors = RecentMap<UInt64, AbsoluteURL>(capacity: Revival.mostSuccessors)
        var refreshed = RecentMap<ObjectKey, Monotonic>(capacity: 1_024)
    }

    private static let listsOfSession = 12
    private static let mostSuccessors = 16_384
    /// A list that was asked for anew is not asked again for this long: what is dead in it is dead.
    static let pause = Interval.seconds(5 as Int64)

    private let state = Mutex(State())

    /// Notes that a session plays a list.
    func remember(_ list: Resource) {
        state.withLock { state in
            var lists = state.lists[list.session.id] ?? []
            lists.removeAll { $0.key == list.key }
            lists.append(list)
            if lists.count > Self.listsOfSession { lists.removeFirst() }
            state.lists[list.session.id] = lists
        }
    }

    /// The lists of a session, the last one first.
    func lists(of session: SessionID) -> [Resource] {
        state.withLock { $0.lists[session] ?? [] }.reversed()
    }

    /// Where a dead URL is found now; nil where no other place is known.
    func successor(of dead: AbsoluteURL) -> AbsoluteURL? {
        let name = KeyEvidence.hash(dead.bytes.span)
        return state.withLock { $0.successors[name] }
    }

    /// Notes where dead URLs are found now.
    func note(_ pairs: [(dead: AbsoluteURL, url: AbsoluteURL)]) {
        let named = pairs.suffix(Self.mostSuccessors).map {
            (KeyEvidence.hash($0.dead.bytes.span), $0.url)
        }
        state.withLock { state in
            for (name, url) in named { state.successors[name] = url }
        }
    }

    /// Notes that a list was just asked for anew.
    func noteRefresh(_ list: ObjectKey, now: Monotonic) {
        state.withLock { $0.refreshed[list] = now }
    }

    /// Whether a list was asked for anew just now.
    func isFresh(_ list: ObjectKey, now: Monotonic) -> Bool {
        state.withLock { $0.refreshed[list] }.map { now - $0 < Self.pause } ?? false
    }
}

extension AbsoluteURL {
    /// The URL without delivery directives, and these directives as they stand in it.
    fileprivate var splitDirectives: (url: AbsoluteURL, directives: [String]) {
        guard let query, query.contains("_HLS_") else { return (self, []) }
        let items = query.split(separator: "&", omittingEmptySubsequences: false).map(String.init)
        let directives = items.filter { $0.hasPrefix("_HLS_") }
        let kept = items.filter { !$0.hasPrefix("_HLS_") }.joined(separator: "&")
        let base = text.prefix { $0 != "?" }
        return (
            (try? AbsoluteURL(kept.isEmpty ? "\(base)" : "\(base)?\(kept)")) ?? self, directives
        )
    }

    fileprivate func adding(_ directives: [String]) -> AbsoluteURL {
        guard !directives.isEmpty else { return self }
        let mark = queryRange == nil ? "?" : "&"
        return (try? AbsoluteURL("\(text)\(mark)\(directives.joined(separator: "&"))")) ?? self
    }
}

/// One attempt of one exchange to find its resource again.
///
/// Bound to the exchange's loop.
final class RevivalAttempt {
    private let exchange: OriginExchange
    private var core: ProxyCore { exchange.core }

    init(_ exchange: OriginExchange) {
        self.exchange = exchange
    }

    /// Whether a failure means that a token may have died under a resource that a list names.
    static func fits(_ failure: ProxyFailure, _ resource: Resource) -> Bool {
        guard let status = failure.originStatus?.rawValue, [401, 403, 410].contains(status) else {
            return false
        }
        return !resource.isMounted && resource.role != nil && resource.policy != .offline
    }

    /// Looks for the resource, and tells `done` its URL of now, or nil where it is not found;
    /// perhaps at once.
    func find(_ resource: Resource, depth: Int = 0, _ done: @escaping (AbsoluteURL?) -> Void) {
        let (url, directives) = resource.url.splitDirectives
        let role = resource.role ?? .media
        if let known = core.revival.successor(of: url), known != url {
            return done(known.adding(directives))
        }
        let search = RevivalSearch(
            core: core, example: exchange.resource, session: resource.session, url: url, role: role)
        let (name, session) = (resource.key, resource.session.id)
        // Up to 32 lists are read, however long they are.
        exchange.makeElsewhere(
            .revival(name, session: session), of: nil, { search.look() }, orElse: { done(nil) }
        ) { [self] _, found in
            guard let found else { return done(nil) }
            if let url = found.successor, url != resource.url {
                return done(url.adding(directives))
            }
            guard !core.revival.isFresh(found.list.key, now: .now()) else { return done(nil) }
            refresh(found.list, depth: depth) { [exchange] refreshed in
                guard let (object, list) = refreshed else { return done(nil) }
                exchange.makeElsewhere(
                    .succession(name, session: session), of: object,
                    { search.successor(in: object, list, after: found) }, orElse: { done(nil) }
                ) { _, next in
                    done(next.map { $0.adding(directives) })
                }
            }
        }
    }

    /// Asks for a list past the cache; all who ask at once share one request.
    private func refresh(
        _ list: Resource, depth: Int,
        _ done: @escaping ((object: StoredObject, list: Resource)?) -> Void
    ) {
        let request = FetchRequest(
            resource: list, wanted: .whole, object: nil, revalidates: true, delivery: .completion,
            lane: .express)
        exchange.ask(request) { [self] reply in
            switch reply {
            case .object(let object, _): done((object, list))
            case .failure(let failure):
                guard Self.fits(failure, list), depth < 2 else { return done(nil) }
                find(list, depth: depth + 1) { [self] url in
                    guard let url else { return done(nil) }
                    refresh(core.names.resource(list, movedTo: url), depth: depth + 1, done)
                }
            default: done(nil)
            }
        }
    }
}

/// The part of an attempt that reads lists; for a thread that may be held.
private struct RevivalSearch: Sendable {
    let core: ProxyCore
    /// The resource of the exchange.
    let example: Resource
    let session: Session
    /// What is looked for, without delivery directives.
    let url: AbsoluteURL
    let role: ResourceRole

    /// A list, all that it names, and whether the URL stands in it as it is.
    struct Found: Sendable {
        let list: Resource
        let children: [ResourceReference]
        let isExact: Bool
        /// What stands there in place of the URL, where the URL itself does not.
        var successor: AbsoluteURL?
    }

    /// The list that names the URL: as it is, else by key or path; blocks on the disk.
    func look() -> Found? {
        guard var found = list() else { return nil }
        // The list may have come anew already, for another player or by its own reload.
        if !found.isExact {
            found.successor = Succession(found.children, key: key).successor(of: url, role)
        }
        return found
    }

    /// Where the URL is found in a list that has come anew; nil where it is not.
    ///
    /// Blocks on the disk.
    func successor(in object: StoredObject, _ list: Resource, after found: Found) -> AbsoluteURL? {
        guard let now = children(of: object, list) else { return nil }
        core.revival.noteRefresh(found.list.key, now: .now())
        let succession = Succession(now, key: key)
        core.revival.note(succession.pairs(with: found.children))
        let next = core.revival.successor(of: url) ?? succession.successor(of: url, role)
        return next == url ? nil : next
    }

    private func key(_ url: AbsoluteURL, _ role: ResourceRole) -> ObjectKey {
        ObjectKey(core.names.cacheKey(url, session: session, role: role))
    }

    private func list() -> Found? {
        let known = core.revival.lists(of: session.id)
        let name = key(url, role)
        var second: Found?
        for list in known.isEmpty ? storedLists : known where list.url != url {
            guard let object = core.store.peek(list.key), let children = children(of: object, list)
            else { continue }
            if children.contains(where: { $0.url == url }) {
                return Found(list: list, children: children, isExact: true)
            }
            let isLike = children.contains {
                $0.url.path == url.path || key($0.url, $0.role) == name
            }
            if isLike, second == nil {
                second = Found(list: list, children: children, isExact: false)
            }
        }
        return second
    }

    /// The lists that the store keeps of the session, for players that go on after a restart.
    private var storedLists: [Resource] {
        core.store.rows(ofTitle: session.id.number)
            .filter { $0.role == ResourceRole.playlist.letter }
            .prefix(32)
            .compactMap { row in
                guard let object = core.store.peek(row.key), let facts = ObjectFacts.of(object),
                    facts.head.isPlaylist, let url = try? AbsoluteURL(facts.head.finalURL)
                else { return nil }
                return example.changing {
                    $0.url = url
                    $0.role = .playlist
                    $0.cacheKey = CacheKey(text: row.url)
                    $0.live = .none
                }
            }
    }

    private func children(of object: StoredObject, _ list: Resource) -> [ResourceReference]? {
        guard object.isComplete, let facts = ObjectFacts.of(object), facts.head.isPlaylist,
            let base = try? AbsoluteURL(facts.head.finalURL),
            let body = try? readBody(of: object, count: Int(object.total ?? 0))
        else { return nil }
        var options = PlaylistRewriter.Options()
        options.limits = core.settings.playlistLimits
        options.inheritedVariables = core.playlistMemory.variables(of: list.session.id)
        options.collectsReferences = true
        return try? PlaylistRewriter.rewrite(body, base: base, options: options) { _, _ in false }
            .references
    }
}

extension OriginExchange {
    /// Starts over under the resource's URL of now, if it is found.
    ///
    /// - Returns: false where the failure is to be told at once.
    func revive(after failure: ProxyFailure) -> Bool {
        guard revivals < 2, RevivalAttempt.fits(failure, resource) else { return false }
        revivals += 1
        RevivalAttempt(self).find(resource) { [self] url in
            guard exchange.isAlive else { return }
            guard let url else { return serveStale(instead: failure) }
            core.counters.add(.revived)
            core.log.info(
                "found again after its token died", metadata: ["url": "\(url.redacted)"])
            move(to: url)
        }
        return true
    }

    /// Starts over at the successor of a URL that is known to be dead.
    ///
    /// - Returns: false where none is known.
    func startAtSuccessor() -> Bool {
        guard resource.role != nil, !resource.isMounted,
            let url = core.revival.successor(of: resource.url), url != resource.url
        else { return false }
        move(to: url)
        return true
    }

    private func move(to url: AbsoluteURL) {
        resource = core.names.resource(resource, movedTo: url)
        fallback = nil
        staleReason = nil
        isPartlyStored = false
        start()
    }

    /// Asks the flights for something beside this exchange's own resource.
    func ask(_ request: FetchRequest, _ then: @escaping (FetchReply) -> Void) {
        let id = FetchID()
        let bound = LoopBound((self, then), to: exchange.loop)
        exchange.onCancel = { [core] in core.flights.cancel(id) }
        var request = request
        request.budget = budget
        core.flights.fetch(request, id: id) { reply in
            bound.enqueue { pair, _ in
                pair.0.exchange.onCancel = nil
                if pair.0.exchange.isAlive { pair.1(reply) }
            }
        }
    }
}
