import HLS
import HTTP
@testable import Model
@testable import Origin
import Posix
import Store
import Testing
import Upstream

/// How flights end, resume and give up.
@Suite struct `Ends of flights` {
    private func story(
        wanted: Wanted = .whole, repliesAt: ReplyPoint = .head,
        resource change: (inout Resource.Parts) -> Void = { _ in },
        job: (inout FlightJob) -> Void = { _ in }
    ) -> FlightStory {
        var story = FlightStory(
            resource: FlightStory.resource(change), wanted: wanted, job: job)
        story.join(repliesAt)
        story.start()
        return story
    }

    // MARK: Breaks

    @Test func `an incomplete body is resumed where it ended`() {
        var story = story()
        story.whole(1_000_000)
        story.bytes(1_000)
        story.breaks()
        #expect(story.machine.phase == .backingOff && story.machine.fill != nil)
        story.timer()
        #expect(story.attempt?.rangeField == "bytes=1000-")
        story.part(1_000, 999_999, of: 1_000_000)
        story.bytes(999_000)
        story.end()
        #expect(story.completed && story.told.count == 1)
        story.checkEnd()
        #expect(story.broken == [])
    }

    @Test func `a player's body that arrived for a second is resumed without a pause, once`() {
        var story = story()
        #expect(!story.machine.hadSlot)
        story.slot()
        story.whole(1_000_000)
        story.bytes(1_000)
        story.pass(1_000)
        story.breaks()
        #expect(story.machine.hadSlot && story.timers == 0 && story.sends == 2)
        #expect(story.attempt?.rangeField == "bytes=1000-")
        story.part(1_000, 999_999, of: 1_000_000)
        story.pass(1_000)
        // No new byte has come.
        story.breaks()
        #expect(story.timers == 1 && story.sends == 2)
        story.timer()
        story.part(1_000, 999_999, of: 1_000_000)
        story.bytes(1_000)
        story.pass(999)
        story.breaks()
        #expect(story.timers == 1 && story.sends == 3 && story.delay == .milliseconds(125))
        #expect(story.broken == [])
    }

    @Test func `a body is resumed after a pause where nobody waits or the origin is down`() {
        var ahead = FlightStory(job: { $0.beganAhead = true })
        ahead.start()
        for (begun, isDown) in [(ahead, false), (story(), true)] {
            var story = begun
            story.whole(1_000_000)
            story.bytes(1_000)
            story.pass(1_000)
            story.breaks(isDown: isDown)
            #expect(story.timers == 1 && story.sends == 1)
        }
    }

    @Test func `a body whose version cannot be verified is not resumed`() {
        var story = story()
        story.hasStrongValidator = false
        story.whole(nil)
        story.bytes(1_000)
        story.breaks()
        #expect(story.machine.hasEnded && !story.completed)
        story.checkEnd()
    }

    @Test func `an incomplete playlist is fetched anew`() {
        var story = story(repliesAt: .completion) { $0.role = .playlist }
        story.whole(1_000_000)
        story.bytes(1_000)
        story.breaks()
        #expect(story.machine.fill == nil && story.body == nil)
        story.timer()
        #expect(story.attempt?.askedRange == nil && story.broken == [])
    }

    @Test func `a transfer that fails after its last byte is complete`() {
        var story = story()
        story.whole(1_000_000)
        story.bytes(1_000_000)
        story.breaks()
        #expect(story.completed)
        story.checkEnd()
        #expect(story.broken == [])
    }

    @Test func `attempts without a new byte are counted, and waiters are answered once`() {
        var story = story()
        story.whole(1_000_000)
        story.bytes(1_000)
        var attempts = 0
        while !story.machine.hasEnded, attempts < 100 {
            story.breaks()
            story.timer()
            attempts += 1
        }
        #expect(attempts == FlightStory.limits.retries + 1)
        story.checkEnd()
        #expect(story.broken == [])
    }

    @Test func `an origin that sends no head is requested three times`() {
        var story = story()
        while !story.machine.hasEnded, story.sends < 100 {
            story.breaks()
            story.timer()
        }
        #expect(story.sends == 3 && Array(story.told.values) == [.failure(.badGateway)])
    }

    @Test func `a resource that failed a moment ago is requested once`() {
        var story = story(job: { $0.mayRepeat = false })
        story.breaks()
        #expect(story.sends == 1 && story.machine.hasEnded)
    }

    @Test func `a body that has begun is resumed, also soon after a failure`() {
        var begun = story(job: { $0.mayRepeat = false })
        begun.whole(1_000_000)
        begun.bytes(1_000)
        begun.breaks()
        begun.timer()
        #expect(begun.sends == 2)
        begun.status(.serviceUnavailable)
        begun.breaks(.cancelled)
        #expect(begun.machine.phase == .backingOff)
        var empty = story(job: { $0.mayRepeat = false })
        empty.whole(1_000_000)
        empty.breaks()
        #expect(empty.machine.hasEnded)
    }

