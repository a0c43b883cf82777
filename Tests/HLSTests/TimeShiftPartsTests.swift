import HLS
import Testing
import URISyntax

/// Parts in longer windows, and the tags that apply to them.
@Suite struct TimeShiftPartsTests {
    private static let base = TimeShiftTests.base
    private static let folder = "https://cdn.example.com/vod/a/"

    private static func key(_ uri: String) -> String {
        "#EXT-X-KEY:METHOD=AES-128,URI=\"\(uri)\"\n"
    }

    private static func part(_ uri: String) -> String {
        "#EXT-X-PART:DURATION=1,URI=\"\(uri)\"\n"
    }

    /// Returns a window with the given lines after its last segment.
    private static func window(
        _ numbers: ClosedRange<Int>, names: String = "s", extra: String = "", tail: String
    ) -> [UInt8] {
        TimeShiftTests.window(numbers, names: names, extra: extra) + Array(tail.utf8)
    }

    @Test func `a key of the segment in progress precedes its parts`() throws {
        var shift = TimeShift()
        _ = try shift.merge(
            Self.window(0...1, extra: Self.key("k1"), tail: Self.key("k2") + Self.part("p")),
            base: Self.base)
        #expect(
            TimeShiftTests.text(shift).hasSuffix(
                "/s1.ts\n" + Self.key(Self.folder + "k2") + Self.part(Self.folder + "p")))
    }

    @Test func `discontinuity, section and date of the segment in progress precede its parts`()
        throws
    {
        let date = "#EXT-X-PROGRAM-DATE-TIME:2031-05-06T07:00:00.000Z\n"
        let discontinuity = "#EXT-X-DISCONTINUITY\n"
        func map(_ uri: String) -> String { "#EXT-X-MAP:URI=\"\(uri)\"\n" }
        let tail = discontinuity + map("i2") + date + Self.part("p")
        var shift = TimeShift()
        _ = try shift.merge(
            Self.window(0...1, extra: map("i1"), tail: tail), base: Self.base)
        let expected =
            discontinuity + map(Self.folder + "i2") + date + Self.part(Self.folder + "p")
        #expect(TimeShiftTests.text(shift).hasSuffix("/s1.ts\n" + expected))
        // The segment has them once, after the same number of discontinuities.
        let whole = discontinuity + map("i2") + date + "#EXTINF:2,\ns2.ts\n"
        _ = try shift.merge(
            Self.window(0...1, extra: map("i1"), tail: whole), base: Self.base)
        #expect(shift.segments.map(\.discontinuity) == [0, 0, 1])
        #expect(TimeShiftTests.text(shift).split(separator: discontinuity).count == 2)
    }

    @Test func `parts of a finished segment follow the tags that apply to them`() throws {
        let date = "#EXT-X-PROGRAM-DATE-TIME:2031-05-06T07:00:00.000Z\n"
        let before = "#EXT-X-DISCONTINUITY\n" + Self.key("k2") + date
        var shift = TimeShift()
        _ = try shift.merge(
            Self.window(
                0...0, extra: Self.key("k1"),
                tail: before + Self.part("p") + "#EXTINF:2,\ns1.ts\n"), base: Self.base)
        let expected =
            "/s0.ts\n#EXT-X-DISCONTINUITY\n" + Self.key(Self.folder + "k2") + date
            + Self.part(Self.folder + "p") + "#EXTINF:2,\n"
        #expect(TimeShiftTests.text(shift).contains(expected))
    }

    @Test func `parts of a renumbered segment keep the IV of its old number`() throws {
        var shift = TimeShift()
        _ = try shift.merge(TimeShiftTests.window(100...101), base: Self.base)
        let window = Self.window(7...8, names: "t", extra: Self.key("k"), tail: Self.part("p"))
        _ = try shift.merge(window, base: Self.base)
        let text = TimeShiftTests.text(shift)
        #expect(
            text.hasSuffix(
                "k\",IV=0x00000000000000000000000000000009\n" + Self.part(Self.folder + "p")))
        // Without parts nothing follows the last segment.
        _ = try shift.merge(
            TimeShiftTests.window(7...8, names: "t", extra: Self.key("k")), base: Self.base)
        #expect(TimeShiftTests.text(shift).hasSuffix("/t8.ts\n"))
    }

    /// The epochs that a window knows of the names in its text, by the last part of their URLs.
    private static func epochs(_ shift: TimeShift) throws -> [String: Epoch?] {
        var epochs: [String: Epoch?] = [:]
        try Playlist(Array(TimeShiftTests.text(shift).utf8), base: base).forEachReference {
            epochs[$0.url.lastPathSegment] = .some(
                shift.nameEpoch(of: $0, for: $0.mediaSequence))
        }
        return epochs
    }

    @Test func `parts, and what the segment in progress needs, have the present epoch`() throws {
        let whole = Self.part("s1.0.ts") + "#EXTINF:2,\ns1.ts\n"
        let tail = whole + Self.key("k2") + Self.part("s2.0.ts")
        var shift = TimeShift()
        _ = try shift.merge(
            Self.window(0...0, extra: Self.key("k1"), tail: tail), base: Self.base)
        for number in 0...1 { shift.mark(number, .init(segment: 7, keys: [8])) }
        let epochs = try Self.epochs(shift)
        #expect(epochs["s0.ts"] == Epoch(number: 7) && epochs["s1.ts"] == Epoch(number: 7))
        #expect(epochs["k1"] == Epoch(number: 8))
        for name in ["s1.0.ts", "s2.0.ts", "k2"] { #expect(epochs[name] == .some(nil)) }
    }

    @Test func `parts of a restarted origin precede its first segment`() throws {
        func list(_ number: Int, _ tail: String) -> [UInt8] {
            Array(
                "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:\(number)\n\(tail)".utf8)
        }
        let map = "#EXT-X-MAP:URI=\"i\"\n"
        var shift = TimeShift()
        _ = try shift.merge(
            Self.window(50...52, extra: map, tail: Self.part("s53.0.ts")), base: Self.base)
        #expect(shift.originNumber(of: 53) == 53)
        _ = try shift.merge(list(0, map + Self.part("s0.0.ts")), base: Self.base)
        #expect(shift.originNumber(of: 53) == 0 && shift.originNumber(of: 54) == 1)
        let expected =
            "#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI=\"\(Self.folder)i\"\n"
            + Self.part(Self.folder + "s0.0.ts")
        #expect(TimeShiftTests.text(shift).hasSuffix("/s52.ts\n" + expected))
        // The segment has the discontinuity then.
        let context = TimeShift.Context(countsAnew: true)
        _ = try shift.merge(
            list(0, map + "#EXTINF:2,\ns0.ts\n" + Self.part("s1.0.ts")), base: Self.base,
            in: context)
        #expect(shift.segments.map(\.discontinuity) == [0, 0, 0, 1])
        #expect(shift.originNumber(of: 54) == 1)
        let text = TimeShiftTests.text(shift)
        #expect(text.split(separator: "#EXT-X-DISCONTINUITY\n").count == 2)
    }
}
