// The database of the daemon's state besides objects: `state.sqlite` in the cache folder.
//
// The index of objects can be rebuilt from their files; this state cannot. It is therefore in a
// separate database, with a table for each kind of record.
//
// Writes are queued and committed by one thread, so that no loop waits for the disk. Every commit
// is synced (WAL with `synchronous = FULL`): what was pinned, ordered or learned before a power cut
// is found after it. Commits are rare: a handful per minute of playback.
import GRDB
import GRDBSQLite
import Glibc
package import Logging
package import Posix
import Reactor
import Synchronization

/// Why the state database cannot be opened.
package enum StateFault: Error, Sendable, CustomStringConvertible {
    /// A newer program wrote it.
    case isNewer
    /// The disk or SQLite rejects it, for a reason other than damaged content.
    case unusable(String)
    /// The disk is full, over quota, or permits no longer file.
    case noRoom(String)

    /// Classifies an error of SQLite or of the system for the caller of a write.
    ///
    /// SQLite has a code for a full disk. Exceeding a quota, or the limit of a file's length, shows
    /// as a failed write, like a broken or read-only disk.
    ///
    /// - Parameters:
    ///   - error: the error.
    ///   - probe: writes to the same disk, and returns the error of that.
    init(_ error: any Error, probe: () -> SystemError?) {
        if let fault = error as? StateFault {
            self = fault
            return
        }
        let isLackOfRoom: Bool =
            switch (error as? DatabaseError)?.extendedResultCode {
            case .SQLITE_FULL?: true
            case .SQLITE_IOERR_WRITE?:
                probe().map { $0.isLackOfRoom || $0.code == EFBIG } ?? false
            default: false
            }
        self = isLackOfRoom ? .noRoom("\(error)") : .unusable("\(error)")
    }

    package var description: String {
        switch self {
        case .isNewer: "a newer program wrote the state database"
        case .unusable(let reason), .noRoom(let reason): reason
        }
    }
}

