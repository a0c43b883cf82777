import CachePolicy
import HTTP
@testable import Model
@testable import Origin
import Posix
import Store
import Testing
import URISyntax
import Upstream

/// Every transition of a flight.
@Suite struct `Flight machine` {
    private func story(
        wanted: Wanted = .whole, wasObjectGiven: Bool = false,
        resource change: (inout Resource.Parts) -> Void = { _ in },
        job: (inout FlightJob) -> Void = { _ in }
    ) -> FlightStory {
        var story = FlightStory(
            resource: FlightStory.resource(change), wanted: wanted, wasObjectGiven: wasObjectGiven,
            job: job)
        story.join()
        story.start()
        return story
    }

    // MARK: Asking

    @Test func `a flight sends a request immediately and answers at the head`() {
        var story = story()
        #expect(story.transfer == .running && story.machine.phase == .asking)
        story.whole(1_000_000)
        #expect(story.machine.isFilling && Array(story.told.values) == [.object])
        story.bytes(1_000_000)
        story.end()
        #expect(story.completed)
        story.checkEnd()
        #expect(story.broken == [])
    }

    @Test func `a flight to an origin that refuses connections waits`() {
        var story = FlightStory()
        story.join()
        story.start(after: .milliseconds(20))
        #expect(story.transfer == .none && story.machine.phase == .backingOff)
        story.timer(.init(isWanted: true, pause: .milliseconds(30)))
        #expect(story.delay == .milliseconds(30) && story.sends == 0)
        story.timer()
        #expect(story.sends == 1)
    }

    @Test func `a flight to an origin that is down fails without a request`() {
        var story = FlightStory()
        story.join()
        story.start(after: .milliseconds(20))
        let down = ProxyFailure(.origin, .badGateway, "down")
        story.timer(.init(isWanted: true, pause: .milliseconds(30), refusal: down))
        #expect(story.sends == 0 && Array(story.told.values) == [.failure(.badGateway)])
        story.checkEnd()
    }

    @Test
    func `an incomplete body waits for an origin that is down until its player's patience ends`() {
        var story = story()
        story.whole(1_000_000)
        story.bytes(1_000)
        story.breaks()
        let turn = FlightMachine.Turn(
            isWanted: true, pause: .milliseconds(30), refusal: .noRoom)
        story.timer(turn)
        #expect(story.machine.phase == .backingOff)
        story.pass(8_001)
        story.timer(turn)
        #expect(story.machine.hasEnded)
    }

    @Test func `no request follows a back-off if no player waits`() {
        var story = FlightStory()
        story.start(after: .milliseconds(20))
        story.timer(.init(isWanted: false))
        #expect(story.sends == 0 && story.machine.hasEnded)
        story.checkEnd()
    }

    // MARK: Heads

    @Test(arguments: [408, 425, 429, 500, 502, 503, 504] as [UInt16])
    func `a temporary status is retried`(code: UInt16) {
        var story = story()
        let status = HTTPStatus(rawValue: code)
        story.status(status)
        #expect(story.machine.isRefused && story.transfer == .dismissed && story.told.isEmpty)
        story.breaks(.cancelled)
        #expect(story.machine.phase == .backingOff && story.delay == .milliseconds(125))
        #expect(story.failures == 1)
        story.timer()
        #expect(story.sends == 2)
    }

    @Test(arguments: [true, false])
    func `a loop is told as such, and no 508 is retried`(isLoop: Bool) {
        var story = story()
        var head = ResponseFacts(status: .loopDetected)
        head.isLoop = isLoop
        story.head(head)
        let expected = isLoop ? HTTPStatus.loopDetected : .badGateway
        #expect(Array(story.told.values) == [.failure(expected)] && story.sends == 1)
        story.checkEnd()
    }

    @Test func `Retry-After is the minimum pause, and one that is too long fails`() {
        var story = story()
        story.status(.serviceUnavailable, retryAfter: .seconds(3 as Int64))
        story.breaks(.cancelled)
        #expect(story.delay == .seconds(3 as Int64))
        story.timer()
        story.status(.serviceUnavailable, retryAfter: .seconds(9 as Int64))
        story.breaks(.cancelled)
        #expect(Array(story.told.values) == [.failure(.badGateway)])
        story.checkEnd()
    }

