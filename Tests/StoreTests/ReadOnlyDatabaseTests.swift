import GRDB
import GRDBSQLite
import Posix
import Store
import Testing

/// Databases that SQLite opened read-only because their `-shm` file could not be opened for writing
/// at that moment.
///
/// SQLite keeps one state of that file per process: a connection with `readonly_shm` puts it into
/// the state that a failed open leaves.
@Suite struct ReadOnlyDatabaseTests {
    @Test func `an index opened read-only is opened again and written`() throws {
        let folder = try Folders()
        let reader = try ReadOnlyMemory(of: folder.copy + "/index.sqlite")
        let store = try openStore(folder.copy)
        reader.close()
        try store.add("b", total: 5_000)
        try eventually {
            try store.flush(within: .seconds(5 as Int64)) && folder.count("objects", "index") == 2
        }
        store.close()
        #expect(try folder.count("objects", "index") == 2)
    }

    @Test func `a state database opened read-only is opened again and written`() throws {
        let folder = try Folders()
        let reader = try ReadOnlyMemory(of: folder.copy + "/state.sqlite")
        let store = try openStore(folder.copy)
        defer { store.close() }
        reader.close()
        try store.pin(title: 5, url: "https://cdn.example.com/a", keys: [])
        #expect(try folder.count("pins", "state") == 1)
    }

    /// A store's folder, and a copy of it as a killed process leaves it.
    private struct Folders {
        let folder: TemporaryFolder
        var copy: String { folder.path + "/copy" }

        init() throws {
            folder = try TemporaryFolder()
            let store = try openStore(folder.path + "/first")
            try store.add("a", total: 5_000)
            try store.flushed()
            try copyFolder(folder.path + "/first", to: folder.path + "/copy")
            store.close()
        }

        func count(_ table: String, _ database: String) throws -> Int? {
            try DatabaseQueue(path: "\(copy)/\(database).sqlite").read {
                try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM \(table)")
            }
        }
    }

    /// A connection that opened the `-shm` file of a database read-only.
    private final class ReadOnlyMemory {
        private var connection: OpaquePointer?

        init(of path: String) throws {
            let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI
            let url = "file:\(path)?readonly_shm=1"
            #expect(sqlite3_open_v2(url, &connection, flags, nil) == SQLITE_OK)
            let query = "SELECT COUNT(*) FROM grdb_migrations"
            #expect(sqlite3_exec(connection, query, nil, nil, nil) == SQLITE_OK)
        }

        func close() { #expect(sqlite3_close(connection) == SQLITE_OK) }
    }
}
