import Posix
import Reactor
import Synchronization
import Testing

@testable import Store

/// How often all objects are searched if nothing can be evicted.
@Suite struct SearchPauseTests {
    private func at(_ milliseconds: Int64) -> Monotonic {
        Monotonic(nanoseconds: 0) + Interval.milliseconds(milliseconds)
    }

    @Test func `a pause is as long as the search examined objects`() {
        var pause = SearchPause()
        #expect(pause.left(at: at(0)) == nil)
        pause.noteFruitless(examined: 2_000_000, at: at(400))
        #expect(pause.left(at: at(400)) == Interval.seconds(6 as Int64))
        #expect(pause.left(at: at(6_399)) == Interval.milliseconds(1))
        #expect(pause.left(at: at(6_400)) == nil)
    }

    @Test func `a search of few objects is repeated, and no pause is longer than ten seconds`() {
        var pause = SearchPause()
        pause.noteFruitless(examined: 9_999, at: at(100))
        #expect(pause.left(at: at(100)) == nil)
        pause.noteFruitless(examined: .max, at: at(100))
        #expect(pause.left(at: at(100)) == Interval.seconds(10 as Int64))
        pause.cut()
        #expect(pause.left(at: at(100)) == nil)
    }

    @Test func `a search that finds nothing has counted all objects`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let names = ["a", "b", "c"]
        // In use.
        let held = try names.map { try store.add($0, total: 12_288) }
        try store.flushed()
        let evictor = try store.makeWorker().evictor
        for row in try store.core.index.rows(of: held.map(\.key)) {
            evictor.insert(try #require(row))
        }
        store.core.usage.budget = 0
        let freed = evictor.evict(until: Monotonic(nanoseconds: .max), wanted: 0)
        #expect(freed == nil)
        #expect(evictor.examined >= names.count)
        let current = held.filter { $0.isCurrent }
        #expect(current.count == names.count)
    }

    @Test func `the end of a pause evicts nothing for requests that were refused`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path, budget: 2 * 16_384)
        defer { store.close() }
        for name in ["a", "b"] { try store.add(name, total: 12_288) }
        try store.flushed()
        try eventually { store.statistics().isReconciled }
        let isRefused = Mutex(false)
        let isOver = try ThreadSemaphore()
        store.core.channel.worker?.enqueue { worker, loop in
            worker.pause.noteFruitless(examined: .max, at: .now())
            store.core.channel.askEviction(bytes: 12_288)
            worker.mailArrived(loop)
            isRefused.withLock { $0 = store.core.usage.isStuck }
            worker.pause.cut()
            worker.evictExcess(loop)
            isOver.signal()
        }
        #expect(isOver.wait(atMost: .seconds(20 as Int64)))
        #expect(isRefused.withLock { $0 })
        #expect(store.statistics().evictions == 0 && !store.statistics().isOutOfRoom)
        // The next request gets room.
        try eventually { store.core.obtain(12_288) }
    }
}
