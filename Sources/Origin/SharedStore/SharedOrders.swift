// Orders of all nodes: the listing is read, `OrderBoard` decides, keepers carry out.
import BucketClient
import DurableState
import Logging
import Model
import Numbers
import Posix
import Reactor
import SharedStore
import Store
import Synchronization
import Upstream

/// The orders on the upstream loop.
final class SharedOrders {
    private unowned let level: SharedLevel
    private let orders: NodeOrders
    private var board: OrderBoard
    private var keepers: [SharedOrderID.Kind: NodeOrders.Keeper] = [:]
    /// The count of signs of life; starts from the wall clock, so that it is greater after a
    /// restart.
    private var beats = WallTime.now().seconds
    /// True while the last sign of life has reached the bucket.
    private var hasBeaten = false
    /// True while a listing is read, or the time of the next is set.
    private var isPolling = false
    private var listing = OrderListing(mostPages: SharedLevel.mostPages)
    private var written: [UInt8] = []
    /// The key that sealed what this run has written; nil without keys.
    private var sealedWith: UInt32?
    private let state: StateDatabase
    /// The times of the versions that have a record in the state database.
    private var saved: [SharedOrderID: Set<WallTime>] = [:]

    init(_ level: SharedLevel, _ orders: NodeOrders, state: StateDatabase) {
        self.level = level
        self.orders = orders
        self.state = state
        sealedWith = orders.sealNumber
        let polls = level.settings.pollInterval.nanoseconds.multipliedSaturated(by: 6)
        board = OrderBoard(
            node: orders.node, silence: max(.seconds(10), Interval(nanoseconds: polls)))
        restore()
    }

    /// Takes up what an earlier run has not written.
    private func restore() {
        for record in state.records(NodeOrderRecord.self) {
            guard let order = SharedOrder(record, node: orders.node) else {
                state.remove(NodeOrderRecord.self, key: record.key)
                continue
            }
            saved[order.id, default: []].insert(order.given)
            board.restore(order)
        }
        forgetWritten()
    }

    /// Removes the records of versions that the bucket has, or that a later one replaces.
    private func forgetWritten() {
        for (id, times) in saved {
            let unwritten = board.unwritten(id)
            let left = times.filter { $0 == unwritten }
            guard left != times else { continue }
            for given in times.subtracting(left) {
                state.remove(
                    NodeOrderRecord.self, key: [.text(id.text), .integer(given.nanoseconds)])
            }
            saved[id] = left.isEmpty ? nil : left
        }
    }

    /// Begins to look for orders once there is a keeper for each kind.
    func keep(_ kind: SharedOrderID.Kind, _ keeper: NodeOrders.Keeper) {
        let isFirst = keepers[kind] == nil
        keepers[kind] = keeper
        if isFirst, keepers.count == SharedOrderID.Kind.allCases.count { beat() }
    }

    func give(_ order: SharedOrder, isHere: Bool) {
        saved[order.id, default: []].insert(order.given)
        let actions = board.give(order, isHere: isHere)
        if actions.isEmpty {
            level.log.warning(
                "the other nodes are not told of an order: they already follow the most",
                metadata: ["order": "\(order.id.text)", "most": "\(OrderBoard.most)"])
        }
        if let moved = board.unwritten(order.id), moved > order.given {
            // Another node's version was found since this one was dated.
            var later = order
            later.given = moved
            saved[order.id, default: []].insert(moved)
            state.put(later.record)
        }
        forgetWritten()
        perform(actions)
        show()
    }

    func hold(_ id: SharedOrderID, _ wish: SharedOrder.Wish, query: String) {
        board.hold(id, wish, query: query, now: level.loop.wallNow)
    }

    func refuse(_ id: SharedOrderID, _ reason: String, lacksRoom: Bool) {
        guard board.refuse(id, now: level.loop.now, lacksRoom: lacksRoom) else { return }
        level.log.warning(
            "an order of another node cannot be begun here; a node that can takes it",
            metadata: ["order": "\(id.text)", "reason": "\(reason)"])
    }

    func hasRoom(for kind: SharedOrderID.Kind) { board.hasRoom(for: kind) }

    private func show() { orders.show(board.views(now: level.loop.now)) }

    // MARK: The listing

    /// Shows that this node lives, by a timer of its own: to read many orders takes longer than
    /// other nodes wait.
    private func beat() {
        guard !level.isShutDown else { return }
        guard level.isUp else {
            hasBeaten = false
            return beatLater()
        }
        beats += 1
        // While writes stall, nothing is decided: the others would seem silent, too.
        hasBeaten = false
        put(
            SharedOrderNames.node(orders.node),
            SharedHeartbeat(name: orders.name, count: beats).text, lane: .express
        ) { [weak self] result in
            guard let self, !level.isShutDown else { return }
            switch result {
            case .success:
                hasBeaten = true
                if !isPolling { poll() }
            case .failure(let failure): level.report.note(.orders, failure, log: level.log)
            }
            beatLater()
        }
    }

    private func beatLater() {
        level.loop.schedule(after: level.settings.pollInterval) { [weak self] _ in self?.beat() }
    }

    /// Reads the listing, if others can see that this node lives.
    private func poll() {
        guard !level.isShutDown else { return }
        isPolling = level.isUp && hasBeaten
        if isPolling { list(listing.begin()) }
    }

    private func pollLater() {
        level.loop.schedule(after: level.settings.pollInterval) { [weak self] _ in self?.poll() }
    }

