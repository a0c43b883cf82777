import FoundationEssentials
import GRDB
import Numbers
import Posix

/// The table of long URLs.
extension ObjectIndex {
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

    /// Deletes the long URLs that were saved longest ago.
    ///
    /// - Parameter limit: the long URLs to keep, in units of `LongURLSize`.
    /// - Returns: true if there were more.
    /// - Throws: errors of SQLite.
    func trimLongURLs(keeping limit: Int) throws -> Bool {
        // Without them, each search reads all URLs. They are no migration, since earlier versions
        // would refuse the index then; as it is, they keep them up to date.
        try? pool.write { db in
            try db.execute(
                sql: """
                    CREATE INDEX IF NOT EXISTS long_urls_by_use ON long_urls (used);
                    CREATE INDEX IF NOT EXISTS long_urls_by_size
                    ON long_urls (used, \(LongURLSize.furtherUnits))
                    WHERE \(LongURLSize.furtherUnits) > 0;
                    """)
        }
        guard let time = try longURLTime(beyond: limit) else { return false }
        return try pool.write { db in
            try db.execute(
                sql: "DELETE FROM long_urls WHERE used <= ?", arguments: [time.nanoseconds])
            return db.changesCount > 0
        }
    }

    /// Returns when the first long URL beyond a limit was saved, counted from the one saved last.
    ///
    /// - Parameter limit: the limit in units of `LongURLSize`.
    /// - Returns: the time; nil if no more are saved.
    /// - Throws: errors of SQLite.
    func longURLTime(beyond limit: Int) throws -> WallTime? {
        // The writing connection, since listings hold the others for long.
        let time = try pool.writeWithoutTransaction { db -> Int64? in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT used, \(LongURLSize.furtherUnits) FROM long_urls
                    WHERE \(LongURLSize.furtherUnits) > 0 ORDER BY used DESC
                    """)
            let large = rows.compactMap { row -> (used: Int64, units: Int)? in
                guard let used = Int64.fromDatabaseValue(row[0]),
                    let units = Int.fromDatabaseValue(row[1])
                else { return nil }
                return (used, units)
            }
            var (left, next) = (limit, 0)
            let times = try Int64.fetchCursor(
                db, sql: "SELECT used FROM long_urls ORDER BY used DESC")
            while let time = try times.next() {
                left -= 1
                while next < large.count, large[next].used >= time {
                    left -= large[next].units
                    next += 1
                }
                if left < 0 { return time }
            }
            return nil
        }
        return time.map { WallTime(nanoseconds: $0) }
    }
}
