import Posix
import Testing

@testable import SharedStore

/// Orders that a node cannot begin, and changes of the key that seals them.
@Suite struct OrderTroubleTests {
    private let id: SharedOrderID

    init() throws { id = try #require(SharedOrderID(.recording, "12ab")) }

    @Test func `a node that cannot begin an order is offered it ever more rarely, and not lost`() {
        let world = BoardWorld("a", "b")
        world.give("b", id, .run)
        world.poll()
        world.poll()
        world.kill("b")
        world.refusing = ["a"]
        for _ in 1...120 { world.poll() }
        // Within 570 s: at once, then after 10, 20, 40 s and each minute.
        #expect((5...14).contains(world.offers["a", default: 0]), "\(world.offers)")
        world.refusing = []
        for _ in 1...13 { world.poll() }
        #expect(world.holders(id) == ["a"])
    }

    @Test func `an order that its node cannot begin is taken by one that can`() throws {
        let world = BoardWorld("a", "b", "c")
        let ids = try (0..<20).map { number in
            try #require(SharedOrderID(.download, String(0x1000 + number, radix: 16)))
        }
        for id in ids { world.give("b", id, .run) }
        world.poll()
        world.poll()
        world.kill("b")
        // As of another version, which does not know the arguments.
        world.refusing = ["a"]
        for _ in 1...12 { world.poll() }
        #expect(world.offers["a", default: 0] > 0)
        #expect(ids.allSatisfy { world.holders($0) == ["c"] })
        let offers = world.offers
        for _ in 1...30 { world.poll() }
        #expect(world.offers == offers, "once is enough")
    }

    @Test(arguments: [true, false])
    func `a node that has room again takes what it refused for want of room, and nothing else`(
        _ lacksRoom: Bool
    ) throws {
        let world = BoardWorld("a", "b", "c")
        world.give("b", id, .run)
        world.poll()
        world.poll()
        world.kill("b")
        world.lacksRoom = lacksRoom
        world.refusing = ["a", "c"]
        for _ in 1...30 { world.poll() }
        let holder = try #require(world.views("a").first?.holder)
        let other = holder == "a" ? "c" : "a"
        world.refusing = [holder]
        for _ in 1...3 { world.poll() }
        #expect(world.holders(id).isEmpty)
        world.boards[other]?.hasRoom(for: .download)
        world.poll()
        #expect(world.holders(id).isEmpty)
        world.boards[other]?.hasRoom(for: .recording)
        for _ in 1...3 { world.poll() }
        #expect(world.holders(id) == (lacksRoom ? [other] : []))
        guard lacksRoom else { return }
        let claims = Set(world.objects.keys.filter { $0.contains("/claim/") })
        for _ in 1...30 { world.poll() }
        #expect(world.holders(id) == [other])
        #expect(Set(world.objects.keys.filter { $0.contains("/claim/") }) == claims)
    }

    @Test func `a changed order is offered at once, and only further attempts are repeated ones`()
        throws
    {
        let world = BoardWorld("a", "b", "c")
        world.give("b", id, .run)
        world.poll()
        world.poll()
        world.kill("b")
        world.refusing = ["a", "c"]
        for _ in 1...30 { world.poll() }
        // Each was asked, and the last one keeps it.
        #expect(Set(world.offers.keys) == ["a", "c"])
        #expect(world.objects[SharedOrderNames.claim(id, turn: 3)] == nil)
        let view = try #require(world.views("a").first)
        #expect(view.isRefused && view.progress == nil)
        let taker = try #require(view.holder)
        let offers = world.offers[taker, default: 0]
        let order = try #require(world.views(taker).first?.order)
        #expect(world.boards[taker]?.hasRefused(order) == true)
        world.refusing = []
        world.give(taker == "a" ? "c" : "a", id, .pause, isHere: false)
        world.poll()
        world.poll()
        #expect(world.offers[taker] == offers + 1)
        #expect(world.holders(id) == [taker])
        let changed = try #require(world.views(taker).first?.order)
        #expect(world.boards[taker]?.hasRefused(changed) == false)
    }

    @Test(arguments: [true, false])
    func `an order outlives the key that it was sealed with`(_ isReloaded: Bool) {
        let world = BoardWorld("a", "b")
        world.give("a", id, .run)
        world.poll()
        world.poll()
        // The next key seals; the former one still opens.
        world.keys = 1...2
        for node in ["a", "b"] {
            if isReloaded { world.boards[node]?.sealAnew() } else { world.restart(node) }
        }
        world.poll()
        world.poll()
        func orders() -> [(version: Int, key: Int)] {
            world.objects.filter { $0.key.contains("/order/") }.map { _, object in
                (version: object.version, key: object.key)
            }
        }
        let sealed = orders()
        #expect(sealed.count == 1 && sealed.first?.key == 2)
        // Once only.
        world.poll()
        #expect(orders().first?.version == sealed.first?.version)
        // The former key is retired: a node that starts now takes over what the other one leaves.
        world.keys = 2...2
        world.restart("b")
        world.kill("a")
        for _ in 1...10 { world.poll() }
        #expect(world.holders(id) == ["b"])
    }

    @Test func `an order that cannot be opened is read ever more rarely until a key changes`() {
        let world = BoardWorld("a", "b")
        world.give("a", id, .run)
        world.poll()
        world.kill("a")
        world.keys = 2...2
        world.restart("b")
        world.reads = [:]
        // Within 600 s: at once, then after 10, 20, 40 s and so on.
        for _ in 1...120 { world.poll() }
        #expect((4...7).contains(world.reads["b", default: 0]), "\(world.reads)")
        #expect(world.views("b").isEmpty)
        world.keys = 1...2
        world.boards["b"]?.sealAnew()
        world.poll()
        #expect(world.views("b").first?.order.id == id)
    }

    @Test(arguments: [false, true])
    func `an order that is being written when the key changes is written anew`(
        _ isChanged: Bool
    ) throws {
        var board = OrderBoard(node: "a", silence: .seconds(30 as Int64))
        let (now, wall) = (Monotonic(nanoseconds: 1), WallTime(seconds: 1_700_000_001))
        func order(_ wish: SharedOrder.Wish, _ given: WallTime) throws -> SharedOrder {
            try #require(SharedOrder(id, wish, query: "url=x", given: given, node: "a"))
        }
        var written = try order(.run, WallTime(seconds: 1_700_000_000))
        _ = board.give(written, isHere: true)
        _ = board.claimed(id, turn: 0, .won)
        if isChanged {
            board.wrote(written, true)
            written = try order(.pause, wall)
            _ = board.give(written, isHere: true)
        }
        board.sealAnew()
        board.wrote(written, true)
        let actions = board.settle(now: now, wall: wall)
        #expect(actions == [.writeOrder(written)])
        // Once only.
        board.wrote(written, true)
        let further = board.settle(now: now, wall: wall)
        #expect(further.isEmpty)
    }
}
