import HTTP
@testable import Model
@testable import Origin
import Testing
import Upstream

/// Flights of live streams that are one endless body.
@Suite struct `Flights of endless bodies` {
    /// A flight that has received bytes of a live stream, and has one viewer.
    private func onAir(provesItsEnd: Bool = true) -> FlightStory {
        var story = FlightStory()
        story.join()
        story.start()
        story.whole(nil, provesItsEnd: provesItsEnd)
        story.machine.extent = .endless
        story.bytes(1_000)
        return story
    }

    @Test func `after a break the whole body is requested again and appended`() {
        var story = onAir()
        story.breaks()
        story.timer()
        #expect(story.attempt?.rangeField == nil && story.sends == 2)
        story.whole(nil)
        story.bytes(500)
        #expect(story.body?.offset == 1_500 && story.machine.isFilling)
        #expect(story.broken.isEmpty)
    }

    @Test func `only an end that the origin states ends a live stream`() {
        var closed = onAir(provesItsEnd: false)
        closed.end()
        #expect(!closed.completed && closed.timers == 1)
        var stated = onAir()
        stated.end()
        #expect(stated.completed && stated.broken.isEmpty)
    }

    @Test(arguments: [403, 404, 503] as [UInt16])
    func `an origin that refuses is asked again, but not for ever`(status: UInt16) {
        var story = onAir()
        story.breaks()
        for _ in 0..<10 where !story.machine.hasEnded {
            story.timer()
            story.status(HTTPStatus(rawValue: status))
            story.end()
        }
        #expect(story.machine.hasEnded && (3...10).contains(story.sends))
        story.checkEnd()
        #expect(story.broken.isEmpty)
    }

    @Test func `after a silence an origin that refuses is asked as often as after a break`() {
        var story = onAir()
        story.pass(10_000)
        story.breaks(.stalled)
        for _ in 0..<3 {
            story.timer()
            story.status(.forbidden)
            story.end()
            #expect(story.machine.phase == .backingOff)
        }
        story.timer()
        story.whole(nil)
        story.bytes(500)
        #expect(story.body?.offset == 1_500 && story.broken.isEmpty)
    }

    @Test func `a connection that brings nothing does not prolong the attempts`() {
        var story = onAir()
        story.pass(10_000)
        story.breaks(.stalled)
        story.timer()
        story.whole(nil)
        story.pass(10_000)
        story.breaks(.stalled)
        #expect(story.machine.hasEnded)
        story.checkEnd()
        #expect(story.broken.isEmpty)
    }

    @Test func `a body with a length does not continue a live stream`() {
        var story = onAir()
        story.breaks()
        story.timer()
        story.whole(5_000)
        #expect(story.machine.hasEnded && story.body?.offset == 1_000)
    }

    @Test func `who waits for the end of a live stream is refused`() {
        var story = FlightStory()
        story.join()
        story.start()
        story.whole(nil)
        story.machine.extent = .undecided
        let early = story.join(.completion)
        story.bytes(1_000)
        #expect(story.told[early] == nil)
        story.perform(story.machine.becomeEndless())
        #expect(story.told[early] == .failure(.badGateway))
        let late = story.join(.completion)
        #expect(story.told[late] == .failure(.badGateway))
        story.breaks()
        let meanwhile = story.join(.completion, needsPlaylist: true)
        #expect(story.told[meanwhile] == .failure(.badGateway))
        #expect(story.machine.waiters.isEmpty && !story.machine.hasEnded && story.broken.isEmpty)
    }

    @Test func `every request for a live stream joins its flight`() {
        let story = onAir()
        let facts = JoinFacts(
            isSameQuestion: true, wanted: .span(start: 900_000, end: 900_001), position: 1_000,
            hasObject: true, isAtHand: false)
        #expect(story.machine.covers(facts))
    }
}
