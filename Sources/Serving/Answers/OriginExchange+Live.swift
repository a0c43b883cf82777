import CachePolicy
import HLS
import HTTP
import HTTPServer
import Model
import Reactor
import Store
import Upstream
import URISyntax

/// What an exchange does about live lists: blocking reloads, epochs of names, growing resources.
extension OriginExchange {
    // MARK: Names

    /// Whether a stored object may be what its name stood for before: then the origin is asked.
    func isOfFormerEpoch(_ facts: ObjectFacts) -> Bool {
        core.live.isOfFormerEpoch(facts, resource)
    }

    /// Whether what is asked for can be had no more: the origin has given its name to another.
    var isGivenAway: Bool {
        resource.kind == nil && resource.role != .playlist
            && resource.epoch < core.live.epoch(of: resource.nameKey)
    }

    func failGivenAway() {
        fail(
            ProxyFailure(
                .client, .notFound,
                "\(resource.url.redacted) stands for another segment now; reload the playlist"))
    }

    /// Takes the length of a resource that has grown by parts from the list that names it.
    func learnLength(of object: StoredObject) {
        guard let growth = resource.live.growth, growth.isWhole, object.total == nil else { return }
        _ = object.learnTotal(growth.end)
    }

    // MARK: Blocking reloads

    /// Asks the flights for a list that is given when it has come so far, or in another form.
    func startDelivery() {
        var request = FetchRequest(
            resource: resource, wanted: .whole, delivery: .completion, lane: .express)
        request.terms.isDelivery = true
        fallback = core.store.lookup(resource.listKey)
        fetch(request)
    }

    /// Serves an old list instead of one that the origin did not give, but not at once: players
    /// ask for the next one as soon as they have this one.
    ///
    /// Without such a list, what is stored serves as for any resource.
    func serveFormerList(instead failure: ProxyFailure) {
        guard resource.live.delivery != nil, failure.allowsStale, let fallback,
            let facts = ObjectFacts.of(fallback), isRewritten(facts)
        else { return serveStale(instead: failure) }
        prepare(fallback, facts) { [self] outcome in
            guard case .success(let list) = outcome,
                Freshness.mayServeStale(question(facts, list))
            else { return serveStale(instead: failure) }
            serveLater(fallback, facts, list)
        }
    }

    /// Serves an old list when a player would ask for the next one.
    private func serveLater(
        _ object: StoredObject, _ facts: ObjectFacts, _ list: PreparedPlaylist
    ) {
        let bound = LoopBound(self, to: exchange.loop)
        exchange.loop.schedule(after: list.facts.reuse) { _ in
            bound.enqueue { this, _ in
                guard this.exchange.isAlive else { return }
                this.serve(
                    object, facts, playlist: list, as: .init(disposition: .staleOnError, ttl: -1))
            }
        }
    }
}
