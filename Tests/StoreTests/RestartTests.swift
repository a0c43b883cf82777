import GRDB
import Glibc
import Posix
import Reactor
import Synchronization
import Testing

@testable import Store

/// What a store finds after a restart, a kill or a power cut.
@Suite struct RestartTests {
    @Test func `a complete object is restored with head and bytes`() throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        try first.add("a", total: 10_000)
        first.close()

        let store = try openStore(folder.path)
        defer { store.close() }
        let object = try #require(store.find("a"))
        #expect(object.isComplete)
        #expect(object.head == Array("head of a".utf8))
        #expect(object.url == "https://cdn.example.com/a")
        #expect(object.role == 7)
        #expect(try read(object, 0..<10_000) == body(0..<10_000))
    }

    @Test func `a partial object is restored with its spans and can be filled`() throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        let made = try first.add("a", total: 100_000, filled: 0..<30_000)
        try fill(made, 50_000..<60_000)
        first.close()

        let store = try openStore(folder.path)
        defer { store.close() }
        let object = try #require(store.find("a"))
        #expect(object.spans == SpanSet([0..<30_000, 50_000..<60_000]))
        #expect(!object.isComplete)
        try fill(object, 30_000..<50_000)
        try fill(object, 60_000..<100_000)
        #expect(object.isComplete)
        #expect(try read(object, 0..<100_000) == body(0..<100_000))
    }

    /// The files of a killed process never claim more than was synced.
    @Test func `uncommitted bytes are not trusted`() throws {
        let (folder, copy) = (try TemporaryFolder(), try TemporaryFolder())
        let first = try openStore(folder.path) { $0.commitInterval = .seconds(1000 as Int64) }
        defer { first.close() }
        let made = try first.add("a", total: 200_000, filled: 0..<50_000)
        try first.flushed()
        let committed = try readBytes(made.descriptor.number, at: 0, count: 4096)
        try fill(made, 50_000..<200_000)
        #expect(made.spans == SpanSet([0..<200_000]))
        // The file is complete and its header is not, as after a kill between the two writes.
        try copyFolder(folder.path, to: copy.path + "/store", except: ["lock"])
        let path = objectPath(copy.path + "/store", "a")
        var bytes = try readFile(path)
        #expect(bytes.count == 4096 + 200_000)
        bytes.replaceSubrange(0..<4096, with: committed)
        try writeFile(path, bytes)

        let store = try openStore(copy.path + "/store")
        defer { store.close() }
        let object = try #require(store.find("a"))
        #expect(object.spans == SpanSet([0..<50_000]))
        #expect(try read(object, 50_000..<50_010).isEmpty)
    }

    @Test func `an unpublished object is gone`() throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        let made = try first.create(describe("a", total: 10))
        try fill(made, 0..<10)
        first.close()
        #expect(try listFolder(folder.path + "/new").count == 1)

        let store = try openStore(folder.path)
        defer { store.close() }
        #expect(store.find("a") == nil)
        #expect(try listFolder(folder.path + "/new").isEmpty)
    }

    @Test(arguments: [0, 9, 20, 60, 100, 130])
    func `an object without a valid header is deleted`(flipped: Int) throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        try first.add("a", total: 10_000)
        first.close()
        let path = objectPath(folder.path, "a")
        var bytes = try readFile(path)
        // The byte is changed in both slots.
        for slot in [0, 2048] { bytes[slot + flipped] ^= 0x40 }
        try writeFile(path, bytes)

        let store = try openStore(folder.path)
        defer { store.close() }
        #expect(store.find("a") == nil)
        #expect(!exists(path))
        #expect(store.statistics().damagedObjects == 1)
        #expect(store.statistics().bytes == 0)
    }

    @Test func `a file shorter than its header says is deleted`() throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        try first.add("a", total: 10_000)
        first.close()
        truncate(objectPath(folder.path, "a"), 9_000)

        let store = try openStore(folder.path)
        defer { store.close() }
        #expect(store.find("a") == nil)
    }

    @Test func `a head that a revalidation replaced is found again`() throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        try first.add("a", total: 10).replaceHead([1, 2, 3])
        first.close()

        let store = try openStore(folder.path)
        defer { store.close() }
        let object = try #require(store.find("a"))
        #expect(object.head == [1, 2, 3])
        #expect(object.isComplete)
    }

    @Test func `a long URL and head get as many pages as they need`() throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        var description = describe("a", total: 10)
        description.url = "https://cdn.example.com/" + String(repeating: "x", count: 9000)
        description.head = [UInt8](repeating: 5, count: 30_000)
        let made = try first.create(description)
        try first.publish(made)
        try fill(made, 0..<10)
        first.close()

        let store = try openStore(folder.path)
        defer { store.close() }
        let object = try #require(store.find("a"))
        #expect(object.head == description.head)
        #expect(object.url == description.url)
        #expect(try read(object, 0..<10) == body(0..<10))
    }

    @Test func `growth is committed during a fill`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.commitBytes = 1 << 16 }
        defer { store.close() }
        let object = try store.create(describe("a", total: nil))
        try store.publish(object)
        var writer = FillWriter(object, from: 0, to: nil)
        try body(0..<70_000).withUnsafeBytes { try writer.append($0) }
        try eventually { store.statistics().commits >= 1 }
        writer.end(failure: nil)
    }

    @Test func `long URLs survive a restart`() throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        first.saveLongURL(id: [3], url: "https://cdn.example.com/long")
        #expect(first.longURL(id: [3]) == "https://cdn.example.com/long")
        first.close()

        let store = try openStore(folder.path)
        defer { store.close() }
        #expect(store.longURL(id: [3]) == "https://cdn.example.com/long")
        #expect(store.longURL(id: [4]) == nil)
    }

    /// Makes a folder whose index has damage in the page that a table begins at.
    private func damagedFolder(_ table: String) throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        let path = folder.path + "/index.sqlite"
        let first = try openStore(folder.path)
        for name in 0..<20 { try first.add("\(name)", total: 1_000) }
        try first.flushed()
        first.close()
        let index = try DatabaseQueue(path: path)
        let root = try index.read { db in
            try Int.fetchOne(
                db, sql: "SELECT rootpage FROM sqlite_master WHERE name = ?", arguments: [table])
        }
        let size = try index.read { db in try Int.fetchOne(db, sql: "PRAGMA page_size") } ?? 0
        try index.close()
        var bytes = try readFile(path)
        let page = try #require(root)
        let start = (page - 1) * size
        bytes.replaceSubrange(
            start..<start + size, with: [UInt8](repeating: 0x55, count: size))
        try writeFile(path, bytes)
        return folder
    }

    @Test func `damage that a start needs to read past is mended by it`() throws {
        let folder = try damagedFolder("totals")
        let store = try openStore(folder.path)
        defer { store.close() }
        try eventually { store.statistics().isReconciled }
        #expect(store.statistics().start.isIndexRebuilt)
        #expect(store.statistics().objects == 20)
    }

    @Test func `damage inside the index that a run finds is mended by that run`() throws {
        let folder = try damagedFolder("objects")
        let store = try openStore(folder.path)
        try eventually { store.statistics().start.isIndexRebuilt }
        try eventually { store.statistics().isReconciled }
        #expect(store.statistics().indexFailures > 0)
        #expect(!store.statistics().isIndexDamaged)
        #expect(store.entries(limit: 100).count == 20)
        #expect(store.find("3")?.isComplete == true)
        store.close()
        #expect(exists(folder.path + "/clean"))
    }

    @Test func `damage after the index was rebuilt is left to the next start`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        try store.add("a", total: 1_000)
        store.saveLongURL(id: [7], url: "http://h/long")
        try store.flushed()
        store.core.noteDamage("a test")
        try eventually { store.statistics().start.isIndexRebuilt }
        try eventually { !store.statistics().isIndexDamaged }
        #expect(store.longURL(id: [7]) == "http://h/long")
        store.core.noteDamage("a test")
        // The store thread has taken the report before this is done.
        try store.flushed()
        #expect(store.statistics().isIndexDamaged)
        let aside = try listFolder(folder.path).map(\.name).filter { name in
            name.hasPrefix("index.damaged-") && !name.hasSuffix("-wal") && !name.hasSuffix("-shm")
        }
        #expect(aside.count == 1)
        store.close()
        #expect(!exists(folder.path + "/clean"))
    }

    @Test func `what is stored is known while the index is rebuilt`() throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        try first.add("a", total: 1_000)
        first.close()

        let store = try openStore(folder.path)
        defer { store.close() }
        try eventually { store.statistics().isReconciled }
        let found = Mutex<[Presence]>([])
        let isAsked = try ThreadSemaphore()
        store.core.counters.isIndexDamaged.store(true, ordering: .relaxed)
        store.core.channel.worker?.enqueue { worker, loop in
            // The first turn gets only as far as the first folder, which does not have the object.
            worker.replaceIndex("a test", on: loop)
            found.withLock { $0 = store.presence(of: [ObjectKey(sha256Of: "a")]) }
            isAsked.signal()
        }
        #expect(isAsked.wait(atMost: .seconds(20 as Int64)))
        #expect(found.withLock { $0 } == [.whole(total: 1_000)])
        try eventually { store.entries(limit: 100).count == 1 }
    }

    @Test func `long URLs that the index cannot take are saved later`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        var patient = Configuration()
        patient.busyMode = .timeout(5)
        let index = try DatabaseQueue(
            path: folder.path + "/index.sqlite", configuration: patient)
        func execute(_ sql: String) throws { try index.write { try $0.execute(sql: sql) } }
        try execute("ALTER TABLE long_urls RENAME TO hidden")
        store.saveLongURL(id: [3], url: "first")
        try eventually { store.statistics().indexFailures > 0 }
        store.saveLongURL(id: [4], url: "second")
        #expect(!store.takesLongURLs, "links must do without names")
        #expect(store.longURL(id: [3]) == "first" && store.longURL(id: [4]) == "second")
        try execute("ALTER TABLE hidden RENAME TO long_urls")
        // Nothing more is added: the store tries again by itself.
        try eventually {
            try index.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM long_urls") } == 2
        }
        try eventually { store.core.unsavedLongURLs.withLock { $0.urls.isEmpty } }
        #expect(store.takesLongURLs)
    }

    /// Each transaction takes its time, in which a kill loses all links but the first of a list.
    @Test func `the long URLs of a list are saved in one transaction`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let index = try DatabaseQueue(path: folder.path + "/index.sqlite")
        try index.write {
            try $0.execute(
                sql: """
                    CREATE TRIGGER refuse_bad BEFORE INSERT ON long_urls WHEN new.url = 'bad'
                    BEGIN SELECT RAISE(ABORT, 'no'); END
                    """)
        }
        let list: [(id: [UInt8], url: String)] = [([1], "a"), ([2], "b"), ([3], "bad")]
        #expect(throws: DatabaseError.self) {
            try store.core.index.saveLongURLs(list, now: .now())
        }
        #expect(store.longURL(id: [1]) == nil, "all of them or none")
        try store.core.index.saveLongURLs(Array(list.prefix(2)), now: .now())
        #expect(store.longURL(id: [1]) == "a" && store.longURL(id: [2]) == "b")
    }

    @Test func `of long URLs the most recently used are kept`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.longURLLimit = 20 }
        defer { store.close() }
        for number in UInt8(0)..<61 { store.saveLongURL(id: [number], url: "u\(number)") }
        try eventually { store.longURL(id: [40]) == nil }
        #expect(store.longURL(id: [0]) == nil)
        #expect((41..<61).allSatisfy { store.longURL(id: [$0]) == "u\($0)" })
    }

    @Test func `a long URL counts against their number by its length`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.longURLLimit = 20 }
        defer { store.close() }
        // Five units each.
        let url = String(repeating: "x", count: 8 << 10)
        for number in UInt8(0)..<10 { store.saveLongURL(id: [number], url: url) }
        try eventually { store.longURL(id: [5]) == nil }
        #expect((0..<6).allSatisfy { store.longURL(id: [$0]) == nil })
        #expect((6..<10).allSatisfy { store.longURL(id: [$0]) == url })
        // Short ones are counted together with them, and displace them one by one.
        for number in UInt8(10)..<17 { store.saveLongURL(id: [number], url: "u") }
        try eventually { store.longURL(id: [7]) == nil }
        #expect(store.longURL(id: [8]) == url && store.longURL(id: [10]) == "u")
    }

    @Test func `their version changes when long URLs are deleted, and not before`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.longURLLimit = 20 }
        defer { store.close() }
        // Saved several times, they are as many as before.
        for number in UInt8(0)..<60 { store.saveLongURL(id: [number % 20], url: "u") }
        try eventually { store.core.unsavedLongURLs.withLock { $0.urls.isEmpty } }
        #expect(store.longURLVersion == 0)
        for number in UInt8(20)..<61 { store.saveLongURL(id: [number], url: "u") }
        try eventually { store.longURLVersion > 0 && store.longURL(id: [0]) == nil }
    }

    /// Players of films do not load their playlists again.
    @Test func `long URLs in use are not displaced by others with short names`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.longURLLimit = 20 }
        defer { store.close() }
        var saved: [UInt8] = []
        for number in UInt8(0)..<100 where store.takesLongURLs {
            store.saveLongURL(id: [number], url: "u\(number)")
            saved.append(number)
            try eventually { store.core.unsavedLongURLs.withLock { $0.urls.isEmpty } }
        }
        try eventually { !store.takesLongURLs }
        #expect((12...20).contains(saved.count))
        #expect(saved.allSatisfy { store.longURL(id: [$0]) == "u\($0)" })
        #expect(store.longURLVersion == 0)
        #expect(!store.takesLongURLs(at: WallTime.now() + .seconds(86_000 as Int64)))
        #expect(store.takesLongURLs(at: WallTime.now() + .seconds(87_000 as Int64)))
        // The clock was set back.
        #expect(store.takesLongURLs(at: WallTime.now() + .seconds(-3_600 as Int64)))
    }

    @Test func `texts that name long URLs are written anew in time`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.longURLRenewal = .milliseconds(1) }
        defer { store.close() }
        #expect(store.longURLVersion == 0)
        store.saveLongURL(id: [1], url: "u")
        try eventually { store.longURLVersion > 0 }
        #expect(store.longURL(id: [1]) == "u")
    }
}