    @Test func `a preempted transfer is resumed immediately and costs no attempt`() {
        var story = story()
        for _ in 0..<10 {
            story.breaks(.preempted)
            #expect(story.delay == .zero)
            story.timer()
        }
        #expect(story.sends == 11)
    }

    @Test func `a permanent error is reported immediately`() {
        var story = story()
        story.breaks(.addressRefused("10.0.0.1"))
        #expect(Array(story.told.values) == [.failure(.forbidden)] && story.sends == 1)
    }

    @Test func `an origin that is down is not requested again for a head`() {
        var story = story()
        story.breaks(isDown: true)
        #expect(story.machine.hasEnded && story.sends == 1)
    }

    @Test func `a body without readers is not resumed`() {
        var story = FlightStory()
        story.start()
        story.whole(1_000_000)
        story.bytes(1_000)
        story.breaks(isWanted: false)
        #expect(story.machine.hasEnded && story.sends == 1)
        story.checkEnd()
    }

    @Test func `a body shorter than its promised end is truncated`() {
        var story = story()
        story.whole(1_000_000)
        story.bytes(1_000)
        story.end()
        #expect(!story.completed && story.machine.phase == .backingOff)
    }

    @Test func `waiters are answered when the daemon cancels a transfer`() {
        var story = story()
        story.breaks(.cancelled)
        #expect(story.told.count == 1)
        story.checkEnd()
    }

    // MARK: The end of a body that ends with its connection

    @Test func `the origin is asked whether a body of unknown length continues`() {
        var story = story()
        story.whole(nil, provesItsEnd: false)
        story.bytes(1_000)
        story.end()
        #expect(story.attempt?.question == .end && story.attempt?.rangeField == "bytes=1000-")
        story.endIsKnown = true
        story.status(.rangeNotSatisfiable)
        #expect(story.completed && story.body?.isDiscarded == false)
        story.checkEnd()
        #expect(story.broken == [])
    }

    @Test func `a body of unknown length that breaks after its last byte is complete`() {
        for (total, told) in [
            (1_000, .object), (900, .failure(.rangeNotSatisfiable)),
        ] as [(Int64, FlightStory.Told)] {
            var story = story(repliesAt: .completion)
            story.whole(nil)
            story.bytes(1_000)
            story.breaks()
            story.timer()
            #expect(story.attempt?.rangeField == "bytes=1000-")
            story.head(
                ResponseFacts(status: .rangeNotSatisfiable, range: .unsatisfied(total: total)),
                KnownFacts(hasObject: true))
            #expect(Array(story.told.values) == [told] && story.completed == (told == .object))
            #expect(story.body?.isDiscarded == false)
            story.checkEnd()
            #expect(story.broken == [])
        }
    }

    @Test func `the query for the end of a body survives a failed transfer`() {
        var story = story()
        story.whole(nil, provesItsEnd: false)
        story.bytes(1_000)
        story.end()
        // Its head has no length: the rest is located by a strong validator.
        story.breaks()
        story.timer()
        #expect(story.attempt?.question == .end)
        story.status(.serviceUnavailable)
        story.breaks(.cancelled)
        story.timer()
        #expect(story.attempt?.question == .end)
    }

    @Test func `a body with an unverified end is passed on and not stored`() {
        var story = story()
        story.whole(nil, provesItsEnd: false)
        story.bytes(1_000)
        story.end()
        story.head(ResponseFacts(status: .ok))
        #expect(story.completed && story.body?.isDiscarded == true && story.broken == [])
    }

    @Test func `an origin that ignores ranges is not asked whether a body continues`() {
        var story = story(wanted: .span(start: 500, end: nil))
        let machine = story.machine
        func loses(_ status: HTTPStatus) -> Bool {
            machine.losesBody(provesItsEnd: false, hasStrongValidator: true, status: status)
        }
        #expect(loses(.ok) && !loses(.partialContent))
        story.whole(nil, provesItsEnd: false)
        story.bytes(1_000)
        story.end()
        #expect(story.sends == 1 && story.completed)
        #expect(story.body?.isDiscarded == true && story.broken == [])
    }

    @Test func `a playlist that was cut at the end of its connection is fetched anew`() {
        var story = story(repliesAt: .completion) { $0.role = .playlist }
        story.isCutList = true
        story.whole(nil, provesItsEnd: false)
        story.bytes(1_000)
        story.end()
        #expect(!story.completed && story.told.isEmpty && story.body == nil)
        story.timer()
        story.isCutList = false
        story.whole(nil, provesItsEnd: false)
        story.bytes(1_000)
        story.end()
        #expect(story.completed && story.sends == 2 && story.broken == [])
    }

