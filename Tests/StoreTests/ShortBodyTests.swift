import Glibc
import Posix
import Retention
import Synchronization
import Testing

@testable import Store

/// Short bodies are read with their headers, and the number of uses reported to the index is
/// limited.
@Suite struct ShortBodyTests {
    /// A store that was closed and opened again, with one object that is found but not open.
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
    func `a short body is read together with its header`(total: Int64) throws {
        try reopened(total: total) { store, path in
            let object = try #require(store.find("a"))
            // The file is deleted now, so the bytes must have been read before.
            #expect(truncate(path, off_t(object.bodyOffset)) == 0)
            #expect(object.shortBytes(0..<total) == body(0..<total))
        }
    }

    @Test func `a part of a short body is returned`() throws {
        try reopened(total: 4_096) { store, path in
            let object = try #require(store.find("a"))
            #expect(truncate(path, off_t(object.bodyOffset)) == 0)
            #expect(object.shortBytes(100..<300) == body(100..<300))
            #expect(object.shortBytes(4_000..<4_097) == nil)
            #expect(object.shortBytes(7..<7) == nil)
        }
    }

    @Test func `a longer body is not read with its header, but short parts of it are`() throws {
        let total = Int64(StoredObject.shortLimit) + 1
        try reopened(total: total) { store, path in
            let object = try #require(store.find("a"))
            #expect(object.shortBytes(0..<total) == nil)
            #expect(object.shortBytes(5..<total) == body(5..<total))
            #expect(truncate(path, off_t(object.bodyOffset)) == 0)
            #expect(object.shortBytes(5..<total) == nil)
        }
    }

    @Test func `a short body stays in memory once it was read whole`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let object = try store.add("a", total: 2_000)
        #expect(object.shortBytes(0..<2_000) == body(0..<2_000))
        #expect(truncate(objectPath(folder.path, "a"), off_t(object.bodyOffset)) == 0)
        #expect(object.shortBytes(0..<2_000) == body(0..<2_000))
    }

    @Test func `a damaged short body is rejected at the first read after a kill`() throws {
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

    @Test func `of many uses the index gets the important ones`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let worker = try store.makeWorker()
        let now = WallTime.now()
        for number in 0..<6_000 {
            let key = ObjectKey(sha256Of: "\(number)")
            worker.evictor.policy.insert(
                key.name, Retained(bytes: 8_192, lastUsed: now.retentionTime))
            store.core.table.withShard(of: key) { shard in
                shard.note(Use(time: now, bytes: 1, isNews: number >= 5_990), of: key)
            }
        }
        worker.index.hasTouches = true
        worker.index.gatherUses(for: &worker.evictor.policy)
        #expect(
            (IndexWriter.heldUses...IndexWriter.heldUses + 10).contains(worker.index.uses.count))
        let news = (5_990..<6_000).map { ObjectKey(sha256Of: "\($0)") }
        #expect(news.allSatisfy { worker.index.uses[$0] != nil })
    }

    @Test func `a use is reported again when the index would lag too far behind`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let worker = try store.makeWorker()
        store.core.gatheredUses.withLock { uses in
            for number in 0..<IndexWriter.heldUses {
                uses[ObjectKey(sha256Of: "held \(number)")] = Use(time: .now(), bytes: 1)
            }
        }
        let key = ObjectKey(sha256Of: "a")
        worker.evictor.policy.insert(key.name, Retained(bytes: 8_192, lastUsed: 1_000))
        store.core.table.withShard(of: key) { shard in
            shard.note(Use(time: WallTime(seconds: 1_000 + 1_024), bytes: 1), of: key)
        }
        worker.index.hasTouches = true
        worker.index.gatherUses(for: &worker.evictor.policy)
        #expect(worker.index.uses[key] != nil)
    }
}
