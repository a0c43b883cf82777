import Posix
import Testing

@testable import TimeShifting

/// How many longer windows are followed at the same time.
@Suite struct FollowerLimitTests {
    @Test func `of many windows the ones requested last are followed`() {
        var followed: [Int: Monotonic?] = [:]
        for number in 0..<2_000 {
            if let displaced = FollowerLimit.displaced(followed) { followed[displaced] = nil }
            followed[number] = .some(Monotonic(nanoseconds: Int64(number)))
            #expect(followed.count <= FollowerLimit.most)
        }
        #expect(followed.keys.min() == 2_000 - FollowerLimit.most)
    }

    @Test func `a window that no player has requested goes first`() {
        let times: [Int: Monotonic?] = [
            1: Monotonic(nanoseconds: -5), 2: nil, 3: Monotonic(nanoseconds: 1),
        ]
        #expect(FollowerLimit.displaced(times, most: 3) == 2)
        #expect(FollowerLimit.displaced(times, most: 4) == nil)
    }
}
