import FuzzSupport
import GRDB
import Glibc
import Logging
import Posix
import Testing

@testable import DurableState

/// The database after stops, damage and foreign content.
@Suite struct DatabaseTests {
    @Test func `the last change of each record is found after a stop`() throws {
        let folder = try TemporaryFolder()
        let first = try folder.open()
        for number in 0..<500 { first.put(session(1, "A: \(number)\n")) }
        first.put(session(2))
        first.put(session(3))
        first.remove(SessionRecord.self, key: [.integer(2)])
        first.close()
        let next = try folder.open()
        defer { next.close() }
        #expect(next.records(SessionRecord.self) == [session(1, "A: 499\n"), session(3)])
        next.put(session(4))
        #expect(next.records(SessionRecord.self).map(\.id) == [1, 3, 4])
    }

    @Test func `a kept record is on the disk when the call returns`() throws {
        let folder = try TemporaryFolder()
        let first = try folder.open()
        defer { first.close() }
        try first.keep([session(1)])
        let killed = try folder.copy()
        let next = try killed.open()
        defer { next.close() }
        #expect(next.records(SessionRecord.self) == [session(1)])
        #expect(try next.queue.read { try Int.fetchOne($0, sql: "PRAGMA synchronous") } == 2)
    }

    @Test func `the log of a new database is emptied between migrations`() throws {
        let folder = try TemporaryFolder()
        let state = try folder.open()
        defer { state.close() }
        // Without that it grows with each migration; the least limit of file sizes is 256 KiB.
        let log = try readWhole(folder.path + "/state.sqlite-wal", atMost: .max)
        #expect((1..<(128 << 10)).contains(log.count))
        let pages = try state.queue.read { try Int.fetchOne($0, sql: "PRAGMA wal_autocheckpoint") }
        #expect(pages == 1_000)
    }

