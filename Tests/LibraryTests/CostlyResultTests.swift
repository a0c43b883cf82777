@testable import Library
import Posix
import Testing

/// How often the index is walked through for those who ask what is in it.
@Suite struct CostlyResultTests {
    private var result = CostlyResult<Int>()
    private var runs = 0

    /// Asks once, where the work takes `took`, and returns the time of the answer.
    private mutating func ask(at now: Monotonic, took: Interval) -> Monotonic {
        guard result.value(at: now) == nil else { return now }
        runs += 1
        result.keep(runs, from: now, to: now + took)
        return now + took
    }

    @Test mutating func `many that ask for slow work cause it at a twentieth of the time`() {
        var now = Monotonic(nanoseconds: 1_000_000_000)
        let end = now + .seconds(3_600 as Int64)
        // Eight pages that ask every half minute in turn.
        while now < end {
            for _ in 0..<8 { now = ask(at: now, took: .seconds(10 as Int64)) }
            now = now + .seconds(30 as Int64)
        }
        #expect(runs >= 10 && runs <= 18)
    }

    @Test mutating func `quick work is repeated`() {
        let now = Monotonic(nanoseconds: 1_000_000_000)
        for second in 0..<10 {
            _ = ask(at: now + .seconds(Int64(second)), took: .milliseconds(1))
        }
        #expect(runs == 10)
    }

    @Test mutating func `a result that was forgotten, or is of a later time, is not used`() {
        let now = Monotonic(nanoseconds: 1_000_000_000_000)
        result.keep(1, from: now, to: now + .seconds(10 as Int64))
        #expect(result.value(at: now + .seconds(100 as Int64)) == 1)
        #expect(result.value(at: now + .seconds(-1 as Int64)) == nil)
        result.forget(at: now + .seconds(20 as Int64))
        #expect(result.value(at: now + .seconds(100 as Int64)) == nil)
        // Nor is one that was under way then.
        result.keep(2, from: now + .seconds(15 as Int64), to: now + .seconds(25 as Int64))
        #expect(result.value(at: now + .seconds(100 as Int64)) == nil)
        result.keep(3, from: now + .seconds(30 as Int64), to: now + .seconds(40 as Int64))
        #expect(result.value(at: now + .seconds(100 as Int64)) == 3)
    }

    @Test func `the pages of a listing are of one walk`() {
        var order = CostlyResult<[Int]>(usedAtLeast: .seconds(60 as Int64))
        let start = Monotonic(nanoseconds: 1_000_000_000)
        order.keep([3, 1], from: start, to: start + .milliseconds(1))
        #expect(order.value(at: start + .seconds(59 as Int64)) == [3, 1])
        #expect(order.value(at: start + .seconds(61 as Int64)) == nil)
    }

    @Test func `a page begins after the position where the former one ended`() {
        let places = (0..<100).map { index in
            TitlePlace(
                lastUsed: WallTime(seconds: Int64(1_000 - index / 2)), title: UInt64(index))
        }
        #expect(places == places.sorted())
        for (index, place) in places.enumerated() {
            #expect(TitleCatalogue.end(of: place, in: places) == index + 1)
        }
        // A title that has left the listing.
        let gone = TitlePlace(lastUsed: WallTime(seconds: 975), title: 200)
        #expect(TitleCatalogue.end(of: gone, in: places) == 52)
        #expect(TitleCatalogue.end(of: gone, in: []) == 0)
    }
}
