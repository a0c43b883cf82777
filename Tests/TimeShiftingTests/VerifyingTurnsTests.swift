import Posix
import Testing

@testable import TimeShifting

/// When the keeper checks followed lists against the index.
@Suite struct VerifyingTurnsTests {
    /// Runs one turn a second; returns the lists that were checked in each.
    private func turns(_ seconds: ClosedRange<Int64>, of counts: [Int]) -> [[Int]] {
        var turns = VerifyingTurns()
        var verified: [Monotonic?] = counts.map { _ in nil }
        return seconds.map { second in
            let now = Monotonic(nanoseconds: second * 1_000_000_000)
            let lists = counts.indices.map { index in
                VerifyingTurns.Candidate(
                    item: index, verifiedAt: verified[index], segmentCount: counts[index])
            }
            let chosen = turns.next(of: lists, now: now)
            for index in chosen { verified[index] = now }
            return chosen
        }
    }

    @Test func `long lists are checked one by one, and not one after the other`() {
        let turns = turns(1...27, of: [43_200, 43_200, 43_200])
        #expect(turns.allSatisfy { $0.count <= 1 })
        let times = turns.indices.filter { !turns[$0].isEmpty }
        #expect(times == [0, 8, 17])
        #expect(turns.joined().sorted() == [0, 1, 2])
    }

    @Test func `hundreds of short lists are checked in two minutes, each once`() {
        let turns = turns(1...120, of: Array(repeating: 1_200, count: 480))
        #expect(turns.joined().sorted() == Array(0..<480))
        #expect(turns.allSatisfy { $0.count <= 5 })
    }

    @Test func `a list is checked every two minutes`() {
        let turns = turns(1...250, of: [7])
        let times = turns.indices.filter { !turns[$0].isEmpty }
        #expect(times == [0, 120, 240])
    }

    @Test func `doubtful lists are checked at once, those checked longest ago first`() {
        var turns = VerifyingTurns()
        let second: Int64 = 1_000_000_000
        func next(_ doubtful: Set<Int>) -> [Int] {
            let lists = (0..<4).map { index in
                VerifyingTurns.Candidate(
                    item: index, verifiedAt: Monotonic(nanoseconds: Int64(9 - index) * second),
                    segmentCount: VerifyingTurns.segmentsPerTurn / 2,
                    isDoubtful: doubtful.contains(index))
            }
            return turns.next(of: lists, now: Monotonic(nanoseconds: 10 * second))
        }
        #expect(next([]).isEmpty)
        // No more in one turn than otherwise.
        #expect(next([0, 1, 2]) == [2, 1])
    }

    @Test func `doubtful lists that are requested take time from the turns`() {
        var turns = VerifyingTurns()
        let due = [VerifyingTurns.Candidate(item: "a", verifiedAt: nil, segmentCount: 1)]
        func next(at second: Int64) -> [String] {
            turns.next(of: due, now: Monotonic(nanoseconds: second * 1_000_000_000))
        }
        #expect(!turns.hasCredit)
        #expect(next(at: 1) == ["a"])
        #expect(turns.hasCredit)
        // As long as those of three turns.
        turns.charge(segmentCount: 3 * VerifyingTurns.segmentsPerTurn)
        #expect(!turns.hasCredit)
        #expect(next(at: 2).isEmpty)
        #expect(next(at: 3).isEmpty)
        #expect(!turns.hasCredit)
        #expect(next(at: 4) == ["a"])
    }

    @Test func `a check that is due longest comes first`() {
        var turns = VerifyingTurns()
        let times: [(String, Int64?)] = [("a", 9), ("b", 3), ("c", nil), ("d", 200)]
        let lists = times.map { name, second in
            VerifyingTurns.Candidate(
                item: name,
                verifiedAt: second.map { Monotonic(nanoseconds: $0 * 1_000_000_000) },
                segmentCount: 1)
        }
        let chosen = turns.next(of: lists, now: Monotonic(nanoseconds: 300_000_000_000))
        #expect(chosen == ["c", "b", "a"])
    }
}
