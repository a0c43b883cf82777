import CachePolicy
import Model
import Posix
@testable import Serving
@testable import Store
import Testing

/// The plan for the bytes of a response before its head is sent.
@Suite struct BodyPlanTests {
    private func facts(
        _ disposition: Disposition = .hit, policy: Policy = .media,
        origin: OriginHealth.State = .up, wasAsked: Bool = false, total: Int64? = 1_000,
        isPresent: Bool = false, hole: Hole? = nil
    ) -> BodyFacts {
        BodyFacts(
            disposition: disposition, policy: policy, origin: origin, wasAsked: wasAsked, start: 0,
            end: 500, total: total, isPresent: isPresent, hole: hole, joinDistance: 100)
    }

    private let hole = Hole(fill: nil, fillDistance: 0, end: 200, endedFills: 0)

    @Test func `stored bytes are sent, and a partial object is a partial hit`() {
        #expect(facts(isPresent: true).plan == .send(.hit))
        #expect(facts().plan == .send(.partial))
        #expect(facts(.staleOnError).plan == .send(.staleOnError))
    }

    @Test func `a missing first byte is requested up to the end of the hole`() {
        #expect(facts(hole: hole).plan == .fetchFirst(stop: 200))
        var open = facts(total: 200, hole: hole)
        #expect(open.plan == .fetchFirst(stop: nil))
        open.isHead = true
        #expect(open.plan == .send(.partial))
    }

    @Test func `a request that needs no fetch of its own is collapsed with the running one`() {
        func plan(distance: Int64 = 0, fillEnd: Int64? = nil, end: Int64? = nil) -> BodyPlan {
            var facts = facts()
            facts.firstHole = Hole(
                fill: FillID(number: 1), fillDistance: distance, fillEnd: fillEnd, end: end,
                endedFills: 0)
            return facts.plan
        }
        #expect(plan() == .send(.collapsed))
        #expect(plan(distance: 101) == .send(.partial))
        #expect(plan(fillEnd: 500) == .send(.collapsed))
        #expect(plan(fillEnd: 499) == .send(.partial))
        #expect(plan(fillEnd: 200, end: 200) == .send(.collapsed))
        var unfilled = facts()
        unfilled.firstHole = hole
        #expect(unfilled.plan == .send(.partial))
        var down = facts(origin: .down)
        down.firstHole = Hole(
            fill: FillID(number: 1), fillDistance: 0, end: nil, endedFills: 0)
        #expect(down.plan == .refuse(.partOfSilentOrigin))
    }

    @Test func `bytes that a running fill writes soon are awaited`() {
        let near = Hole(fill: FillID(number: 1), fillDistance: 100, end: nil, endedFills: 0)
        let far = Hole(fill: FillID(number: 1), fillDistance: 101, end: nil, endedFills: 0)
        #expect(facts(hole: near).plan == .send(.partial))
        #expect(facts(hole: far).plan == .fetchFirst(stop: 500))
    }

    @Test func `the origin is not asked twice, except for a range that the first fetch left out`() {
        var asked = facts(.miss, wasAsked: true, hole: hole)
        #expect(asked.plan == .send(.miss))
        asked.mayAskAgain = true
        #expect(asked.plan == .fetchFirst(stop: 200))
        // A revalidation brings a new version from its first byte on.
        asked.hole = Hole(fill: FillID(number: 1), fillDistance: 101, end: nil, endedFills: 0)
        #expect(asked.plan == .fetchFirst(stop: 500))
        asked.hole = Hole(fill: FillID(number: 1), fillDistance: 100, end: nil, endedFills: 0)
        #expect(asked.plan == .send(.miss))
    }

    @Test func `a range of a body of unknown length waits for its first byte once`() {
        var range = facts(.miss, wasAsked: true, total: nil, hole: hole)
        range.isRange = true
        #expect(range.plan == .awaitFirst)
        range.hasAwaited = true
        #expect(range.plan == .send(.miss))
    }

    @Test func `a range of a body of unknown length waits for a last byte that is on its way`() {
        var range = facts(.miss, wasAsked: true, total: nil)
        range.isRange = true
        #expect(range.plan == .send(.miss))
        range.lastHole = Hole(
            fill: FillID(number: 1), fillDistance: 100, end: nil, endedFills: 0)
        #expect(range.plan == .awaitLast)
        range.lastHole = Hole(
            fill: FillID(number: 1), fillDistance: 101, end: nil, endedFills: 0)
        #expect(range.plan == .send(.miss))
        range.lastHole = hole
        #expect(range.plan == .send(.miss))
    }

    @Test func `the head of a longer range waits less for its last byte`() {
        let lengths: [Int64] = [1, 64 << 10, (64 << 10) + 1, 1 << 20, (1 << 20) + 1, .max]
        let seconds = lengths.map { BodyFacts.patience(forLength: $0)?.inSeconds }
        #expect(seconds == [60, 60, 2, 2, nil, nil])
    }

    @Test func `a last byte that the origin has promised is not awaited`() {
        var range = facts(.miss, wasAsked: true, total: nil)
        range.isRange = true
        range.lastHole = Hole(
            fill: FillID(number: 1), fillDistance: 100, fillEnd: 500, end: nil, endedFills: 0)
        #expect(range.plan == .send(.miss))
    }

    @Test func `a part is refused if the origin must not be asked, or does not answer`() {
        #expect(facts(policy: .offline, hole: hole).plan == .refuse(.partNotStored))
        #expect(facts(origin: .down, hole: hole).plan == .refuse(.partOfSilentOrigin))
        #expect(facts(origin: .suspected, hole: hole).plan == .fetchFirst(stop: 200))
        var awaited = facts(origin: .down, hole: hole)
        awaited.isAwaited = true
        #expect(awaited.plan == .fetchFirst(stop: 200))
        awaited.isHead = true
        #expect(awaited.plan == .refuse(.partOfSilentOrigin))
        #expect(facts(policy: .offline, isPresent: true).plan == .send(.hit))
    }
}