    @Test func `a body that continues is filled further`() {
        var story = story()
        story.whole(nil, provesItsEnd: false)
        story.bytes(1_000)
        story.end()
        story.part(1_000, 1_999, of: 2_000)
        story.bytes(1_000)
        story.end()
        #expect(story.completed && story.body?.isDiscarded == false && story.broken == [])
    }

    // MARK: Texts

    @Test func `a requested part of a text leads to a request for the whole`() {
        var story = story(wanted: .span(start: 0, end: 100), repliesAt: .completion) {
            $0.role = .playlist
        }
        story.part(0, 99, of: 1_000)
        story.bytes(100)
        story.end()
        #expect(story.machine.phase == .backingOff && story.machine.wanted == .whole)
        story.timer()
        #expect(story.attempt?.askedRange == nil)
    }

    @Test func `an unrequested part of a text is requested once more`() {
        var story = story(repliesAt: .completion) { $0.role = .playlist }
        for _ in 0..<2 {
            story.part(0, 99, of: 1_000)
            story.bytes(100)
            story.end()
            story.timer()
        }
        #expect(story.sends == 2 && Array(story.told.values) == [.failure(.badGateway)])
    }

    @Test func `a list that came too early is requested again for a limited time`() {
        var story = story(
            repliesAt: .completion, resource: { $0.role = .playlist },
            job: { $0.hasDirectives = true })
        let early = FlightMachine.EarlyList(
            pause: .milliseconds(500), lastRepeat: .seconds(6 as Int64))
        for _ in 0..<3 {
            story.whole(nil)
            story.bytes(100)
            story.end()
            #expect(story.machine.filling?.stage == .readingLists)
            story.perform(story.machine.listsRead(early, story.facts!, story.ending()))
            #expect(story.delay == .milliseconds(500))
            story.timer()
        }
        #expect(story.machine.budget.requests == 1, "such a request costs nothing")
        story.pass(6_000)
        story.whole(nil)
        story.bytes(100)
        story.end()
        story.perform(story.machine.listsRead(early, story.facts!, story.ending()))
        #expect(story.completed && story.told.count == 1 && story.broken == [])
    }

    // MARK: Budget

    @Test func `a spent budget is replaced by that of a joined request`() {
        var story = FlightStory(allowance: .init(requests: 2))
        let first = story.join()
        let second = story.join(budget: OriginBudget(now: story.now))
        story.start()
        story.perform(story.machine.followsRedirect(now: story.now, isHeldByOrigin: false))
        #expect(story.told.isEmpty)
        story.perform(story.machine.followsRedirect(now: story.now, isHeldByOrigin: false))
        #expect(story.told[first] == .failure(.badGateway) && story.told[second] == nil)
        #expect(!story.machine.hasEnded)
    }

    @Test func `a flight fails if no waiting request has a budget`() {
        var story = FlightStory(allowance: .init(requests: 2))
        story.join()
        story.start()
        story.perform(story.machine.followsRedirect(now: story.now, isHeldByOrigin: false))
        story.perform(story.machine.followsRedirect(now: story.now, isHeldByOrigin: false))
        #expect(story.machine.hasEnded && story.told.count == 1)
        story.checkEnd()
        #expect(story.broken == [])
    }

    @Test func `bytes that repeat again and again end a flight`() {
        var story = FlightStory()
        story.join()
        story.start()
        var rounds = 0
        while !story.machine.hasEnded, rounds < 100 {
            // The origin ignores ranges and fails at the same byte.
            story.whole(10_000_000)
            story.bytes(1_000_000)
            story.breaks()
            story.timer()
            rounds += 1
        }
        #expect(rounds == 5)
        story.checkEnd()
    }

    @Test func `a response that takes too long fails, unless the origin may hold it`() {
        var story = story()
        story.pass(20_001)
        let none = story.machine.failOverdue(now: story.now, isHeldByOrigin: true)
        #expect(none == nil)
        let actions = story.machine.failOverdue(now: story.now, isHeldByOrigin: false)
        story.perform(actions ?? [])
        #expect(Array(story.told.values) == [.failure(.gatewayTimeout)])
    }

    @Test func `the time in the queue for a slot is not counted as the origin's`() {
        var story = story()
        story.pass(19_000)
        story.machine.wasSent(now: story.now)
        story.pass(19_000)
        let none = story.machine.failOverdue(now: story.now, isHeldByOrigin: false)
        #expect(none == nil)
        story.pass(1_001)
        let actions = story.machine.failOverdue(now: story.now, isHeldByOrigin: false)
        story.perform(actions ?? [])
        #expect(Array(story.told.values) == [.failure(.gatewayTimeout)])
    }

