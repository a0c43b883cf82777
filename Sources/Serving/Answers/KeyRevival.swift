// Replaces playback URLs whose token has expired: fetches the playlist that named them again and
// uses the URL that it now has in their place.
//
// In order: a child answers 401, 403 or 410 · its successor may be known from an earlier expiry in
// the same list · otherwise the list is looked for among those that the session has played, those
// that the store keeps for it, and the nearest one that the store has evicted · the list is fetched
// past the cache, once for all waiting requests · each former child is paired with its successor ·
// the request starts over at that URL. A list whose own token has expired is found through its
// parent list in the same way.
import CachePolicy
import HLS
import HTTP
import HTTPServer
import Logging
import Model
import Origin
import Playlists
import Posix
import Reactor
import Store
import Synchronization
import Upstream
import URISyntax

extension AbsoluteURL {
    /// The URL without delivery directives, and the directives as they are written in it.
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

/// One attempt of one exchange to find the current URL of its resource.
///
/// Bound to the exchange's loop.
final class RevivalAttempt {
    private let exchange: OriginExchange
    private var core: ProxyCore { exchange.core }

    init(_ exchange: OriginExchange) {
        self.exchange = exchange
    }

    /// True if a failure may mean that the token of a resource from a list has expired.
    static func fits(_ failure: ProxyFailure, _ resource: Resource) -> Bool {
        guard let status = failure.originStatus?.rawValue, [401, 403, 410].contains(status) else {
            return false
        }
        return !resource.isMounted && resource.role != nil && resource.policy != .offline
    }

    /// Finds the current URL of a resource and passes it to `done`, possibly before returning; nil
    /// if it is not found.
    func find(_ resource: Resource, depth: Int = 0, _ done: @escaping (AbsoluteURL?) -> Void) {
        let (url, directives) = resource.url.splitDirectives
        let role = resource.role ?? .media
        if let known = core.revival.successor(of: url), known != url {
            return done(known.adding(directives))
        }
        let search = RevivalSearch(
            sources: core.sources, example: exchange.resource, session: resource.session, url: url,
            role: role)
        let (name, session) = (resource.key, resource.session.id)
        // Up to 32 lists are parsed, however long they are.
        core.texts.make(
            .revival(name, session: session), of: nil, for: exchange.exchange, { search.look() },
            orElse: { done(nil) }
        ) { [self] found in
            guard let found else { return done(nil) }
            if let url = found.successor, url != resource.url {
                return done(url.adding(directives))
            }
            guard !core.revival.isFresh(found.list.key, now: .now()) else { return done(nil) }
            refresh(found.list, depth: depth) { [core, exchange] refreshed in
                guard let (object, list) = refreshed else { return done(nil) }
                core.texts.make(
                    .succession(name, session: session), of: object, for: exchange.exchange,
                    { search.successor(in: object, list, after: found) }, orElse: { done(nil) }
                ) { next in
                    done(next.map { $0.adding(directives) })
                }
            }
        }
    }

    /// Fetches a list past the cache; concurrent requests share one fetch.
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

extension OriginExchange {
    /// Looks for the URL that replaced an expired one, and starts over there if it is found.
    func findSuccessor(_ decision: Decision) {
        progress.revivals += 1
        RevivalAttempt(self).find(resource) { [self] url in
            guard exchange.isAlive else { return }
            guard let url else {
                var decision = decision
                decision.facts.failure?.maySearch = false
                decision.facts.failure?.isOfReload = false
                return decide(decision)
            }
            core.counters.add(.revived)
            core.log.info(
                "found again after its token expired", metadata: ["url": "\(url.redacted)"])
            move(to: url)
        }
    }

    /// Starts over at the URL that replaced an expired one.
    func move(to url: AbsoluteURL) {
        resource = core.names.resource(resource, movedTo: url)
        progress.startOver()
        start()
    }

    /// Fetches something other than this exchange's own resource.
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
