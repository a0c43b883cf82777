// The index of stored objects in SQLite: listing, totals and recency across restarts, and small
// tables for the layers above. A hit never touches it, and objects can be found without it.
import GRDB
import GRDBSQLite
import Glibc
import Posix
import Synchronization

/// Why an index is not opened, other than errors of SQLite.
enum IndexFault: Error {
    /// A newer program wrote it.
    case isNewer
}

/// The SQLite database of the index.
///
/// Thread-safe: writes are serialised, and reads run concurrently with them (WAL).
final class ObjectIndex: Sendable {
    private let path: String
    private let opened: Mutex<DatabasePool>

    /// Opens or creates the database.
    ///
    /// Throws if the damage shows when it is opened; `check` finds damage inside.
    init(path: String) throws {
        self.path = path
        opened = Mutex(try Self.open(path))
    }

    var pool: DatabasePool { opened.withLock { $0 } }

    /// The number of concurrent reads; a connection is opened when it is first needed, and takes two
    /// descriptors.
    ///
    /// Three reads may take minutes with a large index on a slow disk: the check after an unclean
    /// stop, a listing, and the rows of a purge. The others are for short reads, which server loops
    /// wait for.
    static let mostReaders = longReaders + 3
    static let longReaders = 3

    private static func open(_ path: String) throws -> DatabasePool {
        var configuration = Configuration()
        configuration.label = "sluice.index"
        configuration.maximumReaderCount = mostReaders
        configuration.busyMode = .timeout(2)
        configuration.prepareDatabase { db in
            // No value is longer than this; a damaged or foreign file must not use unbounded
            // memory.
            sqlite3_limit(db.sqliteConnection, SQLITE_LIMIT_LENGTH, CInt(2 * mostRowBytes))
            // Losing the last batch costs recency, not correctness.
            try db.execute(sql: "PRAGMA synchronous = NORMAL")
            if let limit = fileSizeLimit() {
                // Then the database takes all of its log, so that this can begin anew. A longer file
                // counts as full, and its pages can still be changed.
                let pageSize = try Int64.fetchOne(db, sql: "PRAGMA page_size") ?? 4_096
                let most = max(1, min(limit / max(1, pageSize), Int64(UInt32.max) - 1))
                try db.execute(sql: "PRAGMA max_page_count = \(most)")
            }
        }
        let pool = try DatabasePool(path: path, configuration: configuration)
        guard try !pool.read(migrator.hasBeenSuperseded) else { throw IndexFault.isNewer }
        try migrator.migrate(pool)
        return pool
    }

    /// Checks the whole database for damage (PRAGMA quick_check); blocks while it reads all of it.
    func check() throws {
        let verdict = try pool.read { try String.fetchOne($0, sql: "PRAGMA quick_check(1)") }
        guard verdict == "ok" else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: verdict)
        }
    }

    /// Aborts a running check; its thread gets SQLITE_INTERRUPT.
    func interrupt() { pool.interrupt() }

    /// Switches to an empty database, created at the folder's path.
    func openAnew(_ folder: StoreFolder) throws {
        _ = try folder.makeIndexFile()
        let made = try Self.open(folder.indexPath)
        let former = opened.withLock { opened in
            defer { opened = made }
            return opened
        }
        // Reads that still run on the former pool fail with an error.
        try? former.close()
    }

    /// Closes and opens the file, if `error` is that SQLite can only read it although it may be
    /// written.
    ///
    /// A `-shm` file that cannot be opened for writing once (no descriptor left, over quota) is
    /// read only as long as any connection of the process is open (SQLite, `os_unix.c`). Reads
    /// fail meanwhile.
    ///
    /// - Returns: true if it was opened again.
    /// - Throws: errors of SQLite; the next call tries again.
    func openAgain(after error: any Error) throws -> Bool {
        let code = (error as? DatabaseError)?.resultCode
        // A pool that is closed because opening failed reports misuse.
        guard code == .SQLITE_READONLY || code == .SQLITE_MISUSE,
            access(path, W_OK) == 0, access(path + "-shm", W_OK) == 0 || errno == ENOENT
        else { return false }
        try pool.close()
        let made = try Self.open(path)
        opened.withLock { $0 = made }
        return true
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
        migrator.registerMigration("2") { db in
            // Retention keeps its order in memory, so a use no longer costs an index entry.
            // Triggers keep the totals, so that a start need not read every row.
            try db.execute(
                sql: """
                    ALTER TABLE objects ADD COLUMN title INTEGER NOT NULL DEFAULT 0;
                    ALTER TABLE objects ADD COLUMN kind INTEGER NOT NULL DEFAULT 1;
                    ALTER TABLE objects ADD COLUMN is_read INTEGER NOT NULL DEFAULT 1;
                    ALTER TABLE objects ADD COLUMN uses INTEGER NOT NULL DEFAULT 1;
                    DROP INDEX objects_by_use;
                    CREATE INDEX objects_by_title ON objects (title);
                    CREATE TABLE totals (objects INTEGER NOT NULL, bytes INTEGER NOT NULL);
                    INSERT INTO totals SELECT COUNT(*), COALESCE(SUM(bytes), 0) FROM objects;
                    CREATE TRIGGER objects_added AFTER INSERT ON objects BEGIN
                      UPDATE totals SET objects = objects + 1, bytes = bytes + new.bytes; END;
                    CREATE TRIGGER objects_resized AFTER UPDATE OF bytes ON objects BEGIN
                      UPDATE totals SET bytes = bytes + new.bytes - old.bytes; END;
                    CREATE TRIGGER objects_gone AFTER DELETE ON objects BEGIN
                      UPDATE totals SET objects = objects - 1, bytes = bytes - old.bytes; END;
                    """)
        }
        return migrator
    }

    /// True for errors caused by the content of the file, not by its disk.
    static func isDamage(_ error: any Error) -> Bool {
        guard let error = error as? DatabaseError else { return !(error is IndexFault) }
        return switch error.resultCode {
        case .SQLITE_FULL, .SQLITE_IOERR, .SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_PERM,
            .SQLITE_NOMEM, .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_AUTH, .SQLITE_INTERRUPT,
            .SQLITE_MISUSE:
            false
        default: true
        }
    }

    /// True for an error of a damaged page, which stays.
    static func isCorruption(_ error: any Error) -> Bool {
        let code = (error as? DatabaseError)?.resultCode
        return code == .SQLITE_CORRUPT || code == .SQLITE_NOTADB
    }

    /// True if the disk, or the limit of a file's size, lets the database or its log grow no more; or
    /// for a failing disk, which shows in the same way.
    static func isLackOfRoom(_ error: any Error) -> Bool {
        let code = (error as? DatabaseError)?.resultCode
        return code == .SQLITE_FULL || code == .SQLITE_IOERR
    }

    /// Moves what the write-ahead log has into the database, so that the next transaction begins the
    /// log anew, unless a read needs it; blocks on the disk.
    func emptyLog() throws {
        try pool.writeWithoutTransaction { _ = try $0.checkpoint(.passive) }
    }

    /// Checkpoints the write-ahead log into the database and closes it.
    func close() throws {
        let pool = pool
        // A statement clears a pending `interrupt`; a checkpoint does not.
        _ = try? pool.writeWithoutTransaction { try Int.fetchOne($0, sql: "SELECT 1") }
        defer { try? pool.close() }
        try pool.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
    }
}
