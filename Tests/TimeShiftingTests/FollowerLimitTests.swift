import Posix
import Testing

@testable import TimeShifting

/// How many longer windows are followed at the same time.
@Suite struct FollowerLimitTests {
    private func time(_ seconds: Int64) -> Monotonic {
        Monotonic(nanoseconds: seconds * 1_000_000_000)
    }

    @Test func `of many windows the ones requested last are followed`() {
        var followed: [Int: Monotonic?] = [:]
        for number in 0..<2_000 {
            let now = time(Int64(number))
            if followed.count >= FollowerLimit.most {
                guard let id = FollowerLimit.displaced(of: followed, now: now) else {
                    Issue.record("nobody asks for the oldest")
                    return
                }
                followed[id] = nil
            }
            followed[number] = .some(now)
            #expect(followed.count <= FollowerLimit.most)
        }
        #expect(followed.keys.min() == 2_000 - FollowerLimit.most)
    }

    @Test func `a window that players ask for is not displaced`() {
        let times: [Int: Monotonic?] = [1: time(5), 2: time(0), 3: time(9)]
        #expect(FollowerLimit.displaced(of: times, now: time(29)) == nil)
        #expect(FollowerLimit.displaced(of: times, now: time(30)) == 2)
    }
}
