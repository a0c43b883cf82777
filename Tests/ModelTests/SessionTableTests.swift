import DurableState
import Glibc
import HLS
import HTTP
import Logging
import Posix
import Routing
import Testing
import URISyntax

@testable import Model

/// Which sessions with headers are kept, for any number of sets of headers.
@Suite struct SessionTableTests {
    private final class Folder {
        let path: String

        init() throws {
            var template = Array("/tmp/session-tests-XXXXXX".utf8CString)
            path = String(cString: try #require(mkdtemp(&template)))
        }

        deinit {
            for entry in (try? listFolder(path)) ?? [] { unlink("\(path)/\(entry.name)") }
            rmdir(path)
        }

        func open() throws -> StateDatabase {
            var log = Logger(label: "session-tests")
            log.logLevel = .critical
            return try StateDatabase(folder: path, log: log)
        }
    }

    private func limits(_ sessions: Int, bytes: Int = 64 << 20) -> SessionTable.Limits {
        var limits = SessionTable.Limits()
        limits.sessions = sessions
        limits.bytes = bytes
        return limits
    }

    private func entry(_ number: Int, length: Int = 1) throws -> Entry {
        let value = "\(number)" + String(repeating: "x", count: length)
        return Entry(
            url: try AbsoluteURL("http://h/a.m3u8"),
            headers: [Entry.Header(name: "X-Viewer", value: value)])
    }

    private func isKept(_ table: SessionTable, _ entry: Entry) -> Bool {
        !table.session(SessionTable.unkept(for: entry).id).fields.isEmpty
    }

    @Test func `100,000 sets of headers leave no more sessions than the limit`() throws {
        let folder = try Folder()
        let database = try folder.open()
        defer { database.close() }
        let table = SessionTable(database, limits: limits(1_000))
        let url = try AbsoluteURL("http://h/a.m3u8")
        var most = 0
        for number in 0..<100_000 {
            let header = Entry.Header(name: "X-Viewer", value: "\(number)")
            _ = table.session(for: Entry(url: url, headers: [header]))
            if number % 1_000 == 0 { most = max(most, table.count) }
        }
        #expect(most <= 1_001 && table.count <= 1_001)
    }

    @Test func `few sets of long headers are limited by their bytes`() throws {
        let folder = try Folder()
        let database = try folder.open()
        defer { database.close() }
        let table = SessionTable(database, limits: limits(1_000, bytes: 100_000))
        for number in 0..<200 { _ = table.session(for: try entry(number, length: 8_000)) }
        #expect(table.count <= 13)
        #expect(isKept(table, try entry(199, length: 8_000)))
    }

    @Test func `the most recently used sessions are kept, and an unknown one has no headers`()
        throws
    {
        let folder = try Folder()
        let database = try folder.open()
        defer { database.close() }
        let table = SessionTable(database, limits: limits(16))
        let first = table.session(for: try entry(0)).id
        for number in 1..<200 {
            _ = table.session(for: try entry(number))
            // A player that requests its segments.
            #expect(!table.session(first).fields.isEmpty)
        }
        #expect(isKept(table, try entry(199)))
        #expect(!isKept(table, try entry(1)))
        // Its entry URL makes it again, with the same ID.
        #expect(table.session(for: try entry(1)).id == SessionTable.unkept(for: try entry(1)).id)
        #expect(isKept(table, try entry(1)))
    }

    @Test func `sessions of pins, recordings and running work are kept`() throws {
        let folder = try Folder()
        let database = try folder.open()
        defer { database.close() }
        let pinned = SessionTable.unkept(for: try entry(0)).id
        let table = SessionTable(database, limits: limits(16)) { [pinned] }
        _ = table.session(for: try entry(0))
        let recording = table.session(for: try entry(1), recording: "abc").id
        let held = table.session(for: try entry(2))
        for number in 3..<500 { _ = table.session(for: try entry(number)) }
        #expect(isKept(table, try entry(0)))
        #expect(table.session(recording).shift.recording == "abc")
        #expect(isKept(table, try entry(2)))
        withExtendedLifetime(held) {}
        #expect(table.count <= 17)
    }

