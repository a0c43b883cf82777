import FoundationEssentials
import GRDB
import Numbers
import Posix

/// The small tables besides `objects`.
extension ObjectIndex {
    /// Returns the state that versions up to 0.4.0 kept here: only rows that they can have written.
    ///
    /// Other rows are not read, only counted.
    ///
    /// - Returns: the rows, and the number of other rows.
    func formerState() throws -> (rows: [(id: [UInt8], blob: [UInt8])], others: Int) {
        try pool.read { db in
            // SQLite returns the length of a blob without reading it.
            let found = try Row.fetchCursor(
                db, sql: "SELECT id, blob FROM sessions WHERE \(Self.isOurs)")
            var rows: [(id: [UInt8], blob: [UInt8])] = []
            var room = Self.mostSessionBytes
            while room > 0, let row = try found.next() {
                let pair = (id: Array(row[0] as Data), blob: Array(row[1] as Data))
                room -= pair.id.count + pair.blob.count
                rows.append(pair)
            }
            let all = try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM sessions") ?? 0
            return (rows, all - rows.count)
        }
    }

    /// Deletes all former state, other rows included.
    func removeFormerState() throws {
        try pool.write { try $0.execute(sql: "DELETE FROM sessions") }
    }

    private static let isOurs = """
        typeof(id) = 'blob' AND typeof(blob) = 'blob' AND length(id) <= 4096
        AND length(blob) <= \(mostRowBytes)
        """

    /// The maximum length of one row's values.
    static let mostRowBytes = 16 << 20
    /// The maximum for all rows, which are in memory together for a moment.
    private static let mostSessionBytes = 128 << 20

    /// Saves long URLs in one transaction: all of them or none.
    func saveLongURLs(_ batch: [(id: [UInt8], url: String)], now: WallTime) throws {
        try pool.write { db in
            let statement = try db.cachedStatement(
                sql: "INSERT OR REPLACE INTO long_urls (id, url, used) VALUES (?, ?, ?)")
            for (place, entry) in batch.enumerated() {
                // Times differ, so that those saved first are deleted first.
                let time = now.nanoseconds.addingSaturated(Int64(place))
                try statement.execute(arguments: [Data(entry.id), entry.url, time])
            }
        }
    }

    /// Returns what can be read of the long URLs in a damaged index, up to `bytes` of them, the most
    /// recently used first if they can be sorted.
    func readableLongURLs(bytes: Int) -> [(id: [UInt8], url: String)] {
        let sorted = longURLs(bytes: bytes, order: "ORDER BY used DESC")
        return sorted.isEmpty ? longURLs(bytes: bytes, order: "") : sorted
    }

    private func longURLs(bytes: Int, order: String) -> [(id: [UInt8], url: String)] {
        var found: [(id: [UInt8], url: String)] = []
        var left = bytes
        // What was read before an error is kept.
        try? pool.read { db in
            let rows = try Row.fetchCursor(db, sql: "SELECT id, url FROM long_urls \(order)")
            while left > 0, let row = try rows.next() {
                guard let id = Data.fromDatabaseValue(row[0]),
                    let url = String.fromDatabaseValue(row[1])
                else { continue }
                left -= url.utf8.count + UnsavedLongURLs.overhead
                found.append((Array(id), url))
            }
        }
        return found
    }

    func longURL(id: [UInt8]) throws -> String? {
        try pool.read { db in
            try String.fetchOne(
                db, sql: "SELECT url FROM long_urls WHERE id = ?", arguments: [Data(id)])
        }
    }
}
