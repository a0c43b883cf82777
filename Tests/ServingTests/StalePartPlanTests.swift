import CachePolicy
import HTTP
@testable import Model
@testable import Serving
import Testing

/// The plan for a stale part with a strong validator under a mount, whose origin fails.
@Suite struct StalePartPlanTests {
    private func plan(
        holdsAsked: Bool, _ change: (inout PlanStage) -> Void
    ) throws -> RequestPlan {
        try PlanStage.mounted("max-age=6", age: 100) { stage in
            stage.head.append(.etag, "\"v\"")
            stage.isComplete = false
            stage.holdsAsked = holdsAsked
            change(&stage)
        }.outcome().plan
    }

    private static let stale = RequestPlan.serve(.staleOnError, ttl: -94)

    @Test func `a failure is passed on for bytes that are not stored`() throws {
        let fail = { (stage: inout PlanStage) in
            stage.failure = RequestFacts.Failure(allowsStale: true)
        }
        #expect(try plan(holdsAsked: false, fail) == .refuse(.failure))
        #expect(try plan(holdsAsked: true, fail) == Self.stale)
    }

    @Test func `a suspected origin is asked for bytes that are not stored`() throws {
        let suspect = { (stage: inout PlanStage) in stage.origin = .suspected }
        #expect(try plan(holdsAsked: false, suspect) == .revalidate(.expired))
        #expect(try plan(holdsAsked: true, suspect) == Self.stale)
    }
}
