import FuzzSupport
@testable import HLS
import Testing
import URISyntax

/// The bytes of a longer window, whose URIs and keys are as long as an origin likes.
@Suite struct TimeShiftSizeTests {
    private static let base = TimeShiftTests.base
    private static let longKey =
        "#EXT-X-KEY:METHOD=SAMPLE-AES,KEYFORMAT=\"drm\",IV=0x1,URI=\"data:,"
        + String(repeating: "k", count: 20_000) + "\"\n"

    private static func limited(_ bytes: Int) -> TimeShift {
        var limits = TimeShift.Limits()
        limits.byteCount = bytes
        return TimeShift(limits: limits)
    }

    @Test func `long URIs make the oldest segments leave the window`() throws {
        var shift = Self.limited(100_000)
        let comment = "#" + String(repeating: "x", count: 9_000) + "\n"
        for start in stride(from: 0, to: 40, by: 4) {
            let window = TimeShiftTests.window(start...start + 3, each: comment)
            _ = try shift.merge(window, base: Self.base)
        }
        #expect(shift.segments.map(\.number) == Array(30...39))
        #expect(shift.playlist { _ in true }.count <= 100_000)
        #expect(shift.snapshot().count <= 100_000)
    }

    @Test func `gaps between segments repeat a long key no more often than the limit allows`()
        throws
    {
        var shift = Self.limited(500_000)
        for start in stride(from: 0, to: 400, by: 10) {
            let window = TimeShiftTests.window(start...start + 9, extra: Self.longKey)
            _ = try shift.merge(window, base: Self.base)
        }
        // Its key is in force throughout, and so remembered once.
        #expect(shift.segments.count == 400)
        let list = shift.playlist { $0.number.isMultiple(of: 2) }
        #expect((450_000...520_000).contains(list.count))
        let read = try Playlist(list, base: Self.base)
        #expect(read.media?.segments.last?.mediaSequence == 399)
        #expect((40...60).contains(read.media?.segments.count ?? 0))
    }

    @Test func `the bytes counted are those of the segments, whatever joins or leaves`() throws {
        for seed in UInt64(1)...40 {
            var numbers = SeededNumbers(seed: seed)
            var shift = Self.limited(20_000)
            var next = 100
            for _ in 0..<30 {
                let count = Int.random(in: 1...6, using: &numbers)
                let key = Int.random(in: 0...2, using: &numbers)
                let extra =
                    "#EXT-X-KEY:METHOD=AES-128,URI=\"k\(String(repeating: "k", count: 700 * key))\"\n"
                next = max(0, next + Int.random(in: -3...8, using: &numbers))
                _ = try shift.merge(
                    TimeShiftTests.window(next...next + count, extra: extra), base: Self.base,
                    in: .init(countsAnew: Int.random(in: 0...9, using: &numbers) == 0))
                if Bool.random(using: &numbers) {
                    shift.trim(to: .seconds(Int.random(in: 4...60, using: &numbers)))
                }
                let counted = shift.remembered.byteCount
                try #require(shift.remembered.measured == counted, "seed \(seed)")
                #expect(counted <= 20_000 || shift.segments.count == 1)
            }
        }
    }

    @Test func `a restored window is measured too, and so is one with an older one before it`()
        throws
    {
        var older = TimeShift()
        _ = try older.merge(
            TimeShiftTests.window(0...5, extra: Self.longKey), base: Self.base)
        var newer = try TimeShift(snapshot: older.snapshot())
        let restored = newer.remembered.byteCount
        #expect(restored == older.remembered.byteCount && restored > 20_000)
        newer = TimeShift()
        _ = try newer.merge(TimeShiftTests.window(6...8), base: Self.base)
        let alone = newer.remembered.byteCount
        let isJoined = newer.prepend(older)
        #expect(isJoined)
        #expect(newer.remembered.byteCount == alone + older.remembered.byteCount)
    }

    @Test func `segments that the limits drop are counted, also in a snapshot`() throws {
        var limits = TimeShift.Limits()
        limits.segmentCount = 4
        func merge(_ numbers: ClosedRange<Int>, into shift: inout TimeShift) throws {
            _ = try shift.merge(TimeShiftTests.window(numbers), base: TimeShiftTests.base)
        }
        var shift = TimeShift(limits: limits)
        try merge(0...3, into: &shift)
        #expect(shift.droppedCount == 0)
        try merge(3...6, into: &shift)
        #expect(shift.segments.map(\.number) == [3, 4, 5, 6] && shift.droppedCount == 3)
        // What leaves a window because of its length is not lost.
        try merge(5...6, into: &shift)
        shift.trim(to: .zero)
        #expect(shift.segments.map(\.number) == [5, 6] && shift.droppedCount == 3)
        var restored = try TimeShift(snapshot: shift.snapshot(), limits: limits)
        #expect(restored.droppedCount == 3)
        try merge(6...10, into: &restored)
        #expect(restored.segments.map(\.number) == [7, 8, 9, 10] && restored.droppedCount == 5)
        #expect(!TimeShiftTests.text(restored).contains("SLUICE"))
    }
}
