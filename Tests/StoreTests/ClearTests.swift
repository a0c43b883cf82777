import GRDB
import Glibc
import Posix
import Reactor
import Retention
import Synchronization
import Testing

@testable import Store

/// Clearing hides all objects immediately and deletes files in the background.
@Suite struct ClearTests {
    private func add(_ store: ObjectStore, _ name: String, title: UInt64) throws {
        var description = describe(name, total: 12_288)
        description.title = title
        let object = try store.create(description)
        try store.publish(object)
        try fill(object, 0..<12_288)
        store.finish(object)
    }

    private func setAside(in folder: String) throws -> [String] {
        try listFolder(folder).map(\.name).filter { $0.hasPrefix("gone-") }
    }

    private func isDeleted(_ store: ObjectStore, in folder: String) throws -> Bool {
        try store.deletion == Deletion() && setAside(in: folder).isEmpty
    }

    @Test func `a clear hides everything immediately, and frees bytes as files are deleted`() throws
    {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        for number in 0..<300 { try store.add("o\(number)", total: 10_000) }
        var held = store.find("o7")
        let removed = try store.clear(sparingPinned: false)
        #expect(removed.objects == 300 && removed.bytes >= 300 * 10_000)
        #expect(store.statistics().objects == 0)
        #expect((0..<300).allSatisfy { store.find("o\($0)") == nil })
        // A holder of an object continues with it.
        #expect(held?.isComplete == true)
        held = nil
        try eventually { try isDeleted(store, in: folder.path) }
        try eventually { store.statistics().bytes == 0 }
        #expect(store.entries(limit: -1).isEmpty)
    }

    @Test func `objects stored after a clear are kept`() throws {
        let folder = try TemporaryFolder()
        var store = try openStore(folder.path)
        for number in 0..<50 { try store.add("o\(number)", total: 10_000) }
        _ = try store.clear(sparingPinned: false)
        try store.add("o1", total: 10_000)
        try eventually { try isDeleted(store, in: folder.path) }
        store.close()
        store = try openStore(folder.path)
        defer { store.close() }
        #expect(store.find("o1")?.isComplete == true && store.find("o2") == nil)
        try eventually { store.statistics().isReconciled }
        #expect(store.statistics().objects == 1)
        #expect(store.statistics().bytes == store.entries(limit: -1).reduce(0) { $0 + $1.bytes })
    }

    @Test func `a clear can keep pinned titles`() throws {
        let folder = try TemporaryFolder()
        var store = try openStore(folder.path)
        try store.pin(title: 1, url: "http://h/1", keys: [ObjectKey(sha256Of: "shared")])
        try add(store, "kept", title: 1)
        try add(store, "shared", title: 2)
        try add(store, "other", title: 2)
        for (name, isPinned) in [("kept", true), ("shared", true), ("other", false)] {
            #expect(store.find(name).map { store.isPinned($0) } == isPinned)
        }
        let removed = try store.clear(sparingPinned: true)
        #expect(removed.objects == 1)
        for _ in 0..<2 {
            #expect(store.find("kept")?.isComplete == true)
            #expect(store.find("shared")?.isComplete == true && store.find("other") == nil)
            try eventually { try isDeleted(store, in: folder.path) }
            #expect(exists(objectPath(folder.path, "kept")))
            try eventually { store.statistics().objects == 2 }
            store.close()
            store = try openStore(folder.path)
        }
        #expect(store.statistics().damagedObjects == 0)
        #expect(store.pins().map(\.title) == [1])
        store.close()
    }

    @Test func `while a clear waits for the disk, others find, store, remove and pin objects`()
        throws
    {
        let folder = try TemporaryFolder()
        var store = try openStore(folder.path)
        try store.pin(title: 1, url: "http://h/1", keys: [])
        for name in ["kept", "replaced", "removed"] { try add(store, name, title: 1) }
        try add(store, "late", title: 2)
        try add(store, "other", title: 3)
        try store.flushed()
        let isOver = try ThreadSemaphore()
        let meanwhile = Meanwhile()
        let worker = try #require(store.core.channel.worker)
        worker.enqueue { [store] worker, _ in
            worker.syncLinks = { _ in
                let player = try PosixThread(name: "player") {
                    _ = store.find("never stored")
                    try? add(store, "replaced", title: 1)
                    try? add(store, "new", title: 1)
                    store.remove(ObjectKey(sha256Of: "removed"))
                    try? store.pin(title: 2, url: "http://h/2", keys: [])
                    isOver.signal()
                }
                meanwhile.note(player, wasFree: isOver.wait(atMost: .seconds(10 as Int64)))
            }
        }
        let generation = try #require(store.find("replaced")).generation
        #expect(try store.clear(sparingPinned: true).objects == 1)
        meanwhile.player?.join()
        #expect(meanwhile.wasFree)
        #expect(store.statistics().objects == 4)
        for _ in 0..<2 {
            let kept = ["kept", "replaced", "new", "late"]
            #expect(kept.allSatisfy { store.find($0)?.isComplete == true })
            #expect(store.find("replaced")?.generation != generation)
            for name in ["removed", "other"] {
                #expect(store.find(name) == nil && !exists(objectPath(folder.path, name)))
            }
            try eventually { try isDeleted(store, in: folder.path) }
            store.close()
            store = try openStore(folder.path)
        }
        try eventually { store.statistics().isReconciled }
        #expect(store.statistics().objects == 4 && store.statistics().damagedObjects == 0)
        #expect(store.statistics().bytes == store.entries(limit: -1).reduce(0) { $0 + $1.bytes })
        store.close()
    }

