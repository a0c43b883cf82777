@testable import Origin
import Posix
import Testing

/// How long a flight waits for the slowest reader of a body that is not stored.
@Suite struct SlowestReaderTests {
    private static func seconds(_ count: Int64) -> Monotonic {
        Monotonic(nanoseconds: 1_000_000_000_000 + count * 1_000_000_000)
    }

    @Test func `a reader is stuck after a minute in one place, however long the flight waits`() {
        var readers = StandingReaders()
        var stuck: [Int64] = []
        func note(_ position: Int64, at second: Int64) {
            let found = readers.stuck(at: [position], now: Self.seconds(second))
            if found.contains(position) { stuck.append(second) }
        }
        for second in Int64(0)..<200 { note(second / 50, at: second) }
        note(3, at: 209)
        note(3, at: 210)
        // Another reader is the slowest now.
        note(1, at: 211)
        note(1, at: 271)
        #expect(stuck == [210, 271])
    }

    @Test func `a reader that moves is not stuck beside others that stand`() {
        var readers = StandingReaders()
        for second in Int64(0)..<60 {
            let positions = [0, 1_000 + second, 5, 0]
            #expect(readers.stuck(at: positions, now: Self.seconds(second)).isEmpty)
        }
        #expect(readers.stuck(at: [0, 2_000, 5], now: Self.seconds(60)) == [0, 5])
    }

    /// What readers keep of 83 MB while the slowest is at 20 MB and one at the end waits.
    private static func lengths(_ positions: [Int64], stuck: Set<Int64>?) -> [Int64] {
        let kept = KeptLengths(
            slowest: 20_000_000, written: 83_000_000, window: 40_000_000, stuck: stuck)
        return positions.map { kept.length(for: $0..<Int64.max) }
    }

    @Test func `where nothing brings the rest, a reader that moves keeps all of it`() {
        let positions: [Int64] = [20_000_000, 40_000_000, 83_000_000]
        let (least, all) = (KeptLengths.least, KeptLengths.everything)
        #expect(Self.lengths(positions, stuck: [20_000_000]) == [least, all, all])
        #expect(Self.lengths(positions, stuck: nil) == [least, 31_500_000, 40_000_000])
    }

    @Test func `readers that stand near the slowest one are given up with it`() {
        let positions: [Int64] = [20_000_000, 20_100_000, 20_200_000, 60_000_000, 3_000_000]
        let (least, all) = (KeptLengths.least, KeptLengths.everything)
        // One moves, one stands far ahead, and one was given up before.
        let lengths = Self.lengths(positions, stuck: [20_000_000, 20_100_000, 60_000_000])
        #expect(lengths == [least, least, all, all, 17_000_000])
        let kept = KeptLengths(
            slowest: 20_000_000, written: 83_000_000, window: 40_000_000, stuck: [20_000_000])
        #expect(kept.length(for: 20_000_000..<83_000_000) == all)
    }
}
