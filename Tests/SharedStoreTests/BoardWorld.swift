import Numbers
import Posix

@testable import SharedStore

/// Nodes with boards of their own over one bucket, whose faults are chosen; time is handed in.
final class BoardWorld {
    var boards: [String: OrderBoard] = [:]
    var objects: [String: (text: [UInt8], version: Int, key: Int)] = [:]
    /// The key that seals orders, and the oldest that opens them.
    var keys = 1...1
    /// Nodes that cannot begin what they take, and how often each node was offered something.
    var refusing: Set<String> = []
    /// True if they refuse for want of room.
    var lacksRoom = false
    var offers: [String: Int] = [:]
    /// Nodes that have a complete copy of what they leave, and keep it.
    var keeping: Set<String> = []
    /// How often each node has read an order.
    var reads: [String: Int] = [:]
    var held: [String: Set<SharedOrderID>] = [:]
    /// What each node has on its disk of orders that the bucket does not have.
    private var saved: [String: [SharedOrderID: SharedOrder]] = [:]
    var now: Int64 = 1_000
    var isDown = false
    var conditions = Conditions.kept
    /// Nodes that do not run.
    var dead: Set<String> = []
    private var told: [String: [SharedOrderProgress]] = [:]
    private var version = 0
    private var beats: Int64 = 0
    var wishes: [String: [SharedOrder.Wish]] = [:]

    enum Conditions { case kept, refused, ignored }

    static let silence: Int64 = 30
    var monotonic: Monotonic { Monotonic(nanoseconds: now * 1_000_000_000) }
    private var wall: WallTime { WallTime(seconds: 1_700_000_000 + now) }

    init(_ nodes: String...) { for node in nodes { start(node) } }

    func start(_ node: String) {
        boards[node] = OrderBoard(node: node, silence: .seconds(Self.silence))
        dead.remove(node)
    }

    /// Ends a node without a word; it forgets nothing that it held.
    func kill(_ node: String) { dead.insert(node) }

    /// Starts a node again, which tells its board what it held.
    func restart(_ node: String) {
        start(node)
        for order in saved[node, default: [:]].values { boards[node]?.restore(order) }
        for id in held[node, default: []] {
            boards[node]?.hold(id, .run, query: "url=x", now: wall)
        }
    }

    func put(_ name: String, _ text: [UInt8]) {
        version += 1
        objects[name] = (text, version, keys.upperBound)
    }

    func give(_ node: String, _ id: SharedOrderID, _ wish: SharedOrder.Wish, isHere: Bool = true) {
        let order = SharedOrder(id, wish, query: "url=x", given: wall, node: node)
        guard let order else { return }
        if isHere {
            if wish.needsNode {
                held[node, default: []].insert(id)
            } else {
                held[node, default: []].remove(id)
            }
        }
        saved[node, default: [:]][id] = order
        perform(node, boards[node]?.give(order, isHere: isHere) ?? [])
        forgetWritten(node)
    }

    /// Removes what a node has saved of orders that the bucket has by now.
    private func forgetWritten(_ node: String) {
        for (id, order) in saved[node, default: [:]]
        where boards[node]?.unwritten(id) != order.given {
            saved[node]?[id] = nil
        }
    }

    /// All living nodes look at the bucket, in this order.
    func poll(_ nodes: [String]? = nil, seconds: Int64 = 5) {
        now += seconds
        guard !isDown else { return }
        for node in nodes ?? boards.keys.sorted() where !dead.contains(node) {
            beats += 1
            put(SharedOrderNames.node(node), SharedHeartbeat(name: "m:\(node)", count: beats).text)
            let listing = objects.sorted { $0.key < $1.key }.map { ($0.key, "\($0.value.version)") }
            for case .read(let name) in boards[node]?.list(listing, now: monotonic) ?? [] {
                if name.contains("/order/") { reads[node, default: 0] += 1 }
                let isOpen = !name.contains("/order/") || keys.contains(objects[name]?.key ?? 0)
                boards[node]?.read(
                    name, isOpen ? objects[name]?.text : nil, now: monotonic,
                    hasFormerSeal: objects[name].map { $0.key < keys.upperBound } ?? false)
            }
            perform(node, boards[node]?.settle(now: monotonic, wall: wall) ?? [])
            forgetWritten(node)
            tellRefusals(node)
        }
    }

    private func tellRefusals(_ node: String) {
        let refused = (boards[node]?.refused ?? []).sorted { $0.id < $1.id }
        guard refused != told[node, default: []] else { return }
        told[node] = refused
        put(SharedOrderNames.progress(of: node), SharedOrderProgress.text(refused))
    }

    private func perform(_ node: String, _ actions: [OrderBoard.Action]) {
        for action in actions {
            switch action {
            case .read: break
            case .delete(let name): objects[name] = nil
            case .writeOrder(let order):
                if !isDown { put(order.name, order.text) }
                boards[node]?.wrote(order, !isDown)
            case .writeClaim(let id, let turn, let isConditional):
                let name = SharedOrderNames.claim(id, turn: turn)
                var result = OrderBoard.ClaimResult.won
                if isDown {
                    result = .failed
                } else if isConditional, conditions == .refused {
                    result = .unsupported
                } else if isConditional, conditions == .kept, objects[name] != nil {
                    result = .lost
                } else {
                    put(name, Array(node.utf8))
                }
                perform(node, boards[node]?.claimed(id, turn: turn, result) ?? [])
            case .take(let order):
                offers[node, default: 0] += 1
                if refusing.contains(node) {
                    boards[node]?.refuse(order.id, now: monotonic, lacksRoom: lacksRoom)
                } else {
                    held[node, default: []].insert(order.id)
                }
            case .release(let order, _):
                if !keeping.contains(node) { held[node, default: []].remove(order.id) }
            case .change(let order):
                wishes[node, default: []].append(order.wish)
                if !order.wish.needsNode { held[node, default: []].remove(order.id) }
            }
        }
    }

    /// The living nodes that hold an order.
    func holders(_ id: SharedOrderID) -> [String] {
        boards.keys.sorted().filter { !dead.contains($0) && held[$0, default: []].contains(id) }
    }

    func views(_ node: String) -> [OrderBoard.View] {
        boards[node]?.views(now: monotonic) ?? []
    }
}