    @Test func `pauses that the origin asks for add up to a player's patience at most`() {
        var story = story()
        for _ in 0..<2 {
            story.pass(20)
            story.status(.serviceUnavailable, retryAfter: .seconds(3 as Int64))
            story.breaks(.cancelled)
            #expect(story.delay == .seconds(3 as Int64) && story.told.isEmpty)
            story.pass(3_000)
            story.timer()
        }
        // A third pause would end after nine seconds, and the patience is eight.
        story.status(.serviceUnavailable, retryAfter: .seconds(3 as Int64))
        story.breaks(.cancelled)
        #expect(Array(story.told.values) == [.failure(.badGateway)] && story.sends == 3)
        story.checkEnd()
    }

    @Test func `a pause as long as a player's patience is waited for`() {
        var story = story()
        story.pass(20)
        story.status(.serviceUnavailable, retryAfter: .seconds(8 as Int64))
        story.breaks(.cancelled)
        #expect(story.delay == .seconds(8 as Int64))
    }

    @Test func `a pause that the origin asks for is remembered, also by one request only`() {
        var stale = story(job: { $0.revalidates = true })
        stale.status(.tooManyRequests, retryAfter: .seconds(5 as Int64))
        #expect(stale.refusedFor == .seconds(5 as Int64))
        #expect(Array(stale.told.values) == [.failure(.tooManyRequests)])
    }

    // MARK: The first attempt

    private static let limit = Interval.seconds(15 as Int64)

    @Test func `a first attempt that hangs is given up, and another has all of the time`() {
        var story = story()
        #expect(story.machine.firstByteLimit(Self.limit, isSlow: false) == .seconds(4 as Int64))
        #expect(!story.machine.needsNewConnection)
        story.slot()
        story.pass(4_000)
        story.breaks(.firstByteTimeout)
        // Without a pause, in which another request could take its slot.
        #expect(story.sends == 2 && story.timers == 0 && story.machine.hadSlot)
        #expect(story.machine.needsNewConnection)
        #expect(story.machine.firstByteLimit(Self.limit, isSlow: false) == Self.limit)
        #expect(!story.machine.needsNewConnection)
        story.pass(15_000)
        story.breaks(.firstByteTimeout)
        #expect(Array(story.told.values) == [.failure(.gatewayTimeout)])
        story.checkEnd()
        #expect(story.broken == [])
    }

    @Test func `a request that may take long, or is not repeated, has all of the time at once`() {
        var slow = story()
        #expect(slow.machine.firstByteLimit(Self.limit, isSlow: true) == Self.limit)
        slow.pass(15_000)
        slow.breaks(.firstByteTimeout)
        #expect(Array(slow.told.values) == [.failure(.gatewayTimeout)] && slow.sends == 1)
        var stale = story(job: { $0.revalidates = true })
        #expect(stale.machine.firstByteLimit(Self.limit, isSlow: false) == Self.limit)
        var again = story(job: { $0.mayRepeat = false })
        #expect(again.machine.firstByteLimit(Self.limit, isSlow: false) == Self.limit)
        var mounted = story(resource: { $0.kind = .gateway })
        #expect(mounted.machine.firstByteLimit(Self.limit, isSlow: false) == Self.limit)
        var short = story()
        let second = Interval.seconds(3 as Int64)
        #expect(short.machine.firstByteLimit(second, isSlow: false) == second)
    }

    @Test func `a late head of a fetch ahead does not show that the origin is slow`() {
        var ahead = story(job: { $0.beganAhead = true })
        #expect(!ahead.machine.showsSlowness)
        _ = ahead.machine.takeForPlayback(.playback)
        #expect(!ahead.machine.showsSlowness)
        #expect(story().machine.showsSlowness)
    }

