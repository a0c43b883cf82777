import CachePolicy
import HTTPServer
import Model
import Reactor
import Store
import Upstream

/// Live lists in an exchange: blocking reloads and growing resources.
extension OriginExchange {
    /// Sets the length of a resource that has grown by parts, from the list that names it.
    func learnLength(of object: StoredObject) {
        guard let growth = resource.live.growth, growth.isWhole, object.total == nil else { return }
        _ = object.learnTotal(growth.end)
    }

    // MARK: Blocking reloads

    /// Fetches a list that the origin delivers once it has advanced far enough, or a delta update.
    func awaitReload() {
        var request = FetchRequest(
            resource: resource, wanted: .whole, delivery: .completion, lane: .express)
        request.terms.isDelivery = true
        progress.fallback = core.store.lookup(resource.listKey)
        fetch(request)
    }

    /// Serves the old list in place of one that the origin did not deliver, but only when a player
    /// would reload: players request the next list as soon as they have this one.
    func serveLater(_ decision: Decision) {
        guard let object = decision.object, let stored = decision.stored,
            let list = decision.playlist
        else { return }
        let bound = LoopBound(self, to: exchange.loop)
        exchange.loop.schedule(after: list.facts.reuse) { _ in
            bound.enqueue { this, _ in
                guard this.exchange.isAlive else { return }
                this.serve(
                    object, stored, playlist: list, as: .init(disposition: .staleOnError, ttl: -1))
            }
        }
    }
}
