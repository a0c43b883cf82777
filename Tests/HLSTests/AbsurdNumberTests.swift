import HLS
import Testing
import URISyntax

/// Live lists whose numbers leap from one reading to the next.
@Suite struct AbsurdNumberTests {
    private static let base = TimeShiftTests.base

    /// A window of two dated segments of 6 s from a number on.
    private static func window(_ first: String, _ head: String = "") -> [UInt8] {
        Array(
            """
            #EXTM3U
            #EXT-X-TARGETDURATION:6
            #EXT-X-MEDIA-SEQUENCE:\(first)
            \(head)
            #EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:00Z
            #EXTINF:6,
            s\(first).ts
            #EXTINF:6,
            t\(first).ts

            """.utf8)
    }

    private static func shift(_ windows: [UInt8]...) throws -> TimeShift {
        var shift = TimeShift()
        for window in windows { _ = try shift.merge(window, base: base) }
        return shift
    }

    @Test(arguments: ["8000000000000000", "9007199254740991", "18446744073709551615", "1000000"])
    func `a leap of the media sequence number beyond the window begins a new epoch`(number: String)
        throws
    {
        let shift = try Self.shift(Self.window("0"), Self.window(number))
        #expect(shift.segments.map(\.number) == [0, 1, 2, 3])
        #expect(shift.segments.map(\.discontinuity) == [0, 0, 1, 1] && shift.epoch == 1)
        let restored = try TimeShift(snapshot: shift.snapshot())
        #expect(restored.segments.map(\.number) == [0, 1, 2, 3])
    }

    @Test func `a first number beyond the range of numbers comes back from a snapshot`() throws {
        let shift = try Self.shift(
            Self.window("9007199254740991", "#EXT-X-SKIP:SKIPPED-SEGMENTS=9007199254740991"))
        let numbers = shift.segments.map(\.number)
        #expect(numbers.count == 2 && numbers.allSatisfy { (0...1 << 53 - 1).contains($0) })
        #expect(try TimeShift(snapshot: shift.snapshot()).segments.map(\.number) == numbers)
    }

    @Test func `a leap of the discontinuity sequence writes 16 tags at most`() throws {
        let shift = try Self.shift(
            Self.window("0", "#EXT-X-DISCONTINUITY-SEQUENCE:0"),
            Self.window("2", "#EXT-X-DISCONTINUITY-SEQUENCE:5000000000000000"))
        let text = String(decoding: shift.playlist { _ in true }, as: UTF8.self)
        #expect(text.split(separator: "\n").count { $0 == "#EXT-X-DISCONTINUITY" } == 16)
    }

    @Test(arguments: [Int.min, -1, 0, 1 << 53, .max])
    func `any requested number is translated into one within the range of numbers`(
        number: Int
    ) throws {
        let ahead = try Self.shift(Self.window("100"), Self.window("0"))
        let behind = try Self.shift(Self.window("0"), Self.window("8000000000000000"))
        for shift in [ahead, behind] {
            #expect((0...1 << 53 - 1).contains(shift.originNumber(of: number)))
        }
    }

    @Test(arguments: ["500000000.000000001", "500000001", "99999999999999999999.9"])
    func `durations are clamped to the longest that is counted`(text: String) throws {
        let list = Array("#EXTM3U\n#EXT-X-TARGETDURATION:\(text)\n#EXTINF:6,\na.ts\n".utf8)
        let summary = try PlaylistRewriter.rewrite(list, base: Self.base, map: { _, _ in false })
            .summary
        #expect(summary.targetDuration == .seconds(500_000_000))
    }

    @Test func `no duration of a list is negative`() throws {
        let text = """
            #EXTM3U
            #EXT-X-TARGETDURATION:-1
            #EXT-X-PART-INF:PART-TARGET=-2
            #EXT-X-SERVER-CONTROL:CAN-SKIP-UNTIL=-3,HOLD-BACK=-4,PART-HOLD-BACK=-5
            #EXTINF:6,
            a.ts

            """
        let summary = try PlaylistRewriter.rewrite(
            Array(text.utf8), base: Self.base, map: { _, _ in false }
        ).summary
        #expect(summary.targetDuration == nil && summary.partTarget == nil)
        #expect(summary.canSkipUntil == nil)
    }

    @Test func `dates are clamped to the years that can be written`() throws {
        let last = DateTime(milliseconds: .max)
        #expect(last.text == "9999-12-31T23:59:59.999Z" && last + .seconds(1) == last)
        #expect(DateTime(milliseconds: .min).text == "0000-01-01T00:00:00.000Z")
    }

    /// Distinct KEYFORMATs, each with a segment.
    private static func keys(_ count: Int, version: String = "1") -> [UInt8] {
        var text = "#EXTM3U\n#EXT-X-TARGETDURATION:6\n"
        for number in 0..<count {
            text += "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"k\(number)\",KEYFORMAT=\"f\(number)\""
            text += ",KEYFORMATVERSIONS=\"\(version)\"\n"
            text += "#EXTINF:6,\ns\(number).ts\n"
        }
        return Array(text.utf8)
    }

    @Test func `keys of 32 formats apply at once, more formats are rejected`()
        throws
    {
        let shift = try Self.shift(Self.keys(32))
        #expect(shift.segments.count == 32)
        for count in [33, 4_000] {
            #expect(throws: PlaylistError.tooManyKeyFormats(line: 99, limit: 32)) {
                try Self.shift(Self.keys(count))
            }
        }
    }
    @Test func `long keys apply at once up to a limit of bytes, and shorter ones replace them`()
        throws
    {
        let long = String(repeating: "1", count: 40_000)
        #expect(try Self.shift(Self.keys(3, version: long)).segments.count == 3)
        #expect(throws: PlaylistError.keysTooLong(line: 12, limit: 128 << 10)) {
            try Self.shift(Self.keys(4, version: long))
        }
    }

    @Test func `only keys that changed are written, in whatever order the origin names them`()
        throws
    {
        func key(_ format: String, _ uri: String) -> String {
            "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"http://h/\(uri)\",KEYFORMAT=\"\(format)\"\n"
        }
        var text = "#EXTM3U\n#EXT-X-TARGETDURATION:6\n"
        text += key("f", "1") + key("g", "1") + "#EXTINF:6,\nhttp://h/0.ts\n"
        text += key("f", "2") + "#EXTINF:6,\nhttp://h/1.ts\n"
        text += key("g", "1") + key("f", "2") + "#EXTINF:6,\nhttp://h/2.ts\n"
        let shift = try Self.shift(Array(text.utf8), Array(text.utf8))
        let list = String(decoding: shift.playlist { _ in true }, as: UTF8.self)
        let keys = list.split(separator: "\n").filter { $0.hasPrefix("#EXT-X-KEY") }
        let expected = key("f", "1") + key("g", "1") + key("f", "2")
        #expect(keys == expected.split(separator: "\n"))
    }
}
