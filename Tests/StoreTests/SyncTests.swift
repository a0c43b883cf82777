import Glibc
import Posix
import Reactor
import Retention
import Synchronization
import Testing

@testable import Store

/// What is made certain, and what is believed to be.
extension ObjectStore {
    /// A worker beside the store's own, for what can be asked of it without a loop.
    func makeWorker() throws -> StoreWorker {
        StoreWorker(core: core, syncer: try Syncer(folder: core.folder))
    }
}

@Suite struct SyncTests {
    private func entry(of object: StoredObject) -> SyncBatch.Entry {
        SyncBatch.Entry(
            header: UnsyncedHeader(key: object.key, isClaimedEarly: false),
            generation: object.generation, file: object.descriptor,
            sequence: object.state.withLock { $0.sequence })
    }

    /// An object, and a worker that knows its first header to be unsynced.
    private func addUnsynced(to store: ObjectStore) throws -> (StoredObject, StoreWorker) {
        let made = try store.add("a", total: 10)
        let worker = try store.makeWorker()
        worker.noteUnsynced(made, isClaimedEarly: true)
        return (made, worker)
    }

    @Test func `a complete object is found after a kill before anything was synced`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path + "/store") {
            $0.syncInterval = .seconds(1_000 as Int64)
            $0.commitInterval = .seconds(1_000 as Int64)
        }
        defer { store.close() }
        let made = try store.add("a", total: 300_000)
        try eventually { store.statistics().commits > 0 }
        #expect(!made.state.withLock { $0.isHeaderSynced })
        let copy = folder.path + "/copy"
        try copyFolder(folder.path + "/store", to: copy)
        let second = try openStore(copy)
        defer { second.close() }
        let object = try #require(second.find("a"))
        #expect(object.isComplete)
        #expect(try read(object, 0..<300_000) == body(0..<300_000))
    }

    @Test func `only the first header that claims bytes may come before them`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) {
            $0.syncInterval = .seconds(1_000 as Int64)
            $0.commitInterval = .seconds(1_000 as Int64)
        }
        defer { store.close() }
        let early = try store.create(describe("a", total: 300_000))
        try store.publish(early)
        try fill(early, 0..<100_000)
        let first = try #require(early.dueHeader(epoch: 1))
        #expect(first.isClaimedEarly && !first.mustSync)
        // What is certain by then lies in the same stretch as what comes next.
        let late = try store.add("b", total: 300_000, filled: 0..<100_000)
        try eventually { store.statistics().commits > 0 }
        try fill(late, 100_000..<200_000)
        let second = try #require(late.dueHeader(epoch: 1))
        #expect(second.mustSync && !second.isClaimedEarly)
    }

    @Test(arguments: [false, true])
    func `open files are certain afterwards, alone or with what was let go`(
        withOthers: Bool
    ) throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let open = try store.add("a", total: 10)
        // One that is there, and one that is gone by now.
        try store.add("b", total: 10)
        let others = ["b", "c"].map {
            UnsyncedHeader(key: ObjectKey(sha256Of: $0), isClaimedEarly: true)
        }
        let batch = SyncBatch(
            open: [entry(of: open)], closed: withOthers ? others : [],
            folders: [open.key.firstByte])
        let outcome = batch.sync(in: store.core.folder, by: .now() + .seconds(100 as Int64))
        #expect(outcome.synced.map(\.header.key) == [open.key])
        #expect(outcome.refused.isEmpty && outcome.refusal == nil)
        #expect(outcome.left.isEmpty && outcome.leftFolders.isEmpty)
    }

    @Test func `what a deadline leaves is synced the next time`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let (made, worker) = try addUnsynced(to: store)
        worker.unsyncedFolders = [made.key.firstByte]
        #expect(!worker.syncAll(by: .now()))
        #expect(worker.unsynced.map(\.key) == [made.key])
        #expect(worker.unsynced.map(\.isClaimedEarly) == [true])
        #expect(worker.unsyncedFolders == [made.key.firstByte] && worker.unsyncedSince != nil)
        #expect(worker.syncAll(by: .now() + .seconds(100 as Int64)))
        #expect(worker.unsynced.isEmpty && worker.unsyncedSince == nil)
    }

    @Test(arguments: [false, true])
    func `only the header that was there is certain`(isWrittenMeanwhile: Bool) throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.syncInterval = .seconds(1_000 as Int64) }
        defer { store.close() }
        let made = try store.add("a", total: 10)
        try eventually { store.statistics().commits > 0 }
        let worker = try store.makeWorker()
        worker.noteUnsynced(made, isClaimedEarly: true)
        let batch = worker.takeUnsynced()
        if isWrittenMeanwhile { made.state.withLock { $0.sequence += 1 } }
        worker.absorb(batch.sync(in: store.core.folder, by: .now() + .seconds(100 as Int64)))
        #expect(made.state.withLock { $0.isHeaderSynced } == !isWrittenMeanwhile)
    }

    @Test func `an object with several headers is synced once, as unsure as the least sure`()
        throws
    {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let made = try store.add("a", total: 10)
        let worker = try store.makeWorker()
        for isClaimedEarly in [false, true, false] {
            worker.noteUnsynced(made, isClaimedEarly: isClaimedEarly)
        }
        let batch = worker.takeUnsynced()
        #expect(batch.open.map(\.header.isClaimedEarly) == [true] && batch.closed.isEmpty)
        #expect(worker.unsynced.isEmpty)
    }

    @Test func `what was refused in a former folder says nothing of this one`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let (made, worker) = try addUnsynced(to: store)
        let batch = worker.takeUnsynced()
        worker.isSyncingFormer = true
        var outcome = SyncOutcome()
        outcome.refused = batch.open.map { ($0.header, SystemError("fdatasync", code: EIO)) }
        worker.absorb(outcome)
        #expect(!made.isDiscarded && !worker.isSyncingFormer)
    }

    @Test(arguments: [true, false])
    func `what the disk refused to keep is gone, open or not`(isOpen: Bool) throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let (made, worker) = try addUnsynced(to: store)
        _ = worker.takeUnsynced()
        if !isOpen { _ = store.core.table.withShard(of: made.key) { $0.remove(made.key.name) } }
        var outcome = SyncOutcome()
        outcome.refused = [
            (
                UnsyncedHeader(key: made.key, isClaimedEarly: true),
                SystemError("fdatasync", code: EIO)
            )
        ]
        #expect(!worker.absorb(outcome))
        #expect(store.find("a") == nil && !exists(objectPath(folder.path, "a")))
        #expect(made.isDiscarded == isOpen)
    }

    @Test func `what a caller wants certain does not wait for its time`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.syncInterval = .seconds(1_000 as Int64) }
        defer { store.close() }
        let made = try store.add("a", total: 300_000)
        store.makeCertain()
        try eventually { made.state.withLock { $0.isHeaderSynced } }
        // Asked for while one is under way, as often as not.
        let others = try (0..<20).map { number in
            let other = try store.add("\(number)", total: 300_000)
            store.makeCertain()
            return other
        }
        try eventually { others.allSatisfy { $0.state.withLock { $0.isHeaderSynced } } }
    }

    @Test func `very many that wait are not made to wait longer`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) {
            $0.syncInterval = .seconds(1_000 as Int64)
            $0.mostUnsynced = 10
        }
        defer { store.close() }
        let few = try store.add("few", total: 10)
        try eventually { store.statistics().commits == 1 }
        usleep(500_000)
        #expect(!few.state.withLock { $0.isHeaderSynced })
        for number in 0..<9 { try store.add("\(number)", total: 10) }
        try eventually { few.state.withLock { $0.isHeaderSynced } }
    }

    @Test func `the thread does one batch and tells of it once`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let made = try store.add("a", total: 10)
        let syncer = try Syncer(folder: store.core.folder)
        defer { syncer.stop() }
        let told = try ThreadSemaphore()
        syncer.begin(SyncBatch(open: [entry(of: made)])) { told.signal() }
        #expect(told.wait(atMost: .seconds(100 as Int64)))
        #expect(syncer.takeOutcome()?.synced.map(\.header.key) == [made.key])
        #expect(syncer.takeOutcome() == nil)
        #expect(syncer.settle(by: .now() + .seconds(100 as Int64)))
    }
}