    @Test func `an origin that sends interim responses has the time until the answer, once`() {
        var story = story()
        #expect(story.machine.headLimit(now: story.now) == .seconds(20 as Int64))
        // The wait for a slot is not the origin's.
        story.pass(10_000)
        story.slot()
        story.pass(4_000)
        story.breaks(.reset)
        story.timer()
        #expect(story.machine.headLimit(now: story.now) == .seconds(16 as Int64))
        story.pass(30_000)
        #expect(story.machine.headLimit(now: story.now) == .zero)
        story.whole(1_000_000)
        #expect(story.machine.headLimit(now: story.now) == .seconds(20 as Int64))
    }

    @Test func `a request that joins during a back-off is answered by the next attempt`() {
        var story = story()
        story.status(.serviceUnavailable)
        let request = JoinFacts(
            isSameQuestion: true, wanted: .whole, position: 0, hasObject: false, isAtHand: true)
        #expect(story.machine.covers(request))
        let late = story.join()
        story.breaks(.cancelled)
        #expect(story.machine.covers(request) && story.told[late] == nil)
        story.timer()
        story.whole(10_000_000)
        #expect(story.told[late] == .object)
    }

    @Test(arguments: [400, 403, 404, 410, 501] as [UInt16])
    func `a status that is not temporary is answered immediately`(code: UInt16) {
        var story = story()
        story.status(HTTPStatus(rawValue: code))
        #expect(story.machine.hasEnded && story.told.count == 1)
        story.checkEnd()
        #expect(story.broken == [])
    }

    @Test func `a 304 renews only the revalidated response`() {
        var asked = story(wasObjectGiven: true, job: { $0.revalidates = true })
        asked.status(.notModified)
        #expect(Array(asked.told.values) == [.renewed])
        asked.checkEnd()
        var other = story()
        other.status(.notModified)
        #expect(Array(other.told.values) == [.failure(.badGateway)])
    }

    @Test func `a failed revalidation is not repeated`() {
        var story = story(wasObjectGiven: true, job: { $0.revalidates = true })
        story.breaks()
        #expect(Array(story.told.values) == [.failure(.badGateway)])
        story.checkEnd()
    }

    @Test func `an error that no other request follows is told before its body has ended`() {
        let jobs: [@Sendable (inout FlightJob) -> Void] = [
            { $0.revalidates = true }, { $0.hasDirectives = true },
        ]
        for job in jobs {
            var story = story(job: job)
            story.status(.serviceUnavailable)
            #expect(Array(story.told.values) == [.failure(.badGateway)])
            story.checkEnd()
            #expect(story.broken == [])
        }
    }

    @Test func `a part must be the requested one and no longer than it claims`() {
        for head in [
            ResponseFacts(status: .partialContent),
            ResponseFacts(
                status: .partialContent, range: .satisfied(first: 5, last: 9, total: 10)),
            ResponseFacts(
                status: .partialContent, contentLength: 11,
                range: .satisfied(first: 0, last: 9, total: 20)),
        ] {
            var story = story(wanted: .span(start: 0, end: 10))
            story.head(head)
            #expect(Array(story.told.values) == [.failure(.badGateway)], "\(head)")
        }
    }

    @Test(arguments: [Wanted.span(start: 0, end: 2), .span(start: 10, end: nil), .suffix(50)])
    func `a part of an encoded body is not used; the whole is requested, once`(_ wanted: Wanted) {
        let part = ResponseFacts(
            status: .partialContent, range: .satisfied(first: wanted.start, last: 19, total: 20),
            isCodedAsKnown: false)
        var story = story(wanted: wanted)
        let other = story.join(wanted: .whole)
        story.head(part)
        #expect(story.sends == 2 && story.attempt?.askedRange == nil && story.told.isEmpty)
        var again = story
        story.whole(20)
        story.bytes(20)
        story.end()
        #expect(story.completed && story.told.count == 2 && story.told[other] == .object)
        story.checkEnd()
        #expect(story.broken == [])
        // An origin that sends a part again is not asked a third time.
        again.head(
            ResponseFacts(
                status: .partialContent, range: .satisfied(first: 0, last: 19, total: 20),
                isCodedAsKnown: false))
        #expect(again.sends == 2 && again.told[other] == .failure(.badGateway))
        again.checkEnd()
        #expect(again.broken == [])
    }

