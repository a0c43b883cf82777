@testable import HLS
import Testing

/// The numbers with which a longer window begins.
@Suite struct FirstNumbersTests {
    private static func discontinuity(_ number: Int) -> String {
        "#EXT-X-DISCONTINUITY-SEQUENCE:\(number)\n"
    }

    private static func numbers(
        _ listed: ClosedRange<Int>, discontinuity: Int = 0, besides sibling: TimeShift? = nil
    ) throws -> FirstNumbers {
        let head = Self.discontinuity(discontinuity)
        let window = try LiveWindow(
            TimeShiftTests.window(listed, extra: head), base: TimeShiftTests.base)
        return FirstNumbers(
            of: try #require(window.segments.first), newest: try #require(window.segments.last),
            inStepWith: sibling, TimeShift.Limits())
    }

    /// Segments with the origin's numbers from 0 on and own ones from 1003 on, in epoch 1 and after
    /// one discontinuity more than the origin counts.
    private static func restarted(_ listed: ClosedRange<Int> = 0...5) throws -> TimeShift {
        var shift = TimeShift()
        _ = try shift.merge(TimeShiftTests.window(1000...1002), base: TimeShiftTests.base)
        _ = try shift.merge(TimeShiftTests.window(listed, names: "t"), base: TimeShiftTests.base)
        return shift
    }

    @Test func `a window alone has the origin's numbers, reduced if a snapshot cannot hold them`()
        throws
    {
        let own = try Self.numbers(7...9, discontinuity: 4)
        #expect(own.number == 7 && own.discontinuity == 4 && own.epoch == nil && !own.isBehind)
        let high = try Self.numbers((1 << 52) + 3...(1 << 52) + 4, discontinuity: (1 << 52) + 5)
        #expect(high.number == 3 && high.discontinuity == 5)
        let highest = try Self.numbers(1 << 52...1 << 52)
        #expect(highest.number == 1 << 52)
    }

    // A step of more than 16 is not one of the same list.
    @Test(arguments: [(0, 1), (1, 2), (16, 17), (17, 1)])
    func `a window beside another rendition has the numbers of the same place`(
        discontinuity: Int, expected: Int
    ) throws {
        let numbers = try Self.numbers(
            2...4, discontinuity: discontinuity, besides: Self.restarted())
        #expect(numbers.number == 1005 && numbers.epoch == 1)
        #expect(numbers.discontinuity == expected)
    }

    @Test func `a window far from another rendition's numbers has its own`() throws {
        let numbers = try Self.numbers(9_000...9_002, besides: Self.restarted())
        #expect(numbers.number == 9_000 && numbers.epoch == nil && !numbers.isBehind)
    }

    @Test(arguments: [(0...2, true), (0...3, false), (3...5, false)])
    func `a window that ends before that of another rendition begins is behind`(
        listed: ClosedRange<Int>, isBehind: Bool
    ) throws {
        let sibling = try Self.restarted(3...8)
        #expect(try Self.numbers(listed, besides: sibling).isBehind == isBehind)
        // The window of a restored one is not known.
        let restored = try TimeShift(snapshot: sibling.snapshot())
        #expect(try !Self.numbers(listed, besides: restored).isBehind)
    }

    @Test func `no number is negative`() throws {
        var sibling = TimeShift()
        _ = try sibling.merge(TimeShiftTests.window(0...1), base: TimeShiftTests.base)
        _ = try sibling.merge(
            TimeShiftTests.window(500...501, names: "t"), base: TimeShiftTests.base,
            in: .init(countsAnew: true))
        #expect(sibling.segments.last?.number == 3 && sibling.segments.last?.originNumber == 501)
        #expect(try Self.numbers(0...1, besides: sibling).number == 0)
    }
}
