import Posix
import Testing

@testable import Library

/// When what nobody has used for long is removed.
@Suite struct UnusedTurnsTests {
    private typealias Turn = UnusedTurns.Turn

    private static let day = Interval.seconds(86_400 as Int64)

    private func at(_ seconds: Int64) -> Monotonic { Monotonic(nanoseconds: 0) + .seconds(seconds) }

    @Test func `what was unused for a time is removed at once and after each hour`() {
        var turns = UnusedTurns()
        let setting = turns.follow(Self.day)
        let hour = Interval.seconds(3_600 as Int64)
        let wall = WallTime(seconds: 1_000_000)
        let first = turns.next(of: setting, now: at(5), wall: wall)
        #expect(first == Turn(since: WallTime(seconds: 913_600), pause: hour))
        let early = turns.next(of: setting, now: at(3_604), wall: wall)
        #expect(early == Turn(since: nil, pause: .seconds(1 as Int64)))
        let second = turns.next(
            of: setting, now: at(3_605), wall: WallTime(seconds: 1_003_600))
        #expect(second == Turn(since: WallTime(seconds: 917_200), pause: hour))
    }

    @Test func `another setting ends the timer of the former one and waits for the full hour`() {
        var turns = UnusedTurns()
        let wall = WallTime(seconds: 1_000_000)
        let former = turns.follow(Self.day)
        _ = turns.next(of: former, now: at(0), wall: wall)
        let setting = turns.follow(.seconds(3_600 as Int64))
        let ended = turns.next(of: former, now: at(600), wall: wall)
        #expect(ended == nil)
        let early = turns.next(of: setting, now: at(600), wall: wall)
        #expect(early == Turn(since: nil, pause: .seconds(3_000 as Int64)))
        let next = turns.next(of: setting, now: at(3_600), wall: wall)
        #expect(next?.since == WallTime(seconds: 996_400))
    }

    @Test func `nothing is removed without a time`() {
        var turns = UnusedTurns()
        let wall = WallTime(seconds: 1)
        let none = turns.follow(nil)
        let early = turns.next(of: none, now: at(0), wall: wall)
        let former = turns.follow(Self.day)
        _ = turns.follow(nil)
        let late = turns.next(of: former, now: at(0), wall: wall)
        #expect(early == nil && late == nil)
    }
}
