@testable import HLS
import Testing
import URISyntax

/// The place of a window among the remembered segments, found by names.
@Suite struct WindowJointTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let known: [String]
        let first: Int
        let listed: [String]
        let expected: WindowJoint.Place

        init(
            _ description: String, _ known: [String], _ first: Int, _ listed: [String],
            _ expected: WindowJoint.Place
        ) {
            testDescription = description
            self.known = known
            self.first = first
            self.listed = listed
            self.expected = expected
        }
    }

    /// The remembered segments have the numbers from 5 on.
    static let cases: [Case] = [
        Case("new segments after the last", ["5", "6", "7"], 906, ["6", "7", "8"], .after(2)),
        Case("no new segments", ["5", "6", "7"], 906, ["6", "7"], .after(2)),
        Case("a list that lags", ["5", "6", "7"], 904, ["4", "5", "6"], .behind),
        Case("a name under its own number", ["5", "6", "7"], 5, ["5", "6"], .apart),
        Case("other names", ["5", "6", "7"], 906, ["t6", "t7", "t8"], .apart),
        Case("one name and the same", ["5"], 905, ["5"], .apart),
        Case(
            "one name at several places, after another each time", ["5", "a", "6", "a"], 905,
            ["5", "a", "6", "a", "7"], .after(4)),
        Case("one name only", ["a", "a", "a"], 905, ["a", "a", "a"], .apart),
        Case(
            "one file name in other folders", ["a/1/s", "a/2/s"], 900, ["b/1/s", "b/2/s"], .apart),
        Case(
            "names that only queries tell apart", ["s?5", "s?6"], 900, ["s?6", "s?7"], .after(1)),
        Case("nothing remembered", [], 905, ["5", "6"], .apart),
        Case("nothing listed", ["5", "6"], 905, [], .apart),
    ]

    private static func window(_ first: Int, _ names: [String]) throws -> LiveWindow {
        var text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:\(first)\n"
        for name in names { text += "#EXTINF:2,\n\(name)\n" }
        return try LiveWindow(Array(text.utf8), base: TimeShiftTests.base)
    }

    @Test(arguments: cases)
    func `a window joins the remembered segments where names say so`(_ example: Case) throws {
        let known = try Self.window(5, example.known).segments.map { segment in
            TimeShiftSegment(
                number: segment.originNumber, originNumber: segment.originNumber, epoch: 0,
                generation: 0, discontinuity: 0, url: segment.url, byteRange: nil,
                duration: segment.duration, date: nil, isGap: false, isPlaceholder: false,
                uri: segment.uri, lines: segment.lines, hasOwnDate: false,
                context: segment.context)
        }
        let listed = try Self.window(example.first, example.listed).segments
        #expect(WindowJoint.place(of: listed, in: known) == example.expected)
    }
}
