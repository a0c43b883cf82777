import Glibc
import Posix
import Reactor
import Retention
import Synchronization
import Testing

@testable import Store

/// Which files are synced, and which headers are trusted.
extension ObjectStore {
    /// A second worker beside the store's own, for checks that need no loop.
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

    /// An object, and a queue that contains its first header.
    private func addUnsynced(to store: ObjectStore) throws -> (StoredObject, SyncQueue) {
        let made = try store.add("a", total: 10)
        let queue = try store.makeWorker().sync
        queue.note(made, isClaimedEarly: true)
        return (made, queue)
    }

    @Test func `a complete object is found after a kill before any sync`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path + "/store") {
            $0.syncInterval = .seconds(1_000 as Int64)
            $0.commitInterval = .seconds(1_000 as Int64)
        }
        defer { store.close() }
        // Published last, so that the first header cannot be written before all bytes are there.
        let made = try store.create(describe("a", total: 300_000))
        try fill(made, 0..<300_000)
        try store.publish(made)
        store.finish(made)
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

    @Test func `a growing object is committed by time or size, a complete one soon`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) {
            $0.commitInterval = .seconds(1_000 as Int64)
            $0.commitBytes = 1 << 20
        }
        defer { store.close() }
        let committer = try store.makeWorker().committer
        let now = Monotonic.now()
        let later = now + .seconds(100 as Int64)
        func commits() -> Int { store.statistics().commits }
        func take(_ object: StoredObject) {
            committer.take(StoreMail(dirty: [object]), at: now)
        }
        let object = try store.create(describe("a", total: 300_000))
        try fill(object, 0..<100_000)
        object.state.withLock { $0.isQueued = true }
        try store.publish(object)
        take(object)
        committer.commitDue(at: later)
        #expect(commits() == 0)
        try fill(object, 100_000..<300_000)
        committer.commitDue(at: now)
        #expect(commits() == 0)
        committer.commitDue(at: later)
        #expect(commits() == 1)
        let long = try store.create(describe("b", total: 3 << 20))
        try fill(long, 0..<2 << 20)
        long.state.withLock { $0.isQueued = true }
        try store.publish(long)
        take(long)
        committer.commitDue(at: now)
        #expect(commits() == 2)
    }

    @Test func `only the first header may claim bytes before they are synced`() throws {
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
        // The synced bytes are in the same span as those that follow.
        let late = try store.add("b", total: 300_000, filled: 0..<100_000)
        try eventually { store.statistics().commits > 0 }
        try fill(late, 100_000..<200_000)
        let second = try #require(late.dueHeader(epoch: 1))
        #expect(second.mustSync && !second.isClaimedEarly)
    }

    @Test(arguments: [false, true])
    func `open files are synced, alone or with closed ones`(
        withOthers: Bool
    ) throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let open = try store.add("a", total: 10)
        // One file that exists, and one that has been deleted.
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

    @Test func `files left over at a deadline are synced next time`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let (made, queue) = try addUnsynced(to: store)
        queue.note(folders: [made.key.firstByte])
        #expect(!queue.syncAll(by: .now()))
        #expect(queue.headers.map(\.key) == [made.key])
        #expect(queue.headers.map(\.isClaimedEarly) == [true])
        #expect(queue.folders == [made.key.firstByte] && queue.since != nil)
        #expect(queue.syncAll(by: .now() + .seconds(100 as Int64)))
        #expect(queue.headers.isEmpty && queue.since == nil)
    }

    @Test(arguments: [false, true])
    func `only the header that existed before the sync becomes certain`(isWrittenMeanwhile: Bool)
        throws
    {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.syncInterval = .seconds(1_000 as Int64) }
        defer { store.close() }
        let made = try store.add("a", total: 10)
        try eventually { store.statistics().commits > 0 }
        let queue = try store.makeWorker().sync
        queue.note(made, isClaimedEarly: true)
        let batch = queue.take()
        if isWrittenMeanwhile { made.state.withLock { $0.sequence += 1 } }
        queue.absorb(batch.sync(in: store.core.folder, by: .now() + .seconds(100 as Int64)))
        #expect(made.state.withLock { $0.isHeaderSynced } == !isWrittenMeanwhile)
    }

    @Test func `an object with several headers is synced once, with the strictest requirement`()
        throws
    {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let made = try store.add("a", total: 10)
        let queue = try store.makeWorker().sync
        for isClaimedEarly in [false, true, false] {
            queue.note(made, isClaimedEarly: isClaimedEarly)
        }
        let batch = queue.take()
        #expect(batch.open.map(\.header.isClaimedEarly) == [true] && batch.closed.isEmpty)
        #expect(queue.headers.isEmpty)
    }

    @Test func `a failure in a former folder does not affect the current one`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let (made, queue) = try addUnsynced(to: store)
        let batch = queue.take()
        queue.isSyncingFormer = true
        var outcome = SyncOutcome()
        outcome.refused = batch.open.map { ($0.header, SystemError("fdatasync", code: EIO)) }
        queue.absorb(outcome)
        #expect(!made.isDiscarded && !queue.isSyncingFormer)
    }

    @Test(arguments: [true, false])
    func `objects whose sync failed are removed, open or not`(isOpen: Bool) throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let (made, queue) = try addUnsynced(to: store)
        _ = queue.take()
        if !isOpen { _ = store.core.table.withShard(of: made.key) { $0.remove(made.key.name) } }
        var outcome = SyncOutcome()
        outcome.refused = [
            (
                UnsyncedHeader(key: made.key, isClaimedEarly: true),
                SystemError("fdatasync", code: EIO)
            )
        ]
        #expect(!queue.absorb(outcome))
        #expect(store.find("a") == nil && !exists(objectPath(folder.path, "a")))
        #expect(made.isDiscarded == isOpen)
    }

    @Test func `many pending objects do not prolong the wait`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) {
            $0.syncInterval = .seconds(1_000 as Int64)
            $0.mostUnsynced = 10
        }
        defer { store.close() }
        let queue = try store.makeWorker().sync
        let now = Monotonic.now()
        let objects = try (0..<10).map { try store.add("\($0)", total: 10) }
        for object in objects {
            #expect(!queue.isDue(at: now))
            queue.note(object, isClaimedEarly: true)
        }
        #expect(queue.isDue(at: now))
        _ = queue.take()
        #expect(!queue.isDue(at: now + .seconds(2_000 as Int64)))
        // The store's own queue contains them, too.
        try eventually { objects[0].state.withLock { $0.isHeaderSynced } }
    }

    @Test func `few pending objects wait for the interval`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.syncInterval = .seconds(1_000 as Int64) }
        defer { store.close() }
        let (_, queue) = try addUnsynced(to: store)
        let since = try #require(queue.since)
        #expect(!queue.isDue(at: since + .seconds(999 as Int64)))
        #expect(queue.isDue(at: since + .seconds(1_000 as Int64)))
    }

    @Test func `the thread syncs one batch and reports it once`() throws {
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
        #expect(syncer.waitForBatch(by: .now() + .seconds(100 as Int64)))
    }

    // MARK: Failed syncs of the file system

    /// Makes every sync and write of a descriptor fail; returns a duplicate of what it was.
    private func breakDescriptor(
        _ number: CInt, in folder: TemporaryFolder
    ) throws -> SharedDescriptor {
        let whole = SharedDescriptor(try duplicate(number))
        // O_PATH, which the Glibc module lacks.
        let hollow = SharedDescriptor(try openFile(folder.path, flags: 0o10000000))
        try putBack(hollow, as: number)
        return whole
    }

    private func putBack(_ whole: SharedDescriptor, as number: CInt) throws {
        try #require(dup2(whole.number, number) == number)
    }

    @Test func `each user of the file system's sync has a file of its own`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let files = SyncUser.allCases.compactMap { store.core.folder.syncFile(of: $0)?.number }
        #expect(Set(files).count == 3)
    }

    @Test func `a failed sync of the file system also concerns headers queued after it`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.syncInterval = .seconds(1_000 as Int64) }
        defer { store.close() }
        let queue = try store.makeWorker().sync
        let deadline = Monotonic.now() + .seconds(100 as Int64)
        func addClosed(_ name: String) throws {
            let made = try store.add(name, total: 10)
            _ = store.core.table.withShard(of: made.key) { $0.remove(made.key.name) }
            queue.note(made, isClaimedEarly: true)
        }
        try addClosed("a")
        let file = try #require(store.core.folder.syncFile(of: .batches))
        let whole = try breakDescriptor(file.number, in: folder)
        #expect(!queue.syncAll(by: deadline))
        try putBack(whole, as: file.number)
        try addClosed("b")
        #expect(!queue.syncAll(by: deadline))
        for name in ["a", "b"] {
            #expect(store.find(name) == nil && !exists(objectPath(folder.path, name)), "\(name)")
        }
        // What was written before the failure has been claimed long ago.
        let later = Monotonic.now() + .seconds(1_001 as Int64)
        #expect(queue.take(at: later).formerFailure != nil)
        #expect(queue.take(at: later).formerFailure == nil)
    }

    @Test func `after a failed sync of the file system each growing object is synced alone`()
        throws
    {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) {
            $0.syncInterval = .seconds(1_000 as Int64)
            $0.commitInterval = .seconds(1_000 as Int64)
        }
        defer { store.close() }
        let committer = try store.makeWorker().committer
        let objects = try (0..<SyncBatch.together).map {
            try store.add("\($0)", total: 300_000, filled: 0..<1_000)
        }
        try eventually { store.statistics().commits >= objects.count }
        func grow(from start: Int64) throws {
            for object in objects { try fill(object, start..<start + 1_000) }
            committer.take(StoreMail(finished: objects), at: .now())
        }
        let file = try #require(store.core.folder.syncFile(of: .commits))
        let whole = try breakDescriptor(file.number, in: folder)
        try grow(from: 1_000)
        _ = committer.commitFinished()
        try putBack(whole, as: file.number)
        #expect(!objects.contains { $0.isDiscarded })
        // The failure was reported; only a sync of the file itself shows which one lost bytes.
        try grow(from: 2_000)
        let failing = try breakDescriptor(objects[0].descriptor.number, in: folder)
        _ = committer.commitFinished()
        try putBack(failing, as: objects[0].descriptor.number)
        #expect(objects.map(\.isDiscarded) == [true] + Array(repeating: false, count: 7))
    }

    @Test func `a first header that the disk refused once may still precede its bytes`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.commitInterval = .seconds(1_000 as Int64) }
        defer { store.close() }
        let worker = try store.makeWorker()
        func commit(_ object: StoredObject) {
            worker.committer.take(StoreMail(finished: [object]), at: .now())
            _ = worker.committer.commitFinished()
        }
        let made = try store.create(describe("a", total: nil))
        try store.publish(made)
        try fill(made, 0..<100_000)
        let whole = try breakDescriptor(made.descriptor.number, in: folder)
        commit(made)
        try putBack(whole, as: made.descriptor.number)
        #expect(worker.sync.headers.isEmpty && worker.committer.hasRefused)
        worker.committer.commitDue(at: .now() + .seconds(1_001 as Int64))
        #expect(!worker.committer.hasRefused)
        commit(made)
        #expect(worker.sync.headers.map(\.isClaimedEarly) == [true])
    }

    @Test func `an object that was closed before its first sync counts as closed`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.syncInterval = .seconds(1_000 as Int64) }
        defer { store.close() }
        let (made, queue) = try addUnsynced(to: store)
        try eventually { store.statistics().commits > 0 }
        _ = store.core.table.withShard(of: made.key) { $0.remove(made.key.name) }
        let again = try #require(store.find("a"))
        #expect(again !== made)
        let batch = queue.take()
        #expect(batch.open.isEmpty && batch.closed.map(\.key) == [made.key])
    }
}
