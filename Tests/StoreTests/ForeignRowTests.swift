import DurableState
import GRDB
import GRDBSQLite
import Logging
import Posix
import Testing

@testable import Store

/// An index with rows that this program never writes.
@Suite struct ForeignRowTests {
    @Test func `oversized former state is not migrated, the rest is`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        try store.core.index.pool.write { db in
            sqlite3_limit(db.sqliteConnection, SQLITE_LIMIT_LENGTH, 1 << 30)
            try db.execute(
                sql: "INSERT INTO sessions VALUES (x'000000000007', CAST('A: b' AS BLOB))")
            for (id, bytes) in [("x'02'", 20 << 20), ("x'03'", 70 << 20)] {
                try db.execute(sql: "INSERT INTO sessions VALUES (\(id), zeroblob(\(bytes)))")
            }
            try db.execute(sql: "INSERT INTO sessions VALUES ('text', 'text')")
            try db.execute(sql: "INSERT INTO sessions VALUES (zeroblob(100000), x'01')")
        }
        store.close()
        let next = try openStore(folder.path)
        let session = SessionRecord(id: 7, window: nil, recording: nil, fields: "A: b\n")
        #expect(next.state.records(SessionRecord.self) == [session])
        let left = try next.core.index.pool.read {
            try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM sessions")
        }
        #expect(left == 0)
        #expect(next.statistics().indexFailures == 0)
        next.close()
    }

    @Test(arguments: ["bytes", "created", "last_used", "title", "kind", "complete", "is_read"])
    func `a text in a numeric column prevents no start and loses no object`(column: String) throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        for name in ["a", "b"] { try store.add(name, total: 1_000) }
        try store.flushed()
        try store.core.index.pool.write {
            try $0.execute(sql: "UPDATE objects SET \(column) = 'many' WHERE url LIKE '%/a'")
        }
        store.close()
        let next = try openStore(folder.path)
        for name in ["a", "b"] { #expect(next.find(name)?.isComplete == true) }
        try eventually { next.statistics().isReconciled }
        next.forEachEntry { #expect($0.total == 1_000) }
        next.close()
    }

    @Test func `a use replaces a time that a wrong clock put more than a day later`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        try store.add("a", total: 1_000)
        try store.flushed()
        let index = store.core.index
        let found = try index.pool.read { db in
            try String.fetchOne(db, sql: "SELECT key FROM objects WHERE url LIKE '%/a'")
        }
        let key = try #require(found.flatMap { ObjectKey(hex: $0) })
        // The last one is of a clock that was not set yet.
        let seconds: [Int64] = [5_000_000, 4_950_000, 4_000_000, 4_000_001, -1_999_999_000]
        let times = seconds.map { WallTime(seconds: 2_000_000_000 + $0) }
        let expected = [times[0], times[0], times[2], times[3], times[3]]
        try index.pool.write { try $0.execute(sql: "UPDATE objects SET last_used = 0") }
        for (time, last) in zip(times, expected) {
            try index.apply(rows: [:], uses: [key: Use(time: time, bytes: 1)])
            #expect(try index.row(of: key)?.lastUsed == last)
        }
        store.close()
    }

    @Test(arguments: [Int64.max, .min, -1])
    func `a size that no file has prevents no start and loses no object`(bytes: Int64) throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        for name in ["a", "b"] { try store.add(name, total: 1_000) }
        try store.flushed()
        try store.core.index.pool.write {
            try $0.execute(
                sql: "UPDATE objects SET bytes = ? WHERE url LIKE '%/a'", arguments: [bytes])
        }
        store.close()
        for _ in 0..<2 {
            let next = try openStore(folder.path)
            for name in ["a", "b"] { #expect(next.find(name)?.isComplete == true) }
            try eventually { next.statistics().isReconciled }
            next.forEachEntry { #expect($0.total == 1_000) }
            next.close()
        }
    }

    @Test(arguments: ["objects", "bytes"], [Int64.max, .min, -1, 1 << 60])
    func `impossible totals are counted anew`(column: String, value: Int64) throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        for name in ["a", "b"] { try store.add(name, total: 1_000) }
        try store.flushed()
        let used = store.core.usage.used
        try store.core.index.pool.write {
            try $0.execute(sql: "UPDATE totals SET \(column) = ?", arguments: [value])
        }
        store.close()
        let next = try openStore(folder.path)
        #expect(next.core.usage.objectCount == 2 && next.core.usage.used == used)
        try next.add("c", total: 1_000)
        try next.flushed()
        #expect(try next.core.index.totals().objects == 3)
        next.close()
    }

    @Test func `a long pin outlives a run that ends before it has read the pins`() throws {
        let folder = try TemporaryFolder()
        let keys = (0...PinRows.mostKeys).map { ObjectKey(sha256Of: "\($0)") }
        let first = try openStore(folder.path)
        try first.pin(title: 5, url: "u", keys: keys)
        first.close()
        let queue = try DatabaseQueue(path: folder.path + "/state.sqlite")
        try queue.write {
            try $0.execute(
                sql: "UPDATE pins SET since = ? WHERE title = 5", arguments: [Int64.max])
        }
        try queue.close()
        var log = Logger(label: "foreign-rows")
        log.logLevel = .critical
        // It writes what it has queued.
        let state = try StateDatabase(folder: folder.path, log: log)
        state.close()
        for _ in 0..<2 {
            let store = try openStore(folder.path)
            defer { store.close() }
            #expect(store.pin(of: 5)?.keys == Array(keys.suffix(1)))
        }
    }

    @Test func `uses of huge objects are added up without overflow`() {
        let use = Use(time: WallTime(seconds: 1), bytes: 1 << 53 - 1)
        let sum = (0..<2_000).reduce(use) { sum, _ in Use.merge(sum, use) }
        #expect(sum.bytes == .max && sum.time == use.time)
    }
}
