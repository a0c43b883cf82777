import GRDB
import Testing

@testable import Store

/// An index that rejects changes: they are kept in memory, and written as soon as it takes them.
@Suite struct UnwrittenIndexTests {
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
}

extension ObjectStore {
    /// Has the index reject new rows.
    fileprivate func refuseRows() throws {
        try core.index.pool.write {
            try $0.execute(
                sql: """
                    CREATE TRIGGER refuse BEFORE INSERT ON objects
                    BEGIN SELECT RAISE(ABORT, 'refused'); END
                    """)
        }
    }
}
