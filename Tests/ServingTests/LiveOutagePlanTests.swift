import CachePolicy
@testable import Model
import Posix
@testable import Serving
import Testing

/// The plan of requests for a live list whose origin fails.
///
/// The stored list ends after segment 4 and two parts of the next, and stays unchanged for 21
/// seconds.
@Suite struct LiveOutagePlanTests {
    private static let offline = RequestPlan.serve(Disposition.offline, ttl: nil)

    /// A live list while its origin is down.
    private static func down(
        age: Int64, _ change: (inout PlanStage) -> Void = { _ in }
    ) -> PlanStage {
        .live(age: age) { stage in
            stage.origin = .down
            stage.hasDown = true
            stage.form = .cut
            change(&stage)
        }
    }

    /// A reload of it that failed, by a player that waits for a part.
    private static func reload(
        of part: Int, age: Int64, _ change: (inout PlanStage) -> Void = { _ in }
    ) -> PlanStage {
        down(age: age) { stage in
            stage.isReload = true
            stage.awaited = (5, part)
            stage.failure = .init(allowsStale: true, isOfReload: true)
            change(&stage)
        }
    }

    @Test func `a player that has more than the stored list gets the failure, not an end`() throws {
        #expect(try Self.reload(of: 3, age: 10).outcome().plan == .refuse(.failure))
        let afterDeltas = Self.reload(of: 3, age: 100) { $0.sinceReading = .seconds(20) }
        #expect(try afterDeltas.outcome().plan == .refuse(.failure))
    }

    @Test func `three target durations after the last update, the stream has ended for it too`()
        throws
    {
        #expect(try Self.reload(of: 3, age: 100).outcome().plan == Self.offline)
        let afterDeltas = Self.reload(of: 3, age: 100) { $0.sinceReading = .seconds(21) }
        #expect(try afterDeltas.outcome().plan == Self.offline)
    }

    @Test func `delta updates keep the list that they leave behind unchanged`() throws {
        let read = { (stage: inout PlanStage) in stage.sinceReading = .seconds(2) }
        let stale = RequestPlan.serve(.staleOnError, ttl: -97)
        #expect(try Self.down(age: 100, read).outcome().plan == stale)
        let failed = Self.down(age: 100) { stage in
            read(&stage)
            stage.failure = .init(allowsStale: true)
        }
        #expect(try failed.outcome().plan == stale)
        #expect(try Self.reload(of: 2, age: 100, read).outcome().plan == .serveLater)
    }

    @Test func `the last reading is looked up only for a list that is too old itself`() throws {
        #expect(try !Self.down(age: 10).outcome().learned.contains(.reading))
        #expect(try Self.down(age: 100).outcome().learned.contains(.reading))
    }

    @Test func `before a list ends, the origins of what it lacks are asked`() throws {
        let failed = RequestFacts.Failure(allowsStale: true)
        for failure in [nil, failed] {
            let (plan, learned, _) = try Self.down(age: 100) { $0.failure = failure }.outcome()
            #expect(plan == Self.offline)
            let asked = try #require(learned.firstIndex(of: .originConfirmation))
            #expect(learned.dropFirst(asked + 1).first == .offlineForm)
        }
        // Until then no origin is asked.
        let unchanged = try Self.down(age: 10).outcome()
        #expect(!unchanged.learned.contains(.originConfirmation))
    }

    // MARK: After the first refusal

    /// A request for it that failed by a first refusal; the next one shows that the origin is down.
    private static func refused(
        age: Int64, _ change: (inout PlanStage) -> Void = { _ in }
    ) -> PlanStage {
        .live(age: age) { stage in
            stage.origin = .suspected
            stage.failure = .init(allowsStale: true)
            change(&stage)
        }
    }

    @Test func `a list that would end waits for the refusal that confirms the first`() throws {
        var (plan, learned, facts) = try Self.refused(age: 100).outcome()
        #expect(learned.contains(.originConfirmation))
        // The origin has answered.
        #expect(plan == .refuse(.failure))
        facts.origin = .down
        facts.hasDown = true
        plan = facts.plan
        #expect(plan != .refuse(.failure) && !plan.asksOrigin)
        learned = try Self.refused(age: 100) { $0.hasDown = true }.outcome().learned
        #expect(learned.contains(.originConfirmation))
    }

    @Test func `a list that stays unchanged, or has a longer window, waits for no confirmation`()
        throws
    {
        for stage in [
            Self.refused(age: 10), Self.refused(age: 100) { $0.sinceReading = .seconds(2) },
            Self.refused(age: 100) {
                $0.isShifted = true
                $0.text = .readable(PlaylistFacts(isLive: true), isShifted: true)
            },
        ] {
            let (plan, learned, _) = try stage.outcome()
            #expect(plan.disposition == .staleOnError)
            #expect(!learned.contains(.originConfirmation))
        }
    }
}
