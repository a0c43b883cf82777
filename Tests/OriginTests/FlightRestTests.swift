import CachePolicy
import HLS
import HTTP
@testable import Model
@testable import Origin
import Posix
import Store
import Testing

/// The rest of a body that a client has begun to receive: what other answers than a part do.
@Suite struct `Rests of bodies` {
    /// A flight whose body broke after a thousand bytes of a million, and whose rest is asked for.
    private func story(
        resource change: (inout Resource.Parts) -> Void = { _ in },
        job: (inout FlightJob) -> Void = { _ in }
    ) -> FlightStory {
        var story = FlightStory(resource: FlightStory.resource(change), job: job)
        story.join()
        story.start()
        story.whole(1_000_000)
        story.bytes(1_000)
        story.breaks()
        story.timer()
        return story
    }

    @Test(arguments: [408, 425, 429, 500, 503])
    func `under a mount a temporary status is retried, and what is stored stays`(
        _ code: UInt16
    ) {
        var story = story(resource: { $0.kind = .shared })
        story.status(HTTPStatus(rawValue: code))
        #expect(story.transfer == .dismissed && story.body?.isDiscarded == false)
        story.end()
        #expect(story.machine.phase == .backingOff)
        story.timer()
        #expect(story.attempt?.rangeField == "bytes=1000-")
        story.part(1_000, 999_999, of: 1_000_000)
        story.bytes(999_000)
        story.end()
        #expect(story.completed && story.broken == [])
    }

    @Test(arguments: [301, 401, 403, 404, 410])
    func `under a mount any other status ends the flight, and what is stored stays`(
        _ code: UInt16
    ) {
        var story = story(resource: { $0.kind = .shared })
        story.status(HTTPStatus(rawValue: code))
        #expect(story.machine.hasEnded && !story.completed)
        #expect(story.body?.isDiscarded == false && story.body?.offset == 1_000)
        story.checkEnd()
        #expect(story.broken == [])
    }

    @Test func `stored bytes that are lost when they are compared cost a request, not the body`() {
        var story = FlightStory(wanted: .span(start: 100, end: nil), wasObjectGiven: true)
        story.join()
        story.start()
        let stored = StoredBody(spans: SpanSet([0..<100]), total: 1_000)
        story.head(
            ResponseFacts(status: .ok, contentLength: 1_000),
            KnownFacts(hasObject: true, compared: stored))
        #expect(story.machine.comparison != nil)
        let actions = story.machine.lostCompared()
        let isDiscarded = actions.contains { if case .discardObject = $0 { true } else { false } }
        story.perform(actions)
        #expect(!isDiscarded && story.sends == 2 && story.machine.phase == .asking)
        #expect(story.broken == [])
    }

    @Test func `a revalidation that brought a new body asks for its rest`() {
        var story = story(job: { $0.revalidates = true })
        #expect(story.machine.phase == .asking && !story.machine.isConditional)
        #expect(story.attempt?.rangeField == "bytes=1000-")
        story.part(1_000, 999_999, of: 1_000_000)
        story.bytes(999_000)
        story.end()
        #expect(story.completed && story.broken == [])
        // A 304 would be about the response that was revalidated.
        var other = self.story(job: { $0.revalidates = true })
        other.status(.notModified)
        #expect(other.machine.hasEnded && !other.completed)
    }

    @Test func `a revalidation whose new body reached nobody leaves the stored one in use`() {
        var story = FlightStory(job: { $0.revalidates = true })
        story.join(.completion)
        story.start()
        story.whole(1_000_000)
        story.bytes(1_000)
        story.breaks()
        #expect(Array(story.told.values) == [.failure(.badGateway)])
        story.checkEnd()
    }

    @Test func `a file that became shorter is fetched anew from an origin without If-Range`() {
        var story = FlightStory(wanted: .span(start: 500, end: nil), wasObjectGiven: true)
        story.join()
        story.start()
        let shorter = ResponseFacts(
            status: .rangeNotSatisfiable, range: .unsatisfied(total: 400))
        story.head(shorter, KnownFacts(hasObject: true, total: 1_000))
        #expect(story.sends == 2 && story.machine.phase == .asking)
        // The length that is known is the client's mistake.
        story.head(shorter, KnownFacts(hasObject: true, total: 400))
        #expect(Array(story.told.values) == [.failure(.rangeNotSatisfiable)])
    }

