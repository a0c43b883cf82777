@testable import HLS
import Testing

/// A window beside the remembered segments, which have the numbers 5 to 8 and names like them.
@Suite struct WindowComparisonTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let first: Int
        let names: [String]
        let expected: WindowComparison.Placement
        var countsAnew = false
        var isOfOtherOrigin = false
        /// The second at which the first segment begins; the remembered ones begin at 0.
        var second: Int?
        /// The numbers of another rendition's segments.
        var sibling: ClosedRange<Int>?
        var siblingEpoch = 0
    }

    private static func names(_ numbers: ClosedRange<Int>) -> [String] { numbers.map { "\($0)" } }

    private static func segments(
        _ first: Int, _ names: [String], second: Int?
    ) throws -> [LiveWindow.Segment] {
        var text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:\(first)\n"
        if let second {
            let date = DateTime(milliseconds: 1_000 * (1_935_990_000 + second))
            text += "#EXT-X-PROGRAM-DATE-TIME:\(date.text)\n"
        }
        for name in names { text += "#EXTINF:2,\n\(name)\n" }
        return try LiveWindow(Array(text.utf8), base: TimeShiftTests.base).segments
    }

    private static func remembered(
        _ numbers: ClosedRange<Int>, epoch: Int = 0, second: Int? = nil
    ) throws -> ShiftedSegments {
        var remembered = ShiftedSegments()
        for seen in try segments(numbers.lowerBound, names(numbers), second: second) {
            remembered.append(
                TimeShiftSegment(
                    number: seen.originNumber, originNumber: seen.originNumber, epoch: epoch,
                    generation: 0, discontinuity: 0, url: seen.url, byteRange: nil,
                    duration: seen.duration, date: seen.date, isGap: false, isPlaceholder: false,
                    uri: seen.uri, lines: seen.lines, hasOwnDate: seen.hasOwnDate,
                    context: seen.context))
        }
        return remembered
    }

    static let cases: [Case] = [
        Case(
            testDescription: "one new segment", first: 6, names: names(6...9),
            expected: .init(relation: .advanced, firstNew: 3)),
        Case(
            testDescription: "nothing new", first: 6, names: names(6...8),
            expected: .init(relation: .unchanged, firstNew: 3)),
        Case(
            testDescription: "no segment at all", first: 6, names: [],
            expected: .init(relation: .unchanged, firstNew: 0)),
        Case(
            testDescription: "a late window", first: 5, names: names(5...7),
            expected: .init(relation: .stale, firstNew: 3)),
        Case(
            testDescription: "lower numbers that are counted anew", first: 5,
            names: ["5", "6", "7"], expected: .init(relation: .newEpoch, firstNew: 0),
            countsAnew: true),
        Case(
            testDescription: "another name at a known number", first: 7, names: ["7", "t", "u"],
            expected: .init(relation: .newEpoch, firstNew: 0)),
        Case(
            testDescription: "a hole", first: 12, names: names(12...13),
            expected: .init(relation: .advanced, firstNew: 0, missed: 3)),
        Case(
            testDescription: "a hole before the window of another host", first: 12,
            names: names(12...13), expected: .init(relation: .newEpoch, firstNew: 0),
            isOfOtherOrigin: true),
        Case(
            testDescription: "the next segment from another host", first: 9, names: names(9...9),
            expected: .init(relation: .advanced, firstNew: 0), isOfOtherOrigin: true),
        Case(
            testDescription: "a hole that the dates confirm", first: 12, names: names(12...13),
            expected: .init(relation: .advanced, firstNew: 0, missed: 3), isOfOtherOrigin: true,
            second: 14),
        Case(
            testDescription: "a hole that the dates deny", first: 12, names: names(12...13),
            expected: .init(relation: .newEpoch, firstNew: 0), second: 90),
        Case(
            testDescription: "a hole too long for placeholders", first: 20, names: names(20...21),
            expected: .init(relation: .newEpoch, firstNew: 0, missed: 11)),
        Case(
            testDescription: "a hole that only this rendition has", first: 20,
            names: names(20...21), expected: .init(relation: .advanced, firstNew: 0, missed: 11),
            sibling: 5...21),
        Case(
            testDescription: "a hole after which another rendition began an epoch", first: 16,
            names: names(16...17), expected: .init(relation: .newEpoch, firstNew: 0, missed: 7),
            sibling: 14...17, siblingEpoch: 1),
        Case(
            testDescription: "a renumbered window with one new segment", first: 906,
            names: names(7...9),
            expected: .init(relation: .newEpoch, firstNew: 2, isContinuous: true)),
        Case(
            testDescription: "a renumbered window without one", first: 906, names: names(7...8),
            expected: .init(relation: .unchanged, firstNew: 2, isInStep: true)),
        Case(
            testDescription: "a renumbered window that lags", first: 904, names: names(5...7),
            expected: .init(relation: .stale, firstNew: 3)),
    ]

    @Test(arguments: cases)
    func `a window is placed by numbers, names and dates`(_ example: Case) throws {
        var limits = TimeShift.Limits()
        limits.placeholderCount = 10
        limits.segmentCount = 50
        let placement = WindowComparison(
            listed: try Self.segments(example.first, example.names, second: example.second),
            remembered: try Self.remembered(5...8, second: example.second.map { _ in 0 }),
            sibling: try example.sibling.map {
                try Self.remembered($0, epoch: example.siblingEpoch)
            },
            limits: limits, targetDuration: .seconds(2), countsAnew: example.countsAnew,
            isOfOtherOrigin: example.isOfOtherOrigin
        ).placement
        #expect(placement == example.expected)
    }

    @Test func `the first window has only new segments`() throws {
        let placement = WindowComparison(
            listed: try Self.segments(5, ["5"], second: nil), remembered: ShiftedSegments(),
            sibling: nil, limits: TimeShift.Limits(), targetDuration: nil, countsAnew: false,
            isOfOtherOrigin: false
        ).placement
        #expect(placement == .init(relation: .first, firstNew: 0))
    }
}
