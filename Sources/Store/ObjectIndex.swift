/// The index of stored objects in SQLite: eviction order, listing and counts, and small tables for
/// the layers above. A hit never touches it, and objects can be found without it.
import FoundationEssentials
import GRDB
import Posix

/// What the index knows of one object.
struct IndexRow: Sendable, Equatable {
    var key: ObjectKey
    var url: String
    var role: UInt8
    /// Bytes the object takes on the disk.
    var bytes: Int64
    var total: Int64?
    var isComplete: Bool
    var created: WallTime
    /// When it was last used; nil leaves what is known.
    var lastUsed: WallTime?
}

/// The database.
///
/// Safe on every thread: writes are serialised, reads run beside them (WAL).
final class ObjectIndex: Sendable {
    private static let keptLongURLs = 100_000
    private let pool: DatabasePool

    /// Opens or makes the database; throws when it is damaged.
    init(path: String) throws {
        var configuration = Configuration()
        configuration.label = "sluice.index"
        configuration.maximumReaderCount = 2
        configuration.busyMode = .timeout(2)
        configuration.prepareDatabase { db in
            // A lost last batch costs recency, not correctness.
            try db.execute(sql: "PRAGMA synchronous = NORMAL")
        }
        pool = try DatabasePool(path: path, configuration: configuration)
        let verdict = try pool.read { try String.fetchOne($0, sql: "PRAGMA quick_check(1)") }
        guard verdict == "ok" else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: verdict)
        }
        try Self.migrator.migrate(pool)
        try pool.write { db in
            try db.execute(
                sql: """
                    DELETE FROM long_urls WHERE id IN
                    (SELECT id FROM long_urls ORDER BY used DESC LIMIT -1 OFFSET ?)
                    """, arguments: [Self.keptLongURLs])
        }
    }

    private static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { db in
            try db.execute(
                sql: """
                    CREATE TABLE objects (
                      key TEXT PRIMARY KEY, url TEXT NOT NULL, role INTEGER NOT NULL,
                      bytes INTEGER NOT NULL, total INTEGER, complete INTEGER NOT NULL,
                      created INTEGER NOT NULL, last_used INTEGER NOT NULL) WITHOUT ROWID;
                    CREATE INDEX objects_by_use ON objects (last_used, key);
                    CREATE TABLE sessions (id BLOB PRIMARY KEY, blob BLOB NOT NULL) WITHOUT ROWID;
                    CREATE TABLE long_urls (
                      id BLOB PRIMARY KEY, url TEXT NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID;
                    """)
        }
        return migrator
    }

    /// True for errors that speak against the file, not against the disk it is on.
    static func isDamage(_ error: any Error) -> Bool {
        guard let error = error as? DatabaseError else { return true }
        return switch error.resultCode {
        case .SQLITE_FULL, .SQLITE_IOERR, .SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_PERM,
            .SQLITE_NOMEM, .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_AUTH:
            false
        default: true
        }
    }

    /// Moves the write-ahead log into the database and closes it.
    func close() throws {
        try pool.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
        try pool.close()
    }

    // MARK: Objects

    /// The number of objects and the sum of their bytes.
    func totals() throws -> (objects: Int, bytes: Int64) {
        try pool.read { db in
            let row = try Row.fetchOne(
                db, sql: "SELECT COUNT(*), COALESCE(SUM(bytes), 0) FROM objects")
            guard let row else { return (0, 0) }
            return (row[0], row[1])
        }
    }

    /// Writes a batch in one transaction.
    func apply(rows: [ObjectKey: RowChange], touches: [ObjectKey: WallTime]) throws {
        try pool.write { db in
            for (key, change) in rows {
                switch change {
                case .put(let row): try Self.put(row, in: db)
                case .delete:
                    try db.cachedStatement(sql: "DELETE FROM objects WHERE key = ?")
                        .execute(arguments: [key.hex])
                }
            }
            for (key, time) in touches {
                try db.cachedStatement(
                    sql: "UPDATE objects SET last_used = ? WHERE key = ? AND last_used < ?"
                ).execute(arguments: [time.nanoseconds, key.hex, time.nanoseconds])
            }
        }
    }

    private static func put(_ row: IndexRow, in db: Database) throws {
        let used = (row.lastUsed ?? row.created).nanoseconds
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO objects (key, url, role, bytes, total, complete, created, last_used)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (key) DO UPDATE SET url = excluded.url, role = excluded.role,
                  bytes = excluded.bytes, total = excluded.total, complete = excluded.complete,
                  created = excluded.created, last_used = MAX(last_used, excluded.last_used)
                """)
        try statement.execute(arguments: [
            row.key.hex, row.url, Int(row.role), row.bytes, row.total, row.isComplete,
            row.created.nanoseconds, used,
        ])
    }

    /// The objects used longest ago, from just after `last` on.
    func oldest(after last: IndexRow?, limit: Int) throws -> [IndexRow] {
        try pool.read { db in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT * FROM objects WHERE (last_used, key) > (?, ?)
                    ORDER BY last_used, key LIMIT ?
                    """,
                arguments: [
                    last?.lastUsed?.nanoseconds ?? Int64.min, last?.key.hex ?? "", limit,
                ])
            return rows.compactMap(Self.decode)
        }
    }

    /// One object's row.
    func row(of key: ObjectKey) throws -> IndexRow? {
        try pool.read { db in
            try Row.fetchOne(db, sql: "SELECT * FROM objects WHERE key = ?", arguments: [key.hex])
                .flatMap(Self.decode)
        }
    }

    /// The objects whose key starts with one byte.
    func rows(startingWith byte: UInt8) throws -> [IndexRow] {
        let digits = String(byte, radix: 16)
        let start = digits.count == 1 ? "0" + digits : digits
        return try pool.read { db in
            try Row.fetchAll(
                db, sql: "SELECT * FROM objects WHERE key >= ? AND key < ?",
                arguments: [start, start + "g"]
            ).compactMap(Self.decode)
        }
    }

    /// The objects used last, newest first; all when `limit` is negative.
    func newest(limit: Int) throws -> [IndexRow] {
        try pool.read { db in
            try Row.fetchAll(
                db, sql: "SELECT * FROM objects ORDER BY last_used DESC LIMIT ?", arguments: [limit]
            ).compactMap(Self.decode)
        }
    }

    private static func decode(_ row: Row) -> IndexRow? {
        guard let key = ObjectKey(hex: row["key"]) else { return nil }
        return IndexRow(
            key: key, url: row["url"], role: UInt8(truncatingIfNeeded: row["role"] as Int),
            bytes: row["bytes"], total: row["total"], isComplete: row["complete"],
            created: WallTime(nanoseconds: row["created"]),
            lastUsed: WallTime(nanoseconds: row["last_used"]))
    }

    // MARK: Tables of the layers above

    func saveSession(id: [UInt8], blob: [UInt8]) throws {
        try pool.write { db in
            try db.execute(
                sql: "INSERT OR REPLACE INTO sessions (id, blob) VALUES (?, ?)",
                arguments: [Data(id), Data(blob)])
        }
    }

    func removeSession(id: [UInt8]) throws {
        try pool.write { db in
            try db.execute(sql: "DELETE FROM sessions WHERE id = ?", arguments: [Data(id)])
        }
    }

    func sessions() throws -> [(id: [UInt8], blob: [UInt8])] {
        try pool.read { db in
            try Row.fetchAll(db, sql: "SELECT id, blob FROM sessions").map { row in
                (Array(row[0] as Data), Array(row[1] as Data))
            }
        }
    }

    func saveLongURL(id: [UInt8], url: String, now: WallTime) throws {
        try pool.write { db in
            try db.execute(
                sql: "INSERT OR REPLACE INTO long_urls (id, url, used) VALUES (?, ?, ?)",
                arguments: [Data(id), url, now.nanoseconds])
        }
    }

    func longURL(id: [UInt8]) throws -> String? {
        try pool.read { db in
            try String.fetchOne(
                db, sql: "SELECT url FROM long_urls WHERE id = ?", arguments: [Data(id)])
        }
    }
}
