import CachePolicy
@testable import Serving
import Testing

/// Stored segments that their origin no longer has when it is asked whether they have changed.
@Suite struct GoneSegmentPlanTests {
    private func plan(_ failure: RequestFacts.Failure, isComplete: Bool = true) throws
        -> RequestPlan
    {
        var stage = PlanStage(failure: failure)
        stage.isComplete = isComplete
        return try stage.outcome().plan
    }

    @Test func `a stored segment is served if its name keeps its meaning`() throws {
        let kept = RequestPlan.serve(.staleOnError, ttl: nil)
        #expect(try plan(.init(keepsMeaning: true)) == kept)
        #expect(try plan(.init(keepsMeaning: false)) == .refuse(.failure))
    }

    @Test func `a part of a segment is no answer, since nobody has the rest`() throws {
        #expect(try plan(.init(keepsMeaning: true), isComplete: false) == .refuse(.failure))
    }

    @Test func `the URL that replaced an expired one is searched for first`() throws {
        #expect(try plan(.init(maySearch: true, keepsMeaning: true)) == .findSuccessor)
    }
}
