import GRDB
import Numbers
import Posix
import Retention

/// The rows of objects: batches of changes, listings and single rows.
extension ObjectIndex {
    /// Returns the number of objects and the sum of their bytes, which triggers maintain.
    func totals() throws -> (objects: Int, bytes: Int64) {
        let known = try pool.read { db in
            try Row.fetchOne(db, sql: "SELECT objects, bytes FROM totals").flatMap(Self.totals)
        }
        return try known ?? countedTotals()
    }

    /// Counts the rows, since a damaged file may hold totals of any type and size, and mends these.
    private func countedTotals() throws -> (objects: Int, bytes: Int64) {
        var counted = (objects: 0, bytes: Int64(0))
        try inTransaction { db in
            let row = try Row.fetchOne(
                db,
                sql: """
                    SELECT COUNT(*), CAST(MIN(TOTAL(CASE
                      WHEN typeof(bytes) = 'integer' AND bytes BETWEEN 0 AND ? THEN bytes
                      ELSE 0 END), ?) AS INTEGER) FROM objects
                    """, arguments: [Self.sizes.upperBound, Self.sizes.upperBound])
            counted = row.flatMap(Self.totals) ?? counted
            try db.execute(sql: "DELETE FROM totals")
            try db.execute(
                sql: "INSERT INTO totals VALUES (?, ?)",
                arguments: [counted.objects, counted.bytes])
        }
        return counted
    }

    private static func totals(_ row: Row) -> (objects: Int, bytes: Int64)? {
        guard let objects = Int.fromDatabaseValue(row[0]),
            let bytes = Int64.fromDatabaseValue(row[1]), sizes.contains(Int64(objects)),
            sizes.contains(bytes)
        else { return nil }
        return (objects, bytes)
    }

    /// A time more than this many nanoseconds, a day, after the latest use was taken from a wrong
    /// clock.
    private static let mostAhead: Int64 = 86_400_000_000_000
    /// The beginning of 2026: a clock that is behind it has not been set since the machine started,
    /// and says nothing of other times.
    private static let earliest = WallTime(seconds: 1_767_225_600)

    /// Writes a batch of changes and uses in one transaction.
    func apply(rows: [ObjectKey: RowChange], uses: [ObjectKey: Use]) throws {
        try inTransaction { db in
            for (key, change) in rows {
                switch change {
                case .put(let row), .adopt(let row): try Self.put(row, uses[key], in: db)
                case .delete:
                    try db.cachedStatement(sql: "DELETE FROM objects WHERE key = ?")
                        .execute(arguments: [key.hex])
                }
            }
            // The uses of changed rows were written with those rows.
            for (key, use) in uses where rows[key] == nil {
                let isRead = use.bytes > 0
                let time = use.time.nanoseconds
                let latest =
                    use.time < Self.earliest ? .max : time.addingSaturated(Self.mostAhead)
                try db.cachedStatement(
                    sql: """
                        UPDATE objects SET
                          last_used = CASE WHEN last_used BETWEEN ? AND ? THEN last_used ELSE ? END,
                          is_read = is_read OR ?, uses = MIN(uses + ?, 255) WHERE key = ?
                        """
                ).execute(arguments: [
                    time, latest, time, isRead, isRead ? 1 : 0, key.hex,
                ])
            }
        }
    }

    /// Runs a transaction with cached statements; `DatabaseWriter.write` has SQLite parse `BEGIN`
    /// and `COMMIT` each time, a quarter of the cost of a batch of one row, which most are.
    private func inTransaction(_ body: (Database) throws -> Void) throws {
        try pool.writeWithoutTransaction { db in
            try db.cachedStatement(sql: "BEGIN IMMEDIATE TRANSACTION").execute()
            do {
                try body(db)
                try db.cachedStatement(sql: "COMMIT TRANSACTION").execute()
            } catch {
                // SQLite may have rolled back by itself, as on a full disk; report the first error.
                try? db.rollback()
                throw error
            }
        }
    }

