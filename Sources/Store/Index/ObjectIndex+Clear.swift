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
            // As the migrations have made it, which alone know its columns.
            let parts = try Self.parts(ofTable: "objects", in: db)
            // Renaming a table keeps its triggers and indexes under their own names.
            for part in parts where part.type != "table" {
                try db.execute(sql: "DROP \(part.type) \(part.name.quotedDatabaseIdentifier)")
            }
            try db.execute(
                sql: """
                    ALTER TABLE objects RENAME TO \(name);
                    UPDATE totals SET objects = 0, bytes = 0;
                    """)
            for part in parts { try db.execute(sql: part.definition) }
            let copy = try db.makeStatement(
                sql: "INSERT INTO objects SELECT * FROM \(name) WHERE key = ?")
            for key in kept { try copy.execute(arguments: [key.hex]) }
        }
    }

    /// A table, or an index or trigger of it.
    private struct SchemaPart {
        let type: String
        let name: String
        let definition: String
    }

    /// Returns a table, its indexes and its triggers, in the order in which they can be created.
    private static func parts(ofTable table: String, in db: Database) throws -> [SchemaPart] {
        // SQLite makes the indexes without a definition by itself.
        try Row.fetchAll(
            db,
            sql: """
                SELECT type, name, sql FROM sqlite_master WHERE tbl_name = ? AND sql IS NOT NULL
                ORDER BY type <> 'table', rowid
                """, arguments: [table]
        ).compactMap { row -> SchemaPart? in
            guard let type = String.fromDatabaseValue(row[0]),
                let name = String.fromDatabaseValue(row[1]),
                let definition = String.fromDatabaseValue(row[2])
            else { return nil }
            return SchemaPart(type: type, name: name, definition: definition)
        }
    }

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
