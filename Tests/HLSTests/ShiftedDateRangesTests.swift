import HLS
import Testing

/// Date ranges in longer windows.
@Suite struct ShiftedDateRangesTests {
    private static func ranges(_ ids: Range<Int>) -> String {
        ids.map { "#EXT-X-DATERANGE:ID=\"id\($0)\"\n" }.joined()
    }

    /// The IDs in a list, in their order.
    private static func ids(_ shift: TimeShift, _ ending: TimeShift.Ending = .live) -> [Int] {
        TimeShiftTests.text(shift, ending).split(separator: "\n")
            .filter { $0.hasPrefix("#EXT-X-DATERANGE") }
            .compactMap { Int($0.filter(\.isNumber)) }
    }

    @Test func `an ID without a kept line gets the place where it is listed next`() throws {
        var shift = TimeShift()
        _ = try shift.merge(
            TimeShiftTests.window(0...1, extra: Self.ranges(0..<65)), base: TimeShiftTests.base)
        #expect(Self.ids(shift) == Array(0..<64))
        _ = try shift.merge(
            TimeShiftTests.window(1...2, extra: Self.ranges(64..<65)), base: TimeShiftTests.base)
        #expect(Self.ids(shift) == Array(0..<65))
    }

    @Test func `new IDs beyond the limit in bytes displace the oldest, as after a restart`() throws
    {
        var limits = TimeShift.Limits()
        limits.dateRangeByteCount = 4_000
        var shift = TimeShift(limits: limits)
        for number in 100..<200 {
            let window = TimeShiftTests.window(
                number...number + 1, extra: Self.ranges(number..<number + 1))
            _ = try shift.merge(window, base: TimeShiftTests.base)
        }
        let ids = Self.ids(shift)
        #expect((10...25).contains(ids.count) && ids.last == 199 && ids == ids.sorted())
        let restored = try TimeShift(snapshot: shift.snapshot(), limits: limits)
        #expect(Self.ids(restored) == ids)
    }

    @Test func `a date range that the origin still lists moves on when its segment is dropped`()
        throws
    {
        var shift = TimeShift()
        for start in 0...4 {
            let window = TimeShiftTests.window(
                start...start + 2, extra: Self.ranges(start < 2 ? 7..<9 : 8..<9))
            _ = try shift.merge(window, base: TimeShiftTests.base)
        }
        shift.trim(to: .seconds(4))
        #expect(Self.ids(shift) == [8])
    }

    @Test func `a date range that the origin still lists stays when its first segment is gone`()
        throws
    {
        var shift = TimeShift()
        for start in 0...4 {
            let extra = Self.ranges(start < 2 ? 7..<9 : 8..<9)
            let window = TimeShiftTests.window(start...start + 2, extra: extra)
            _ = try shift.merge(window, base: TimeShiftTests.base)
        }
        func ids(_ duration: Duration? = nil, from first: Int = 0) throws -> [Int] {
            var shift = shift
            _ = shift.leaveOutLost { $0.number < first }
            let list = try Playlist(
                shift.playlist(over: duration) { $0.number >= first }, base: nil)
            return list.media?.dateRanges.compactMap {
                $0.id.flatMap { Int($0.dropFirst(2)) }
            }
                ?? []
        }
        #expect(try ids() == [7, 8])
        #expect(try ids(.seconds(4)) == [8])
        #expect(try ids(from: 3) == [8])
        let delta =
            "#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:4\n"
            + "#EXT-X-SKIP:SKIPPED-SEGMENTS=3%\n#EXTINF:2,\ns7.ts\n"
        for (removed, expected) in [("", [8]), (",RECENTLY-REMOVED-DATERANGES=\"id8\"", [])] {
            let text = delta.split(separator: "%").joined(separator: removed)
            _ = try shift.merge(Array(text.utf8), base: TimeShiftTests.base)
            #expect(try ids(from: 3) == expected)
        }
    }

    /// The date ranges of a list, each from its ID on.
    private static func lines(_ shift: TimeShift) -> [String] {
        TimeShiftTests.text(shift).split(separator: "\n")
            .filter { $0.hasPrefix("#EXT-X-DATERANGE:") }.map { String($0.dropFirst(17)) }
    }

    @Test func `a line that changes with every window replaces the one before`() throws {
        var shift = TimeShift()
        for number in 0..<100 {
            let line =
                "#EXT-X-DATERANGE:ID=\"a\",X-ASSET-LIST=\"http://h/a?t=\(number)\""
                + (number == 99 ? ",DURATION=9" : "") + "\n"
            let window = TimeShiftTests.window(
                number...number + 2, extra: line + Self.ranges(7..<8))
            _ = try shift.merge(window, base: TimeShiftTests.base)
        }
        #expect(
            Set(Self.lines(shift))
                == ["ID=\"id7\"", "ID=\"a\",X-ASSET-LIST=\"http://h/a?t=99\",DURATION=9"])
        #expect(Self.lines(shift).count == 2)
    }

    @Test(.timeLimit(.minutes(1)))
    func `of very many lines with one ID the first are kept`() throws {
        let lines = (0..<50_000).map { "ID=\"a\",X-\($0)=\"1\"" }
        let extra = lines.map { "#EXT-X-DATERANGE:\($0)\n" }.joined()
        var shift = TimeShift()
        for number in 0..<2 {
            let window = TimeShiftTests.window(number...number + 2, extra: extra)
            _ = try shift.merge(window, base: TimeShiftTests.base)
            #expect(Self.lines(shift) == Array(lines.prefix(8)))
        }
    }

    @Test func `a line that completes a date range keeps the one before`() throws {
        let out = "ID=\"a\",START-DATE=\"2031-05-06T07:00:00Z\",SCTE35-OUT=0x1"
        let end = "ID=\"a\",DURATION=9,SCTE35-IN=0x2"
        var shift = TimeShift()
        for (number, line) in [out, end, end].enumerated() {
            let window = TimeShiftTests.window(
                number...number + 2, extra: "#EXT-X-DATERANGE:\(line)\n")
            _ = try shift.merge(window, base: TimeShiftTests.base)
        }
        #expect(Self.lines(shift) == [out, end])
    }
}
