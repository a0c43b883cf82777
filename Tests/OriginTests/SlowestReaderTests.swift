import Model
@testable import Origin
import Posix
import Testing

/// How long a flight waits for the slowest reader of a body that is not stored.
@Suite struct SlowestReaderTests {
    private static func seconds(_ count: Int64) -> Monotonic {
        Monotonic(nanoseconds: 1_000_000_000_000 + count * 1_000_000_000)
    }

    private let readers = Readers()

    private func makeReader() -> Readers.ID { readers.enter(1, from: 0, to: nil) }

    @Test func `a reader is stuck after a minute in one place, however long the flight waits`() {
        var standing = StandingReaders()
        var stuck: [Int64] = []
        let (first, other) = (makeReader(), makeReader())
        func note(_ position: Int64, of id: Readers.ID, at second: Int64) {
            let found = standing.stuck(at: [id: position], now: Self.seconds(second))
            if found.contains(position) { stuck.append(second) }
        }
        for second in Int64(0)..<200 { note(second / 50, of: first, at: second) }
        note(3, of: first, at: 209)
        note(3, of: first, at: 210)
        // Another reader is the slowest now.
        note(1, of: other, at: 211)
        note(1, of: other, at: 271)
        #expect(stuck == [210, 271])
    }

    @Test func `a reader that moves is not stuck beside others that stand`() {
        var standing = StandingReaders()
        let (first, second, moving, last) = (makeReader(), makeReader(), makeReader(), makeReader())
        for time in Int64(0)..<60 {
            let positions: [Readers.ID: Int64] = [
                first: 0, moving: 1_000 + time, second: 5, last: 0,
            ]
            #expect(standing.stuck(at: positions, now: Self.seconds(time)).isEmpty)
        }
        let positions: [Readers.ID: Int64] = [first: 0, moving: 2_000, second: 5, last: 0]
        #expect(standing.stuck(at: positions, now: Self.seconds(60)) == [0, 5])
    }

    @Test func `a reader that comes to the place of one that stands has a minute of its own`() {
        var standing = StandingReaders()
        let (old, new) = (makeReader(), makeReader())
        #expect(standing.stuck(at: [old: 7], now: Self.seconds(0)).isEmpty)
        #expect(standing.stuck(at: [old: 7], now: Self.seconds(50)).isEmpty)
        #expect(standing.stuck(at: [old: 7, new: 7], now: Self.seconds(59)).isEmpty)
        #expect(standing.stuck(at: [old: 7, new: 7], now: Self.seconds(118)).isEmpty)
        #expect(standing.stuck(at: [old: 7, new: 7], now: Self.seconds(119)) == [7])
        // The new one goes on.
        #expect(standing.stuck(at: [old: 7, new: 8], now: Self.seconds(120)) == [7])
    }

    /// What readers keep of 83 MB while the slowest is at 20 MB and one at the end waits.
    private static func lengths(_ positions: [Int64], stuck: Set<Int64>?) -> [Int64] {
        let gap = UnstoredGap(slowest: 20_000_000, written: 83_000_000, window: 40_000_000)
        return positions.map { gap.length(for: $0..<Int64.max, stuck: stuck) }
    }

    @Test func `where nothing brings the rest, a reader that moves keeps all of it`() {
        let positions: [Int64] = [20_000_000, 40_000_000, 83_000_000]
        let (least, all) = (UnstoredGap.least, KeptBytes.everything)
        #expect(Self.lengths(positions, stuck: [20_000_000]) == [least, all, all])
        #expect(Self.lengths(positions, stuck: nil) == [least, 31_500_000, 40_000_000])
    }

    @Test func `a reader with a flight of its own keeps its window up to the slowest one`() {
        let gap = UnstoredGap(slowest: 50_000_000, written: 60_000_000, window: 40_000_000)
        let lengths = [0, 30_000_000, 49_000_000, 51_000_000].map { (position: Int64) in
            gap.length(for: position..<Int64.max, stuck: nil)
        }
        #expect(lengths == [40_000_000, 20_000_000, 5_000_000, 5_000_000])
    }

    @Test func `readers that stand near the slowest one are given up with it`() {
        let positions: [Int64] = [20_000_000, 20_100_000, 20_200_000, 60_000_000, 3_000_000]
        let (least, all) = (UnstoredGap.least, KeptBytes.everything)
        // One moves, one stands far ahead, and one was given up before.
        let lengths = Self.lengths(positions, stuck: [20_000_000, 20_100_000, 60_000_000])
        #expect(lengths == [least, least, all, all, 17_000_000])
        let gap = UnstoredGap(slowest: 20_000_000, written: 83_000_000, window: 40_000_000)
        #expect(gap.length(for: 20_000_000..<83_000_000, stuck: [20_000_000]) == all)
    }
}
