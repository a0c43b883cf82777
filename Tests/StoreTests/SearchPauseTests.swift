import Posix
import Testing

@testable import Store

/// How often all objects are searched if nothing can be evicted.
@Suite struct SearchPauseTests {
    private func at(_ milliseconds: Int64) -> Monotonic {
        Monotonic(nanoseconds: 0) + Interval.milliseconds(milliseconds)
    }

    @Test func `a search takes a twentieth of the time at most`() {
        var pause = SearchPause()
        #expect(pause.left(at: at(0)) == nil)
        pause.noteFruitless(from: at(100), to: at(400))
        #expect(pause.left(at: at(400)) == Interval.seconds(6 as Int64))
        #expect(pause.left(at: at(6_399)) == Interval.milliseconds(1))
        #expect(pause.left(at: at(6_400)) == nil)
    }

    @Test func `a short search is repeated, and a sleep of the machine is no long one`() {
        var pause = SearchPause()
        pause.noteFruitless(from: at(100), to: at(100) + Interval(nanoseconds: 999_999))
        #expect(pause.left(at: at(101)) == nil)
        pause.noteFruitless(from: at(100), to: at(3_600_000))
        #expect(pause.left(at: at(3_600_000)) == Interval.seconds(10 as Int64))
        pause.cut()
        #expect(pause.left(at: at(3_600_000)) == nil)
    }
}
