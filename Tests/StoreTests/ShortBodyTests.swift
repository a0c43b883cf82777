import Glibc
import Posix
import Retention
import Testing

@testable import Store

/// Short bodies come with their headers, and reads are told to the index in bounds.
@Suite struct ShortBodyTests {
    /// A store that was closed and opened again, with one object, which is found but not open.
    private func reopened(
        total: Int64, _ test: (_ store: ObjectStore, _ path: String) throws -> Void
    ) throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        try first.add("a", total: total)
        try first.flushed()
        first.close()
        let second = try openStore(folder.path)
        defer { second.close() }
        try test(second, objectPath(folder.path, "a"))
    }

    @Test(arguments: [1, 4_096, Int64(StoredObject.shortLimit)])
    func `a short body comes with its header`(total: Int64) throws {
        try reopened(total: total) { store, path in
            let object = try #require(store.find("a"))
            // What is gone from the disk now must have been read before.
            #expect(truncate(path, off_t(object.bodyOffset)) == 0)
            #expect(object.shortBytes(0..<total) == body(0..<total))
        }
    }

    @Test func `a part of a short body is cut out of it`() throws {
        try reopened(total: 4_096) { store, path in
            let object = try #require(store.find("a"))
            #expect(truncate(path, off_t(object.bodyOffset)) == 0)
            #expect(object.shortBytes(100..<300) == body(100..<300))
            #expect(object.shortBytes(4_000..<4_097) == nil)
            #expect(object.shortBytes(7..<7) == nil)
        }
    }

    @Test func `a longer body is left to readers, but short parts of it are read at once`() throws {
        let total = Int64(StoredObject.shortLimit) + 1
        try reopened(total: total) { store, path in
            let object = try #require(store.find("a"))
            #expect(object.shortBytes(0..<total) == nil)
            #expect(object.shortBytes(5..<total) == body(5..<total))
            #expect(truncate(path, off_t(object.bodyOffset)) == 0)
            #expect(object.shortBytes(5..<total) == nil)
        }
    }

    @Test func `a short body is held once it was read whole`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let object = try store.add("a", total: 2_000)
        #expect(object.shortBytes(0..<2_000) == body(0..<2_000))
        #expect(truncate(objectPath(folder.path, "a"), off_t(object.bodyOffset)) == 0)
        #expect(object.shortBytes(0..<2_000) == body(0..<2_000))
    }

    @Test func `a damaged short body is not taken from the first read after a kill`() throws {
        let folder = try TemporaryFolder()
        let copy = folder.path + "/copy"
        let store = try openStore(folder.path + "/store")
        defer { store.close() }
        let bodyOffset = try store.add("a", total: 4_096).bodyOffset
        try store.flushed()
        try copyFolder(folder.path + "/store", to: copy)
        let path = objectPath(copy, "a")
        var bytes = try readFile(path)
        bytes[Int(bodyOffset) + 17] ^= 1
        try writeFile(path, bytes)
        let second = try openStore(copy)
        defer { second.close() }
        let object = second.find("a")
        #expect(object?.shortBytes(0..<4_096) == nil)
        #expect(object?.isComplete != true)
    }

    @Test func `of very many reads the index hears what it must`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let worker = try store.makeWorker()
        let now = WallTime.now()
        for number in 0..<6_000 {
            let key = ObjectKey(sha256Of: "\(number)")
            worker.policy.insert(
                key.name, Retained(bytes: 8_192, lastUsed: now.retentionTime))
            store.core.table.withShard(of: key) { shard in
                shard.note(Use(time: now, bytes: 1, isNews: number >= 5_990), of: key)
            }
        }
        worker.hasTouches = true
        worker.gatherUses()
        #expect((StoreWorker.heldUses...StoreWorker.heldUses + 10).contains(worker.uses.count))
        let news = (5_990..<6_000).map { ObjectKey(sha256Of: "\($0)") }
        #expect(news.allSatisfy { worker.uses[$0] != nil })
    }

    @Test func `a read is told again when the index would be too far behind`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let worker = try store.makeWorker()
        for number in 0..<StoreWorker.heldUses {
            worker.uses[ObjectKey(sha256Of: "held \(number)")] = Use(time: .now(), bytes: 1)
        }
        let key = ObjectKey(sha256Of: "a")
        worker.policy.insert(key.name, Retained(bytes: 8_192, lastUsed: 1_000))
        store.core.table.withShard(of: key) { shard in
            shard.note(Use(time: WallTime(seconds: 1_000 + 1_024), bytes: 1), of: key)
        }
        worker.hasTouches = true
        worker.gatherUses()
        #expect(worker.uses[key] != nil)
    }
}
