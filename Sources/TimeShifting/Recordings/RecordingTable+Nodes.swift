// Recordings of all nodes: tells the others what was ordered here, and takes over what they leave.
import DurableState
import HTTP
import Library
import Model
import Origin
import Reactor
import SharedStore
import Store

extension RecordingTable {
    /// Keeps recordings for the orders of all nodes, and tells of those of the previous run.
    func keepOrders() {
        guard services.flights.orders != nil else { return }
        let bound = LoopBound(self, to: loop)
        services.flights.keepOrders(
            .recording,
            NodeOrders.Keeper(
                take: { order in bound.enqueue { table, _ in table.take(order) } },
                release: { order, node in
                    bound.enqueue { table, _ in table.part(of: order.id.number)?.leave(to: node) }
                },
                change: { order in
                    bound.enqueue { table, _ in
                        guard !order.wish.needsNode else { return }
                        table.part(of: order.id.number)?.finish("it was stopped")
                    }
                },
                progress: { done in bound.enqueue { table, _ in done(table.shownToNodes) } }))
        for recording in running.values where !recording.order.isLeft {
            guard let id = shared(recording.order) else { continue }
            services.flights.holdOrder(id, .run, query: recording.order.query)
        }
    }

    private func shared(_ order: RecordingOrder) -> SharedOrderID? {
        guard let orders = services.flights.orders,
            orders.keepsSecrets || !order.choice.holdsSecrets
        else { return nil }
        return SharedOrderID(.recording, order.number)
    }

    /// Returns the version of an order that the caller saves and then passes to `tellNodes`; nil if
    /// the recording stays with this node.
    func version(of order: RecordingOrder, _ wish: SharedOrder.Wish) -> SharedOrder? {
        guard let id = shared(order) else { return nil }
        return services.flights.orders?.version(
            of: id, wish, query: order.query, now: loop.wallNow)
    }

    /// Tells the other nodes what was saved.
    func tellNodes(_ version: SharedOrder?) {
        guard let version else { return }
        services.flights.giveOrder(version, isHere: version.wish.needsNode)
    }

    /// Saves a running recording whose times have moved with the wall clock, and tells the other
    /// nodes: one that takes it over would end it by its former times.
    func tellMoved(_ order: RecordingOrder) {
        let version = version(of: order, .run)
        save(order, telling: version)
        tellNodes(version)
    }

    /// Saves an order to the node that holds a recording to end it, and sends it; nil if no other
    /// node holds it.
    func stopElsewhere(_ id: String) -> AdministrationAnswer? {
        let number = RecordingOrder.number(of: id)
        guard let found = elsewhere.first(where: { $0.order.id == number }),
            let shared = SharedOrderID(.recording, number),
            let version = services.flights.orders?.version(
                of: shared, .end, query: found.order.query, now: loop.wallNow)
        else { return nil }
        do throws(StateFault) {
            try services.store.state.keep([version.record])
        } catch {
            return Self.unsaved(error)
        }
        services.flights.giveOrder(version, isHere: false)
        return .value(.accepted, found.json)
    }

    private func take(_ shared: SharedOrder) {
        let number = shared.id.number
        guard part(of: number) == nil else { return }
        // Going on with a part that was left would write over what is stored of it.
        let id = RecordingOrder.id(ofNextPartOf: number, after: ids)
        guard let order = RecordingOrder(id: id, sharedQuery: shared.query) else {
            return services.flights.refuseOrder(
                shared.id, "it has arguments that this version does not know")
        }
        switch stopped(number) {
        case .paused: return
        case .over: return tellNodes(version(of: order, .end))
        case nil: break
        }
        guard loop.wallNow < order.until else { return tellNodes(version(of: order, .end)) }
        if let fullness {
            return services.flights.refuseOrder(shared.id, fullness, lacksRoom: true)
        }
        save(order)
        begin(order)
    }

    private var shownToNodes: [SharedOrderProgress] {
        running.values.compactMap { recording in
            let order = recording.order
            guard !order.isLeft, let id = shared(order) else { return nil }
            return SharedOrderProgress(
                id: id, state: order.state.rawValue, percent: 0, bytes: recording.fetchedBytes,
                name: order.name ?? TitleName.derived(from: order.choice.url))
        }
    }

    /// The recordings of other nodes.
    var elsewhere: [(order: RecordingOrder, json: JSONValue)] {
        (services.flights.orders?.elsewhere(.recording) ?? []).compactMap { view in
            guard view.order.wish.needsNode, part(of: view.order.id.number) == nil,
                var order = RecordingOrder(
                    id: view.order.id.number, sharedQuery: view.order.query)
            else { return nil }
            order.reason = view.obstacle ?? ""
            order.bytes = view.progress?.bytes ?? 0
            return (order, json(order, nil, holder: view.holderName ?? ""))
        }
    }
}
