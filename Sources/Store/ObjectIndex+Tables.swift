import FoundationEssentials
import GRDB
import Posix

/// The small tables that the layers above keep in the index.
extension ObjectIndex {
    func saveSession(id: [UInt8], blob: [UInt8]) throws {
        try pool.write { db in
            try db.execute(
                sql: "INSERT OR REPLACE INTO sessions (id, blob) VALUES (?, ?)",
                arguments: [Data(id), Data(blob)])
        }
    }

    func removeSession(id: [UInt8]) throws {
        try pool.write { db in
            try db.execute(sql: "DELETE FROM sessions WHERE id = ?", arguments: [Data(id)])
        }
    }

    func sessions() throws -> [(id: [UInt8], blob: [UInt8])] {
        try pool.read { db in
            try Row.fetchAll(db, sql: "SELECT id, blob FROM sessions").map { row in
                (Array(row[0] as Data), Array(row[1] as Data))
            }
        }
    }

    func saveLongURL(id: [UInt8], url: String, now: WallTime) throws {
        try pool.write { db in
            try db.execute(
                sql: "INSERT OR REPLACE INTO long_urls (id, url, used) VALUES (?, ?, ?)",
                arguments: [Data(id), url, now.nanoseconds])
        }
    }

    func longURL(id: [UInt8]) throws -> String? {
        try pool.read { db in
            try String.fetchOne(
                db, sql: "SELECT url FROM long_urls WHERE id = ?", arguments: [Data(id)])
        }
    }
}
