import GRDB

/// The tables of the database and its migrations.
enum StateSchema {
    /// In the order of reading: what users ordered comes before what grows by itself, and is not
    /// left out when there is too much.
    static let tables: [StateTable] = [
        ImportRecord.table, PinRecord.table, DownloadRecord.table, DownloadDayRecord.table,
        RecordingRecord.table, PurgeRecord.table, NodeChangeRecord.table, NodeOrderRecord.table,
        CrashRecord.table, NetworkRecord.table, KeyVetoRecord.table, KeyFindingRecord.table,
        LiveListRecord.table, VariablesRecord.table, SessionRecord.table, FeedRecord.table,
    ]

    /// The names of the tables of what users ordered, which has a room of its own.
    static let orders: Set<String> = Set(
        [PinRecord.table, DownloadRecord.table, RecordingRecord.table, PurgeRecord.table]
            .map(\.name))

    /// The migrations; a released one must never change, since users' files were made by it.
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1 rows of the index") { db in
            try db.execute(
                sql: """
                    CREATE TABLE imports (source TEXT NOT NULL PRIMARY KEY) STRICT;
                    CREATE TABLE sessions (
                      id INTEGER NOT NULL PRIMARY KEY, window INTEGER, recording TEXT,
                      fields TEXT NOT NULL) STRICT;
                    CREATE TABLE key_vetoes (
                      origin TEXT NOT NULL, scope TEXT NOT NULL, reason TEXT NOT NULL,
                      PRIMARY KEY (origin, scope)) STRICT;
                    CREATE TABLE key_findings (
                      origin TEXT NOT NULL, name TEXT NOT NULL, pairs INTEGER NOT NULL,
                      paths BLOB NOT NULL, vetoed INTEGER NOT NULL,
                      PRIMARY KEY (origin, name)) STRICT;
                    CREATE TABLE live_lists (
                      key BLOB NOT NULL PRIMARY KEY, epoch INTEGER NOT NULL,
                      first INTEGER NOT NULL, past_last INTEGER NOT NULL,
                      target_duration INTEGER NOT NULL, discontinuity INTEGER NOT NULL,
                      received INTEGER NOT NULL, dated INTEGER, date INTEGER,
                      sections TEXT NOT NULL) STRICT;
                    CREATE TABLE feeds (name TEXT NOT NULL PRIMARY KEY, body BLOB NOT NULL) STRICT;
                    """)
        }
        // Downloads wait in the order of their rowids, and an INTEGER PRIMARY KEY would be the
        // rowid itself.
        migrator.registerMigration("2 pins, downloads and recordings") { db in
            try db.execute(
                sql: """
                    CREATE TABLE pins (
                      title INTEGER NOT NULL PRIMARY KEY, url TEXT NOT NULL,
                      since INTEGER NOT NULL, keys BLOB NOT NULL) STRICT;
                    CREATE TABLE downloads (
                      id INTEGER NOT NULL UNIQUE, \(OrderRecord.definition),
                      name TEXT NOT NULL, state TEXT NOT NULL, reason TEXT,
                      pieces INTEGER NOT NULL, done INTEGER NOT NULL, bytes INTEGER NOT NULL,
                      seconds REAL NOT NULL, labels TEXT NOT NULL) STRICT;
                    CREATE TABLE download_days (
                      id INTEGER NOT NULL PRIMARY KEY, day TEXT NOT NULL,
                      bytes INTEGER NOT NULL) STRICT;
                    CREATE TABLE recordings (
                      id TEXT NOT NULL PRIMARY KEY, \(OrderRecord.definition),
                      name TEXT, started INTEGER NOT NULL, until INTEGER NOT NULL, ended INTEGER,
                      state TEXT NOT NULL, reason TEXT NOT NULL, multivariant INTEGER NOT NULL,
                      lists TEXT NOT NULL, bytes INTEGER NOT NULL, seconds REAL NOT NULL,
                      segments INTEGER NOT NULL, lost INTEGER NOT NULL) STRICT;
                    """)
        }
        migrator.registerMigration("3 crashes, networks and purges") { db in
            try db.execute(
                sql: """
                    CREATE TABLE crashes (
                      item TEXT NOT NULL PRIMARY KEY, crashes INTEGER NOT NULL,
                      running INTEGER NOT NULL) STRICT;
                    CREATE TABLE networks (
                      name TEXT NOT NULL PRIMARY KEY, transfers INTEGER NOT NULL,
                      goodput INTEGER NOT NULL, noted INTEGER NOT NULL) STRICT;
                    CREATE TABLE purges (
                      number INTEGER NOT NULL PRIMARY KEY, given INTEGER NOT NULL,
                      kind TEXT NOT NULL, items TEXT NOT NULL) STRICT;
                    """)
        }
        migrator.registerMigration("4 orders for other nodes") { db in
            try db.execute(
                sql: """
                    CREATE TABLE node_orders (
                      item TEXT NOT NULL, given INTEGER NOT NULL, wish TEXT NOT NULL,
                      query TEXT NOT NULL, PRIMARY KEY (item, given)) STRICT;
                    """)
        }
        migrator.registerMigration("5 variables of playlists") { db in
            try db.execute(
                sql: """
                    CREATE TABLE variables (
                      session INTEGER NOT NULL PRIMARY KEY, list TEXT NOT NULL,
                      definitions BLOB NOT NULL) STRICT;
                    """)
        }
        migrator.registerMigration("6 purges and pins for other nodes") { db in
            try db.execute(
                sql: """
                    CREATE TABLE node_changes (
                      name TEXT NOT NULL PRIMARY KEY, text TEXT NOT NULL) STRICT;
                    """)
        }
        migrator.registerMigration("7 live lists that have ended") { db in
            try db.execute(sql: "ALTER TABLE live_lists ADD COLUMN ended INTEGER;")
        }
        migrator.registerMigration("8 pins before downloads") { db in
            try db.execute(sql: "ALTER TABLE downloads ADD COLUMN pinned_before INTEGER;")
        }
        migrator.registerMigration("9 orders that nodes share") { db in
            try db.execute(
                sql: """
                    ALTER TABLE downloads ADD COLUMN carried_out INTEGER;
                    ALTER TABLE recordings ADD COLUMN is_left INTEGER;
                    """)
        }
        migrator.registerMigration("10 names that live lists give again") { db in
            try db.execute(sql: "ALTER TABLE live_lists ADD COLUMN names_epoch INTEGER;")
        }
        migrator.registerMigration("11 names of downloads without secrets") { db in
            try db.execute(sql: "ALTER TABLE downloads ADD COLUMN has_clean_name INTEGER;")
        }
        migrator.registerMigration("12 refreshed downloads") { db in
            try db.execute(sql: "ALTER TABLE downloads ADD COLUMN refreshed INTEGER;")
        }
        migrator.registerMigration("13 former objects of downloads") { db in
            try db.execute(sql: "ALTER TABLE downloads ADD COLUMN former_keys BLOB;")
        }
        migrator.registerMigration("14 limits of variants") { db in
            try db.execute(
                sql: """
                    ALTER TABLE sessions ADD COLUMN height INTEGER;
                    ALTER TABLE sessions ADD COLUMN bandwidth INTEGER;
                    """)
        }
        return migrator
    }

    /// Rejects a file with views or triggers, which SQLite executes when a table is read or
    /// written.
    ///
    /// This program creates none.
    static func refuseCode(_ db: Database) throws {
        let count = try Int.fetchOne(
            db, sql: "SELECT COUNT(*) FROM sqlite_master WHERE type NOT IN ('table', 'index')")
        guard count == 0 else {
            throw DatabaseError(
                resultCode: .SQLITE_NOTADB, message: "it has views or triggers, which ours has not")
        }
    }

    /// Rejects a file whose tables differ from those that the migrations create.
    static func compare(_ db: Database) throws {
        let fresh = try DatabaseQueue()
        try migrator.migrate(fresh)
        guard try definitions(db) == fresh.read({ try definitions($0) }) else {
            throw DatabaseError(
                resultCode: .SQLITE_NOTADB, message: "its tables are not those of this program")
        }
    }

    /// Returns the definitions, without GRDB's own table, which may differ between versions of
    /// GRDB.
    private static func definitions(_ db: Database) throws -> [[DatabaseValue]] {
        let found = try Row.fetchAll(
            db,
            sql: """
                SELECT type, name, sql FROM sqlite_master
                WHERE name NOT LIKE 'sqlite_%' AND name <> 'grdb_migrations' ORDER BY type, name
                LIMIT 100
                """)
        return found.map { Array($0.databaseValues) }
    }
}
