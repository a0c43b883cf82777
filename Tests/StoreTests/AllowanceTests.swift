import Posix
import Testing

@testable import Store

/// Granting space without querying the file system each time.
@Suite struct `Allowances of room` {
    /// Which of several reservations are granted without a query.
    private func granted(
        _ wishes: [Int64], spare: Int64, after wait: Interval = .zero
    ) -> [Bool] {
        let begin = Monotonic(nanoseconds: 1)
        var allowance = StoreCore.Allowance(spare: spare, now: begin)
        return wishes.map { allowance.take($0, now: begin + wait) }
    }

    @Test func `a nearly full disk is queried each time`() {
        #expect(granted([0, 1], spare: (256 << 20) - 1) == [false, false])
        #expect(granted([0], spare: 0) == [false])
    }

    @Test func `granted bytes count, and only a small part of the free space is granted`() {
        let half: Int64 = 1 << 25
        #expect(granted([half, half + 1, half, 1], spare: 1 << 30) == [true, false, true, false])
    }

    @Test func `half of the files that must remain may be used in advance of evictions`() {
        #expect(FileFloor.isReached(31) && !FileFloor.isReached(31, inAdvance: true))
        #expect(FileFloor.isReached(15, inAdvance: true))
    }

    @Test func `an answer expires after a tenth of a second`() {
        #expect(granted([1], spare: 1 << 30, after: .milliseconds(99)) == [true])
        #expect(granted([1], spare: 1 << 30, after: .milliseconds(100)) == [false])
    }
}
