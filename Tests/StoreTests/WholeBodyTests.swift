import Glibc
import Posix
import Testing

@testable import Store

/// Short bodies that are present before their object is created are written together with the
/// header.
@Suite struct WholeBodyTests {
    private static let total: Int64 = 4_096

    private func addWhole(
        _ name: String, to store: ObjectStore, total: Int64 = total
    ) throws -> StoredObject {
        var description = describe(name, total: total)
        description.body = body(0..<total)
        let object = try store.create(description)
        try store.publish(object)
        return object
    }

    @Test(arguments: [1, 4_095, Int64(StoredObject.shortLimit)])
    func `an object stored with its body is complete immediately, and found after a kill`(
        total: Int64
    ) throws {
        let folder = try TemporaryFolder()
        let copy = folder.path + "/copy"
        let store = try openStore(folder.path + "/store")
        defer { store.close() }
        let made = try addWhole("a", to: store, total: total)
        #expect(made.isComplete)
        #expect(made.shortBytes(0..<total) == body(0..<total))
        // Nothing has been committed yet.
        try copyFolder(folder.path + "/store", to: copy)
        let second = try openStore(copy)
        defer { second.close() }
        let object = try #require(second.find("a"))
        #expect(object.isComplete)
        #expect(try read(object, 0..<total) == body(0..<total))
    }

    @Test func `the only header of a whole body is the first`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        let made = try addWhole("a", to: store)
        store.finish(made)
        try store.flushed()
        let second = try readBytes(made.descriptor.number, at: 2_048, count: 2_048)
        #expect(second.allSatisfy { $0 == 0 })
        store.close()
        let again = try openStore(folder.path)
        defer { again.close() }
        #expect(again.find("a")?.shortBytes(0..<Self.total) == body(0..<Self.total))
    }

    /// After a power cut there may be a header without its body.
    @Test func `a header without its body claims nothing after a power cut`() throws {
        let folder = try TemporaryFolder()
        let copy = folder.path + "/copy"
        let store = try openStore(folder.path + "/store")
        defer { store.close() }
        let made = try addWhole("a", to: store)
        try copyFolder(folder.path + "/store", to: copy)
        #expect(truncate(objectPath(copy, "a"), off_t(made.bodyOffset)) == 0)
        let second = try openStore(copy)
        defer { second.close() }
        let object = second.find("a")
        #expect(object?.isComplete != true)
        #expect(object?.shortBytes(0..<Self.total) == nil)
    }

    @Test func `a later head is committed behind the first`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        let made = try addWhole("a", to: store)
        store.finish(made)
        try store.flushed()
        made.replaceHead([7, 7])
        store.close()
        let again = try openStore(folder.path)
        defer { again.close() }
        let object = try #require(again.find("a"))
        #expect(object.head == [7, 7])
        #expect(object.shortBytes(0..<Self.total) == body(0..<Self.total))
    }

    @Test func `if nothing may be stored the caller writes the body`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path, budget: 2_048)
        defer { store.close() }
        let made = try addWhole("a", to: store)
        #expect(!made.isStorable && made.presentBytes == 0)
        try fill(made, 0..<Self.total)
        #expect(made.isComplete)
    }
}
