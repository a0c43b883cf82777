// Work for a value that its loop makes later.
import Reactor
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5)))
struct LateLoopBoundTests {
    private final class List { var items: [Int] = [] }

    @Test func `work sent before the value is made is done in its order, before later work`() throws
    {
        let thread = try LoopThread(name: "late") { _ in }
        let list = LateLoopBound<List>(thread.handle)
        let seen = Mutex<[Int]>([])
        for index in 0..<100 { list.enqueue { list, _ in list.items.append(index) } }
        list.make { _ in List() }
        for index in 100..<200 { list.enqueue { list, _ in list.items.append(index) } }
        list.enqueue { list, _ in seen.withLock { $0 = list.items } }
        thread.stopAndJoin()
        #expect(seen.withLock { $0 } == Array(0..<200))
    }

    @Test func `the value is made once`() throws {
        let thread = try LoopThread(name: "once") { _ in }
        let list = LateLoopBound<List>(thread.handle)
        let made = Atomic<Int>(0)
        for _ in 0..<3 {
            list.make { _ in
                made.add(1, ordering: .relaxed)
                return List()
            }
        }
        thread.stopAndJoin()
        #expect(made.load(ordering: .relaxed) == 1)
    }

    @Test func `work for a value that is never made is dropped with it`() throws {
        final class Witness: Sendable {}
        let thread = try LoopThread(name: "never") { _ in }
        let list = LateLoopBound<List>(thread.handle)
        weak var witness: Witness?
        do {
            let held = Witness()
            witness = held
            list.enqueue { list, _ in
                _ = held
                Issue.record("work was done for a value that does not exist: \(list.items)")
            }
        }
        thread.stopAndJoin()
        list.end()
        #expect(witness == nil)
    }
}
