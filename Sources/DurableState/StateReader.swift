// Reads tables of a file that may be damaged or foreign: bounded, and validating every value.
import FoundationEssentials
import GRDB
import Glibc
import Logging
import Posix
import Synchronization

/// The rows read from a database.
struct StateContents {
    /// The rows by table; every value is valid for its column.
    var rows: [String: [[StateValue]]] = [:]
    /// The number of rows left out, since they are invalid or too many.
    var others = 0
    /// By table the number of valid rows that did not fit into its room; they stay in the file.
    var unread: [String: Int] = [:]
    /// The keys of left-out rows, where these could be read.
    var refused: [StateSlot] = []
    /// The error because of which not everything could be read; the file must be replaced.
    var damage: DatabaseError?

    /// True if no row was left out, as far as is known.
    var isWhole: Bool { damage == nil && others == 0 && unread.isEmpty }

    /// The same contents without `refused`, for a new database, which has none of these rows.
    var withoutRefused: StateContents {
        var contents = self
        contents.refused = []
        return contents
    }
}

enum StateReader {
    /// Reads all tables; throws errors of the disk, and those for which nothing can be read.
    static func read(_ queue: DatabaseQueue, _ rooms: StateRooms) throws -> StateContents {
        var found = StateContents()
        var rooms = rooms
        for table in StateSchema.tables {
            // Without a transaction: its end would report the damage again and lose the rows.
            try queue.unsafeRead { try read(table, $0, &rooms[table], into: &found) }
        }
        return found
    }

    /// Reads what is left in a file that another one is to replace; throws errors of the disk.
    static func salvage(_ queue: DatabaseQueue, _ rooms: StateRooms) throws -> StateContents {
        do {
            return try read(queue, rooms)
        } catch {
            // What a failing disk does not deliver now is not lost yet.
            guard StateDatabase.isDamage(error) else { throw error }
            var found = StateContents()
            found.damage =
                error as? DatabaseError
                ?? DatabaseError(resultCode: .SQLITE_CORRUPT, message: "\(error)")
            return found
        }
    }

    /// Reads a table up to `room` bytes; throws errors of the disk.
    static func read(
        _ table: StateTable, _ db: Database, _ room: inout Int, into contents: inout StateContents
    ) throws {
        let (formerRoom, former) = (room, contents)
        do {
            let cursor = try Row.fetchCursor(db, sql: table.select + " ORDER BY rowid")
            while let row = try cursor.next() {
                take(values(row), table, &room, &contents)
            }
        } catch let error as DatabaseError {
            // One row is too long or damaged: read the others one at a time.
            guard error.resultCode == .SQLITE_TOOBIG || StateDatabase.isDamage(error) else {
                throw error
            }
            (room, contents) = (formerRoom, former)
            try readSingly(table, db, &room, into: &contents)
        }
    }

    private static func readSingly(
        _ table: StateTable, _ db: Database, _ room: inout Int, into contents: inout StateContents
    ) throws {
        var last = Int64.min
        let next = "SELECT MIN(rowid) FROM \(table.name) WHERE rowid > ?"
        // A table that cannot be iterated ends with an error here; `last` increases, so the loop
        // ends.
        do {
            while let id = try Int64.fetchOne(db, sql: next, arguments: [last]), id > last {
                last = id
                do {
                    let found = try Row.fetchOne(
                        db, sql: table.select + " WHERE rowid = ?", arguments: [id])
                    if let found { take(values(found), table, &room, &contents) }
                } catch let error as DatabaseError where StateDatabase.isDamage(error) {
                    contents.others += 1
                    contents.damage = contents.damage ?? error
                }
            }
        } catch let error as DatabaseError where StateDatabase.isDamage(error) {
            contents.damage = error
        }
    }

    private static func take(
        _ values: [StateValue]?, _ table: StateTable, _ room: inout Int,
        _ contents: inout StateContents
    ) {
        let count = contents.rows[table.name]?.count ?? 0
        let size = (values ?? []).reduce(0) { $0 + $1.size }
        guard let values, table.admits(values), count < table.mostRows else {
            contents.others += 1
            guard let values, contents.refused.count < table.mostRows else { return }
            contents.refused.append(StateSlot(table: table, key: table.key(of: values)))
            return
        }
        guard size <= room else { return contents.unread[table.name, default: 0] += 1 }
        room -= size
        contents.rows[table.name, default: []].append(values)
    }

    /// Returns the values without conversion: a text in place of a number stays a text.
    private static func values(_ row: Row) -> [StateValue]? {
        row.databaseValues.map { value in
            switch value.storage {
            case .null: .null
            case .int64(let number): .integer(number)
            case .double(let number): .real(number)
            case .string(let text): .text(text)
            case .blob(let data): .bytes(Array(data))
            }
        }
    }
}

extension DatabaseValue {
    static func bytes(_ bytes: [UInt8]) -> DatabaseValue { Data(bytes).databaseValue }
}

extension StateDatabase {
    /// What the names of files begin with that were set aside for their damage.
    static let damagedPrefix = "state.damaged-"

    /// True if rows may be missing that nobody removed: some could not be read in this run, or a
    /// damaged file lies aside; blocks on the disk.
    package var mayLackRows: Bool {
        hasLostRows.load(ordering: .relaxed) || hasDamagedFile
    }

    /// True if a damaged file, or the mark of one, lies in the folder; blocks on the disk.
    private var hasDamagedFile: Bool {
        let files = (try? listFolder(folder)) ?? []
        return files.contains { $0.name.hasPrefix(Self.damagedPrefix) }
    }

    /// Notes whether contents that were read are whole.
    func note(_ found: StateContents) {
        if !found.isWhole { hasLostRows.store(true, ordering: .relaxed) }
    }

    /// Notes, for later runs too, that a new folder lacks rows of the damaged former file; blocks on
    /// the disk.
    ///
    /// A disk that refuses the mark is no reason to do without the rows: this run still knows.
    func noteLoss(in found: StateContents) {
        guard !found.isWhole else { return }
        note(found)
        // One is enough, however often the move is repeated.
        guard !hasDamagedFile else { return }
        // The former file has no name to be set aside by: an empty one tells the next start.
        let mark = "\(folder)/\(Self.damagedPrefix)\(WallTime.now().seconds)"
        do throws(SystemError) {
            _ = try openFile(mark, flags: O_RDWR | O_CREAT)
            try syncFolder(folder)
        } catch {
            log.error(
                """
                the disk does not keep the mark that rows of the state database are lost: the next \
                start may take what is left of a long pin for leftovers. Pin it again
                """, metadata: ["mark": "\(mark)", "error": "\(error)"])
        }
        let reason = found.damage.map { "\($0)" } ?? "invalid rows"
        log.error(
            """
            the state database was damaged when it, or the cache folder, was removed: what could be \
            read of sessions, learned key rules, pins, downloads, recordings and feeds is in a new \
            file, and the rest of them is lost. Order again what is missing, or stop the daemon and \
            put back a copy of the file
            """,
            metadata: [
                "mark": "\(mark)", "reason": "\(reason)",
                "invalid": "\(found.others)", "unread": "\(found.unreadText)",
            ])
    }

    static func arguments(_ values: [StateValue]) -> StatementArguments {
        StatementArguments(
            values.map { value -> (any DatabaseValueConvertible)? in
                switch value {
                case .null: nil
                case .integer(let number): number
                case .real(let number): number
                case .text(let text): text
                case .bytes(let bytes): DatabaseValue.bytes(bytes)
                }
            })
    }
}