    @Test func `the wait for the return of an origin is not counted as its time to answer`() {
        var story = story(job: { $0.awaitsReturn = true })
        story.awaitsReturn = true
        story.breaks(.connectTimeout, isDown: true)
        for _ in 0..<15 {
            story.pass(1_000)
            story.looks()
        }
        story.timer()
        story.pass(10_000)
        story.roundEnds()
        #expect(story.sends == 2 && story.told.isEmpty)
        story.pass(10_001)
        story.roundEnds()
        #expect(Array(story.told.values) == [.failure(.gatewayTimeout)])
    }

    // MARK: Those who wait and read

    @Test func `a request that joins after the head is answered immediately`() {
        var story = story()
        story.whole(1_000_000)
        let late = story.join()
        #expect(story.told[late] == .object)
        let whole = story.join(.completion)
        #expect(story.told[whole] == nil)
    }

    @Test func `a request that left is not answered`() {
        var story = FlightStory()
        let id = story.join()
        story.start()
        let isLast = story.machine.leave(id)
        #expect(isLast)
        story.whole(1_000_000)
        #expect(story.told.isEmpty)
    }

    @Test func `a transfer is paused for slow readers, but not while a request waits`() {
        var story = story()
        story.whole(1_000_000)
        let pauses = (0..<2).map { _ in story.machine.pauseTransfer(at: story.now) }
        #expect(pauses == [true, false] && story.machine.pausedSince == story.now)
        story.join(.completion)
        let pausesAgain = story.machine.pauseTransfer(at: story.now)
        #expect(!pausesAgain && story.machine.pausedSince == nil)
    }

    @Test func `a body waits for the return of its origin for longer than its player's patience`() {
        for isAwaited in [true, false] {
            var story = story()
            story.whole(1_000_000)
            story.bytes(1_000)
            story.breaks(.stalled)
            story.timer()
            story.pass(20_000)
            story.awaitsReturn = isAwaited
            story.breaks(.connectTimeout, isDown: true)
            #expect(story.machine.hasEnded == !isAwaited)
            guard isAwaited else { continue }
            for _ in 0..<10 { story.looks() }
            #expect(story.machine.phase == .backingOff && story.sends == 2)
            story.timer()
            #expect(story.sends == 3 && story.attempt?.rangeField == "bytes=1000-")
            #expect(story.broken == [])
        }
    }

    @Test func `a request that waits for an origin is repeated after each failure of it`() {
        var story = FlightStory(job: { $0.awaitsReturn = true })
        story.awaitsReturn = true
        story.join()
        story.start()
        story.breaks(.connectTimeout, isDown: true)
        #expect(story.machine.phase == .backingOff)
        story.looks()
        story.timer()
        #expect(story.sends == 2)
        story.awaitsReturn = false
        story.breaks(.connectTimeout, isDown: true)
        #expect(Array(story.told.values) == [.failure(.gatewayTimeout)])
        story.checkEnd()
        #expect(story.broken == [])
    }

    @Test func `a failure after the wait for an origin is followed by another attempt`() {
        var story = FlightStory { $0.awaitsReturn = true }
        story.join()
        story.start(after: .milliseconds(200))
        for _ in 0..<10 {
            story.pass(1_000)
            story.looks()
        }
        for attempt in 1...3 {
            story.timer()
            #expect(story.sends == attempt && !story.machine.hasEnded)
            story.breaks(.reset)
        }
        #expect(Array(story.told.values) == [.failure(.badGateway)])
        story.checkEnd()
        #expect(story.broken == [])
    }

    @Test func `failures before the wait for an origin do not count after it`() {
        var story = FlightStory(job: { $0.awaitsReturn = true })
        for _ in 0..<2 { _ = story.machine.budget.with { $0.fail() } }
        story.join()
        story.start(after: .milliseconds(200))
        story.looks()
        story.timer()
        story.breaks(.reset)
        #expect(!story.machine.hasEnded)
    }

    @Test func `a body that nobody reads does not wait for its origin`() {
        var story = story()
        story.whole(1_000_000)
        story.bytes(1_000)
        story.awaitsReturn = true
        story.breaks(.stalled, isDown: true, isWanted: false)
        #expect(story.machine.hasEnded && story.broken == [])
    }

    @Test func `an abandoned flight ignores further events`() {
        var story = FlightStory()
        story.start()
        story.whole(1_000_000)
        story.perform(story.machine.abandon())
        story.perform(story.machine.abandon())
        story.bytes(100)
        story.end()
        story.checkEnd()
        #expect(story.broken == [])
    }

    @Test func `a player's request takes over a prefetch`() {
        var story = FlightStory { $0.beganAhead = true }
        story.start()
        let first = story.machine.takeForPlayback(.express)
        #expect(first != nil && story.machine.lane == .express && !story.machine.isAhead)
        let second = story.machine.takeForPlayback(.express)
        #expect(second == nil)
    }
}
