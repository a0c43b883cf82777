import Numbers
import Posix
import Testing

@testable import SharedStore

/// Repeatable random numbers.
private struct SeededGenerator: RandomNumberGenerator {
    let seed: UInt64
    private var count: UInt64 = 0

    init(seed: UInt64) { self.seed = seed }

    mutating func next() -> UInt64 {
        count += 1
        return stableHash("\(seed) \(count)")
    }
}

@Suite struct OrderBoardTests {
    private let id: SharedOrderID

    init() throws { id = try #require(SharedOrderID(.download, "0123456789ab")) }

    @Test func `an order is seen by all nodes and held by the one it was given to`() {
        let world = BoardWorld("a", "b", "c")
        world.give("b", id, .run)
        for _ in 1...10 { world.poll() }
        #expect(world.holders(id) == ["b"])
        for node in ["a", "c"] {
            let view = world.views(node).first
            #expect(view?.holder == "b" && view?.holderName == "m:b" && view?.isHeard == true)
        }
    }

    @Test(arguments: [BoardWorld.Conditions.kept, .refused, .ignored])
    fileprivate func `an order of a silent node is taken over by one other, and never by none`(
        _ conditions: BoardWorld.Conditions
    ) {
        let world = BoardWorld("a", "b", "c")
        world.conditions = conditions
        world.give("b", id, .run)
        world.poll()
        world.poll()
        world.kill("b")
        for _ in 1..<(BoardWorld.silence / 5) { world.poll() }
        #expect(world.holders(id) == [], "not before its time")
        for _ in 1...5 { world.poll() }
        #expect(world.holders(id).count == 1)
        world.restart("b")
        for _ in 1...3 { world.poll() }
        #expect(world.holders(id).count == 1)
        #expect(world.holders(id) != ["b"], "the former holder leaves it where it is")
    }

    @Test func `a node that is back in time keeps its order`() {
        let world = BoardWorld("a", "b")
        world.give("b", id, .run)
        world.poll()
        world.kill("b")
        for _ in 1...3 { world.poll() }
        world.restart("b")
        for _ in 1...10 { world.poll() }
        #expect(world.holders(id) == ["b"])
    }

    @Test func `an order given while the store is away reaches the others when it is back`() {
        let world = BoardWorld("a", "b")
        world.isDown = true
        world.give("a", id, .run)
        for _ in 1...20 { world.poll() }
        world.isDown = false
        world.poll()
        world.poll()
        #expect(world.views("b").first?.holder == "a")
        world.kill("a")
        for _ in 1...10 { world.poll() }
        #expect(world.holders(id) == ["b"])
    }

    @Test func `an order that the store never got is given again after a restart`() {
        let world = BoardWorld("a", "b")
        world.isDown = true
        world.give("a", id, .run)
        world.restart("a")
        world.isDown = false
        world.poll()
        world.poll()
        #expect(world.holders(id) == ["a"])
        #expect(world.views("b").first?.holder == "a")
    }

    @Test(arguments: [SharedOrder.Wish.pause, .cancel])
    func `what was told while the store is away is told again after a restart`(
        _ wish: SharedOrder.Wish
    ) {
        let world = BoardWorld("a", "b")
        world.give("a", id, .run)
        world.poll()
        world.poll()
        world.isDown = true
        // The store has a running order that this node holds.
        world.give("a", id, wish)
        world.restart("a")
        world.isDown = false
        for _ in 1...3 { world.poll() }
        #expect(world.holders(id) == (wish == .pause ? ["a"] : []))
        #expect(world.wishes["a"] == nil, "nothing older is repeated")
        #expect(world.views("b").first?.order.wish == wish)
    }

    @Test func `what another node was to be told is told after a restart`() {
        let world = BoardWorld("a", "b")
        world.give("a", id, .run)
        world.poll()
        world.poll()
        world.isDown = true
        world.give("b", id, .pause, isHere: false)
        world.restart("b")
        world.isDown = false
        for _ in 1...3 { world.poll() }
        #expect(world.wishes["a"] == [.pause])
        #expect(world.holders(id) == ["a"])
    }

    @Test func `what was told in the meantime by another node counts more`() {
        let world = BoardWorld("a", "b")
        world.give("a", id, .run)
        world.poll()
        world.isDown = true
        world.give("a", id, .pause)
        world.kill("a")
        world.isDown = false
        world.poll(["b"])
        world.give("b", id, .cancel, isHere: false)
        world.restart("a")
        for _ in 1...3 { world.poll() }
        #expect(world.wishes["a"] == [.cancel])
        #expect(world.holders(id) == [])
    }

    @Test func `the time in which the store is away counts against no node`() {
        let world = BoardWorld("a", "b")
        world.give("a", id, .run)
        world.poll()
        world.poll()
        world.isDown = true
        for _ in 1...50 { world.poll() }
        world.isDown = false
        world.poll(["b"])
        world.poll(["b", "a"])
        #expect(world.holders(id) == ["a"])
    }

    @Test func `a bucket that was emptied gets the orders again`() {
        let world = BoardWorld("a", "b")
        world.give("a", id, .run)
        world.poll()
        world.objects = [:]
        for _ in 1...3 { world.poll() }
        #expect(world.holders(id) == ["a"])
        #expect(world.views("b").first?.holder == "a")
    }

    @Test func `what one node is told about an order of another one is done there`() {
        let world = BoardWorld("a", "b")
        world.give("a", id, .run)
        world.poll()
        world.give("b", id, .pause, isHere: false)
        world.poll()
        #expect(world.wishes["a"] == [.pause])
        world.give("b", id, .cancel, isHere: false)
        world.poll()
        #expect(world.wishes["a"] == [.pause, .cancel])
        for _ in 1...20 { world.poll() }
        #expect(world.holders(id) == [])
        world.give("b", id, .run)
        for _ in 1...20 { world.poll() }
        #expect(world.holders(id) == ["b"], "given anew, it is at the node it is given to")
    }

    @Test func `a cancelled order is ended at nodes that kept a copy when they left it, too`() {
        let world = BoardWorld("a", "b", "c")
        world.keeping = ["a"]
        world.give("a", id, .run)
        world.poll()
        world.kill("a")
        for _ in 1...10 { world.poll() }
        world.restart("a")
        for _ in 1...3 { world.poll() }
        #expect(world.holders(id).count == 2)
        let other = world.holders(id).contains("b") ? "c" : "b"
        world.give(other, id, .cancel, isHere: false)
        for _ in 1...3 { world.poll() }
        #expect(world.holders(id) == [])
        #expect(world.wishes["a"] == [.cancel], "it is told once")
    }

    @Test func `a cancelled order is forgotten after a month, with all of its objects`() {
        let world = BoardWorld("a", "b")
        world.give("a", id, .run)
        world.poll()
        world.give("a", id, .cancel)
        world.poll()
        #expect(world.objects.keys.contains { $0.hasPrefix("orders1/order/") })
        for _ in 1...3 { world.poll(seconds: 31 * 86_400) }
        #expect(!world.objects.keys.contains { $0.contains(id.text) })
        #expect(world.views("b").isEmpty)
    }

    @Test func `what nodes that are gone for good have left is removed by others`() {
        let world = BoardWorld("a", "b", "c")
        world.give("a", id, .run)
        world.poll()
        world.poll()
        world.give("a", id, .cancel)
        world.poll()
        world.kill("a")
        let beat = SharedOrderNames.node("a")
        #expect(world.objects[beat] != nil)
        for _ in 1...(86_400 / 14 + 10) { world.poll(seconds: 14) }
        #expect(world.objects[beat] == nil, "a cancelled order needs no node")
        #expect(world.views("b").first?.order.wish == .cancel, "others may be away")
        world.poll(seconds: 31 * 86_400)
        for _ in 1...6 { world.poll(seconds: 14) }
        #expect(!world.objects.keys.contains { $0.contains(id.text) })
        #expect(world.views("b").isEmpty && world.views("c").isEmpty)
    }

    @Test func `a complete title is not moved by a restart that takes longer`() {
        let world = BoardWorld("a", "b")
        world.give("a", id, .run)
        world.poll()
        world.put(
            SharedOrderNames.progress(of: "a"),
            SharedOrderProgress.text([
                SharedOrderProgress(id: id, state: "complete", percent: 100, bytes: 5, name: "x y")
            ]))
        world.poll()
        #expect(world.views("b").first?.progress?.name == "x y")
        world.kill("a")
        for _ in 1...100 { world.poll() }
        #expect(world.holders(id) == [])
        for _ in 1...6 { world.poll(seconds: 14) }
        for _ in 1..<(86_400 / 14) { world.poll(seconds: 14) }
        #expect(world.holders(id) == ["b"])
    }

    @Test func `nodes share out what a lost one leaves`() throws {
        let world = BoardWorld("a", "b", "c")
        let ids = try (0..<90).map { number in
            try #require(SharedOrderID(.download, String(0x1000 + number, radix: 16)))
        }
        for id in ids { world.give("a", id, .run) }
        world.poll()
        world.poll()
        world.kill("a")
        for _ in 1...10 { world.poll() }
        #expect(ids.allSatisfy { world.holders($0).count == 1 })
        let share = ids.count { world.holders($0) == ["b"] }
        #expect((25...65).contains(share))
    }

    /// Nodes die, come back and lose the store in random order; in the end each order has one node.
    @Test(arguments: 1...60)
    func `whatever happens, each order has exactly one node in the end`(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let world = BoardWorld("a", "b", "c", "d")
        world.conditions = [.kept, .refused, .ignored].randomElement(using: &random) ?? .kept
        let ids = try (1...6).map { try #require(SharedOrderID(.recording, "\($0)")) }
        var given: Set<SharedOrderID> = []
        for _ in 1...80 {
            let node = ["a", "b", "c", "d"].randomElement(using: &random) ?? "a"
            switch Int.random(in: 0..<8, using: &random) {
            case 0: world.kill(node)
            case 1 where world.dead.contains(node): world.restart(node)
            case 2: world.isDown.toggle()
            case 3 where !world.dead.contains(node):
                guard let id = ids.filter({ !given.contains($0) }).randomElement(using: &random)
                else { continue }
                given.insert(id)
                world.give(node, id, .run)
            default:
                world.poll(
                    ["a", "b", "c", "d"].shuffled(using: &random),
                    seconds: Int64.random(in: 1...20, using: &random))
            }
        }
        world.isDown = false
        for node in world.dead where Bool.random(using: &random) { world.restart(node) }
        if world.dead.count == 4 { world.restart("a") }
        // Orders of nodes that died before they could write them are nobody's until these are back.
        let lost = given.filter { id in
            !world.objects.keys.contains { $0.contains("/order/\(id.text)-") }
                && world.holders(id).isEmpty
        }
        for _ in 1...30 { world.poll() }
        for id in given.subtracting(lost) {
            #expect(world.holders(id).count == 1, "order \(id.number)")
        }
    }
}
