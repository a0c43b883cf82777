// Messages between threads and loops.
import Posix
import Reactor
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5)))
struct LoopHandleTests {
    @Test func `jobs of one thread run in the order of sending`() throws {
        let order = Mutex<[Int]>([])
        let thread = try LoopThread(name: "order") { _ in }
        for index in 0..<10_000 {
            thread.handle.enqueue { _ in order.withLock { $0.append(index) } }
        }
        thread.stopAndJoin()
        #expect(order.withLock { $0 } == Array(0..<10_000))
    }

    @Test func `jobs of many threads all run, in order within each thread`() throws {
        let seen = Mutex<[Int: [Int]]>([:])
        let loop = try LoopThread(name: "many") { _ in }
        let senders = try (0..<4).map { sender in
            try PosixThread(name: "sender") {
                for index in 0..<2000 {
                    loop.handle.enqueue { _ in
                        seen.withLock { $0[sender, default: []].append(index) }
                    }
                }
            }
        }
        for sender in senders { sender.join() }
        loop.stopAndJoin()
        for sender in 0..<4 {
            #expect(seen.withLock { $0[sender] } == Array(0..<2000))
        }
    }

    @Test func `a job is rejected once the loop has ended`() throws {
        let thread = try LoopThread(name: "ended") { _ in }
        thread.stopAndJoin()
        #expect(!thread.handle.enqueue { _ in })
        thread.stopAndJoin()
    }

    @Test func `a bound value is available on its own loop`() throws {
        final class Counter { var value = 0 }
        let bound = Mutex<LoopBound<Counter>?>(nil)
        let result = Atomic<Int>(0)
        let thread = try LoopThread(name: "bound") { loop in
            bound.withLock { $0 = LoopBound(Counter(), to: loop) }
        }
        let ready = Atomic<Bool>(false)
        thread.handle.enqueue { _ in ready.store(true, ordering: .releasing) }
        while !ready.load(ordering: .acquiring) {}
        let counter = bound.withLock { $0 }
        for _ in 0..<100 {
            counter?.enqueue { counter, _ in counter.value += 1 }
        }
        counter?.enqueue { counter, loop in
            result.store(counter.value, ordering: .relaxed)
            #expect(loop.isCurrent)
        }
        thread.stopAndJoin()
        #expect(result.load(ordering: .relaxed) == 100)
    }

    @Test func `opening a bound value on another loop traps`() async {
        await #expect(processExitsWith: .failure) {
            let home = try EventLoop(handle: LoopHandle())
            let other = try EventLoop(handle: LoopHandle())
            _ = LoopBound(1, to: home).value(on: other)
        }
    }
}
