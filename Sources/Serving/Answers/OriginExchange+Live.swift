import CachePolicy
import HTTPServer
import Model
import Reactor
import Store
import Upstream

/// What an exchange does about live lists: blocking reloads, growing resources.
extension OriginExchange {
    /// Takes the length of a resource that has grown by parts from the list that names it.
    func learnLength(of object: StoredObject) {
        guard let growth = resource.live.growth, growth.isWhole, object.total == nil else { return }
        _ = object.learnTotal(growth.end)
    }

    // MARK: Blocking reloads

    /// Asks the flights for a list that is given when it has come so far, or in another form.
    func awaitReload() {
        var request = FetchRequest(
            resource: resource, wanted: .whole, delivery: .completion, lane: .express)
        request.terms.isDelivery = true
        fallback = core.store.lookup(resource.listKey)
        fetch(request)
    }

    /// Serves an old list instead of one that the origin did not give, when a player would ask for
    /// the next one: players do as soon as they have this one.
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