    @Test func `a text that comes whole and encoded in place of a part is requested decoded`()
        throws
    {
        let url = try AbsoluteURL("http://h/en.vtt")
        let coded = ResponseFacts(status: .ok, contentLength: 117, isCoded: true)
        var text = story(wanted: .span(start: 0, end: 64), resource: { $0.url = url })
        text.head(coded)
        #expect(text.sends == 2 && text.attempt?.askedRange == nil && text.told.isEmpty)
        // Once: what the origin sends then is taken.
        text.head(coded)
        text.bytes(117)
        text.end()
        #expect(text.sends == 2 && text.completed && Array(text.told.values) == [.object])
        #expect(text.broken == [])
        // Media is stored as it comes.
        var media = story(wanted: .span(start: 0, end: 64))
        media.head(coded)
        #expect(media.sends == 1 && media.machine.isHolding)
    }

    @Test func `a range in a body of unknown length is requested as a whole`() {
        var story = story(wanted: .span(start: 0, end: 10))
        story.status(.rangeNotSatisfiable)
        #expect(story.sends == 2 && story.attempt?.askedRange == nil && story.broken == [])
    }

    @Test func `the last bytes of an empty body are requested as a whole`() {
        for (total, sends) in [(0, 2), (50, 1)] as [(Int64, Int)] {
            var story = story(wanted: .suffix(5))
            story.head(
                ResponseFacts(status: .rangeNotSatisfiable, range: .unsatisfied(total: total)))
            #expect(story.sends == sends && story.broken == [])
        }
    }

    @Test func `a range beyond the end is the client's mistake`() {
        var story = story(wanted: .span(start: 100, end: nil), wasObjectGiven: true)
        story.head(
            ResponseFacts(
                status: .rangeNotSatisfiable, range: .unsatisfied(total: 50)),
            KnownFacts(hasObject: true))
        #expect(Array(story.told.values) == [.failure(.rangeNotSatisfiable)])
    }

    @Test func `a short body is received together with its head`() {
        var story = story()
        story.whole(100)
        #expect(story.machine.isHolding && story.told.isEmpty && story.machine.phase == .asking)
        story.bytes(100)
        #expect(story.machine.isFilling && Array(story.told.values) == [.object])
        story.end()
        #expect(story.completed && story.broken == [])
    }

    @Test func `a short body that fails is stored as far as it was received`() {
        var story = story()
        story.whole(100)
        story.breaks()
        #expect(Array(story.told.values) == [.object] && story.machine.phase == .backingOff)
    }

    @Test func `a response without content is not an object`() {
        var story = story(resource: { $0.kind = .shared }, job: { $0.method = .head })
        story.status(.ok)
        #expect(Array(story.told.values) == [.head])
        story.checkEnd()
        #expect(story.broken == [])
    }

    @Test(arguments: [HTTPMethod.get, .head], [500, 503, 599] as [UInt16])
    func `under a mount an error of the origin is a failure where a stale response serves`(
        method: HTTPMethod, code: UInt16
    ) {
        var stale = story(
            wasObjectGiven: true, resource: { $0.kind = .shared },
            job: { job in
                job.method = method
                job.revalidates = true
                job.staleServes = true
            })
        stale.status(HTTPStatus(rawValue: code))
        #expect(Array(stale.told.values) == [.failure(.badGateway)])
        stale.checkEnd()
        #expect(stale.broken == [])
    }

    @Test func `under a mount every status is passed on, also an unexpected part`() {
        var story = story(resource: { $0.kind = .shared })
        story.beginning.status = .notFound
        story.status(.notFound)
        #expect(story.machine.isFilling)
        var part = self.story(wanted: .span(start: 0, end: 10), resource: { $0.kind = .shared })
        part.head(
            ResponseFacts(
                status: .partialContent, range: .satisfied(first: 5, last: 14, total: 20)))
        #expect(part.machine.isOpaque && part.body?.total == 10)
        part.bytes(5)
        part.breaks()
        #expect(part.machine.hasEnded, "bytes in no known place cannot be resumed")
    }

    // MARK: Comparing

    private static func stored(_ spans: Range<Int64>, total: Int64) -> KnownFacts {
        KnownFacts(
            hasObject: true, compared: StoredBody(spans: SpanSet([spans]), total: total))
    }