    private func list(_ step: OrderListing.Step) {
        guard case .read(let start, let token) = step else {
            level.report.note(.orders, nil, log: level.log)
            let now = level.loop.now
            return read(board.list(listing.end(), now: now), listed: now)
        }
        level.bucket.list(start, from: token) { [weak self] result in
            guard let self, !level.isShutDown else { return }
            switch result {
            case .success(let page):
                let prefix = level.settings.location.prefix
                let names = page.objects.filter { $0.name.hasPrefix(prefix) }.map {
                    (name: String($0.name.dropFirst(prefix.count)), tag: $0.tag)
                }
                list(listing.add(names, next: page.next))
            case .failure(let failure):
                level.report.note(.orders, failure, log: level.log)
                pollLater()
            }
        }
    }

    /// Reads what a listing has shown, and settles as of its time: nobody is silent for the time
    /// that the reading takes.
    private func read(_ actions: [OrderBoard.Action], listed: Monotonic) {
        let names = actions.compactMap { action -> String? in
            if case .read(let name) = action { name } else { nil }
        }
        SmallReads.read(names, from: level) { [self] name, result in
            let text = try? result.get().body
            let opened = text.flatMap { orders.opened($0, named: name) }
            let hasFormerSeal = text.map { orders.hasFormerSeal($0) } ?? false
            board.read(
                name, opened, now: level.loop.now, isThere: text != nil,
                hasFormerSeal: hasFormerSeal)
            return true
        } done: { [self] in
            sealAnew()
            perform(board.settle(now: listed, wall: level.loop.wallNow))
            forgetWritten()
            show()
            tell()
            pollLater()
        }
    }

    /// Has orders and progress written anew once another key seals.
    private func sealAnew() {
        guard sealedWith != orders.sealNumber else { return }
        sealedWith = orders.sealNumber
        board.sealAnew()
        written = []
    }

    // MARK: Actions

    private func perform(_ actions: [OrderBoard.Action]) {
        for action in actions {
            switch action {
            case .read: break
            case .delete(let name): level.bucket.delete(name) { _ in }
            case .writeOrder(let order): write(order)
            case .writeClaim(let id, let turn, let isConditional):
                claim(id, turn, isConditional)
            case .take(let order):
                // A further attempt takes nothing else over.
                if !board.hasRefused(order) {
                    level.log.notice(
                        "an order of another node is taken over",
                        metadata: ["order": "\(order.id.text)"])
                    level.counters.add(.sharedOrders)
                }
                keepers[order.id.kind]?.take(order)
            case .release(let order, let holder):
                level.log.notice(
                    "an order is left to another node",
                    metadata: ["order": "\(order.id.text)", "node": "\(holder)"])
                keepers[order.id.kind]?.release(order, holder)
            case .change(let order): keepers[order.id.kind]?.change(order)
            }
        }
    }

    private func put(
        _ name: String, _ text: [UInt8], isNew: Bool = false, lane: Lane = .background,
        done: @escaping BucketClient.Reply<BucketReply>
    ) {
        _ = level.bucket.put(
            name, text, hash: "UNSIGNED-PAYLOAD", isNew: isNew, lane: lane, done: done)
    }

    /// Seals a text for the nodes alone; nil, and logged, if that fails.
    private func sealed(_ text: [UInt8], named name: String) -> [UInt8]? {
        let sealed = orders.sealed(text, named: name)
        if sealed == nil {
            level.log.error(
                "an order is not written to the shared store, since it cannot be sealed",
                metadata: ["name": "\(name)"])
        }
        return sealed
    }

    private func write(_ order: SharedOrder) {
        guard let text = sealed(order.text, named: order.name) else {
            return board.wrote(order, false)
        }
        put(order.name, text) { [weak self] result in
            guard let self, !level.isShutDown else { return }
            if case .failure(let failure) = result {
                level.log.warning(
                    "an order did not reach the shared store; it is tried again",
                    metadata: ["order": "\(order.id.text)", "reason": "\(failure)"])
            }
            board.wrote(order, (try? result.get()) != nil)
            forgetWritten()
            show()
        }
    }

    private func claim(_ id: SharedOrderID, _ turn: Int, _ isConditional: Bool) {
        let name = SharedOrderNames.claim(id, turn: turn)
        put(name, Array(orders.node.utf8), isNew: isConditional) { [weak self] result in
            guard let self, !level.isShutDown else { return }
            let end: OrderBoard.ClaimResult =
                switch result {
                case .success: .won
                case .failure(.refused(412, _)), .failure(.refused(409, _)): .lost
                case .failure(.refused(501, _)) where isConditional: .unsupported
                case .failure: .failed
                }
            perform(board.claimed(id, turn: turn, end))
            show()
        }
    }

    /// Writes what this node holds, if that has changed.
    private func tell() {
        let bound = LoopBound(self, to: level.loop)
        let told = Told()
        for (_, keeper) in keepers {
            keeper.progress { some in
                guard let all = told.add(some) else { return }
                bound.enqueue { orders, _ in orders.write(all) }
            }
        }
    }

    private func write(_ progress: [SharedOrderProgress]) {
        let all = progress + board.refused
        let text = SharedOrderProgress.text(all.sorted { $0.id < $1.id })
        guard text != written, !level.isShutDown else { return }
        let name = SharedOrderNames.progress(of: orders.node)
        guard let box = sealed(text, named: name) else { return }
        put(name, box) { [weak self, seal = sealedWith] result in
            // Another key may have come to seal while it was written.
            guard let self, case .success = result, seal == sealedWith else { return }
            written = text
        }
    }

    /// Collects what all keepers tell.
    private final class Told: Sendable {
        private let parts = Mutex<[[SharedOrderProgress]]>([])

        /// Returns all of it once the last one has told.
        func add(_ part: [SharedOrderProgress]) -> [SharedOrderProgress]? {
            parts.withLock { parts in
                parts.append(part)
                guard parts.count == SharedOrderID.Kind.allCases.count else { return nil }
                return parts.flatMap(\.self)
            }
        }
    }
}