    /// Writes a row together with the object's uses: one statement instead of two.
    private static func put(_ row: StoreEntry, _ use: Use?, in db: Database) throws {
        let used = max(row.lastUsed.nanoseconds, use?.time.nanoseconds ?? 0)
        let wasRead = (use?.bytes ?? 0) > 0
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO objects (key, url, role, bytes, total, complete, created, last_used,
                  title, kind, is_read, uses)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (key) DO UPDATE SET url = excluded.url, role = excluded.role,
                  bytes = excluded.bytes, total = excluded.total, complete = excluded.complete,
                  created = excluded.created, last_used = MAX(last_used, excluded.last_used),
                  title = excluded.title, kind = excluded.kind,
                  is_read = is_read OR excluded.is_read,
                  uses = MIN(uses + excluded.uses - 1, 255)
                """)
        try statement.execute(arguments: [
            row.key.hex, row.url, Int(row.role), row.bytes, row.total, row.isComplete,
            row.created.nanoseconds, used, Int64(bitPattern: row.title), Int(row.kind.rawValue),
            row.isRead || wasRead, wasRead ? 2 : 1,
        ])
    }

    /// Returns the row of one object.
    func row(of key: ObjectKey) throws -> StoreEntry? {
        try rows(of: [key]).first ?? nil
    }

    /// Returns the rows of some objects, in the order of `keys`.
    func rows(of keys: [ObjectKey]) throws -> [StoreEntry?] {
        try pool.read { db in
            let statement = try db.cachedStatement(sql: "SELECT * FROM objects WHERE key = ?")
            return try keys.map { key in
                try Row.fetchOne(statement, arguments: [key.hex]).flatMap(Self.decode)
            }
        }
    }

    /// Returns the row of the object whose key starts with these 16 bytes.
    func row(ofName name: UInt128) throws -> StoreEntry? {
        let start = String(name, radix: 16, width: 32)
        return try fetch("WHERE key >= ? AND key < ? LIMIT 1", [start, start + "g"]).first
    }

    /// Returns what retention needs of the objects whose key starts with one byte.
    func keptRows(startingWith byte: UInt8) throws -> [KeptRow] {
        let start = String(byte, radix: 16, width: 2)
        return try pool.read { db in
            let statement = try db.cachedStatement(
                sql: """
                    SELECT key, bytes, title, kind, is_read, last_used, uses, complete
                    FROM objects WHERE key >= ? AND key < ?
                    """)
            // With a cursor: copying all rows would double the time.
            let found = try Row.fetchCursor(statement, arguments: [start, start + "g"])
            return try Array(found.compactMap { row in KeptRow(row) })
        }
    }

    /// Returns the keys of the objects of one title; reads no rows, only the index by titles.
    func keys(ofTitle title: UInt64) throws -> [ObjectKey] {
        try pool.read { db in
            let statement = try db.cachedStatement(sql: "SELECT key FROM objects WHERE title = ?")
            let found = try Row.fetchCursor(statement, arguments: [Int64(bitPattern: title)])
            return try Array(
                found.compactMap { row -> ObjectKey? in
                    guard let hex = String.fromDatabaseValue(row[0]) else { return nil }
                    return ObjectKey(hex: hex)
                })
        }
    }

    /// Returns the rows of the objects of one title.
    func rows(ofTitle title: UInt64) throws -> [StoreEntry] {
        try fetch("WHERE title = ?", [Int64(bitPattern: title)])
    }

    /// Returns the first rows of a title's objects behind a key, in the order of keys.
    func rows(ofTitle title: UInt64, after key: ObjectKey?, limit: Int) throws -> [StoreEntry] {
        try fetch(
            "WHERE title = ? AND key > ? ORDER BY key LIMIT ?",
            [Int64(bitPattern: title), key?.hex ?? "", limit])
    }

    /// Returns the rows of the objects whose key starts with one byte.
    func rows(startingWith byte: UInt8) throws -> [StoreEntry] {
        let start = String(byte, radix: 16, width: 2)
        return try fetch("WHERE key >= ? AND key < ?", [start, start + "g"])
    }

    /// Returns the most recently used objects, newest first; all if `limit` is negative.
    func newest(limit: Int) throws -> [StoreEntry] {
        try fetch("ORDER BY last_used DESC LIMIT ?", [limit])
    }

    private func fetch(
        _ condition: String, _ arguments: StatementArguments
    ) throws -> [StoreEntry] {
        try pool.read { db in
            try Row.fetchAll(db, sql: "SELECT * FROM objects \(condition)", arguments: arguments)
                .compactMap(Self.decode)
        }
    }

    /// The sizes of objects that are believed of the index; the file tells where it says another.
    fileprivate static let sizes = 0...Int64(ExternalNumber.largest)

    static func decode(_ row: Row) -> StoreEntry? {
        func number(_ column: String) -> Int64? { Int64.fromDatabaseValue(row[column]) }
        guard let hex = String.fromDatabaseValue(row["key"]), let key = ObjectKey(hex: hex),
            let url = String.fromDatabaseValue(row["url"]), let role = number("role"),
            let title = number("title"), let kind = number("kind"),
            let isRead = number("is_read"), let bytes = number("bytes"),
            let isComplete = number("complete"), let created = number("created"),
            let lastUsed = number("last_used"), Self.sizes.contains(bytes)
        else { return nil }
        return StoreEntry(
            key: key, url: url, role: UInt8(truncatingIfNeeded: role),
            title: UInt64(bitPattern: title),
            kind: RetentionKind(rawValue: UInt8(truncatingIfNeeded: kind)) ?? .other,
            isRead: isRead != 0, bytes: bytes, total: number("total"),
            isComplete: isComplete != 0, created: WallTime(nanoseconds: created),
            knownUse: WallTime(nanoseconds: lastUsed))
    }
}

/// What retention needs of an object that an earlier run stored.
struct KeptRow {
    let key: ObjectKey
    let facts: Retained
    let isComplete: Bool

    fileprivate init?(_ row: Row) {
        func number(_ column: Int) -> Int64? { Int64.fromDatabaseValue(row[column]) }
        guard let hex = String.fromDatabaseValue(row[0]), let key = ObjectKey(hex: hex),
            let bytes = number(1), let title = number(2), let kind = number(3),
            let isRead = number(4), let lastUsed = number(5), let uses = number(6),
            let isComplete = number(7), ObjectIndex.sizes.contains(bytes)
        else { return nil }
        self.key = key
        facts = Retained(
            bytes: bytes, title: UInt64(bitPattern: title),
            kind: RetentionKind(rawValue: UInt8(truncatingIfNeeded: kind)) ?? .other,
            isRead: isRead != 0, lastUsed: WallTime(nanoseconds: lastUsed).retentionTime,
            uses: UInt8(clamping: uses))
        self.isComplete = isComplete != 0
    }
}
