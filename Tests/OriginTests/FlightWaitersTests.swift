import Model
@testable import Origin
import Posix
import Testing

/// Which waiters of a flight are answered, and when readers were given its object.
@Suite struct FlightWaitersTests {
    private let now = Monotonic(nanoseconds: 1_000_000_000_000)

    private func waiters(wasObjectGiven: Bool = false) -> FlightWaiters {
        FlightWaiters(begunAt: now, wasObjectGiven: wasObjectGiven)
    }

    private func waiter(
        _ repliesAt: ReplyPoint = .head, budget: OriginBudget? = nil
    ) -> FlightWaiter {
        FlightWaiter(
            id: FetchID(), repliesAt: repliesAt, isCollapsed: false, wanted: .whole,
            budget: budget, reply: { _ in })
    }

    private func ids(_ waiters: [FlightWaiter]) -> [FetchID] { waiters.map(\.id) }

    @Test func `at the head, waiters for the complete body stay`() {
        var waiters = waiters()
        let (first, complete, second) = (waiter(), waiter(.completion), waiter())
        for waiter in [first, complete, second] { waiters.add(waiter, now: now) }
        let atHead = waiters.giveAtHead(now: now)
        #expect(ids(atHead) == [first.id, second.id])
        #expect(ids(waiters.all) == [complete.id])
        let again = waiters.giveAtHead(now: now)
        #expect(again.isEmpty)
        let atEnd = waiters.giveToAll(now: now)
        #expect(ids(atEnd) == [complete.id])
        #expect(waiters.isEmpty)
    }

    @Test func `a waiter that leaves is not answered`() {
        var waiters = waiters()
        let (gone, other) = (waiter(), waiter())
        waiters.add(gone, now: now)
        waiters.add(other, now: now)
        waiters.remove(gone.id)
        waiters.remove(gone.id)
        #expect(ids(waiters.all) == [other.id])
    }

    @Test func `a spent budget takes its own waiters along, and no others`() {
        var waiters = waiters()
        let spent = OriginBudget(OriginAllowance.Limits(requests: 0), now: now)
        let other = OriginBudget(now: now)
        let (first, unpaid, second) = (waiter(budget: spent), waiter(), waiter(budget: spent))
        for waiter in [first, unpaid, second] { waiters.add(waiter, now: now) }
        #expect(waiters.budgetToBorrow == nil)
        let payer = waiter(budget: other)
        waiters.add(payer, now: now)
        #expect(waiters.budgetToBorrow === other)
        let taken = waiters.take(of: spent)
        #expect(ids(taken) == [first.id, second.id])
        #expect(ids(waiters.all) == [unpaid.id, payer.id])
    }

    @Test func `only an object that was given to a waiter was given lately`() {
        let limit = Interval.milliseconds(50)
        var waiters = waiters()
        waiters.add(waiter(.completion), now: now)
        // Nobody is answered at the head.
        _ = waiters.giveAtHead(now: now)
        #expect(!waiters.wasObjectGiven)
        waiters.noteReaders()
        #expect(waiters.wasObjectGiven && !waiters.wasObjectGivenLately(now, within: limit))
        _ = waiters.giveToAll(now: now)
        waiters.noteReaders()
        #expect(waiters.wasObjectGivenLately(now + .milliseconds(49), within: limit))
        #expect(!waiters.wasObjectGivenLately(now + limit, within: limit))
        // There is nobody left to give it to.
        _ = waiters.giveToAll(now: now + limit)
        #expect(!waiters.wasObjectGivenLately(now + limit, within: limit))
    }

    @Test func `an object that readers held before the flight was not given lately`() {
        let waiters = waiters(wasObjectGiven: true)
        #expect(waiters.wasObjectGiven)
        #expect(!waiters.wasObjectGivenLately(now, within: .seconds(1 as Int64)))
    }

    @Test func `waiters that are taken out do not change when the last one joined`() {
        var waiters = waiters()
        #expect(waiters.lastJoinedAt == now)
        let joined = now + .milliseconds(5)
        waiters.add(waiter(), now: joined)
        _ = waiters.takeAll()
        #expect(waiters.lastJoinedAt == joined)
    }
}
