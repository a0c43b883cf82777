import FoundationEssentials
import GRDB

/// The state that versions up to 0.4.0 kept in the index.
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
}
