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

    @Test func `a key that changed under one URI is named again`() throws {
        let iv = ",IV=0x00000000000000000000000000000001\n"
        let common = "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"c\",KEYFORMAT=\"y\"" + iv
        let key = "#EXT-X-KEY:METHOD=AES-128,URI=\"k\"" + iv
        var shift = TimeShift()
        _ = try shift.merge(TimeShiftTests.window(0...1, extra: key), base: Self.base)
        let both = Array(
            "\(key)#EXTINF:2,\ns2.ts\n\(common)#EXTINF:2,\ns3.ts\n#EXTINF:2,\ns4.ts\n".utf8)
        _ = try shift.merge(
            TimeShiftTests.window(0...1, extra: key) + both, base: Self.base)
        for (number, mark) in [(2, 1), (3, 1), (4, 2)] as [(Int, UInt32)] {
            let urls = try #require(shift.segment(number: number)).keyURLs
            let keys = urls.map { $0.lastPathSegment == "k" ? mark : 0 }
            shift.mark(number, TimeShiftSegment.Marks(keys: keys))
        }
        for shift in [shift, try TimeShift(snapshot: shift.snapshot())] {
            let lines = Self.tags(shift, ["#EXT-X-KEY", "https:"])
            let found = lines.map { line in
                line.hasPrefix("#") ? line.contains("/k\"") ? "k" : "c" : String(line.suffix(5))
            }
            let expected = "k s0.ts s1.ts k s2.ts c s3.ts k c s4.ts".split(separator: " ")
            #expect(found == expected.map(String.init))
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

    @Test func `dates follow the origin's if only the first segment of each window has one`()
        throws
    {
        let base = 1_935_990_000_000
        func date(_ number: Int) -> Int { base + 2_100 * number }
        var shift = TimeShift()
        for start in 0...120 {
            let line = "#EXT-X-PROGRAM-DATE-TIME:\(DateTime(milliseconds: date(start)).text)\n"
            let merge = try shift.merge(
                TimeShiftTests.window(start...start + 2, extra: line), base: Self.base)
            #expect(merge.relation == (start == 0 ? .first : .advanced))
        }
        for (shift, tolerance) in [(shift, 200), (try TimeShift(snapshot: shift.snapshot()), 300)] {
            #expect(shift.segments.count == 123)
            for segment in shift.segments {
                let written = try #require(segment.date).milliseconds
                #expect(abs(written - date(segment.number)) <= tolerance)
            }
        }
        // As players derive them from the list.
        let list = try Playlist(shift.playlist { _ in true }, base: nil)
        let last = try #require(list.media?.dates.last)
        #expect(last.mediaSequence > 118 && abs(last.date.milliseconds - date(122)) < 8_000)
        #expect(Self.tags(shift, ["#EXT-X-DISCONTINUITY"]).isEmpty)
    }

    @Test func `a delta update continues the dates of the previous list`() throws {
        var shift = TimeShift()
        let date = "#EXT-X-PROGRAM-DATE-TIME:2031-05-06T07:00:00.000Z\n"
        _ = try shift.merge(TimeShiftTests.window(0...5, extra: date), base: Self.base)
        let delta =
            "#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:1\n"
            + "#EXT-X-SKIP:SKIPPED-SEGMENTS=4\n#EXTINF:2,\ns5.ts\n#EXTINF:2,\ns6.ts\n"
        _ = try shift.merge(Array(delta.utf8), base: Self.base)
        #expect(shift.segments.last?.date?.text == "2031-05-06T07:00:12.000Z")
        #expect(Self.tags(shift, ["#EXT-X-PROGRAM-DATE-TIME"]).count == 1)
    }
}
