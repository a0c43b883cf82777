import GRDB

/// Setting all rows aside at once, and deleting them some at a time.
extension ObjectIndex {
    private static let asidePrefix = "objects_gone_"

    /// Begins an empty table of objects; the former one is emptied by `deleteSetAside`.
    ///
    /// - Parameter kept: the objects whose rows stay.
    /// - Throws: what SQLite says.
    func setAside(butFor kept: [ObjectKey]) throws {
        let name = Self.asidePrefix + String(UInt64.random(in: 0...UInt64.max), radix: 16)
        try pool.write { db in
            // Triggers and indexes go with a table that is renamed, under their own names.
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

    /// They keep the totals.
    private static let triggers = """
        CREATE TRIGGER objects_added AFTER INSERT ON objects BEGIN
          UPDATE totals SET objects = objects + 1, bytes = bytes + new.bytes; END;
        CREATE TRIGGER objects_resized AFTER UPDATE OF bytes ON objects BEGIN
          UPDATE totals SET bytes = bytes + new.bytes - old.bytes; END;
        CREATE TRIGGER objects_gone AFTER DELETE ON objects BEGIN
          UPDATE totals SET objects = objects - 1, bytes = bytes - old.bytes; END;
        """

    /// Whether rows of a former clear are left.
    func hasSetAside() throws -> Bool { try pool.read { try Self.tables($0).first != nil } }

    /// Deletes some rows that were set aside.
    ///
    /// - Parameter count: how many at most: players' rows wait meanwhile.
    /// - Returns: false when none are left.
    /// - Throws: what SQLite says.
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
