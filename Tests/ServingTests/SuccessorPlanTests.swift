import CachePolicy
@testable import Model
@testable import Serving
import Testing

/// Playlists whose own token has expired, at the URL that their players know.
@Suite struct SuccessorPlanTests {
    private static let known = RequestFacts.Name(hasSuccessor: true)
    private static let stored = RequestFacts.Name(hasSuccessor: true, isSuccessorStored: true)

    private func plan(_ stage: PlanStage, _ name: RequestFacts.Name) throws -> RequestPlan {
        var stage = stage
        stage.name = name
        return try stage.outcome().plan
    }

    @Test func `a stale list is not asked for at a URL that is known to be dead`() throws {
        #expect(try plan(.live(age: 4), Self.stored) == .followSuccessor)
        #expect(try plan(.ended(age: 18), Self.stored) == .followSuccessor)
        #expect(try plan(.live(age: 1), Self.stored) == .serve(.hit, ttl: 2))
    }

    @Test func `a list that is stored at its old URL only is asked for there`() throws {
        #expect(try plan(.live(age: 4), Self.known) == .revalidate(.live))
    }

    @Test func `while the origin is down the list of the new URL is served`() throws {
        for age in [10, 100] as [Int64] {
            let stage = PlanStage.live(age: age) {
                $0.origin = .down
                $0.hasDown = true
            }
            #expect(try plan(stage, Self.stored) == .followSuccessor)
        }
    }

    @Test func `while the origin is away a list that has ended stays where it is stored`() throws {
        for origin in [.suspected, .down] as [OriginHealth.State] {
            let stage = PlanStage.ended(age: 100) {
                $0.origin = origin
                $0.hasDown = origin == .down
            }
            #expect(try plan(stage, Self.stored) == .serve(.staleOnError, ttl: -82))
        }
    }

    @Test func `while another origin is down a whole list that has ended is asked for at its URL`()
        throws
    {
        let stage = PlanStage.ended(age: 100) { $0.hasDown = true }
        #expect(try plan(stage, Self.stored) == .revalidate(.ended))
        // What it lacks its successor may have.
        let cut = PlanStage.ended(age: 100) {
            $0.hasDown = true
            $0.form = .cut
        }
        #expect(try plan(cut, Self.stored) == .serve(.offline, ttl: nil))
    }

    @Test func `a blocking reload begins at the new URL`() throws {
        let reload = PlanStage.live(age: 1) { $0.isReload = true }
        #expect(try plan(reload, Self.known) == .followSuccessor)
        #expect(try plan(reload, RequestFacts.Name()) == .awaitReload)
    }
}
