import Posix
import SharedStore
import Testing

/// When a read of the store is left to the origin.
@Suite struct ReadPaceTests {
    private let start = Monotonic(nanoseconds: 1_000_000_000_000)

    /// Whether a read that gets so many bytes each 100 ms is too slow, in each second.
    private func verdicts(_ bytes: Int64) -> [Bool] {
        var pace = ReadPace(received: 65_536, now: start)
        return (1...60).map { tick in
            pace.checkIsTooSlow(
                received: 65_536 + bytes * Int64(tick),
                now: start + .milliseconds(Int64(tick) * 100))
        }
    }

    @Test func `a read that trickles is too slow after two seconds`() {
        let found = verdicts(400)
        #expect(!found[..<19].contains(true) && found[19])
    }

    @Test func `a read at the least rate goes on`() {
        #expect(!verdicts(6_554).contains(true))
        #expect(verdicts(6_500).contains(true))
    }

    @Test func `what came at once counts for one window only`() {
        var pace = ReadPace(received: 0, now: start)
        let first = pace.checkIsTooSlow(received: 10_000_000, now: start + .seconds(2 as Int64))
        let second = pace.checkIsTooSlow(received: 10_010_000, now: start + .seconds(4 as Int64))
        #expect(!first && second)
    }
}
