import Glibc
import Testing

@testable import Store

/// Room that is taken without asking the file system each time.
@Suite struct `Allowances of room` {
    /// Which of some wishes, one after the other, need no asking.
    private func granted(_ wishes: [Int64], spare: Int64, after microseconds: UInt32 = 0) -> [Bool]
    {
        var allowance = StoreCore.Allowance(spare: spare)
        usleep(microseconds)
        return wishes.map { allowance.take($0) }
    }

    @Test func `a disk that has little to spare is asked each time`() {
        #expect(granted([0, 1], spare: (256 << 20) - 1) == [false, false])
        #expect(granted([0], spare: 0) == [false])
    }

    @Test func `what is taken counts, and a small part of what there is may be taken`() {
        let half: Int64 = 1 << 25
        #expect(granted([half, half + 1, half, 1], spare: 1 << 30) == [true, false, true, false])
    }

    @Test func `an answer does not serve for long`() {
        #expect(granted([1], spare: 1 << 30, after: 110_000) == [false])
    }
}
