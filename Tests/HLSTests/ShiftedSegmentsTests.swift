@testable import HLS
import Testing
import URISyntax

/// The remembered segments of a longer window, found by number and by name.
@Suite struct ShiftedSegmentsTests {
    private static func segment(
        _ number: Int, _ name: String, epoch: Int = 0, isPlaceholder: Bool = false
    ) -> TimeShiftSegment {
        TimeShiftSegment(
            number: number, originNumber: number - 100 * epoch, epoch: epoch, generation: 0,
            discontinuity: epoch, url: nil, byteRange: nil, duration: .seconds(2), date: nil,
            isGap: isPlaceholder, isPlaceholder: isPlaceholder, uri: Array(name.utf8), lines: [],
            hasOwnDate: false, context: .none)
    }

    private static func segments(_ numbers: ClosedRange<Int>) -> ShiftedSegments {
        var segments = ShiftedSegments()
        for number in numbers { segments.append(segment(number, "\(number)")) }
        return segments
    }

    @Test func `a number is found among the remembered ones only`() {
        var segments = Self.segments(5...9)
        #expect((4...10).map { segments.index(of: $0) } == [nil, 0, 1, 2, 3, 4, nil])
        segments.removeFirst(2)
        #expect((6...8).map { segments.segment(number: $0)?.number } == [nil, 7, 8])
        segments.removeFirst(3)
        #expect(segments.index(of: 9) == nil && segments.byteCount == 0)
        #expect(segments.known(9) == nil)
    }

    @Test func `an origin number is known in the newest epoch only`() {
        var segments = Self.segments(5...7)
        #expect((4...8).map { segments.known($0)?.number } == [nil, 5, 6, 7, nil])
        for number in 108...109 { segments.append(Self.segment(number, "t", epoch: 1)) }
        #expect((5...10).map { segments.known($0)?.number } == [nil, nil, nil, 108, 109, nil])
    }

    @Test func `a segment with a former name is of the next generation while that is remembered`() {
        var segments = Self.segments(5...7)
        let second = segments.appendNew(Self.segment(8, "6"))
        let third = segments.appendNew(Self.segment(9, "6"))
        let first = segments.appendNew(Self.segment(10, "10"))
        #expect([second, third, first] == [1, 2, 0])
        #expect(segments.all.map(\.generation) == [0, 0, 0, 1, 2, 0])
        // The newer ones of that name stay when the oldest is dropped.
        segments.removeFirst(2)
        #expect(segments.names(Self.segment(0, "6")) && !segments.names(Self.segment(0, "5")))
        segments.removeFirst(4)
        let again = segments.appendNew(Self.segment(11, "6"))
        #expect(again == 0)
    }

    @Test func `the names that are given again show the length of their ring`() {
        var segments = ShiftedSegments()
        var distances: [Int?] = []
        for number in 0...6 {
            _ = segments.appendNew(Self.segment(number, "r\(number % 3)"))
            distances.append(segments.nameDistance)
        }
        #expect(distances == [nil, nil, nil, 3, 3, 3, 3])
        // As a saved window is read.
        segments.append(Self.segment(7, "r1"))
        #expect(segments.nameDistance == 3)
        // An advertisement, and a slate that recurs within the window.
        for number in 8...9 { _ = segments.appendNew(Self.segment(number, "ad\(number)")) }
        _ = segments.appendNew(Self.segment(10, "ad8"), windowLength: 2)
        #expect(segments.nameDistance == 3)
        _ = segments.appendNew(Self.segment(11, "r2"), windowLength: 2)
        #expect(segments.nameDistance == 6)
        // Without a name of the ring for longer than it lasts, the list uses it no longer.
        for number in 12...17 { _ = segments.appendNew(Self.segment(number, "\(number)")) }
        #expect(segments.nameDistance == 6)
        _ = segments.appendNew(Self.segment(18, "18"))
        #expect(segments.nameDistance == nil)
        _ = segments.appendNew(Self.segment(19, "18"))
        #expect(segments.nameDistance == 1)
        // A restarted origin counts anew, and gives all names again at once.
        _ = segments.appendNew(Self.segment(109, "r2", epoch: 1))
        #expect(segments.nameDistance == nil)
    }

    @Test func `older segments get no name that a newer one has, and placeholders have none`() {
        var segments = Self.segments(7...8)
        var older = Self.segments(3...4)
        older.append(Self.segment(5, "8"))
        older.append(Self.segment(6, "-", isPlaceholder: true))
        segments.prepend(older.all[...])
        #expect(segments.all.map(\.number) == Array(3...8))
        #expect(segments.byteCount == segments.measured)
        #expect(segments.names(Self.segment(0, "4")) && !segments.names(Self.segment(0, "-")))
        // "8" is the name of the newest: it is there when the older one of that name is not.
        segments.removeFirst(3)
        #expect(segments.names(Self.segment(0, "8")))
    }

    @Test func `marks are set on a remembered segment, and otherwise not`() {
        var segments = Self.segments(5...6)
        for number in [4, 6, 7] { segments.mark(number, .init(segment: 3)) }
        #expect(segments.all.map(\.marks.segment) == [0, 3])
    }

    @Test func `bytes beyond a limit count from the oldest, and the newest stays`() {
        let segments = Self.segments(1...4)
        let each = segments.byteCount / 4
        #expect(segments.excessCount(over: segments.byteCount) == 0)
        #expect(segments.excessCount(over: segments.byteCount - 1) == 1)
        #expect(segments.excessCount(over: each) == 3 && segments.excessCount(over: 0) == 3)
        #expect(ShiftedSegments().excessCount(over: 0) == 0)
    }
}
