import Synchronization
import Testing

@testable import DurableState

/// Rows that versions up to 0.4.0 stored in the index.
@Suite struct FormerIndexTests {
    @Test func `each row is migrated to its records`() {
        let live = Array("live:".utf8) + [UInt8](repeating: 4, count: 32)
        let rows: [([UInt8], String, Int)] = [
            ([0, 0, 0, 0, 0, 7], "dvr=60\nrecording=0a\nCookie: recording=1\n", 1),
            (Array("key-veto".utf8), "http://a\tmedia\tlength\nhttp://b\tmedia\n", 1),
            (Array("key:12345678".utf8), "http://a\nsess\t4\t1,ff\t\ntok\t9\t\tveto\nx\n", 2),
            (live, "2 7 3 9 6 0 5 1 8 1000 3 5", 1), (live, "1 7 3 9 6 0 5", 1),
            (Array("feed-order:home".utf8), "{}", 1),
            ([1, 2, 3], "", 0), (live, "3 1 1 1 1 1 1", 0), (Array("key:1".utf8), "http://a\nb", 0),
        ]
        for (id, text, count) in rows {
            #expect(FormerIndexRow.changes(id, Array(text.utf8)).count == count, "\(text)")
        }
    }

    @Test func `fields of a session are distinguished from its window and recording`() {
        let found = FormerIndexRow.session(
            [0, 0, 0, 0, 1, 2], "dvr=60\nrecording=0a\nCookie: recording=1\n")
        #expect(
            found
                == SessionRecord(
                    id: 258, window: 60, recording: "0a", fields: "Cookie: recording=1\n"))
    }

    @Test func `findings keep their counts, paths and vetoes`() {
        #expect(
            FormerIndexRow.findings("http://a\nsess\t4\t1,ff\t\ntok\t9\t\tveto\n")
                == [
                    KeyFindingRecord(
                        origin: "http://a", name: "sess", pairs: 4, paths: [1, 255],
                        isVetoed: false),
                    KeyFindingRecord(
                        origin: "http://a", name: "tok", pairs: 9, paths: [], isVetoed: true),
                ])
    }

    @Test func `both versions of a list's head are parsed, impossible numbers are rejected`() {
        let key = [UInt8](repeating: 4, count: 32)
        let old = FormerIndexRow.list(key, "1 7 3 9 6 0 5 8 1000")
        #expect(old?.dated == .init(number: 8, date: 1_000) && old?.epoch == 7)
        let new = FormerIndexRow.list(key, "2 7 3 9 6 0 5 0 0 0 3 5 8 4294967295")
        #expect(new?.sections.map(\.name) == [5, .max] && new?.dated == nil)
        for text in [
            "", "2 7 3 9 6 0 5", "3 7 3 9 6 0 5 0 0 0", "2 7 3 9 6 0 5 0 0 0 4",
            "2 7 -3 9 6 0 5 0 0 0",
            "2 7 3 9 600000000000000000 0 5 0 0 0", "1 7 3 9 6 -1 5",
            "2 7 3 9 6 0 5 1 9223372036854775807 0",
        ] {
            #expect(FormerIndexRow.list(key, text) == nil, "\(text)")
        }
    }

    /// A copy of the folder at each step represents a run that was killed there.
    @Test func `a kill at any point of the migration loses and duplicates nothing`() throws {
        let rows: [(id: [UInt8], blob: [UInt8])] = [
            ([0, 0, 0, 0, 0, 7], Array("Cookie: a\n".utf8)),
            (Array("feed-order:home".utf8), Array("{}".utf8)),
        ]
        let folder = try TemporaryFolder()
        // The rows at the former place, which the index drops only on request.
        let left = Mutex(rows.count)
        func place(isKilled: Bool) -> FormerPlace {
            .index(
                read: { (Array(rows.prefix(left.withLock { $0 })), 0) },
                remove: {
                    if isKilled { throw StateFault.isNewer }
                    left.withLock { $0 = 0 }
                })
        }
        // Killed before the commit: an empty database only.
        try folder.open().close()
        // Killed between the commit and the removal.
        let killed = try folder.open()
        #expect(throws: StateFault.self) { try killed.importFormer([place(isKilled: true)]) }
        let copy = try folder.copy()
        killed.close()
        let next = try copy.open()
        #expect(next.records(SessionRecord.self) == [session(7, "Cookie: a\n")])
        next.put(session(7, "newer"))
        next.remove(FeedRecord.self, key: [.text("home")])
        try next.commit()
        // The rows still exist, and neither reappear nor replace newer ones.
        #expect(left.withLock { $0 } == 2)
        try next.importFormer([place(isKilled: false)])
        #expect(next.records(SessionRecord.self) == [session(7, "newer")])
        #expect(next.records(FeedRecord.self).isEmpty)
        #expect(left.withLock { $0 } == 0)
        next.close()
    }
}
