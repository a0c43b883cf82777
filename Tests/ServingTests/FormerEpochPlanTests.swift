import CachePolicy
import HLS
@testable import Model
@testable import Serving
import Testing

/// The plan for what was stored before its name got its present meaning, while the origin fails.
@Suite struct FormerEpochPlanTests {
    private func plan(
        _ origin: OriginHealth.State, _ role: ResourceRole, isFormer: Bool
    ) throws -> RequestPlan {
        try PlanStage(
            role: role, origin: origin, isOfFormerEpoch: isFormer,
            failure: RequestFacts.Failure(allowsStale: true)
        ).outcome().plan
    }

    private static let stale = RequestPlan.serve(.staleOnError, ttl: nil)

    @Test(arguments: [ResourceRole.segment, .initialization, .key])
    func `an origin that works is not stood in for by what the name meant before`(
        _ role: ResourceRole
    ) throws {
        #expect(try plan(.up, role, isFormer: true) == .refuse(.failure))
        #expect(try plan(.up, role, isFormer: false) == Self.stale)
    }

    @Test(arguments: [OriginHealth.State.suspected, .down])
    func `it is served while the origin does not answer`(_ origin: OriginHealth.State) throws {
        #expect(try plan(origin, .segment, isFormer: true) == Self.stale)
    }
}