    @Test func `a response is compared before its bytes are accepted`() {
        var story = story(wanted: .span(start: 100, end: nil), wasObjectGiven: true)
        story.beginning.status = .ok
        story.head(
            ResponseFacts(status: .ok, contentLength: 1_000), Self.stored(0..<100, total: 1_000))
        #expect(story.machine.intake == .compare && story.machine.phase == .asking)
        story.perform(story.machine.compared(60, areSame: true))
        #expect(story.machine.comparison?.position == 60)
        story.perform(story.machine.compared(40, areSame: true))
        #expect(story.machine.isFilling && story.machine.wanted.start == 100)
    }

    @Test func `another version is fetched anew if no byte was sent`() {
        var story = story(wanted: .span(start: 100, end: nil), wasObjectGiven: true)
        story.head(
            ResponseFacts(status: .ok, contentLength: 1_000), Self.stored(0..<100, total: 1_000))
        story.perform(story.machine.compared(60, areSame: false))
        #expect(story.sends == 2 && story.machine.phase == .asking && story.broken == [])
    }

    @Test func `another version ends a flight whose body was sent in part`() {
        var story = story()
        story.whole(1_000_000)
        story.bytes(1_000)
        story.perform(story.machine.foundOtherVersion())
        #expect(story.machine.hasEnded && story.body?.isDiscarded == true)
        story.checkEnd()
    }

    @Test func `a body that ends during the comparison is truncated`() {
        var story = story()
        story.whole(1_000_000)
        story.bytes(1_000)
        story.breaks()
        story.timer()
        story.head(
            ResponseFacts(status: .ok, contentLength: 1_000_000),
            Self.stored(0..<1_000, total: 1_000_000))
        #expect(story.machine.intake == .compare)
        story.end()
        #expect(!story.completed && story.machine.phase == .backingOff)
    }

    // MARK: Lanes and ends

    @Test func `a request that joins raises the lane, and never lowers it`() {
        var story = story()
        let waiter = FlightWaiter(
            id: FetchID(), repliesAt: .head, isCollapsed: true, wanted: .whole, budget: nil,
            reply: { _ in })
        let raised = story.machine.join(waiter, lane: .express, now: story.now)
        #expect(raised.count == 1 && story.machine.lane == .express)
        let same = story.machine.join(waiter, lane: .background, now: story.now)
        #expect(same.isEmpty && story.machine.lane == .express)
    }

    @Test func `a transfer ends when it reaches enough stored bytes`() {
        var story = story()
        story.whole(10_000_000)
        let machine = story.machine
        #expect(machine.endsAtStored(1 << 20, from: 0, total: 10_000_000))
        #expect(!machine.endsAtStored(1 << 20 - 1, from: 0, total: 10_000_000))
        #expect(machine.endsAtStored(10, from: 9_999_990, total: 10_000_000))
        story.join(.completion)
        #expect(!story.machine.endsAtStored(1 << 20, from: 0, total: 10_000_000))
    }

    @Test func `a transfer from an origin that ignores ranges continues through stored bytes`() {
        var story = story(wanted: .span(start: 5_000_000, end: nil))
        story.whole(10_000_000)
        #expect(story.machine.ranges.contains(.ignored))
        #expect(!story.machine.endsAtStored(5_000_000, from: 0, total: 10_000_000))
        #expect(story.machine.endsAtStored(2_000_000, from: 8_000_000, total: 10_000_000))
    }

    @Test func `an origin that ignores a range is noted`() {
        var story = story(wanted: .span(start: 0, end: 1_000))
        story.whole(10_000_000)
        #expect(story.machine.sendsMore && story.machine.ranges.contains(.ignored))
        #expect(story.machine.wanted == .whole)
    }

    @Test func `a redirect that comes too late fails`() {
        var story = story()
        story.pass(20_001)
        story.perform(story.machine.followsRedirect(now: story.now, isHeldByOrigin: true))
        #expect(!story.machine.hasEnded)
        story.perform(story.machine.followsRedirect(now: story.now, isHeldByOrigin: false))
        #expect(Array(story.told.values) == [.failure(.gatewayTimeout)])
    }
}
