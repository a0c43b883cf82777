import Glibc
import Posix
import Reactor
import Synchronization
import Testing

@testable import Store

/// What those learn who wait until something is on the disk.
@Suite struct CertaintyTests {
    @Test func `a requested sync does not wait for the interval`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.syncInterval = .seconds(1_000 as Int64) }
        defer { store.close() }
        let made = try store.add("a", total: 300_000)
        store.makeCertain()
        try eventually { made.state.withLock { $0.isHeaderSynced } }
        // The request may arrive while a sync is running.
        let others = try (0..<20).map { number in
            let other = try store.add("\(number)", total: 300_000)
            store.makeCertain()
            return other
        }
        try eventually { others.allSatisfy { $0.state.withLock { $0.isHeaderSynced } } }
    }

    @Test func `whoever waits for a sync is told after all before it is on the disk`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.syncInterval = .seconds(1_000 as Int64) }
        defer { store.close() }
        let told = try ThreadSemaphore()
        for number in 0..<20 {
            // Begins a sync that does not have the object.
            store.makeCertain()
            let made = try store.add("\(number)", total: 300_000)
            store.makeCertain { isCertain in if isCertain { told.signal() } }
            #expect(told.wait(atMost: .seconds(100 as Int64)))
            #expect(made.state.withLock { $0.isHeaderSynced })
        }
    }

    @Test func `nothing is certain while the disk refuses to sync its name`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.syncInterval = .seconds(1_000 as Int64) }
        defer { store.close() }
        let made = try store.add("a", total: 10)
        func isCertain() throws -> Bool {
            let told = try ThreadSemaphore()
            let outcome = Mutex(false)
            store.makeCertain { answer in
                outcome.withLock { $0 = answer }
                told.signal()
            }
            #expect(told.wait(atMost: .seconds(100 as Int64)))
            return outcome.withLock { $0 }
        }
        // open(2) refuses a link to itself.
        let names = store.core.folder.objectsFolder(of: made.key.firstByte)
        try renameFile(names, to: folder.path + "/elsewhere")
        symlink(names, names)
        #expect(try !isCertain())
        unlink(names)
        try renameFile(folder.path + "/elsewhere", to: names)
        #expect(try isCertain())
    }

    @Test func `an object whose sync failed is lost although the disk does not delete it yet`()
        throws
    {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.deletionInterval = .milliseconds(20) }
        defer { store.close() }
        let made = try store.add("a", total: 10)
        let queue = try store.makeWorker().sync
        queue.note(made, isClaimedEarly: true)
        try store.flushed()
        // unlink(2) refuses a folder.
        let path = objectPath(folder.path, "a")
        try renameFile(path, to: folder.path + "/elsewhere")
        try makeFolder(path)
        let losses = store.losses
        var outcome = SyncOutcome()
        outcome.refused = queue.take().open.map {
            ($0.header, SystemError("fdatasync", code: EIO))
        }
        #expect(outcome.refused.count == 1)
        #expect(!queue.absorb(outcome))
        #expect(store.losses != losses)
        #expect(store.presence(of: [made.key]) == [.absent])
        #expect(store.find("a") == nil)
        try exchangeFiles(folder.path + "/elsewhere", path)
        try eventually { !exists(path) }
        #expect(store.find("a") == nil)
    }
}
