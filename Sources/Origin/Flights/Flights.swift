// The interface of the upstream loop for server threads: start, stop, and requests.
package import CachePolicy
import HTTP
import Logging
package import Lookahead
package import Model
import Posix
import Reactor
package import SharedStore
package import Store
import Synchronization
package import Upstream
package import URISyntax

/// The flights, for other threads.
package final class Flights: Sendable {
    private let thread: LoopThread
    private let table: Mutex<LoopBound<FlightTable>?>
    private let sessions: SessionWriter?
    private let services: FlightServices

    /// Starts the upstream loop; blocks until libcurl is ready.
    package init(_ services: FlightServices, configuration: UpstreamConfiguration) throws {
        let ready = try ThreadSemaphore()
        let holder = TableHolder()
        let sessions = configuration.sessionFile.flatMap { SessionWriter($0, log: services.log) }
        self.sessions = sessions
        self.services = services
        thread = try LoopThread(
            name: "upstream", onHold: services.counters.loopHoldObserver(log: services.log)
        ) { loop in
            holder.install(services, configuration, sessions, on: loop)
            ready.signal()
        }
        guard ready.wait(atMost: .seconds(10)), let bound = holder.table else {
            throw ProxyFailure(.us, .internalServerError, "libcurl could not be started")
        }
        table = Mutex(bound)
    }

    private final class TableHolder: Sendable {
        private let made = Mutex<LoopBound<FlightTable>?>(nil)

        var table: LoopBound<FlightTable>? { made.withLock { $0 } }

        func install(
            _ services: FlightServices, _ configuration: UpstreamConfiguration,
            _ sessions: SessionWriter?, on loop: EventLoop
        ) {
            guard let client = try? UpstreamClient(loop: loop, configuration: configuration) else {
                return
            }
            if let sessions {
                let kept = KeptSessions(
                    loop: loop, text: sessions.read(), trust: configuration.caFile,
                    save: { sessions.save($0) })
                if kept.isUnreadable {
                    services.log.warning(
                        "kept TLS sessions are ignored: the file has another format")
                }
                client.keptSessions = kept
            }
            let bound = LoopBound(
                FlightTable(loop: loop, client: client, services: services), to: loop)
            made.withLock { $0 = bound }
        }
    }

    /// The orders of all nodes; nil without a second level.
    package var orders: NodeOrders? { services.secondLevel?.orders }

    /// Runs `body` on the upstream loop.
    func onLoop(_ body: @escaping @Sendable (FlightTable) -> Void) {
        let bound = table.withLock { $0 }
        bound?.enqueue { table, _ in body(table) }
    }

    /// Starts or joins a flight; `reply` is called once, on the upstream loop, unless cancelled.
    package func fetch(
        _ request: FetchRequest, id: FetchID, reply: @escaping @Sendable (FetchReply) -> Void
    ) {
        onLoop { $0.fetch(request, id: id, reply: reply) }
    }

    /// Starts or joins a flight, unless `isNeedless`, called on the upstream loop, returns true:
    /// the reply is nil then.
    ///
    /// `reply` is called once, on the upstream loop, unless cancelled.
    package func fetch(
        _ request: FetchRequest, id: FetchID, unless isNeedless: @escaping @Sendable () -> Bool,
        reply: @escaping @Sendable (FetchReply?) -> Void
    ) {
        onLoop { table in
            if isNeedless() { return reply(nil) }
            table.fetch(request, id: id) { reply($0) }
        }
    }

    /// Checks whether origins answer, or parents that are asked in their place.
    ///
    /// While a parent answers, no origin is contacted: the parent serves what the origins have.
    ///
    /// - Parameters:
    ///   - urls: one for each origin.
    ///   - parents: the parents that are asked for what the origins have; none if the origins are.
    ///   - reply: called once, on the upstream loop.
    package func inquire(
        of urls: [AbsoluteURL], behind parents: [Parent],
        reply: @escaping @Sendable () -> Void
    ) {
        guard !parents.isEmpty else { return onLoop { $0.inquiries.ask(urls, reply: reply) } }
        onLoop { [self] table in
            table.parentInquiries.ask(parents.map(\.root), needsOne: true) { [self] in
                onLoop { [services] table in
                    let health = services.origins.parents.health
                    if parents.contains(where: { health.state(of: $0.origin) == .up }) {
                        return reply()
                    }
                    table.inquiries.ask(urls, reply: reply)
                }
            }
        }
    }

    /// Opens connections to origins that a player will probably need, except to those that do not
    /// answer.
    package func connectEarly(to origins: [Origin]) {
        onLoop { [services] table in
            // Players' requests go to a parent, whose connections are kept.
            if table.hasParent { return }
            for origin in origins where services.origins.health.mark(of: origin) == nil {
                table.client.connectEarly(to: origin, timeout: services.settings.timeouts.connect)
            }
        }
    }

    /// Cancels a request; its reply may still be on its way.
    package func cancel(_ id: FetchID) {
        onLoop { $0.cancel(id) }
    }

    /// Reports that the client of a request has shut its sending side; `end` is called, on the
    /// upstream loop, if another player's request waits for what this one takes.
    package func noteHalfClosed(_ id: FetchID, _ end: @escaping @Sendable () -> Void) {
        onLoop { $0.noteHalfClosed(id, end) }
    }

    /// Keeps what is being fetched under these keys, in any variant, from being stored.
    package func invalidate(_ keys: Set<CacheKey>) {
        onLoop { $0.invalidate(keys) }
    }

    /// Restores the limit of transfers that was measured on this network; nil for an unknown
    /// network.
    package func follow(network: NetworkMemory.Network?) {
        onLoop { $0.concurrency.follow(network: network) }
    }

    /// Reports load, power source and link type of the machine.
    package func follow(_ conditions: MachineConditions) {
        onLoop { $0.concurrency.follow(conditions) }
    }

    /// Probes all origins that are down immediately: the network may have changed.
    package func hurryProbes() {
        onLoop { [services] table in
            table.probes.hurryAll()
            if !services.settings.parents.isEmpty { table.parentProbes.hurryAll() }
        }
    }

    /// Repeats purges and pins of other nodes.
    ///
    /// - Parameters:
    ///   - handler: makes them here.
    ///   - caughtUp: called once the first listing has failed, or all that it shows is made.
    package func followChanges(
        _ handler: @escaping NodeChanges.Handler, caughtUp: @escaping @Sendable () -> Void
    ) {
        onLoop { table in
            guard let changes = table.shared?.changes else { return caughtUp() }
            changes.follow(handler, caughtUp: caughtUp)
        }
    }

    /// Tells other nodes of a purge or pin that was accepted here; blocks until it is saved.
    package func publishChange(path: String, query: String) {
        guard
            let change = services.secondLevel?.changes.saved(path: path, query: query, now: .now())
        else { return }
        onLoop { $0.shared?.changes.publish(change) }
    }

    /// True if a request for a resource shows headers or cookies of its session, so that neither
    /// the second level nor a parent that is not trusted gets it; any thread may ask.
    package func isPrivate(_ resource: Resource) -> Bool {
        services.origins.parents.isPrivate(resource)
    }

    /// Has orders of one kind carried out by `keeper`.
    package func keepOrders(_ kind: SharedOrderID.Kind, _ keeper: NodeOrders.Keeper) {
        onLoop { $0.shared?.orders?.keep(kind, keeper) }
    }

    /// Tells other nodes of an order that was given here, and removes its saved record once the
    /// bucket has it; with `isHere`, this node carries it out.
    package func giveOrder(_ order: SharedOrder, isHere: Bool) {
        onLoop { $0.shared?.orders?.give(order, isHere: isHere) }
    }

    /// Tells of an order that this node has held since an earlier run.
    package func holdOrder(_ id: SharedOrderID, _ wish: SharedOrder.Wish, query: String) {
        onLoop { $0.shared?.orders?.hold(id, wish, query: query) }
    }

    /// Tells that an order that was to be taken over cannot be carried out here now.
    ///
    /// - Parameters:
    ///   - id: the order.
    ///   - reason: why, for the log.
    ///   - lacksRoom: true if it can be once `haveRoom` tells of room.
    package func refuseOrder(_ id: SharedOrderID, _ reason: String, lacksRoom: Bool = false) {
        onLoop { $0.shared?.orders?.refuse(id, reason, lacksRoom: lacksRoom) }
    }

    /// Tells that there is room for another order of a kind.
    package func haveRoom(for kind: SharedOrderID.Kind) {
        onLoop { $0.shared?.orders?.hasRoom(for: kind) }
    }

    /// Reports that a viewer has moved to another title: transfers of this session end with their
    /// readers, without the grace period for players that may return.
    package func viewerMovedOn(fromSession number: UInt64) {
        onLoop { $0.viewerMovedOn(fromSession: number) }
    }

    /// Reports that a player reads an object that an ahead fetch may be filling.
    package func readerJoined(_ object: StoredObject) {
        onLoop { [key = object.key, generation = object.generation] in
            $0.readerJoined(key, generation: generation)
        }
    }

    /// Reports that a reader of an incomplete object has left.
    package func readerLeft(_ object: StoredObject) {
        onLoop { [key = object.key, generation = object.generation] in
            $0.readerLeft(key, generation: generation)
        }
    }

    /// Fetches the upstream figures; `reply` is called on the upstream loop.
    package func statistics(
        _ reply: @escaping @Sendable (UpstreamStatistics, TransferFigures) -> Void
    ) {
        onLoop { reply($0.client.statistics(), $0.client.figures) }
    }

    /// Cancels all transfers and stops the loop; blocks.
    package func stop() {
        onLoop { $0.shutdown() }
        thread.stopAndJoin()
        sessions?.stop()
        table.withLock { $0 = nil }
    }
}
