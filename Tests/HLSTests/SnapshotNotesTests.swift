@testable import HLS
import Testing
import URISyntax

/// The comment lines of a saved window, whose form must stay: a new version reads former ones.
@Suite struct SnapshotNotesTests {
    @Test func `a saved window with every note is read, and written again byte by byte`() throws {
        let saved = """
            #EXTM3U
            #EXT-X-VERSION:3
            #EXT-X-TARGETDURATION:2
            #EXT-X-MEDIA-SEQUENCE:5
            #EXT-X-DISCONTINUITY-SEQUENCE:3
            #SLUICE-LIST-EPOCH:8
            #SLUICE-PRIVATE-UP-TO:6
            #SLUICE-DROPPED:4
            #SLUICE-SKIPPED:2
            #SLUICE-ORIGIN-DISCONTINUITY:7
            #SLUICE-LIST-START:6
            #SLUICE-SEGMENT:1,2,0,0,0,0
            #EXTINF:2,
            https://cdn.example.com/vod/a/s5.ts
            #SLUICE-SEGMENT:1,3,4,9,8,0,7
            #EXTINF:2,
            https://cdn.example.com/vod/a/s6.ts

            """
        let shift = try TimeShift(snapshot: Array(saved.utf8))
        #expect(shift.segments.map(\.number) == [5, 6] && shift.epoch == 1)
        #expect(shift.segments.map(\.originNumber) == [2, 3])
        #expect(shift.segments.map(\.generation) == [0, 4])
        #expect(shift.segments.last?.marks == .init(segment: 9, map: 8, keys: [0, 7]))
        #expect(shift.listEpoch == Epoch(number: 8) && shift.mayBePrivate)
        #expect(shift.privateEnd == 6 && shift.originDiscontinuity == 7 && shift.listStart == 6)
        #expect(shift.droppedCount == 4 && shift.skippedCount == 2 && shift.lostCount == 6)
        #expect(String(decoding: shift.snapshot(), as: UTF8.self) == saved)
    }

    @Test func `a saved window has a note only for what differs from a new one`() throws {
        var shift = TimeShift()
        _ = try shift.merge(TimeShiftTests.window(5...6), base: TimeShiftTests.base)
        let text = String(decoding: shift.snapshot(), as: UTF8.self)
        let notes = text.split(separator: "\n").filter { $0.hasPrefix("#SLUICE") }
        #expect(notes == ["#SLUICE-SEGMENT:0,5,0,0,0,0"])
    }

    @Test(arguments: [
        "#SLUICE-DROPPED:", "#SLUICE-DROPPED:x", "#SLUICE-DROPPED:-1", "#SLUICE-DROPPED",
        "#SLUICE-DROPPED:9007199254740992", "#SLUICE-DROPPED-2:1", "#SLUICE-DROP:1",
        "#SLUICE-:1", "#SLUICE-", "# SLUICE-DROPPED:1", "#sluice-dropped:1",
        "#SLUICE-S\u{212A}IPPED:1",
    ])
    func `any other comment is not a number of a window`(line: String) {
        var numbers = SnapshotNumbers()
        let isRead = numbers.read(Array(line.utf8)[...])
        #expect(!isRead && numbers.lines.isEmpty)
    }

    @Test func `the last of several numbers with one name counts`() {
        var numbers = SnapshotNumbers()
        for line in ["#SLUICE-DROPPED:1", "#SLUICE-SKIPPED:9007199254740991", "#SLUICE-DROPPED:2"] {
            let isRead = numbers.read(Array(line.utf8)[...])
            #expect(isRead)
        }
        #expect(numbers[.droppedCount] == 2 && numbers[.skippedCount] == 9_007_199_254_740_991)
        #expect(numbers[.listEpoch] == nil)
    }
}
