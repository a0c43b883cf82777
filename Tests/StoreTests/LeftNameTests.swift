import Posix
import Store
import Synchronization
import Testing

/// A new generation that leaves the name of its key to the former one until it is whole.
@Suite struct LeftNameTests {
    private static let total: Int64 = 20_000

    /// Stores 100 bytes as `a`.
    private func keepFormer(in store: ObjectStore) throws -> StoredObject {
        try store.add("a", total: 100)
    }

    /// Makes a new generation of `a` that leaves the name to an object.
    private func makeNew(in store: ObjectStore, after former: StoredObject) throws -> StoredObject {
        let new = try store.create(describe("a", total: Self.total))
        new.leaveName(to: former)
        try store.publish(new)
        return new
    }

    /// Makes a complete object, and the first 15,000 bytes of the generation that replaces it.
    private func beginReplacement(
        in store: ObjectStore
    ) throws -> (former: StoredObject, new: StoredObject) {
        let former = try keepFormer(in: store)
        let new = try makeNew(in: store, after: former)
        try fill(new, 0..<15_000)
        return (former, new)
    }

    /// A reader of the last bytes that asks for the object again at once.
    private final class NextRequest: Sendable {
        private let found = Mutex<[UInt64?]>([])

        func waiter(_ store: ObjectStore) -> Waiter {
            Waiter { _ in self.found.withLock { $0.append(store.find("a")?.generation) } }
        }

        var generations: [UInt64?] { found.withLock { $0 } }
    }

    @Test func `the new generation is found once its last bytes can be read`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let (former, new) = try beginReplacement(in: store)
        #expect(store.find("a") === former && !new.isCurrent && new.former === former)
        let next = NextRequest()
        #expect(new.wait(at: 15_000, next.waiter(store)) == .waiting)
        try fill(new, 15_000..<Self.total)
        #expect(next.generations == [new.generation])
        #expect(new.isCurrent && new.former == nil && former.isRemoved)
        store.finish(new)
        try store.flushed()
        #expect(store.statistics().objects == 1)
    }

    @Test func `the hole that is filled last completes the new generation`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let former = try keepFormer(in: store)
        let new = try makeNew(in: store, after: former)
        try fill(new, 15_000..<Self.total)
        #expect(store.find("a") === former)
        try fill(new, 0..<15_000)
        #expect(store.find("a") === new)
    }

    @Test func `the former generation stays if the rest of the new one does not come`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let former = try keepFormer(in: store)
        try store.flushed()
        let before = store.statistics().bytes
        do {
            let new = try makeNew(in: store, after: former)
            try fill(new, 0..<15_000)
            store.finish(new)
        }
        try eventually { try listFolder(folder.path + "/new").isEmpty }
        #expect(store.find("a") === former)
        #expect(try read(former, 0..<100) == body(0..<100))
        try eventually { store.statistics().bytes == before }
    }

    @Test func `a purge of the former generation keeps the new one from being stored`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let (former, new) = try beginReplacement(in: store)
        store.remove(former.key)
        #expect(new.isRemoved && !new.isDiscarded)
        try fill(new, 15_000..<Self.total)
        try store.publish(new)
        #expect(store.find("a") == nil && !new.isCurrent)
        // Its readers have it all the same.
        #expect(try read(new, 0..<Self.total) == body(0..<Self.total))
    }

    @Test func `a new generation without room no longer holds the former one`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let (former, new) = try beginReplacement(in: store)
        store.forgetName(of: new)
        #expect(!new.isStorable && new.former == nil && !new.isRemoved)
        try fill(new, 15_000..<Self.total)
        #expect(store.find("a") === former && !new.isCurrent)
        #expect(try read(new, 0..<Self.total) == body(0..<Self.total))
    }

    @Test func `a purge before the new generation loses its name is not forgotten`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let (former, new) = try beginReplacement(in: store)
        store.remove(former.key)
        store.forgetName(of: new)
        #expect(new.isRemoved && new.former == nil)
    }

    @Test func `a kill while the new generation arrives leaves the former one`() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/store"
        let store = try openStore(path)
        defer { store.close() }
        let new = try beginReplacement(in: store).new
        try store.flushed()
        try copyFolder(path, to: folder.path + "/killed")
        let next = try openStore(folder.path + "/killed")
        defer { next.close() }
        let found = try #require(next.find("a"))
        #expect(found.isComplete && found.total == 100)
        #expect(try read(found, 0..<100) == body(0..<100))
        #expect(try listFolder(folder.path + "/killed/new").isEmpty)
        #expect(!new.isComplete)
    }
}
