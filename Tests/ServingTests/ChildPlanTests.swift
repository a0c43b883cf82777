import CachePolicy
import HLS
import HTTP
@testable import Model
@testable import Serving
import Testing

/// What a cache gets whose parent we are, while the origin fails.
@Suite struct ChildPlanTests {
    private func stage(
        _ control: String, isOfChild: Bool, _ change: (inout PlanStage) -> Void
    ) -> PlanStage {
        let request: Fields = control.isEmpty ? [:] : ["Cache-Control": control]
        return PlanStage.mounted("max-age=600", age: 100, request: request) { stage in
            stage.role = .media
            stage.isOfChild = isOfChild
            change(&stage)
        }
    }

    @Test(arguments: [
        ("", false), ("max-age=100", false), ("min-fresh=900", false), ("max-age=99", true),
        ("max-age=0", true), ("no-cache", true), ("max-age=900, no-cache", true),
    ])
    func `a bypassed response is not served in place of a failure`(
        _ control: String, _ isPast: Bool
    ) throws {
        func plan(isOfChild: Bool) throws -> RequestPlan {
            try stage(control, isOfChild: isOfChild) {
                $0.failure = RequestFacts.Failure(allowsStale: true)
            }.outcome().plan
        }
        let stored = RequestPlan.serve(.staleOnError, ttl: 500)
        #expect(try plan(isOfChild: true) == (isPast ? .refuse(.failure) : stored))
        // Other clients of a mount know that a reload may get what is still fresh.
        #expect(try plan(isOfChild: false) == stored)
    }

    @Test func `a bypassed response is not served while the origin is suspected`() throws {
        func plan(isOfChild: Bool) throws -> RequestPlan {
            try stage("no-cache", isOfChild: isOfChild) { $0.origin = .suspected }.outcome().plan
        }
        #expect(try plan(isOfChild: true) == .revalidate(.requestNoCache))
        #expect(try plan(isOfChild: false) == .serve(.staleOnError, ttl: 500))
    }
}