    @Test func `a log that is as long as a file may be is emptied, and begins anew`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path
        await #expect(processExitsWith: .success) { [path = path as String] in
            limitFiles(to: 256 << 10)
            let state = try StateDatabase(folder: path, log: Logger(label: "state-tests"))
            // More pages than the log can have.
            for number in 0..<200 { try state.keep([session(1, "A: \(number)\n")]) }
            state.close()
        }
        let next = try folder.open()
        defer { next.close() }
        #expect(next.records(SessionRecord.self) == [session(1, "A: 199\n")])
    }

    @Test func `a database that is as long as a file may be takes what deletions make room for`()
        async throws
    {
        let folder = try TemporaryFolder()
        let path = folder.path
        await #expect(processExitsWith: .success) { [path = path as String] in
            limitFiles(to: 256 << 10)
            let state = try StateDatabase(folder: path, log: Logger(label: "state-tests"))
            let text = "A: " + String(repeating: "x", count: 1_000) + "\n"
            var kept: UInt64 = 0
            var fault: StateFault?
            while fault == nil, kept < 1_000 {
                do throws(StateFault) {
                    try state.keep([session(kept, text)])
                    kept += 1
                } catch {
                    fault = error
                }
            }
            guard case .noRoom? = fault else {
                Issue.record("\(String(describing: fault))")
                return
            }
            #expect(kept > 10)
            let removed = kept / 2
            try state.keep(
                (0..<removed).map {
                    StateChange(removing: SessionRecord.self, key: [.integer(Int64($0))])
                })
            try state.keep([session(5_000, text)])
            #expect(state.records(SessionRecord.self).count == Int(kept - removed) + 1)
            state.close()
        }
    }

    @Test func `a change that cannot be written leaves those that waited`() throws {
        let folder = try TemporaryFolder()
        let state = try folder.open()
        defer { state.close() }
        try state.keep([session(1)])
        // Another connection holds the lock, so that every write fails.
        let other = try DatabaseQueue(path: folder.path + "/state.sqlite")
        try other.writeWithoutTransaction { db in
            try db.execute(sql: "BEGIN IMMEDIATE")
            state.put(session(1, "queued"))
            #expect(throws: StateFault.self) {
                try state.keep([session(1, "refused"), session(2)])
            }
            try db.execute(sql: "ROLLBACK")
        }
        #expect(state.records(SessionRecord.self) == [session(1, "queued")])
    }

    @Test func `only a failed write for want of room is taken for a full disk`() throws {
        func lacksRoom(_ code: ResultCode, _ probed: CInt?) -> Bool {
            let fault = StateFault(DatabaseError(resultCode: code)) {
                probed.map { SystemError("pwrite", code: $0) }
            }
            guard case .noRoom = fault else { return false }
            return true
        }
        #expect(lacksRoom(.SQLITE_FULL, nil))
        for code in [EDQUOT, ENOSPC, EFBIG] { #expect(lacksRoom(.SQLITE_IOERR_WRITE, code)) }
        for code in [EROFS, EIO, nil] { #expect(!lacksRoom(.SQLITE_IOERR_WRITE, code)) }
        #expect(!lacksRoom(.SQLITE_IOERR_FSYNC, ENOSPC) && !lacksRoom(.SQLITE_BUSY, ENOSPC))
        let folder = try TemporaryFolder()
        #expect(StateDatabase.probe(folder.path) == nil && folder.names.isEmpty)
        #expect(StateDatabase.probe(folder.path + "/missing")?.code == ENOENT)
    }

    @Test func `pending changes are committed together, and the last of each row counts`() {
        var pending = PendingChanges()
        for number in 0..<100 {
            let isTaken = pending.add(StateChange(session(UInt64(number % 3), "A: \(number)\n")))
            #expect(isTaken)
        }
        let bytes = pending.bytes
        let all = pending.takeAll()
        let texts = all.map { StateRow($0.values ?? []).text(3) }
        #expect(texts == [99, 97, 98].map { "A: \($0)\n" })
        #expect(bytes == all.reduce(0) { $0 + $1.size })
        // Changes whose commit failed do not replace newer ones.
        _ = pending.add(StateChange(session(1, "newer")))
        pending.putBack(all)
        let left = pending.takeAll().map { StateRow($0.values ?? []).text(3) }
        #expect(left.contains("newer") && left.count == 3)
    }

    @Test func `the bytes of pending changes are limited`() {
        var pending = PendingChanges()
        let long = String(repeating: "x", count: 16 << 20)
        var taken = 0
        for id in 0..<20 where pending.add(StateChange(session(UInt64(id), long))) { taken += 1 }
        #expect((4...8).contains(taken) && pending.bytes <= PendingChanges.mostBytes)
        let isTaken = pending.add(StateChange(session(0, "short")))
        #expect(isTaken)
    }

    @Test func `a record that is too large to be read again is not written`() throws {
        let folder = try TemporaryFolder()
        let state = try folder.open()
        defer { state.close() }
        state.put(session(1, String(repeating: "x", count: 18 << 20)))
        #expect(throws: (any Error).self) {
            try state.keep([FeedRecord(name: "a", body: [UInt8](repeating: 0, count: 18 << 20))])
        }
        #expect(state.records(SessionRecord.self).isEmpty)
        #expect(state.records(FeedRecord.self).isEmpty)
    }

    @Test func `a file that is not a database is set aside`() throws {
        let folder = try TemporaryFolder()
        try writeFile(folder.path + "/state.sqlite", [UInt8](repeating: 0x55, count: 20_000))
        let state = try folder.open()
        try state.keep([session(1)])
        state.close()
        #expect(folder.names.contains { $0.hasPrefix("state.damaged-") })
        let next = try folder.open()
        defer { next.close() }
        #expect(next.records(SessionRecord.self) == [session(1)])
    }

    @Test func `a pipe in place of the file does not block`() throws {
        let folder = try TemporaryFolder()
        #expect(mkfifo(folder.path + "/state.sqlite", 0o600) == 0)
        let state = try folder.open()
        defer { state.close() }
        try state.keep([session(1)])
    }

    @Test func `every readable row of a damaged file is restored`() throws {
        let folder = try TemporaryFolder()
        let first = try folder.open()
        for id in 0..<2_000 { first.put(session(UInt64(id), "A: \(id) padding padding\n")) }
        first.put(KeyVetoRecord(origin: "http://a", scope: "media", reason: "length"))
        first.close()
        let path = folder.path + "/state.sqlite"
        let size = try readWhole(path, atMost: .max).count
        // An offset among the sessions, which fill the last pages.
        let file = try openFile(path, flags: O_RDWR)
        try write(
            [UInt8](repeating: 0xEE, count: 4_096), to: file.number, at: Int64(size - 4 * 4_096)
        )
        let state = try folder.open()
        defer { state.close() }
        let found = state.records(SessionRecord.self)
        #expect(found.count > 100 && found.count < 2_000)
        #expect(Set(found.map(\.id)).count == found.count)
        #expect(state.records(KeyVetoRecord.self).count == 1)
        #expect(folder.names.contains { $0.hasPrefix("state.damaged-") })
    }

    @Test func `a file truncated at any length does not prevent a start`() throws {
        let folder = try TemporaryFolder()
        let first = try folder.open()
        for id in 0..<200 { first.put(session(UInt64(id))) }
        first.close()
        let bytes = try readWhole(folder.path + "/state.sqlite", atMost: .max)
        for length in stride(from: 0, to: bytes.count, by: 3_001) {
            let copy = try TemporaryFolder()
            try writeFile(copy.path + "/state.sqlite", Array(bytes.prefix(length)))
            let state = try copy.open()
            try state.keep([session(7, "new")])
            #expect(state.records(SessionRecord.self).contains(session(7, "new")))
            state.close()
        }
    }

    @Test func `a migration without a name does not prevent a start`() throws {
        let folder = try TemporaryFolder()
        let first = try folder.open()
        first.put(session(1))
        first.close()
        try folder.execute(
            """
            DROP TABLE grdb_migrations; CREATE TABLE grdb_migrations (identifier TEXT);
            INSERT INTO grdb_migrations VALUES (NULL);
            """)
        let state = try folder.open()
        defer { state.close() }
        try state.keep([session(7, "new")])
        #expect(folder.names.contains { $0.hasPrefix("state.damaged-") })
    }

    @Test func `changed bytes at any position neither trap nor prevent a start`() throws {
        let folder = try TemporaryFolder()
        let first = try folder.open()
        for id in 0..<50 { first.put(session(UInt64(id))) }
        first.put(KeyVetoRecord(origin: "http://a", scope: "media", reason: "length"))
        first.close()
        let bytes = try readWhole(folder.path + "/state.sqlite", atMost: .max)
        for seed in 0..<(getenv("STATE_SEEDS").flatMap { UInt64(String(cString: $0)) } ?? 40) {
            var random = SeededNumbers(seed: seed)
            var damaged = bytes
            for _ in 0..<4 {
                damaged[Int.random(in: 0..<bytes.count, using: &random)] = .random(in: 0...255)
            }
            let copy = try TemporaryFolder()
            try writeFile(copy.path + "/state.sqlite", damaged)
            do {
                let state = try copy.open()
                _ = state.records(SessionRecord.self)
                state.close()
            } catch {
                // A changed letter in the name of a migration looks like one of a newer version.
                guard case .isNewer = error else {
                    Issue.record("seed \(seed): \(error)")
                    continue
                }
            }
        }
    }

    @Test func `malformed rows are rejected and removed`() throws {
        let folder = try TemporaryFolder()
        let first = try folder.open()
        first.put(session(1))
        first.close()
        try folder.execute(
            """
            INSERT INTO sessions (id, window, recording, fields)
              VALUES (-5, NULL, NULL, ''), (6, -1, NULL, ''), (7, NULL, hex(zeroblob(2500)), '');
            INSERT INTO sessions VALUES (8, NULL, NULL, '', 0, NULL), (9, NULL, NULL, '', NULL, -1);
            INSERT INTO key_findings VALUES ('o', 'n', 1, x'01', 0), ('o', 'm', -1, x'', 7);
            """)
        let state = try folder.open()
        #expect(state.records(SessionRecord.self).map(\.id) == [1])
        #expect(state.records(KeyFindingRecord.self).isEmpty)
        state.close()
        let again = try folder.open()
        defer { again.close() }
        let left = try again.queue.read {
            try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM sessions")
        }
        #expect(left == 1)
    }

    @Test func `rows that do not fit into memory stay in the file`() throws {
        let folder = try TemporaryFolder()
        let state = try folder.open()
        defer { state.close() }
        try state.keep([session(1), session(2, String(repeating: "x", count: 1_000)), session(3)])
        var (contents, room) = (StateContents(), 500)
        try state.queue.read {
            try StateReader.read(SessionRecord.table, $0, &room, into: &contents)
        }
        #expect(contents.rows["sessions"]?.count == 2)
        #expect(contents.unread == ["sessions": 1])
        #expect(contents.others == 0 && contents.refused.isEmpty)
    }

    @Test func `a long list of pins leaves out no order and no feed`() throws {
        let folder = try TemporaryFolder()
        let first = try folder.open()
        let keys = [UInt8](repeating: 7, count: 32 * 100)
        let pins = (1...5).map { PinRecord(title: $0, url: "u", since: 1, keys: keys) }
        let order = OrderRecord(url: "http://h/a")
        try first.keep(pins)
        try first.keep([
            DownloadRecord(id: 1, order: order),
            RecordingRecord(id: "1", order: order, started: 1, until: 2, state: "done"),
            FeedRecord(name: "f", body: [0x7B, 0x7D]), session(1),
        ])
        first.close()
        var log = Logger(label: "state-tests")
        log.logLevel = .critical
        var rooms = StateRooms()
        rooms.others = 2_000
        var state = try StateDatabase(folder: folder.path, log: log, rooms: rooms)
        #expect(state.records(PinRecord.self).count == 5)
        #expect(state.records(DownloadRecord.self).count == 1)
        #expect(state.records(RecordingRecord.self).count == 1)
        #expect(state.records(FeedRecord.self).count == 1)
        #expect(state.records(SessionRecord.self).count == 1)
        state.close()
        // Nor does what is ordered take the room of the rest.
        rooms.orders = 7_000
        state = try StateDatabase(folder: folder.path, log: log, rooms: rooms)
        defer { state.close() }
        #expect(state.records(PinRecord.self).count == 2)
        #expect(state.records(FeedRecord.self).count == 1)
    }

    @Test func `what users ordered is read before what grows by itself`() throws {
        let names = StateSchema.tables.map(\.name)
        let orders = ["pins", "downloads", "recordings", "purges", "node_changes", "node_orders"]
        let last = try #require(orders.compactMap { names.firstIndex(of: $0) }.max())
        for grown in ["sessions", "feeds", "live_lists", "variables"] {
            #expect(try #require(names.firstIndex(of: grown)) > last)
        }
    }

    @Test func `an oversized row takes no memory and does not affect other rows`() throws {
        let folder = try TemporaryFolder()
        let first = try folder.open()
        first.put(session(1))
        first.close()
        try folder.execute("INSERT INTO feeds VALUES ('a', zeroblob(60000000)), ('b', x'01')")
        let state = try folder.open()
        defer { state.close() }
        #expect(state.records(SessionRecord.self).map(\.id) == [1])
        #expect(state.records(FeedRecord.self) == [FeedRecord(name: "b", body: [1])])
    }

    @Test(arguments: [
        "CREATE VIEW v AS WITH RECURSIVE n AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT * FROM n",
        "CREATE TRIGGER t AFTER INSERT ON sessions BEGIN DELETE FROM feeds; END",
        "DROP TABLE feeds; CREATE TABLE feeds (name TEXT, body TEXT, more TEXT)",
        "DROP TABLE sessions", "CREATE TABLE more (x)",
        "DROP TABLE grdb_migrations; CREATE TABLE grdb_migrations (identifier BLOB)",
    ])
    func `a file with a different schema is set aside`(sql: String) throws {
        let folder = try TemporaryFolder()
        try folder.open().close()
        try folder.execute(sql)
        let state = try folder.open()
        defer { state.close() }
        try state.keep([session(1), FeedRecord(name: "a", body: [1])])
        #expect(folder.names.contains { $0.hasPrefix("state.damaged-") })
    }

    @Test func `the file of a newer version is rejected and not changed`() throws {
        let folder = try TemporaryFolder()
        try folder.open().close()
        try folder.execute("INSERT INTO grdb_migrations VALUES ('99')")
        let before = try readWhole(folder.path + "/state.sqlite", atMost: .max)
        let fault = #expect(throws: StateFault.self) { try folder.open() }
        guard case .isNewer = fault else {
            Issue.record("\(String(describing: fault))")
            return
        }
        #expect(try readWhole(folder.path + "/state.sqlite", atMost: .max) == before)
    }

    @Test func `a database damaged while open continues with the readable rows`() throws {
        let folder = try TemporaryFolder()
        let state = try folder.open()
        defer { state.close() }
        for id in 0..<500 { state.put(session(UInt64(id), "A: \(id) padding padding\n")) }
        try state.commit()
        try state.queue.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
        let path = folder.path + "/state.sqlite"
        let size = try readWhole(path, atMost: .max).count
        let file = try openFile(path, flags: O_RDWR)
        for page in 1..<Int64(size / 4_096) where page % 2 == 0 {
            try write([UInt8](repeating: 0xEE, count: 4_096), to: file.number, at: page * 4_096)
        }
        try state.queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA shrink_memory") }
        for id in 0..<500 { state.put(session(UInt64(id), "new")) }
        try state.commit()
        #expect(state.records(SessionRecord.self).count == 500)
    }

    @Test func `all records are written to a folder that replaces a removed one`() throws {
        let folder = try TemporaryFolder()
        let state = try folder.open()
        defer { state.close() }
        try state.keep([session(1)])
        for name in folder.names { unlink(folder.path + "/" + name) }
        try state.moveIntoNewFolder()
        try state.keep([session(2)])
        let next = try folder.copy()
        let found = try next.open()
        defer { found.close() }
        #expect(found.records(SessionRecord.self).map(\.id) == [1, 2])
    }

    @Test(arguments: [["state.sqlite"], ["state.sqlite", "state.sqlite-wal", "state.sqlite-shm"]])
    func `a database whose file is removed is written anew`(names: [String]) throws {
        let folder = try TemporaryFolder()
        let state = try folder.open()
        try state.keep([session(1)])
        for name in names { #expect(unlink("\(folder.path)/\(name)") == 0) }
        try state.keep([session(2)])
        let killed = try folder.copy()
        let found = try killed.open()
        defer { found.close() }
        #expect(found.records(SessionRecord.self).map(\.id) == [1, 2])
        // A stop finds it missing too, without a change of state.
        for name in folder.names { unlink("\(folder.path)/\(name)") }
        state.close()
        #expect(folder.names == ["state.sqlite"])
        let next = try folder.open()
        defer { next.close() }
        #expect(next.records(SessionRecord.self).map(\.id) == [1, 2])
    }

    @Test func `a database is not written anew in a folder that is being deleted`() throws {
        let folder = try TemporaryFolder()
        try writeFile(folder.path + "/lock", [])
        let state = try folder.open()
        try state.keep([session(1)])
        for name in folder.names { unlink("\(folder.path)/\(name)") }
        #expect(throws: StateFault.self) { try state.keep([session(2)]) }
        state.close()
        #expect(folder.names == [])
    }

    @Test(arguments: [false, true])
    func `a record is not kept in a file that no later run finds`(isReplaced: Bool) throws {
        let folder = try TemporaryFolder()
        let other = try TemporaryFolder()
        let name = isReplaced ? "/state.sqlite" : ""
        let (path, aside) = (folder.path + name, other.path + "/aside")
        let state = try folder.open()
        defer { state.close() }
        try state.keep([session(1)])
        #expect(rename(path, aside) == 0)
        if isReplaced { try writeFile(path, []) }
        state.put(session(2))
        let fault = #expect(throws: StateFault.self) { try state.keep([session(3)]) }
        let reason =
            isReplaced
            ? "another file is in place of the state database" : "the cache folder is gone"
        #expect(fault?.description.contains(reason) == true)
        // Once it is back, what waited is written.
        #expect(rename(aside, path) == 0)
        try state.keep([session(4)])
        #expect(state.records(SessionRecord.self).map(\.id) == [1, 2, 4])
    }
}

/// Limits the size of files that this process may write, for good.
private func limitFiles(to bytes: UInt) {
    signal(SIGXFSZ, SIG_IGN)
    var limit = rlimit(rlim_cur: bytes, rlim_max: bytes)
    #expect(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
}
