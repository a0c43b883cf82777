import GRDB
import Glibc
import Posix
import Testing

@testable import DurableState

/// A damaged database that cannot be replaced at once: the disk is full, or the run ends.
@Suite struct ReplacementTests {
    @Test func `a start without room for a new database loses no pin`() async {
        await #expect(processExitsWith: .success) {
            let folder = try TemporaryFolder()
            let first = try folder.open()
            try fill(first)
            first.close()
            try damage(folder)
            withoutRoom {
                #expect(throws: StateFault.self) { try folder.open() }
            }
            #expect(!folder.names.contains { $0.hasPrefix("state.damaged-") })
            #expect(!folder.names.contains { $0.hasPrefix("state.sqlite.") })
            let state = try folder.open()
            #expect(state.records(PinRecord.self) == [pin])
            #expect((1..<Int(sessions)).contains(state.records(SessionRecord.self).count))
            #expect(state.mayLackRows)
            state.close()
            #expect(folder.names.contains { $0.hasPrefix("state.damaged-") })
        }
    }

    @Test func `a run without room for a new database makes it once there is room`() async {
        await #expect(processExitsWith: .success) {
            let folder = try TemporaryFolder()
            let state = try folder.open()
            try fill(state)
            try damage(folder)
            try state.queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA shrink_memory") }
            // Some pages have the last rows.
            let last = (sessions - 20..<sessions).map { StateChange(session($0, "new")) }
            withoutRoom {
                #expect(throws: StateFault.self) { try state.keep(last) }
            }
            try state.keep(last)
            #expect(state.records(SessionRecord.self).filter { $0.fields == "new" }.count == 20)
            #expect(state.records(PinRecord.self) == [pin])
            state.close()
            let next = try folder.open()
            #expect(next.records(PinRecord.self) == [pin])
            next.close()
        }
    }

    @Test func `a start ends a replacement that was interrupted between its renames`() throws {
        let folder = try TemporaryFolder()
        let first = try folder.open()
        try first.keep([pin])
        first.close()
        let path = folder.path + "/state.sqlite"
        #expect(rename(path, path + ".made") == 0)
        // The log of the damaged one.
        try writeFile(path + "-wal", [UInt8](repeating: 0x55, count: 20_000))
        let state = try folder.open()
        #expect(state.records(PinRecord.self) == [pin])
        state.close()
        #expect(folder.names == ["state.sqlite"])
    }

    @Test func `a start ignores and removes a new database that was not finished`() throws {
        let folder = try TemporaryFolder()
        let first = try folder.open()
        try first.keep([pin])
        first.close()
        for name in ["state.sqlite.new", "state.sqlite.new-wal", "state.sqlite.made"] {
            try writeFile("\(folder.path)/\(name)", [UInt8](repeating: 0x55, count: 20_000))
        }
        let state = try folder.open()
        #expect(state.records(PinRecord.self) == [pin])
        state.close()
        #expect(folder.names == ["state.sqlite"])
    }
}

private let pin = PinRecord(title: 9, url: "u", since: 1, keys: [])
private let sessions: UInt64 = 2_000

/// Fills the state of a folder with a pin and with sessions of 2 MB.
private func fill(_ state: StateDatabase) throws {
    try state.keep([pin])
    let text = String(repeating: "padding ", count: 125)
    for id in 0..<sessions { state.put(session(id, "A: \(text)\n")) }
    try state.commit()
    try state.queue.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
}

/// Overwrites every second page of the last half, which has sessions only.
private func damage(_ folder: TemporaryFolder) throws {
    let path = folder.path + "/state.sqlite"
    let pages = Int64(try readWhole(path, atMost: .max).count / 4_096)
    #expect(pages > 400)
    let file = try openFile(path, flags: O_RDWR)
    for page in pages / 2..<pages where page % 2 == 0 {
        try write([UInt8](repeating: 0xEE, count: 4_096), to: file.number, at: page * 4_096)
    }
}

/// Runs `action` while a new database has room for its tables, but not for the rows.
private func withoutRoom(_ action: () -> Void) {
    signal(SIGXFSZ, SIG_IGN)
    let resource = __rlimit_resource_t(RLIMIT_FSIZE.rawValue)
    var former = rlimit()
    #expect(getrlimit(resource, &former) == 0)
    var limit = rlimit(rlim_cur: 512 << 10, rlim_max: former.rlim_max)
    #expect(setrlimit(resource, &limit) == 0)
    action()
    #expect(setrlimit(resource, &former) == 0)
}
