import Posix
import Testing

@testable import TimeShifting

/// The turns in which figures of recordings are noted.
@Suite struct FigureTurnsTests {
    @Test func `all recordings have one turn in ten seconds, few of them at a time`() {
        let start = Monotonic(nanoseconds: 0)
        let ids = (0..<RecordingTable.mostRunning).map { "\($0)" }
        var turns = FigureTurns(now: start)
        let perSecond = (0..<20).map { (second: Int64) in
            turns.next(of: ids, now: start + .seconds(second))
        }
        #expect(perSecond[..<10].allSatisfy { $0.isEmpty })
        #expect(perSecond.allSatisfy { $0.count <= FigureTurns.mostInTurn })
        #expect(perSecond.joined().sorted() == ids.sorted())
    }
}
