import GRDB
import Glibc
import Posix
import Reactor
import Retention
import Testing

@testable import Store

/// An index that rejects changes: they are kept in memory, and written as soon as it takes them.
@Suite struct UnwrittenIndexTests {
    @Test func `a purge by age spares an object whose use waits for the index`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.indexInterval = .seconds(600 as Int64) }
        defer { store.close() }
        for name in ["used", "unused"] { try store.add(name, total: 100) }
        try store.flushed()
        let limit = WallTime.now()
        #expect(store.find("used") != nil)
        // As the store thread does between the search for rows and the removal.
        let worker = try store.makeWorker()
        worker.index.hasTouches = true
        worker.index.gatherUses(for: &worker.evictor.policy)
        let removal = try store.purge(where: { $0.lastUsed < limit }, goesOn: { _ in true })
        #expect(removal.objects == 1 && store.find("used") != nil && store.find("unused") == nil)
    }

    @Test(arguments: [true, false])
    func `a purge removes what the index does not have`(readsAll: Bool) throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        try store.add("a", total: 10)
        try store.flushed()
        try store.refuseRows()
        for name in ["b", "c", "d"] { try store.add(name, total: 10) }
        let keys = Set(["a", "b", "c"].map { ObjectKey(sha256Of: $0) })
        let removal = try store.purge(
            keys: Array(keys), readsAll: readsAll, where: { keys.contains($0.key) },
            goesOn: { _ in true })
        #expect(removal.objects == 3)
        #expect(["a", "b", "c"].allSatisfy { store.find($0) == nil })
        #expect(store.find("d") != nil)
        #expect(!exists(objectPath(folder.path, "b")))
    }

    @Test func `a removed object whose row the index still has is absent`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let key = try store.add("a", total: 10).key
        try store.flushed()
        try store.refuseRows(on: "DELETE")
        store.remove(key)
        // The store thread takes the change, and keeps it as the index rejects it.
        try eventually { store.statistics().isIndexBehind }
        #expect(store.presence(of: [key]) == [.absent])
        try store.core.index.pool.write { try $0.execute(sql: "DROP TRIGGER refuse") }
        try eventually { !store.statistics().isIndexBehind }
        #expect(store.core.channel.pendingRow(of: key) == nil)
        #expect(store.presence(of: [key]) == [.absent])
    }

    @Test func `an object whose file cannot be opened at the moment is not absent`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let key = try store.add("a", total: 20, filled: 0..<10).key
        try store.pin(title: 7, url: "", keys: [key])
        try store.flushed()
        let (path, elsewhere) = (objectPath(folder.path, "a"), folder.path + "/elsewhere")
        // open(2) refuses a folder for writing.
        try renameFile(path, to: elsewhere)
        try makeFolder(path)
        // The store thread may hold what it has just committed.
        try eventually {
            store.core.table.closeIdle()
            return store.presence(of: [key]) == [.unreadable]
        }
        #expect(store.isUnreadable(key) && store.pinnedRests(of: [7])[7]?.isWhole == true)
        try exchangeFiles(elsewhere, path)
        #expect(!store.presence(of: [key]).contains(.unreadable))
        store.remove(key)
        #expect(store.presence(of: [key]) == [.absent] && !store.isUnreadable(key))
    }

    @Test func `a hidden object that the index lacks is not counted any more`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        try eventually { store.statistics().isReconciled }
        try store.refuseRows()
        let key = try store.add("a", total: 10).key
        try eventually { store.statistics().isIndexBehind }
        // Lookups hide nothing that is open; the store thread may still hold it.
        try eventually {
            _ = store.core.table.withShard(of: key) { $0.trim(to: 0) }
            return store.statistics().openObjects == 0
        }
        store.hide { $0.key == key }
        #expect(store.find("a") == nil)
        #expect(store.statistics().objects == 0)
        #expect(store.statistics().bytes == 0)
        try store.core.index.pool.write { try $0.execute(sql: "DROP TRIGGER refuse") }
    }

    @Test func `a rejected change of an object that a clear spares counts until the index has it`()
        throws
    {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let keys = try ["a", "b"].map { try store.add($0, total: 10).key }
        try store.flushed()
        try store.refuseRows(on: "DELETE")
        for key in keys { store.remove(key) }
        try eventually { store.statistics().isIndexBehind }
        let isDone = try ThreadSemaphore()
        let kept = keys[0]
        store.core.channel.worker?.enqueue { worker, _ in
            worker.flushIndex()
            worker.index.forget(but: [kept])
            isDone.signal()
        }
        #expect(isDone.wait(atMost: .seconds(20 as Int64)))
        #expect(store.core.channel.pendingRow(of: keys[0]) != nil)
        #expect(store.core.channel.pendingRow(of: keys[1]) == nil)
        #expect(store.presence(of: [kept]) == [.absent])
        try store.core.index.pool.write { try $0.execute(sql: "DROP TRIGGER refuse") }
    }

    @Test func `the row of an adopted object is found before the index has it`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let key = ObjectKey(sha256Of: "a")
        let row = StoreEntry(
            key: key, url: "http://a/", role: 7, title: 0, kind: .media, isRead: true, bytes: 8_192,
            total: 10, isComplete: true, created: .now(), knownUse: nil)
        let writer = IndexWriter(core: store.core)
        writer.note(.adopt(row), of: key)
        #expect(try writer.row(ofName: key.name) == row)
        writer.note(.delete, of: key)
        #expect(try writer.row(ofName: key.name) == nil)
    }

    @Test func `a rejected change is told at first and each minute, until the index takes it`()
        throws
    {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let writer = IndexWriter(core: store.core)
        let start = Monotonic.now()
        let times = [0, 1, 59, 60, 61, 119, 120].filter { (seconds: Int64) in
            writer.isToBeTold(at: start + .seconds(seconds))
        }
        #expect(times == [0, 60, 120])

        try store.refuseRows()
        try store.add("a", total: 10)
        try eventually { store.statistics().isIndexBehind }
        try store.core.index.pool.write { try $0.execute(sql: "DROP TRIGGER refuse") }
        try eventually { !store.statistics().isIndexBehind }
        try store.flushed()
        #expect(store.entries(limit: -1).count == 1)
    }

    /// SQLite empties the log at 4 MB; a log that can have 1 MB only stayed full for good.
    @Test func `the log of the index stays below the limit of a file's size`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path
        await #expect(processExitsWith: .success) { [path = path as String] in
            limitFiles(to: 1 << 20)
            let store = try openStore(path)
            for turn in 0..<30 {
                for number in 0..<20 { try store.add("\(turn)/\(number)", total: 10) }
                store.catchUp(within: .seconds(20 as Int64))
            }
            try store.flushed()
            #expect(!store.statistics().isIndexBehind)
            #expect(store.entries(limit: -1).count == 600)
            store.close()
        }
    }

    @Test func `an index that is as long as a file may be takes what deletions make room for`()
        async throws
    {
        let folder = try TemporaryFolder()
        let path = folder.path
        await #expect(processExitsWith: .success) { [path = path as String] in
            limitFiles(to: 256 << 10)
            let store = try openStore(path)
            for number in 0..<1_200 { try store.add("\(number % 3)/\(number)", total: 10) }
            store.catchUp(within: .seconds(20 as Int64))
            #expect(store.statistics().isIndexBehind)
            let removal = try store.purge(
                where: { !$0.url.contains("/2/") }, goesOn: { _ in true })
            #expect(removal.objects == 800)
            try eventually { !store.statistics().isIndexBehind }
            #expect(store.entries(limit: -1).count == 400)
            store.close()
        }
    }
}

extension ObjectStore {
    /// Has the index reject new rows, or another change.
    fileprivate func refuseRows(on change: String = "INSERT") throws {
        try core.index.pool.write {
            try $0.execute(
                sql: """
                    CREATE TRIGGER refuse BEFORE \(change) ON objects
                    BEGIN SELECT RAISE(ABORT, 'refused'); END
                    """)
        }
    }
}

/// Limits the size of files that this process may write, for good.
private func limitFiles(to bytes: UInt) {
    signal(SIGXFSZ, SIG_IGN)
    var limit = rlimit(rlim_cur: bytes, rlim_max: bytes)
    #expect(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
}