    @Test(arguments: [nil, 1_000, 400] as [Int64?])
    func `a 416 for stored bytes discards them only if it states another length`(total: Int64?) {
        var story = FlightStory(wanted: .span(start: 500, end: nil), wasObjectGiven: true)
        story.before = 100
        story.join()
        story.start()
        #expect(story.attempt?.rangeField == "bytes=400-")
        let refusal = ResponseFacts(
            status: .rangeNotSatisfiable, range: total.map { ContentRange.unsatisfied(total: $0) })
        let actions = story.machine.received(
            refusal, KnownFacts(hasObject: true, total: 1_000), nil, now: story.now)
        let isDiscarded = actions.contains { if case .discardObject = $0 { true } else { false } }
        #expect(isDiscarded == (total == 400))
        story.perform(actions)
        #expect(story.sends == 2 && (story.attempt?.askedRange == nil) == (total != 400))
    }

    @Test func `a 416 for stored bytes that readers have begun fails them, and discards nothing`() {
        var story = FlightStory()
        story.join()
        story.start()
        story.whole(1_000_000)
        story.bytes(1_000)
        story.before = 100
        story.breaks()
        story.timer()
        story.head(
            ResponseFacts(status: .rangeNotSatisfiable),
            KnownFacts(hasObject: true, total: 1_000_000))
        #expect(story.machine.hasEnded && story.body?.isDiscarded == false)
        story.checkEnd()
        #expect(story.broken == [])
    }

    /// The rest of a body of a million bytes, in another content coding than its beginning.
    private let otherCoding = ResponseFacts(
        status: .partialContent, range: .satisfied(first: 1_000, last: 999_999, total: 1_000_000),
        isCodedAsKnown: false)

    @Test(arguments: [false, true])
    func `a rest in another coding discards what is stored, and the whole is requested once`(
        isMounted: Bool
    ) {
        var story = FlightStory(
            resource: FlightStory.resource { if isMounted { $0.kind = .shared } },
            wanted: .span(start: 1_000, end: nil), wasObjectGiven: true)
        story.join()
        story.start()
        let actions = story.machine.received(
            otherCoding, KnownFacts(hasObject: true, total: 1_000_000), nil, now: story.now)
        let isDiscarded = actions.contains { if case .discardObject = $0 { true } else { false } }
        story.perform(actions)
        #expect(isDiscarded && story.told.isEmpty)
        #expect(story.sends == 2 && story.attempt?.askedRange == nil)
        story.whole(1_000_000)
        story.bytes(1_000_000)
        story.end()
        #expect(story.completed && Array(story.told.values) == [.object])
        story.checkEnd()
        #expect(story.broken == [])
    }

    @Test(arguments: [false, true])
    func `a body that was cut and whose rest has another coding is not kept`(isMounted: Bool) {
        var story = story(resource: { if isMounted { $0.kind = .shared } })
        #expect(story.attempt?.rangeField == "bytes=1000-")
        story.head(otherCoding, KnownFacts(hasObject: true, total: 1_000_000))
        // Its player has bytes of it, so that the next request gets the whole.
        #expect(story.machine.hasEnded && !story.completed && story.sends == 2)
        #expect(story.body?.isDiscarded == true)
        story.checkEnd()
        #expect(story.broken == [])
    }

    @Test func `the loss of an object's storage is counted once`() {
        var story = FlightStory()
        story.join()
        story.start()
        let losses = [true, false, false].map { story.machine.countsLoss(isAnswered: $0) }
        #expect(losses == [false, true, false])
        let passesOn = [story.machine.keepsNothing(), story.machine.keepsNothing()]
        #expect(passesOn == [true, false] && !story.machine.mayKeep)
    }

    @Test func `a text that cannot be stored any further is requested again, once`() throws {
        var story = FlightStory(resource: FlightStory.resource { $0.role = .playlist })
        story.join(.completion)
        story.start()
        story.whole(nil)
        story.bytes(20_000)
        let actions = story.machine.startsUnstored()
        story.perform(try #require(actions))
        #expect(story.transfer == .none && story.told.isEmpty && !story.machine.mayKeep)
        story.timer()
        #expect(story.sends == 2 && story.attempt?.askedRange == nil)
        story.whole(nil)
        story.bytes(60_000)
        let isOver = story.machine.startsUnstored() == nil
        #expect(isOver)
        story.end()
        #expect(story.completed && Array(story.told.values) == [.object])
        story.checkEnd()
        #expect(story.broken == [])
    }

    @Test func `a body that players have begun to receive does not start over`() {
        var story = FlightStory()
        story.join()
        story.start()
        story.whole(1_000_000)
        story.bytes(20_000)
        story.join(.completion)
        let actions = story.machine.startsUnstored()
        #expect(actions == nil && story.machine.isFilling && story.machine.mayKeep)
    }
}
