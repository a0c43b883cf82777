import GRDB

/// Sets all rows aside in one step, and deletes them in batches.
extension ObjectIndex {
    private static let asidePrefix = "objects_gone_"

    /// Starts an empty table of objects; `deleteSetAside` deletes the rows of the former one.
    ///
    /// - Parameter kept: the objects whose rows are copied into the new table.
    /// - Throws: errors of SQLite.
    func setAside(butFor kept: [ObjectKey]) throws {
        let name = Self.asidePrefix + String(UInt64.random(in: 0...UInt64.max), radix: 16)
        try pool.write { db in
            // Renaming a table keeps its triggers and indexes under their own names.
            try db.execute(
                sql: """
                    DROP TRIGGER objects_added; DROP TRIGGER objects_resized;
                    DROP TRIGGER objects_gone; DROP INDEX objects_by_title;
                    ALTER TABLE objects RENAME TO \(name);
                    CREATE TABLE objects (
                      key TEXT PRIMARY KEY, url TEXT NOT NULL, role INTEGER NOT NULL,
                      bytes INTEGER NOT NULL, total INTEGER, complete INTEGER NOT NULL,
                      created INTEGER NOT NULL, last_used INTEGER NOT NULL,
                      title INTEGER NOT NULL DEFAULT 0, kind INTEGER NOT NULL DEFAULT 1,
                      is_read INTEGER NOT NULL DEFAULT 1, uses INTEGER NOT NULL DEFAULT 1
                    ) WITHOUT ROWID;
                    CREATE INDEX objects_by_title ON objects (title);
                    UPDATE totals SET objects = 0, bytes = 0;
                    """)
            try db.execute(sql: Self.triggers)
            for key in kept {
                try db.execute(
                    sql: """
                        INSERT INTO objects (key, url, role, bytes, total, complete, created,
                          last_used, title, kind, is_read, uses)
                        SELECT key, url, role, bytes, total, complete, created,
                          last_used, title, kind, is_read, uses FROM \(name) WHERE key = ?
                        """, arguments: [key.hex])
            }
        }
    }

    /// The triggers that maintain the totals.
    private static let triggers = """
        CREATE TRIGGER objects_added AFTER INSERT ON objects BEGIN
          UPDATE totals SET objects = objects + 1, bytes = bytes + new.bytes; END;
        CREATE TRIGGER objects_resized AFTER UPDATE OF bytes ON objects BEGIN
          UPDATE totals SET bytes = bytes + new.bytes - old.bytes; END;
        CREATE TRIGGER objects_gone AFTER DELETE ON objects BEGIN
          UPDATE totals SET objects = objects - 1, bytes = bytes - old.bytes; END;
        """

    /// True if rows of an earlier clear are left.
    func hasSetAside() throws -> Bool { try pool.read { try Self.tables($0).first != nil } }

    /// Deletes a batch of rows that were set aside.
    ///
    /// - Parameter count: the maximum number of rows; writes caused by players wait meanwhile.
    /// - Returns: false if none are left.
    /// - Throws: errors of SQLite.
    func deleteSetAside(atMost count: Int) throws -> Bool {
        try pool.write { db in
            guard let table = try Self.tables(db).first else { return false }
            try db.execute(
                sql: "DELETE FROM \(table) WHERE key IN (SELECT key FROM \(table) LIMIT ?)",
                arguments: [count])
            if db.changesCount == 0 { try db.execute(sql: "DROP TABLE \(table)") }
            return true
        }
    }

    private static func tables(_ db: Database) throws -> [String] {
        try String.fetchAll(
            db,
            sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, ?) = ?",
            arguments: [asidePrefix.utf8.count, asidePrefix])
    }
}