    @Test func `more sessions than the limit are kept if all are needed, and the rest is limited`()
        throws
    {
        let folder = try Folder()
        let database = try folder.open()
        defer { database.close() }
        let table = SessionTable(database, limits: limits(16))
        let held = try (0..<40).map { table.session(for: try entry($0)) }
        for number in 40..<500 { _ = table.session(for: try entry(number)) }
        for number in 0..<40 { #expect(isKept(table, try entry(number))) }
        #expect(table.count <= 43)
        withExtendedLifetime(held) {}
    }

    @Test func `dropped sessions do not return after a restart, and kept ones do`() throws {
        let folder = try Folder()
        let before = try folder.open()
        var table = SessionTable(before, limits: limits(16))
        for number in 0..<100 { _ = table.session(for: try entry(number)) }
        let count = table.count
        before.close()
        let after = try folder.open()
        defer { after.close() }
        #expect(after.records(SessionRecord.self).count == count)
        table = SessionTable(after, limits: limits(16))
        #expect(table.count == count)
        #expect(isKept(table, try entry(99)))
        #expect(!isKept(table, try entry(0)))
        // A table of a version without a limit is reduced at the first new session.
        table = SessionTable(after, limits: limits(8))
        _ = table.session(for: try entry(200))
        #expect(table.count <= 8)
        #expect(isKept(table, try entry(200)))
    }

    @Test func `a limit of variants makes a session of its own, which outlives a restart`() throws {
        let folder = try Folder()
        let before = try folder.open()
        let url = try AbsoluteURL("http://h/a.m3u8")
        let limits = [
            VariantLimit.none, VariantLimit(height: 720), VariantLimit(bandwidth: 720),
            VariantLimit(height: 1 << 31, bandwidth: 1 << 31),
        ]
        let table = SessionTable(before)
        let ids = limits.map { table.session(for: Entry(url: url, limit: $0)).id }
        #expect(Set(ids).count == 4 && table.count == 3)
        before.close()
        let after = try folder.open()
        defer { after.close() }
        let later = SessionTable(after)
        #expect(ids.map { later.session($0).limit } == limits)
        #expect(Set(later.ids(startingAt: url)) == Set(ids.dropFirst()))
        // It changes nothing else.
        #expect(ids.allSatisfy { !later.session($0).isShifted })
    }

    @Test func `of a forgotten recording no header stays, and the rest may be dropped`() throws {
        let folder = try Folder()
        let before = try folder.open()
        let entry = Entry(
            url: try AbsoluteURL("http://h/a.m3u8"),
            headers: [Entry.Header(name: "Authorization", value: "secret")])
        var table = SessionTable(before)
        let other = table.session(for: entry, recording: "def")
        let id = table.session(for: entry, recording: "abc").id
        table.forgetRecording(id)
        before.close()
        let after = try folder.open()
        defer { after.close() }
        #expect(after.records(SessionRecord.self).filter { $0.fields.isEmpty }.count == 1)
        table = SessionTable(after, limits: limits(16))
        let left = table.session(id)
        // Its links lead to no live stream, and its keys to those that have its credentials.
        #expect(left.fields.isEmpty && left.shift.recording != nil)
        #expect(other.hasCredentials(of: left))
        #expect(!Session(id: id, fields: Fields()).hasCredentials(of: left))
        // It may come back from another node, and its record be missing after a crash.
        #expect(table.session(for: entry, recording: "abc").fields.count == 1)
        table.forgetRecordings(besides: ["def"])
        #expect(table.session(id).fields.isEmpty)
        for number in 0..<100 { _ = table.session(for: try self.entry(number)) }
        #expect(table.session(id).shift.recording == nil && table.count <= 17)
        #expect(table.session(other.id).fields.count == 1)
    }

    @Test func `what keeps the keys of a forgotten recording closed is dropped like any session`()
        throws
    {
        let folder = try Folder()
        let database = try folder.open()
        defer { database.close() }
        let table = SessionTable(database, limits: limits(16))
        let secret = Entry(
            url: try AbsoluteURL("http://h/a.m3u8"),
            headers: [Entry.Header(name: "Authorization", value: "secret")])
        let closed = table.session(for: secret, recording: "abc").id
        let open = table.session(for: try entry(0), recording: "def").id
        for number in 1..<13 { _ = table.session(for: try entry(number)) }
        table.forgetRecording(closed)
        table.forgetRecording(open)
        // With the last of these there are 17, and three are dropped.
        for number in 13..<16 { _ = table.session(for: try entry(number)) }
        #expect(table.count == 14)
        #expect(table.recording(of: open) == nil)
        #expect(table.recording(of: closed) != nil)
        #expect(!Session(id: closed, fields: Fields()).hasCredentials(of: table.session(closed)))
        // It was used after these.
        for number in [1, 2] { #expect(!isKept(table, try entry(number))) }
    }

    @Test func `the headers of a recording are kept by the node that has it`() throws {
        let folder = try Folder()
        let database = try folder.open()
        defer { database.close() }
        let table = SessionTable(database)
        let shown = table.session(for: try entry(1), recording: "abc", isElsewhere: true)
        #expect(table.count == 0 && database.records(SessionRecord.self).isEmpty)
        let own = table.session(for: try entry(1), recording: "abc", isElsewhere: false)
        #expect(table.count == 1 && own.id == shown.id)
    }
}
