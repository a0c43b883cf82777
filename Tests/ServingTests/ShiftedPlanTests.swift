import Model
import CachePolicy
import Posix
@testable import Serving
import Testing

/// The plan of requests in sessions whose live playlists reach back further than the origin's.
@Suite struct ShiftedPlanTests {
    /// A window that has segment 102 and one part of the next, by its own numbers.
    private static func window(
        age: Int64, _ change: (inout PlanStage) -> Void = { _ in }
    ) -> PlanStage {
        .live(age: age) { stage in
            stage.isShifted = true
            stage.text = .readable(
                PlaylistFacts(
                    isLive: true, targetDuration: .seconds(6), nextSequence: 103, nextParts: 1),
                isShifted: true)
            change(&stage)
        }
    }

    /// The numbers that the origin is asked for: those of the window, higher and lower ones.
    @Test(arguments: [103, 603, 3], [10, 100] as [Int64])
    func `a window is sent when a player would reload it, whatever the origin's numbers are`(
        _ asked: Int, _ age: Int64
    ) throws {
        let stage = Self.window(age: age) {
            $0.isReload = true
            $0.awaited = (asked, 1)
            $0.failure = .init(allowsStale: true, isOfReload: true)
        }
        #expect(try stage.outcome().plan == .serveLater)
    }

    @Test(arguments: [10, 22, 10_000] as [Int64])
    func `an origin that does not answer keeps no player of a window waiting for long`(
        _ age: Int64
    ) throws {
        let stage = Self.window(age: age)
        let (plan, _, facts) = try stage.outcome()
        #expect(plan == .revalidate(.live))
        let response = try #require(facts.response)
        #expect(
            facts.reloadPatience(for: response, isWatched: true) == .seconds(6 as Int64))
        // A new player begins at the end of the window: only a recent one may be that of the stream.
        let isRecent = age == 10
        #expect((facts.reloadPatience(for: response, isWatched: false) != nil) == isRecent)
        // Then the window is served, as after any other failure that leaves it in its place.
        let silent = Self.window(age: age) { $0.failure = .init(allowsStale: true) }
        #expect(try silent.outcome().plan.disposition == .staleOnError)
    }

    @Test func `while an origin is down, a window is served as it is`() throws {
        let stage = Self.window(age: 1) {
            $0.hasDown = true
            $0.form = .cut
        }
        #expect(try stage.outcome().plan == .serve(.hit, ttl: 2))
    }

    /// A multivariant playlist, or one that was complete when first read.
    private static func other(_ change: (inout PlanStage) -> Void) -> PlanStage {
        .list { stage in
            stage.isShifted = true
            change(&stage)
        }
    }

    @Test func `while an origin is down, other playlists are reduced as without a window`() throws {
        let outage = Self.other {
            $0.hasDown = true
            $0.form = .cut
        }
        #expect(try outage.outcome().plan == .serve(.offline, ttl: nil))
        let failed = Self.other {
            $0.failure = .init(allowsStale: true)
            $0.origin = .down
            $0.hasDown = true
            $0.form = .cut
        }
        #expect(try failed.outcome().plan == .serve(.offline, ttl: nil))
        let offline = Self.other {
            $0.policy = .offline
            $0.form = .nothing
        }
        #expect(try offline.outcome().plan == .refuse(.nothingKept))
        let lacking = Self.other { $0.mayLack = true }
        #expect(try lacking.outcome().learned.contains(.originConfirmation))
    }
}
