import Model
import Testing

@testable import Console

struct FigureHistoryTests {
    private static let start: Int64 = 1_800_000_000
    private func counts(_ number: Int64) -> [Int64] {
        [number] + FigureHistory.series.dropFirst().map { _ in 0 }
    }
    private func written(_ history: FigureHistory) -> [UInt8] { Array(history.json.encoded.utf8) }

    @Test func `the history of a day is limited, and its sums are kept`() {
        var history = FigureHistory()
        for minute in 0..<(3 * 1_440) as Range<Int64> {
            history.add(counts(1), now: Self.start + minute * 60)
        }
        #expect(history.entries.map(\.count) == [120, 96, 96])
        #expect(history.entries[2].dropLast().allSatisfy { $0.counts[0] == 15 })
        #expect(written(history).count < 32_000)
    }

    @Test func `counts of one minute are added`() {
        var history = FigureHistory()
        for second in 0..<60 as Range<Int64> { history.add(counts(2), now: Self.start + second) }
        #expect(history.entries[0].map(\.counts[0]) == [120])
    }

    @Test func `time without requests has no entry`() {
        var history = FigureHistory()
        history.add(counts(0), now: Self.start)
        #expect(history.isEmpty)
        history.add(counts(-5), now: Self.start)
        #expect(history.isEmpty)
    }

    @Test func `a clock that is set back or far forward does no harm`() {
        var history = FigureHistory()
        history.add(counts(1), now: Self.start)
        history.add(counts(1), now: Self.start - 7_200)
        #expect(history.entries.map(\.count) == [1, 1, 1] && history.entries[0][0].counts[0] == 2)
        history.add(counts(1), now: Self.start + 10 * 86_400)
        #expect(history.entries.map(\.count) == [1, 1, 1])
        history.add([.max, .max, .max, .max, .max], now: Self.start + 10 * 86_400)
        history.add([.max, .max, .max, .max, .max], now: Self.start + 10 * 86_400)
        #expect(history.entries[0][0].counts[0] == 1 << 53)
    }

    @Test func `a written history is restored, without entries that are too old or in the future`()
    {
        var history = FigureHistory()
        for minute in 0..<200 as Range<Int64> {
            history.add(counts(3), now: Self.start + minute * 60)
        }
        let now = Self.start + 200 * 60
        #expect(FigureHistory(reading: written(history), now: now) != FigureHistory())
        var same = history
        same.add(counts(0), now: now)
        let read = FigureHistory(reading: written(history), now: Self.start + 199 * 60)
        #expect(read == history)
        #expect(FigureHistory(reading: written(history), now: now + 86_400 + 12_000).isEmpty)
        #expect(FigureHistory(reading: written(history), now: Self.start - 1_000).isEmpty)
    }

    @Test(arguments: [
        "", "{", "[]", "null", #"{"v":2}"#, #"{"v":1,"series":[],"tiers":[]}"#,
        #"{"v":1,"series":["player_bytes","origin_bytes","requests","hits","errors"],"tiers":[{"step":60,"points":[[1e300,1,1,1,1,1],[-60,1,1,1,1,1],[0,-1,1,1,1,1],[60],7,null]},{"step":300},{"step":0,"points":[]}]}"#,
    ])
    func `a foreign file is an empty history`(_ text: String) {
        #expect(FigureHistory(reading: Array(text.utf8), now: 120).isEmpty)
    }
}
