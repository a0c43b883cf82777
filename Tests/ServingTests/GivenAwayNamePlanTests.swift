import CachePolicy
import HLS
import HTTP
@testable import Serving
import Testing

/// What a name meant before its origin gave it to something else, which an answer of the origin
/// would replace.
@Suite struct GivenAwayNamePlanTests {
    private static let hit = RequestPlan.serve(.hit, ttl: nil)

    private func plan(_ stage: PlanStage) throws -> RequestPlan {
        var stage = stage
        stage.name.isNameReused = true
        return try stage.outcome().plan
    }

    @Test func `a stored response is served, whatever its lifetime in HTTP`() throws {
        #expect(try plan(PlanStage()) == Self.hit)
        #expect(try plan(PlanStage(policy: .refresh)) == Self.hit)
        let key = PlanStage(role: .key, head: ["Cache-Control": "max-age=5"], isLiveSession: true)
        #expect(try key.outcome().plan == .revalidate(.expired))
        #expect(try plan(key) == Self.hit)
    }

    @Test func `a part is served as far as it is stored`() throws {
        let half = PlanStage(isComplete: false)
        #expect(try plan(half) == Self.hit)
        let lacking = PlanStage(isComplete: false, holdsAsked: false)
        #expect(try lacking.outcome().plan == Self.hit)
        #expect(try plan(lacking) == .refuse(.nameGivenAway))
    }

    @Test func `a key for the credentials of another viewer is refused`() throws {
        let key = PlanStage(role: .key, belongsToAnotherViewer: true)
        #expect(try key.outcome().plan == .fetchOwnCopy)
        #expect(try plan(key) == .refuse(.nameGivenAway))
    }
}
