import HLS
import Testing
import URISyntax

/// Windows of one list that were kept apart, as under URLs with different tokens.
@Suite struct TimeShiftJoiningTests {
    private static let base = TimeShiftTests.base

    private static func shift(_ windows: [UInt8]...) throws -> TimeShift {
        var shift = TimeShift()
        for window in windows { _ = try shift.merge(window, base: base) }
        return shift
    }

    private static func prepend(_ older: TimeShift, to newer: inout TimeShift) -> Bool {
        newer.prepend(older)
    }

    @Test(arguments: [4...6, 5...7, 6...8])
    func `an older window is put before a newer one`(numbers: ClosedRange<Int>) throws {
        let extra = "#EXT-X-DATERANGE:ID=\"a\",START-DATE=\"2031-05-06T07:00:00Z\"\n"
        let older = try Self.shift(TimeShiftTests.window(3...5, extra: extra))
        var newer = try Self.shift(TimeShiftTests.window(numbers))
        #expect(Self.prepend(older, to: &newer))
        #expect(newer.segments.map(\.number) == Array(3...numbers.upperBound))
        #expect(TimeShiftTests.names(newer) == (3...numbers.upperBound).map { "s\($0).ts" })
        #expect(newer.windowStart == numbers.lowerBound)
        #expect(TimeShiftTests.text(newer).contains("DATERANGE:ID=\"a\""))
        let next = TimeShiftTests.window(numbers.upperBound...numbers.upperBound + 1)
        #expect(try newer.merge(next, base: Self.base).relation == .advanced)
    }

    @Test func `what an older window had left out stays out of the joined one`() throws {
        var older = try Self.shift(TimeShiftTests.window(0...2), TimeShiftTests.window(3...4))
        _ = older.leaveOutLost { $0.number == 0 }
        var newer = try Self.shift(TimeShiftTests.window(4...5), TimeShiftTests.window(6...7))
        _ = newer.leaveOutLost { $0.number == 4 }
        #expect(Self.prepend(older, to: &newer))
        #expect(newer.listStart == 1)
        #expect(TimeShiftTests.text(newer).contains("#EXT-X-MEDIA-SEQUENCE:1\n"))
    }

    @Test func `tokens in the URLs of segments do not matter`() throws {
        let older = try Self.shift(TimeShiftTests.window(0...2))
        var newer = TimeShift()
        _ = try newer.merge(
            TimeShiftTests.window(2...4), base: try AbsoluteURL("https://e.example.com/t/b.m3u8"))
        #expect(Self.prepend(older, to: &newer))
        #expect(TimeShiftTests.names(newer) == (0...4).map { "s\($0).ts" })
    }

    @Test func `a hole between them becomes gaps`() throws {
        let older = try Self.shift(TimeShiftTests.window(0...2))
        var newer = try Self.shift(TimeShiftTests.window(5...7))
        #expect(Self.prepend(older, to: &newer))
        #expect(newer.segments.map(\.number) == Array(0...7))
        #expect(
            newer.segments.map(\.isGap)
                == [3, 4].reduce(into: Array(repeating: false, count: 8)) {
                    $0[$1] = true
                })
    }

    @Test func `a window that does not lead up to the other changes nothing`() throws {
        let newer = try Self.shift(TimeShiftTests.window(5...7))
        let others = [
            TimeShift(),
            try Self.shift(TimeShiftTests.window(5...7)),
            try Self.shift(TimeShiftTests.window(8...9)),
            // Other segments, numbers, discontinuities and epochs.
            try Self.shift(TimeShiftTests.window(3...5, names: "t")),
            try Self.shift(
                TimeShiftTests.window(90...92), TimeShiftTests.window(3...5, names: "t")),
            try Self.shift(
                TimeShiftTests.window(3...5, extra: "#EXT-X-DISCONTINUITY-SEQUENCE:7\n")),
            try Self.shift(
                TimeShiftTests.window(2...2), TimeShiftTests.window(1...1, names: "t")),
        ]
        for (index, other) in others.enumerated() {
            var joined = newer
            #expect(!Self.prepend(other, to: &joined), "\(index)")
            #expect(joined.segments.map(\.number) == Array(5...7))
        }
        var empty = TimeShift()
        #expect(!Self.prepend(newer, to: &empty) && empty.segments.isEmpty)
        var limits = TimeShift.Limits()
        limits.placeholderCount = 1
        var limited = TimeShift(limits: limits)
        _ = try limited.merge(TimeShiftTests.window(5...7), base: Self.base)
        let older = try Self.shift(TimeShiftTests.window(0...2))
        #expect(!Self.prepend(older, to: &limited))
    }
}
