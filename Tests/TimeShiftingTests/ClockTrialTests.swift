import Posix
import Testing

@testable import TimeShifting

/// When the wall clock decides what is too old to be kept.
@Suite struct ClockTrialTests {
    private let wall = WallTime(seconds: 1_700_000_000)

    /// Looks at the clock once a minute.
    ///
    /// - Parameters:
    ///   - trial: what is tested.
    ///   - minutes: the minutes of the looks.
    ///   - ahead: how far the wall clock is ahead, in seconds.
    /// - Returns: the first minute in which the clock is trusted; nil for none.
    private func firstTrusted(
        _ trial: inout ClockTrial, _ minutes: Range<Int64>, ahead: Int64 = 0
    ) -> Int64? {
        var first: Int64?
        for minute in minutes {
            let elapsed = Interval.seconds(60 * minute)
            let now = wall + elapsed + .seconds(ahead)
            let trusted = trial.trusted(now, at: Monotonic(nanoseconds: 7) + elapsed)
            #expect(trusted == nil || trusted == now)
            if trusted != nil, first == nil { first = minute }
        }
        return first
    }

    @Test func `a clock that runs evenly is trusted after six hours`() {
        var trial = ClockTrial()
        let first = firstTrusted(&trial, 0..<1_000)
        #expect(first == 360)
    }

    @Test(arguments: [3 * 86_400, -3 * 86_400, 61, Int64.max, Int64.min] as [Int64])
    func `a clock that was set is trusted after another six hours`(ahead: Int64) {
        var trial = ClockTrial()
        _ = firstTrusted(&trial, 0..<500)
        // Wrong for ten minutes, then corrected.
        let whileWrong = firstTrusted(&trial, 500..<510, ahead: ahead)
        let corrected = firstTrusted(&trial, 510..<1_000)
        // For good.
        let set = firstTrusted(&trial, 1_000..<2_000, ahead: ahead)
        #expect(whileWrong == nil && corrected == 870 && set == 1_360)
    }

    @Test func `a clock that is slowed down or sped up is trusted`() {
        var trial = ClockTrial()
        for minute: Int64 in 0..<1_000 {
            let elapsed = Monotonic(nanoseconds: 7) + .seconds(60 * minute)
            let trusted = trial.trusted(wall + .seconds(61 * minute), at: elapsed)
            #expect((trusted != nil) == (minute >= 360))
        }
    }
}