    @Test func `the next run deletes what a stop left, which counts until then`() throws {
        let folder = try TemporaryFolder()
        try openStore(folder.path).close()
        for byte in ["00", "ff"] {
            let part = "\(folder.path)/gone-1-4-32768/\(byte)"
            try makeFolder(part)
            for name in ["a", "b"] { try writeFile("\(part)/\(name)", [1, 2, 3]) }
        }
        let store = try openStore(folder.path)
        defer { store.close() }
        try eventually { try isDeleted(store, in: folder.path) }
        #expect(store.statistics().bytes == 0 && store.statistics().objects == 0)
    }

    @Test func `a file that cannot be deleted keeps no other cleared file, and is deleted later`()
        throws
    {
        let folder = try TemporaryFolder()
        var store = try openStore(folder.path)
        for number in 0..<64 { try store.add("o\(number)", total: 100_000) }
        store.close()
        // Opened again, so that no object is open: those release their bytes by themselves.
        store = try openStore(folder.path) { $0.deletionInterval = .milliseconds(20) }
        defer { store.close() }
        // The comparison would drop the row of a missing file.
        try eventually { store.statistics().isReconciled }
        let bytes = store.statistics().bytes
        let path = objectPath(folder.path, "o7")
        // unlink(2) refuses a folder.
        unlink(path)
        try makeFolder(path)
        _ = try store.clear(sparingPinned: false)
        try eventually { store.deletion.objects == 1 }
        try eventually { store.statistics().bytes <= bytes / 64 }
        let aside = try #require(try setAside(in: folder.path).first)
        let obstacle = path.replacing("/objects/", with: "/\(aside)/")
        #expect(exists(obstacle))
        try store.add("new", total: 10_000)
        rmdir(obstacle)
        try eventually { try isDeleted(store, in: folder.path) }
        #expect(store.find("new")?.isComplete == true)
        try store.flushed()
        #expect(store.statistics().bytes == store.entries(limit: -1).reduce(0) { $0 + $1.bytes })
    }

    @Test func `a cleared folder that is deleted by hand takes no room any more`() throws {
        let folder = try TemporaryFolder()
        try openStore(folder.path).close()
        let aside = "\(folder.path)/gone-1-4-32768"
        // unlink(2) refuses a folder.
        try makeFolder("\(aside)/00/a")
        let store = try openStore(folder.path) { $0.deletionInterval = .milliseconds(20) }
        defer { store.close() }
        try eventually { store.core.cleaner.isRefused }
        #expect(store.statistics().bytes > 0)
        rename(aside, folder.path + "/elsewhere")
        try eventually { store.deletion == Deletion() }
        #expect(store.statistics().bytes == 0)
    }

    @Test func `a clear leaves the index as the migrations made it, and kept rows whole`() throws {
        let folder = try TemporaryFolder()
        let index = try ObjectIndex(path: folder.path + "/index.sqlite")
        func schema() throws -> [String] {
            try index.pool.read {
                try String.fetchAll(
                    $0,
                    sql: """
                        SELECT sql FROM sqlite_master
                        WHERE sql IS NOT NULL AND name NOT GLOB 'objects_gone_*' ORDER BY type, name
                        """)
            }
        }
        // As a later version might.
        try index.pool.write {
            try $0.execute(sql: "ALTER TABLE objects ADD COLUMN later INTEGER NOT NULL DEFAULT 7")
        }
        let made = try schema()
        let keys = ["a", "b"].map { ObjectKey(sha256Of: $0) }
        for key in keys {
            let row = StoreEntry(
                key: key, url: "http://h/", role: 7, title: 1, kind: .other, isRead: true,
                bytes: 4096, total: nil, isComplete: true, created: .now())
            try index.apply(rows: [key: .put(row)], uses: [:])
        }
        try index.pool.write { try $0.execute(sql: "UPDATE objects SET later = 8") }
        try index.setAside(butFor: [keys[1]])
        #expect(try schema() == made)
        let (objects, bytes) = try index.totals()
        #expect(objects == 1 && bytes == 4096)
        let left = try index.rows(of: keys).map { $0?.key }
        #expect(left == [nil, keys[1]])
        let later = try index.pool.read { try Int.fetchAll($0, sql: "SELECT later FROM objects") }
        #expect(later == [8])
        while try index.deleteSetAside(atMost: 1_000) {}
        #expect(try schema() == made)
        #expect(try index.totals().objects == 1)
        try index.close()
    }

    @Test func `concurrent stores and clears leave files and index consistent`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        for round in 0..<5 {
            let isOver = try ThreadSemaphore()
            let writer = try PosixThread(name: "writer") {
                for number in 0..<40 { _ = try? store.add("\(round)-\(number)", total: 5_000) }
                isOver.signal()
            }
            for _ in 0..<3 { _ = try store.clear(sparingPinned: false) }
            #expect(isOver.wait(atMost: .seconds(20)))
            writer.join()
        }
        try eventually { try isDeleted(store, in: folder.path) }
        _ = try store.flush(within: .seconds(10))
        let entries = store.entries(limit: -1)
        #expect(entries.count == store.statistics().objects)
        try eventually {
            store.statistics().bytes == store.entries(limit: -1).reduce(0) { $0 + $1.bytes }
        }
        var files = 0
        for part in try listFolder("\(folder.path)/objects") {
            files += try listFolder("\(folder.path)/objects/\(part.name)").count
        }
        #expect(files == entries.count)
    }
}

/// What happened while a clear waited for the disk.
private final class Meanwhile: Sendable {
    private let facts = Mutex<(player: PosixThread, wasFree: Bool)?>(nil)

    var player: PosixThread? { facts.withLock { $0?.player } }
    /// True if the player was done before the clear continued.
    var wasFree: Bool { facts.withLock { $0?.wasFree ?? false } }

    func note(_ player: PosixThread, wasFree: Bool) {
        facts.withLock { $0 = (player, wasFree) }
    }
}
