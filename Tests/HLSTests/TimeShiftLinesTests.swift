import HLS
import Testing
import URISyntax

/// The tags that a longer window repeats, and those that it does not.
@Suite struct TimeShiftLinesTests {
    private static let base = TimeShiftTests.base

    private static func tags(_ shift: TimeShift, _ names: [String]) -> [String] {
        TimeShiftTests.text(shift).split(separator: "\n").map(String.init)
            .filter { line in names.contains { line.hasPrefix($0) } }
    }

    @Test func `each renumbered segment has one line for each key`() throws {
        var shift = TimeShift()
        let keys =
            "#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n"
            + "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"skd://x\",KEYFORMAT=\"y\",IV=0x1\n"
        _ = try shift.merge(TimeShiftTests.window(100...101), base: Self.base)
        _ = try shift.merge(
            TimeShiftTests.window(7...8, names: "t", extra: keys), base: Self.base)
        let lines = Self.tags(shift, ["#EXT-X-KEY"])
        #expect(lines.filter { $0.contains("/k\"") }.map { $0.suffix(4) } == ["0007", "0008"])
        #expect(lines.filter { $0.contains("skd://x") }.count == 1)
        #expect(lines.count == 3)
    }

    @Test func `keys without an explicit IV follow those with one`() throws {
        let key = "#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n"
        var shift = TimeShift()
        _ = try shift.merge(TimeShiftTests.window(8...8, extra: key), base: Self.base)
        _ = try shift.merge(TimeShiftTests.window(2...2, names: "t", extra: key), base: Self.base)
        _ = try shift.merge(
            TimeShiftTests.window(10...10, extra: key), base: Self.base,
            in: .init(countsAnew: true))
        let lines = Self.tags(shift, ["#EXT-X-KEY"])
        let uri = "#EXT-X-KEY:METHOD=AES-128,URI=\"https://cdn.example.com/vod/a/k\""
        #expect(lines == [uri, uri + ",IV=0x00000000000000000000000000000002", uri])
    }

    @Test func `a section that changed under one URI is named again`() throws {
        let map = "#EXT-X-MAP:URI=\"i\"\n"
        var shift = TimeShift()
        _ = try shift.merge(TimeShiftTests.window(0...1, extra: map), base: Self.base)
        _ = try shift.merge(TimeShiftTests.window(1...3, extra: map), base: Self.base)
        for number in 2...3 { shift.mark(number, TimeShiftSegment.Marks(map: 1)) }
        for shift in [shift, try TimeShift(snapshot: shift.snapshot())] {
            let lines = Self.tags(shift, ["#EXT-X-MAP", "https:"])
            #expect(
                lines.map { $0.hasPrefix("#") ? "map" : String($0.suffix(5)) }
                    == ["map", "s0.ts", "s1.ts", "map", "s2.ts", "s3.ts"])
            #expect(shift.segments.map(\.marks.map) == [0, 0, 1, 1])
        }
    }

    @Test(arguments: ["-12", "0", "3.5"])
    func `a start that means the origin's window is left out of longer ones and recordings`(
        offset: String
    ) throws {
        let start = "#EXT-X-START:TIME-OFFSET=\(offset)\n"
        var shift = TimeShift()
        _ = try shift.merge(TimeShiftTests.window(3...5, extra: start), base: Self.base)
        #expect(TimeShiftTests.text(shift).contains(start))
        _ = try shift.merge(TimeShiftTests.window(4...6, extra: start), base: Self.base)
        for shift in [shift, try TimeShift(snapshot: shift.snapshot())] {
            #expect(TimeShiftTests.text(shift).contains(start) == (offset == "-12"))
            #expect(!TimeShiftTests.text(shift, .recorded).contains("EXT-X-START"))
        }
    }
}
