import FuzzSupport
import Testing

@testable import Ahead

/// Of which sessions the planner may know anything.
@Suite struct ReportedSessionsTests {
    @Test func `every session is found again, and few that were not reported`() {
        var numbers = SeededNumbers(seed: 1)
        var reported = ReportedSessions()
        var sessions: [UInt64] = []
        for _ in 0..<100 {
            let session = numbers.next()
            reported.insert(session)
            sessions.append(session)
            #expect(sessions.allSatisfy { reported.mayContain($0) })
        }
        let others = (0..<10_000).map { _ in numbers.next() }
        let found = others.count(where: { reported.mayContain($0) })
        #expect(found < 200)
    }

    @Test func `without a playlist no session is reported`() {
        let reported = ReportedSessions()
        #expect(!(0..<1_000).contains { reported.mayContain($0) })
    }
}
