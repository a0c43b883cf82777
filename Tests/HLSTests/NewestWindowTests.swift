@testable import HLS
import Testing

/// What a longer window keeps of the origin's newest one besides segments.
@Suite struct NewestWindowTests {
    private static let part = "#EXT-X-PART:DURATION=1,URI=\"p\"\n"

    private static func segment(_ number: Int, originNumber: Int) -> TimeShiftSegment {
        TimeShiftSegment(
            number: number, originNumber: originNumber, epoch: 0, generation: 0, discontinuity: 0,
            url: nil, byteRange: nil, duration: .seconds(2), date: nil, isGap: false,
            isPlaceholder: false, uri: [], lines: [], hasOwnDate: false, context: .none)
    }

    /// Returns the newest window after a list, which ends with segment 6 of both windows unless
    /// `last` is another one.
    private static func read(
        _ list: [UInt8], last: TimeShiftSegment? = nil
    ) throws -> (window: NewestWindow, offset: Int?) {
        let listed = try LiveWindow(list, base: TimeShiftTests.base)
        var window = NewestWindow()
        window.takeHead(of: listed)
        let offset = window.takeEnd(of: listed, last: last ?? segment(6, originNumber: 6))
        return (window, offset)
    }

    private static func head(
        _ window: NewestWindow, from number: Int, _ ending: TimeShift.Ending = .live
    ) -> String {
        var output: [UInt8] = []
        window.appendHead(
            .seconds(2), segment(number, originNumber: number), ending, isLive: ending == .live,
            to: &output)
        return String(decoding: output, as: UTF8.self)
    }

    @Test func `its place and its parts have the numbers of the longer window`() throws {
        let list = TimeShiftTests.window(7...8, each: Self.part)
        let (window, offset) = try Self.read(list, last: Self.segment(108, originNumber: 8))
        #expect(offset == 100 && window.start == 107)
        #expect(window.parts.keys.sorted() == [107, 108])
    }

    @Test func `a segment in progress has the number after the last one`() throws {
        let head = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:0\n"
        let last = Self.segment(9, originNumber: 9)
        let (window, offset) = try Self.read(Array((head + Self.part).utf8), last: last)
        #expect(offset == nil)
        #expect(window.originNumber(of: 10, last: last) == 0)
        // The origin has restarted: a discontinuity precedes what it will list.
        var writer = TimeShiftWriter(output: [])
        window.writeEnd(after: last, discontinuities: 16, to: &writer)
        let text = String(decoding: writer.output, as: UTF8.self)
        #expect(text.hasPrefix("#EXT-X-DISCONTINUITY\n#EXT-X-PART:"))
    }

    @Test func `a start that counts from the origin's window is left out before it`() throws {
        let start = "#EXT-X-START:TIME-OFFSET=4\n"
        let (window, _) = try Self.read(TimeShiftTests.window(5...6, extra: start))
        #expect(Self.head(window, from: 5).contains(start))
        #expect(!Self.head(window, from: 4).contains(start))
        #expect(!Self.head(window, from: 5, .recorded).contains(start))
    }

    @Test func `tags of live lists are left out of a list that has ended`() throws {
        let control = "#EXT-X-SERVER-CONTROL:CAN-SKIP-UNTIL=12\n"
        let (window, _) = try Self.read(TimeShiftTests.window(5...6, extra: control))
        #expect(Self.head(window, from: 5).contains(control))
        let recorded = Self.head(window, from: 5, .recorded)
        #expect(!recorded.contains(control) && recorded.contains("#EXT-X-PLAYLIST-TYPE:VOD\n"))
    }
}
