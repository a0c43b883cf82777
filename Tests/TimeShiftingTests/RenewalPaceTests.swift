import HTTP
import Posix
import Testing

@testable import TimeShifting

/// When a recording reads its entry anew after a refusal.
@Suite struct RenewalPaceTests {
    private func time(_ seconds: Int64) -> Monotonic {
        Monotonic(nanoseconds: 0) + .seconds(seconds)
    }

    private func readings(_ pace: inout RenewalPace, _ times: Range<Int64>) -> [Int64] {
        times.filter { pace.begins(after: .forbidden, target: .seconds(2), now: time($0)) }
    }

    @Test func `an origin that refuses on is asked more and more rarely`() {
        var pace = RenewalPace()
        let times = readings(&pace, 0..<200)
        #expect(times == [0, 2, 6, 14, 30, 62, 126, 190])
    }

    @Test func `a success resets the delay`() {
        var pace = RenewalPace()
        let before = readings(&pace, 0..<31)
        pace.ends()
        let after = readings(&pace, 70..<80)
        #expect(before == [0, 2, 6, 14, 30] && after == [70, 72, 76])
    }

    @Test(arguments: [nil, 500, 503] as [UInt16?])
    func `a failing origin is not asked for the entry`(status: UInt16?) {
        var pace = RenewalPace()
        let found = status.map { HTTPStatus(rawValue: $0) }
        let begins = pace.begins(after: found, target: .seconds(2), now: time(0))
        #expect(!begins)
    }

    @Test(arguments: [0, Int64.min, .max])
    func `any target duration is taken`(nanoseconds: Int64) {
        var pace = RenewalPace()
        for second in 0..<100 {
            let target = Interval(nanoseconds: nanoseconds)
            _ = pace.begins(after: .gone, target: target, now: time(Int64(second) * 1_000))
        }
        #expect(pace != RenewalPace())
    }
}