/// The open state database; thread-safe.
package final class StateDatabase: Sendable {
    /// The file's name in the cache folder.
    static let fileName = "state.sqlite"
    /// The suffixes of SQLite's files next to a database.
    static let suffixes = ["-wal", "-shm", "-journal"]

    /// The cache folder.
    package let folder: String
    /// The log of the program that has the folder.
    package let log: Logger
    /// The maximum size of the rows that are read at once.
    private let rooms: StateRooms
    private let opened: Mutex<Opened>
    /// The rows read at start, by table, until they are requested or changed.
    private let contents: Mutex<[String: [[StateValue]]]>
    let pending = Mutex(PendingChanges())
    /// Held during a commit, so that commits are serialised.
    let committing = Mutex<Void>(())
    let thread: LoopThread
    /// True once rows could not be read in this run.
    let hasLostRows = Atomic<Bool>(false)
    /// Invalid rows of pins, which are not removed yet.
    let refusedPins = Mutex<Set<StateSlot>>([])

    /// The database, and which file it is.
    private struct Opened: Sendable {
        let queue: DatabaseQueue
        let file: FileIdentity?
        let home: Home

        init(_ queue: DatabaseQueue, in folder: String) {
            self.queue = queue
            file = FileIdentity(at: queue.path)
            home = Home(folder)
        }
    }

    /// Which folder is at a path, and whether the store's lock is in it: a folder without that is
    /// being deleted, or waits for the store to move in.
    private struct Home: Sendable, Equatable {
        let folder: FileIdentity?
        let lock: FileIdentity?

        init(_ folder: String) {
            self.folder = FileIdentity(at: folder)
            lock = FileIdentity(at: folder + "/lock")
        }
    }

    static func path(in folder: String) -> String { "\(folder)/\(fileName)" }

    /// Opens or creates the database of a folder, and reads all of it once; blocks on the disk.
    ///
    /// A damaged or foreign file is set aside; the readable rows are kept.
    ///
    /// - Parameters:
    ///   - folder: the cache folder.
    ///   - isExpected: true if the folder has had a database: the log tells if that is lost.
    ///   - log: the log.
    /// - Throws: the reason why it cannot be opened.
    package convenience init(
        folder: String, isExpected: Bool = false, log: Logger
    ) throws(StateFault) {
        try self.init(folder: folder, isExpected: isExpected, log: log, rooms: StateRooms())
    }

    init(
        folder: String, isExpected: Bool = false, log: Logger, rooms: StateRooms
    ) throws(StateFault) {
        self.folder = folder
        self.log = log
        self.rooms = rooms
        do {
            let (queue, found) = try Self.openAndRead(folder, isExpected, rooms, log)
            opened = Mutex(Opened(queue, in: folder))
            contents = Mutex(found.rows)
            thread = try LoopThread(name: "state") { _ in }
            note(found)
            for row in found.refused { refuse(row) }
        } catch {
            throw StateFault(error) { StateDatabase.probe(folder) }
        }
    }

    var queue: DatabaseQueue { opened.withLock { $0.queue } }
    /// The file that is written to; another one, once that was damaged or removed.
    package var file: FileIdentity? { opened.withLock { $0.file } }

    // MARK: Opening

    private static func openAndRead(
        _ folder: String, _ isExpected: Bool, _ rooms: StateRooms, _ log: Logger
    ) throws -> (DatabaseQueue, StateContents) {
        try endReplacement(in: folder, log)
        if isExpected { tellLoss(of: path(in: folder), log) }
        var found = StateContents()
        do {
            let queue = try open(path(in: folder))
            found = try StateReader.read(queue, rooms)
            if let damage = found.damage { throw damage }
            if found.others > 0 {
                log.error(
                    """
                    the state database of the cache folder holds rows that are too long, too many \
                    or invalid: it is damaged or not ours; the others count, and these are deleted
                    """, metadata: ["unread": "\(found.others)"])
            }
            found.reportUnread(log)
            return (queue, found)
        } catch {
            guard isDamage(error) else { throw error }
            try replace(folder, found, "\(error)", log)
            return (try open(path(in: folder)), found.withoutRefused)
        }
    }

    /// Logs that a file is lost which SQLite would take for a new database: it is missing, or empty
    /// as a power cut may leave it.
    private static func tellLoss(of path: String, _ log: Logger) {
        var found = stat()
        let isLost =
            lstat(path, &found) == 0
            ? found.st_mode & S_IFMT == S_IFREG && found.st_size == 0 : errno == ENOENT
        guard isLost else { return }
        log.error(
            """
            the state database of the cache folder is missing or empty, and a new one is made: the \
            sessions, learned key rules, pins, downloads, recordings and feeds of earlier runs are \
            lost; objects are not concerned. Order again what is missing, or stop the daemon and \
            put back a copy of the file
            """, metadata: ["path": "\(path)"])
    }

    static func write(_ found: StateContents, to queue: DatabaseQueue) throws {
        try queue.write { db in
            for table in StateSchema.tables {
                for row in found.rows[table.name] ?? [] {
                    try db.cachedStatement(sql: table.upsert).execute(arguments: arguments(row))
                }
            }
        }
    }

    /// Opens the database at a path, or creates it.
    static func open(_ path: String) throws -> DatabaseQueue {
        try makeFile(path)
        var configuration = Configuration()
        configuration.label = "sluice.state"
        configuration.busyMode = .timeout(2)
        configuration.prepareDatabase { db in
            // A damaged or foreign file must not use unbounded memory or run code from its schema.
            sqlite3_limit(
                db.sqliteConnection, SQLITE_LIMIT_LENGTH, CInt(StateTable.mostRowBytes + (1 << 20)))
            try db.execute(sql: "PRAGMA trusted_schema = OFF")
        }
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        do {
            try prepare(queue)
        } catch {
            try? queue.close()
            throw error
        }
        return queue
    }

    private static func prepare(_ queue: DatabaseQueue) throws {
        try queue.read { try StateSchema.refuseCode($0) }
        guard try !queue.read(StateSchema.migrator.hasBeenSuperseded) else {
            throw StateFault.isNewer
        }
        try queue.writeWithoutTransaction { try limitLength($0) }
        // GRDB's own WAL setting writes to the file on opening and uses `synchronous = NORMAL`.
        // Each migration adds some pages to the log. SQLite empties it between them: otherwise a
        // limit of file sizes (ulimit -f) would limit their number.
        try queue.writeWithoutTransaction {
            try $0.execute(
                sql: """
                    PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                    PRAGMA wal_autocheckpoint = 16
                    """)
        }
        try StateSchema.migrator.migrate(queue)
        // SQLite's own default.
        try queue.writeWithoutTransaction {
            try $0.execute(sql: "PRAGMA wal_autocheckpoint = 1000")
        }
        try queue.read { try StateSchema.compare($0) }
    }

    /// Has the database count as full before it reaches the limit of file sizes (ulimit -f), so
    /// that it can always take its log.
    ///
    /// A longer file counts as full, and its pages can still be changed.
    private static func limitLength(_ db: Database) throws {
        guard let limit = fileSizeLimit() else { return }
        let pageSize = try Int64.fetchOne(db, sql: "PRAGMA page_size") ?? 4_096
        let most = max(1, min(limit / max(1, pageSize), Int64(UInt32.max) - 1))
        try db.execute(sql: "PRAGMA max_page_count = \(most)")
    }

    /// Creates an empty file if none exists, so that SQLite gives its files the same mode, 0600.
    private static func makeFile(_ path: String) throws {
        var found = stat()
        guard lstat(path, &found) != 0 else {
            guard found.st_mode & S_IFMT == S_IFREG else {
                throw DatabaseError(resultCode: .SQLITE_NOTADB, message: "it is no plain file")
            }
            return
        }
        // SQLite would replay a log without its database into the new one.
        for suffix in suffixes { try removeFile(path + suffix) }
        _ = try openFile(path, flags: O_RDWR | O_CREAT)
    }

    /// True for errors caused by the content of the file, not by its disk.
    static func isDamage(_ error: any Error) -> Bool {
        // GRDB's own table of migrations holds what it never writes.
        if error is RowDecodingError { return true }
        guard let error = error as? DatabaseError else { return false }
        return switch error.resultCode {
        case .SQLITE_FULL, .SQLITE_IOERR, .SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_PERM,
            .SQLITE_NOMEM, .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_AUTH, .SQLITE_INTERRUPT:
            false
        default: true
        }
    }

    // MARK: Reading

    /// Returns the records of a kind, ordered by key if that is a number, otherwise by first
    /// insertion.
    ///
    /// The first call returns what was read at the start, unless the table changed; later calls
    /// block on the disk.
    package func records<Record: StateRecord>(_: Record.Type) -> [Record] {
        let table = Record.table
        var rows = contents.withLock { $0.removeValue(forKey: table.name) }
        if rows == nil {
            do {
                try commit()
                var found = StateContents()
                var room = rooms[table]
                try queue.unsafeRead { try StateReader.read(table, $0, &room, into: &found) }
                note(found)
                rows = found.rows[table.name]
            } catch {
                log.error("the state database cannot be read", metadata: ["error": "\(error)"])
            }
        }
        return (rows ?? []).compactMap { row in
            if let record = Record(StateRow(row)) { return record }
            hasLostRows.store(true, ordering: .relaxed)
            refuse(.init(table: table, key: table.key(of: row)))
            log.error(
                "a row of the state database is invalid and is deleted",
                metadata: ["table": "\(table.name)"])
            return nil
        }
    }

    /// Drops a table's rows read at the start, since they lack a change.
    func forgetContents(of table: String) {
        contents.withLock { $0[table] = nil }
    }

    // MARK: Writing

    /// Writes changes in one synced transaction; blocks on the disk.
    func write(_ changes: [StateChange]) throws {
        try takePlace()
        do {
            try Self.write(changes, to: queue)
        } catch {
            switch (error as? DatabaseError)?.resultCode {
            case .SQLITE_CORRUPT, .SQLITE_NOTADB: try beginAnew("\(error)")
            case .SQLITE_READONLY, .SQLITE_MISUSE: try openAgain(after: error)
            case .SQLITE_FULL, .SQLITE_IOERR: try emptyLog(after: error)
            default: throw error
            }
            try Self.write(changes, to: queue)
        }
    }

    /// Moves what the write-ahead log has into the database, so that the next transaction begins
    /// the log anew; throws `error` if that fails.
    ///
    /// SQLite empties the log after a transaction, and only once it has 1,000 pages: a log that the
    /// limit of file sizes (ulimit -f) or a full disk keeps shorter would stay as it is.
    private func emptyLog(after error: any Error) throws {
        do {
            try queue.writeWithoutTransaction { _ = try $0.checkpoint(.passive) }
        } catch _ {
            throw error
        }
    }

    private static func write(_ changes: [StateChange], to queue: DatabaseQueue) throws {
        try queue.write { db in
            for change in changes {
                let table = change.slot.table
                if let values = change.values {
                    try db.cachedStatement(sql: table.upsert).execute(arguments: arguments(values))
                } else {
                    try db.cachedStatement(sql: table.delete)
                        .execute(arguments: arguments(change.slot.key))
                }
            }
        }
    }

    /// The length of what `probe` writes, more than most commits.
    private static let probeLength = 1 << 20

    /// Writes behind the length of the log to a file that is gone afterwards; blocks on the disk.
    ///
    /// - Returns: the error of that; nil if it is written.
    static func probe(_ folder: String) -> SystemError? {
        var log = stat()
        let length = lstat(path(in: folder) + "-wal", &log) == 0 ? Int64(log.st_size) : 0
        do throws(SystemError) {
            let file = try openNamelessFile(
                in: folder, name: "sluice-state-\(Monotonic.now().nanoseconds)")
            try Posix.write(
                [UInt8](repeating: 0, count: probeLength), to: file.number, at: length)
            return nil
        } catch {
            return error
        }
    }

    /// Makes sure that this database is the file at its path, where it is written anew if nothing is
    /// there: SQLite would also write to a file without a name, which no later run finds.
    private func takePlace() throws {
        let (path, known) = (Self.path(in: folder), opened.withLock { $0 })
        guard known.file != FileIdentity(at: path) else { return }
        guard known.home == Home(folder) else {
            throw StateFault.unusable(
                "the cache folder is gone, or another one is in its place (\(folder))")
        }
        guard access(path, F_OK) != 0, errno == ENOENT else {
            throw StateFault.unusable(
                """
                another file is in place of the state database (\(path)): restart the daemon to \
                use that one, or move it away to have this one written anew
                """)
        }
        let found = try StateReader.salvage(known.queue, rooms)
        noteLoss(in: found)
        try Self.restore(found, in: folder, log)
        log.warning(
            "the state database was removed from the cache folder, and is written anew",
            metadata: ["path": "\(path)"])
        try openReplacement(of: known.queue)
    }

    /// Switches to a new database with all rows that can still be read from this one.
    private func beginAnew(_ reason: String) throws {
        let former = queue
        let found = try StateReader.salvage(former, rooms)
        try Self.replace(folder, found, reason, log)
        try openReplacement(of: former)
    }

    /// Switches to the file that now has the path of this database.
    private func openReplacement(of former: DatabaseQueue) throws {
        // The path means the new file from here on. If that cannot be opened now, the next write
        // meets a closed connection, and opens it.
        opened.withLock { $0 = Opened(former, in: folder) }
        try? former.close()
        let made = try Self.open(Self.path(in: folder))
        opened.withLock { $0 = Opened(made, in: folder) }
    }

    /// Closes and opens the file after SQLite could only read it; throws `error` if it may not be
    /// written.
    ///
    /// A `-shm` file that cannot be opened for writing once (no descriptor left, over quota) is
    /// read only as long as the connection is open (SQLite, `os_unix.c`). A connection that is
    /// closed because opening failed reports misuse.
    private func openAgain(after error: any Error) throws {
        let path = Self.path(in: folder)
        guard access(path, W_OK) == 0, access(path + "-shm", W_OK) == 0 || errno == ENOENT else {
            throw error
        }
        try queue.close()
        let made = try Self.open(path)
        opened.withLock { $0 = Opened(made, in: folder) }
        log.notice("the state database was opened for reading only, and is opened again")
    }

    /// Writes all state to the folder that replaced the missing one; blocks.
    ///
    /// The former file has no name any more but is still open, also after a failure: then it can be
    /// repeated.
    package func moveIntoNewFolder() throws {
        try committing.withLock { _ in
            let former = queue
            let found = try StateReader.salvage(former, rooms)
            // Before the rows: if this run ends in between, no start takes them for all there were.
            noteLoss(in: found)
            let made = try Self.open(Self.path(in: folder))
            try Self.write(found, to: made)
            opened.withLock { $0 = Opened(made, in: folder) }
            try? former.close()
        }
    }

    /// Commits queued changes, ends the thread and closes the file; blocks.
    package func close() {
        do {
            try commit()
        } catch {
            log.error("state of this run is lost", metadata: ["error": "\(error)"])
        }
        // Nothing may have been written since the file was removed. If another one is in its place,
        // or the folder is elsewhere, no row is lost that is not told of already.
        try? committing.withLock { _ in try takePlace() }
        pending.withLock { $0.isClosed = true }
        thread.stopAndJoin()
        do {
            defer { try? queue.close() }
            try queue.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
        } catch {
            log.error("cannot close the state database", metadata: ["error": "\(error)"])
        }
    }
}
