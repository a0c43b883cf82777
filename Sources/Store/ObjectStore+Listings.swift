// Listings and sums of the index, by title and by object.
import GRDB
import Logging
package import Posix

/// The sum over the objects of one title.
package struct TitleTotal: Sendable, Equatable {
    package let title: UInt64
    package let objects: Int
    /// Bytes on the disk, headers included.
    package let bytes: Int64
    /// The latest use of any of them.
    package let lastUsed: WallTime
}

/// What changes when objects of a title are stored, replaced, filled or removed.
package struct TitleMark: Sendable, Equatable {
    package let objects: Int
    package let completeObjects: Int
    /// Bytes on the disk, headers included.
    package let bytes: Int64
    /// The time at which the newest of them was stored.
    package let newest: WallTime
}

extension ObjectStore {
    /// Returns the most recently used objects, newest first, all if `limit` is negative; blocks on
    /// the disk.
    package func entries(limit: Int) -> [StoreEntry] {
        indexed("list objects", []) { try core.index.newest(limit: limit) }
    }

    /// Returns the objects that were first fetched for a title; blocks on the disk.
    package func rows(ofTitle title: UInt64) -> [StoreEntry] {
        indexed("list a title", []) { try core.index.rows(ofTitle: title) }
    }

    /// Returns the index's entries for some keys, in the order of `keys`; blocks on the disk.
    package func entries(of keys: [ObjectKey]) -> [StoreEntry?] {
        indexed("find objects", [StoreEntry?](repeating: nil, count: keys.count)) {
            try core.index.rows(of: keys)
        }
    }

    /// Returns the mark of a title and the latest use of its objects; nil without objects.
    ///
    /// Blocks on the disk, for a fraction of the time in which `rows(ofTitle:)` decodes the rows.
    package func mark(ofTitle title: UInt64) -> (mark: TitleMark, lastUsed: WallTime)? {
        indexed("sum up a title", nil) {
            try core.index.pool.read { db -> (mark: TitleMark, lastUsed: WallTime)? in
                let row = try Row.fetchOne(
                    db,
                    sql: """
                        SELECT COUNT(*), SUM(complete != 0), SUM(bytes), MAX(created),
                            MAX(last_used)
                        FROM objects WHERE title = ?
                        """, arguments: [Int64(bitPattern: title)])
                // Columns of a damaged row may hold values of any type, and sums of none are null.
                let numbers = row.map { row in
                    (0..<5).compactMap { Int64.fromDatabaseValue(row[$0]) }
                }
                guard let numbers, numbers.count == 5 else { return nil }
                let mark = TitleMark(
                    objects: Int(clamping: numbers[0]),
                    completeObjects: Int(clamping: numbers[1]), bytes: numbers[2],
                    newest: WallTime(nanoseconds: numbers[3]))
                return (mark: mark, lastUsed: WallTime(nanoseconds: numbers[4]))
            }
        }
    }

    /// Returns the totals per title, in no order; title 0 has the objects without one.
    ///
    /// Blocks on the disk: about a second for a million objects.
    package func titleTotals() -> [TitleTotal] {
        indexed("list titles", []) {
            try core.index.pool.read { db in
                try Row.fetchAll(
                    db,
                    sql: """
                        SELECT title, COUNT(*), SUM(bytes), MAX(last_used) FROM objects GROUP BY title
                        """
                ).compactMap { row in
                    // Columns of a damaged row may hold values of any type.
                    let numbers = (0..<4).compactMap { Int64.fromDatabaseValue(row[$0]) }
                    guard numbers.count == 4 else { return nil }
                    return TitleTotal(
                        title: UInt64(bitPattern: numbers[0]), objects: Int(clamping: numbers[1]),
                        bytes: numbers[2], lastUsed: WallTime(nanoseconds: numbers[3]))
                }
            }
        }
    }

    /// Returns the numbers of all titles with objects; blocks on the disk, for a fraction of the
    /// time of `titleTotals()`.
    package func titleNumbers() -> Set<UInt64> {
        indexed("list titles", []) {
            try core.index.pool.read { db in
                let rows = try Row.fetchCursor(db, sql: "SELECT DISTINCT title FROM objects")
                let numbers = try Set(rows.compactMap { row in Int64.fromDatabaseValue(row[0]) })
                return Set(numbers.subtracting([0]).map { UInt64(bitPattern: $0) })
            }
        }
    }

    /// Calls `body` with every object in the index, in no order, holding one in memory at a time.
    ///
    /// Blocks on the disk: some seconds for a million objects. Writers continue meanwhile. A stop
    /// (`endWaits`) ends it early.
    package func forEachEntry(_ body: (StoreEntry) -> Void) {
        indexed("list objects", ()) {
            try core.index.pool.read { db in
                let rows = try Row.fetchCursor(db, sql: "SELECT * FROM objects")
                while !core.isEnding, let row = try rows.next() {
                    if let found = ObjectIndex.decode(row) { body(found) }
                }
            }
        }
    }

    // MARK: Access to the index

    /// Runs an index operation; counts and logs an error and returns `fallback` instead.
    func indexed<Value>(
        _ what: String, _ fallback: Value, _ body: () throws -> Value
    ) -> Value {
        do {
            return try body()
        } catch {
            tellIndexFailure(error, to: what)
            return fallback
        }
    }

    /// Counts and logs an error of the index.
    func tellIndexFailure(_ error: any Error, to what: String) {
        core.noteIndexFailure(error)
        core.log.error("the index failed", metadata: ["to": "\(what)", "error": "\(error)"])
    }
}
