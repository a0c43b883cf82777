import GRDB
import Posix
import Reactor
import Retention
@testable import Store
import Synchronization
import Testing

/// What the store does while index and folder are compared, which takes minutes for a full cache
/// after an unclean stop.
@Suite struct ComparisonTests {
    private let size: Int64 = 16_384

    @Test func `room that is needed during a comparison is made after it`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        // In use, so that the store's own thread does not evict it.
        let held = try store.add("a", total: 12_288)
        try store.flushed()
        try eventually { store.statistics().isReconciled }
        let worker = try store.makeWorker()
        let loop = try EventLoop(handle: try LoopHandle())
        store.core.usage.budget = 0
        worker.followLimits(loop)
        #expect(worker.comparison != nil, "the store thread must do its other work")
        let since = try #require(worker.comparison).since
        #expect(!worker.isComparisonLong(at: since + .milliseconds(999)))
        #expect(worker.isComparisonLong(at: since + .seconds(1 as Int64)))
        worker.startComparing(leftovers: 0, isRebuilt: false, on: loop)
        #expect(worker.comparison != nil)
        var isComplete = false
        worker.whenIndexIsComplete(on: loop) { loop in
            isComplete = worker.comparison == nil
            loop.stop()
        }
        #expect(!isComplete)
        loop.run()
        #expect(isComplete && worker.evictor.policy.count == 1)
        #expect(held.isCurrent)
    }

    @Test func `what is removed during a comparison is not counted after it`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        for name in ["a", "b", "c"] { try store.add(name, total: 12_288) }
        try store.flushed()
        try eventually { store.statistics().isReconciled }
        let keys = ["a", "b", "c"].map { ObjectKey(sha256Of: $0) }
        let rows = try store.core.index.rows(of: keys).compactMap { $0 }
        try #require(rows.count == 3)
        // What a pin names stays pinned without a file.
        _ = try store.core.pins.add(Pin(title: 5, url: "u", since: .now(), keys: [keys[0]]))
        let worker = try store.makeWorker()
        worker.evictor.reloadPins()
        let loop = try EventLoop(handle: try LoopHandle())
        worker.startComparing(leftovers: 0, isRebuilt: false, on: loop)
        // As if the comparison had passed all of them.
        worker.comparison?.found = rows.map { Found(name: $0.key.name, facts: Retained($0)) }
        worker.comparison?.byte = 255
        worker.comparison?.files = []
        worker.comparison?.rows = [:]
        var mail = StoreMail()
        mail.rows = [keys[0]: .delete, keys[1]: .delete]
        worker.absorb(mail)
        // It was stored again.
        mail.rows = [keys[1]: .put(try #require(rows.first { $0.key == keys[1] }))]
        worker.absorb(mail)
        worker.whenIndexIsComplete(on: loop) { loop in loop.stop() }
        loop.run()
        #expect(worker.evictor.policy.count == 2)
        #expect(store.core.usage.pinned == 0 && store.core.usage.evictable == 2 * size)
    }

    @Test(.timeLimit(.minutes(1)))
    func `a cache folder that is away during a comparison loses no rows`() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/store"
        let store = try openStore(path)
        defer { store.close() }
        for name in ["a", "b"] { try store.add(name, total: 12_288) }
        try store.flushed()
        try eventually { store.statistics().isReconciled }
        let worker = try store.makeWorker()
        let loop = try EventLoop(handle: try LoopHandle())
        try renameFile(path, to: folder.path + "/elsewhere")
        worker.startComparing(leftovers: 0, isRebuilt: false, on: loop)
        // It is back once it was missed.
        func bringBack(_ loop: EventLoop) {
            if store.core.folder.isLost {
                try? renameFile(folder.path + "/elsewhere", to: path)
            } else {
                loop.schedule(after: .zero) { loop in bringBack(loop) }
            }
        }
        bringBack(loop)
        worker.whenIndexIsComplete(on: loop) { loop in loop.stop() }
        loop.run()
        if !exists(path) { try renameFile(folder.path + "/elsewhere", to: path) }
        #expect(worker.comparison == nil && worker.evictor.policy.count == 2)
    }

    @Test func `an object that cannot be published meanwhile leaves the row as it is`() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/store"
        let store = try openStore(path)
        defer { store.close() }
        let key = try store.add("a", total: 12_288).key
        try store.flushed()
        try eventually { store.statistics().isReconciled }
        // As during a comparison that has not come to the object, which is not open.
        store.core.table.withEachShard { shard in
            shard.reconciled = []
            shard.reconciledThrough = -1
            _ = shard.remove(key.name)
        }
        let next = try store.create(describe("a", total: 10))
        try renameFile(path, to: folder.path + "/elsewhere")
        #expect(throws: SystemError.self) { try store.publish(next) }
        try renameFile(folder.path + "/elsewhere", to: path)
        #expect(store.core.table.withShard(of: key) { $0.isUnreconciled(key) })
        #expect(store.statistics().objects == 1)
        // The row is still that of a file: opening it finds nothing to correct.
        try eventually { store.find("a") != nil }
        #expect(store.statistics().objects == 1 && store.statistics().adoptedObjects == 0)
    }

    @Test func `what waits for a comparison that is held up takes no turns meanwhile`() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/store"
        let store = try openStore(path)
        defer { store.close() }
        try store.flushed()
        try eventually { store.statistics().isReconciled }
        let worker = try store.makeWorker()
        // Its time stands still.
        let loop = try EventLoop(handle: try LoopHandle(), clock: .manual(ManualClock()))
        try renameFile(path, to: folder.path + "/elsewhere")
        worker.startComparing(leftovers: 0, isRebuilt: false, on: loop)
        try renameFile(folder.path + "/elsewhere", to: path)
        #expect(worker.comparison?.isHeldUp == true)
        var isRun = false
        worker.whenIndexIsComplete(on: loop) { _ in isRun = true }
        // In its next turn it would find the comparison done.
        worker.comparison = nil
        loop.schedule(after: .zero) { $0.stop() }
        loop.run()
        #expect(!isRun && worker.comparison == nil)
    }

    @Test func `a new object does not wait for room while a comparison takes long`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path, budget: 2 * size)
        defer { store.close() }
        for name in ["a", "b"] { try store.add(name, total: 12_288) }
        try store.flushed()
        try eventually { store.statistics().isReconciled }
        store.core.usage.awaitsComparison = true
        #expect(!store.core.obtain(size))
        #expect(store.statistics().evictions == 0)
        store.core.usage.awaitsComparison = false
        try eventually { store.core.obtain(size) }
        try eventually { store.statistics().evictions > 0 }
    }

    @Test func `a purge that waits for the comparison is stopped without its end`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        try store.add("a", total: 12_288)
        try store.flushed()
        try eventually { store.statistics().isReconciled }
        try withEndlessComparison(in: store) {
            let removal = try store.purge(where: { _ in true }, goesOn: { _ in false })
            #expect(removal == Removal())
        }
        #expect(store.find("a") != nil)
    }

    @Test func `a purge removes what is named by key without waiting for the comparison`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        for name in ["a", "b"] { try store.add(name, total: 12_288) }
        try store.flushed()
        try eventually { store.statistics().isReconciled }
        let key = ObjectKey(sha256Of: "a")
        try withEndlessComparison(in: store) {
            let removal = try store.purge(
                keys: [key], where: { $0.key == key }, goesOn: { $0.objects == 0 })
            #expect(removal.objects == 1)
        }
        #expect(store.find("a") == nil && store.find("b") != nil)
    }

    @Test func `a clear that waits for the comparison is given up by a stop`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        try store.add("a", total: 12_288)
        try store.pin(title: 5, url: "u", keys: [])
        try store.flushed()
        try eventually { store.statistics().isReconciled }
        store.endWaits()
        try withEndlessComparison(in: store) {
            #expect(throws: SystemError.self) { _ = try store.clear(sparingPinned: true) }
        }
        #expect(store.find("a") != nil)
    }

    @Test func `a clear during the comparison of a damaged index replaces that first`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        try store.add("a", total: 12_288)
        try store.flushed()
        try eventually { store.statistics().isReconciled }
        let worker = try #require(store.core.channel.worker)
        worker.enqueue { worker, _ in worker.comparison = Comparison() }
        try store.core.index.pool.write { try $0.execute(sql: "DROP TABLE totals") }
        store.core.noteDamage("a test")
        #expect(try store.clear(sparingPinned: false).objects == 1)
        #expect(store.find("a") == nil && store.statistics().start.isIndexRebuilt)
        try store.flushed()
        #expect(!store.statistics().isIndexDamaged && store.statistics().objects == 0)
    }

    /// Runs `body` while a comparison is under way that goes on only if something waits for its end
    /// on the store thread.
    private func withEndlessComparison(in store: ObjectStore, _ body: () throws -> Void) throws {
        let worker = try #require(store.core.channel.worker)
        worker.enqueue { worker, _ in worker.comparison = Comparison() }
        try body()
        let isUnderWay = Mutex(false)
        let isSeen = try ThreadSemaphore()
        worker.enqueue { worker, _ in
            isUnderWay.withLock { $0 = worker.comparison != nil }
            worker.comparison = nil
            isSeen.signal()
        }
        #expect(isSeen.wait(atMost: .seconds(20 as Int64)))
        #expect(isUnderWay.withLock { $0 })
    }
}
