import HTTP
import Model
@testable import Origin
import Posix
import Testing

/// Requests that a flight sends again without what made their response useless.
@Suite struct FlightRepetitionTests {
    private func story(allowance: OriginAllowance.Limits = .init()) -> FlightStory {
        var story = FlightStory(allowance: allowance)
        story.join()
        story.start()
        return story
    }

    @Test func `a request is sent again once without what made its response useless`() {
        for what: FlightMachine.Omissions in [.parents, .conditions, .decoding] {
            var story = story()
            let attempt = story.attempt
            let first = story.again(without: what)
            #expect(first && story.sends == 2 && story.attempt == attempt)
            #expect(story.transfer == .running && story.machine.phase == .asking)
            #expect(story.machine.omitted == what && story.machine.budget.requests == 2)
            let second = story.again(without: what)
            #expect(!second && story.sends == 2 && story.machine.budget.requests == 2)
            story.whole(1_000_000)
            story.bytes(1_000_000)
            story.end()
            #expect(story.completed)
            story.checkEnd()
            #expect(story.broken == [])
        }
    }

    @Test func `each reason repeats a request, and none of them twice`() {
        var story = story()
        story.again(without: .parents)
        story.again(without: .decoding)
        story.again(without: .conditions)
        #expect(story.sends == 4)
        for what: FlightMachine.Omissions in [.parents, .decoding, .conditions] {
            story.again(without: what)
        }
        #expect(story.sends == 4 && story.machine.omitted == [.parents, .decoding, .conditions])
    }

    @Test func `a request is repeated although the budget is spent`() {
        var story = story(allowance: .init(requests: 1))
        let isSent = story.again(without: .conditions)
        #expect(isSent && story.machine.budget.requests == 2)
    }

    @Test func `no request is repeated once a body has begun or the flight has ended`() {
        var filling = story()
        filling.whole(1_000_000)
        let isSent = filling.again(without: .parents)
        #expect(!isSent && filling.sends == 1 && filling.machine.omitted.isEmpty)
        filling.bytes(1_000_000)
        filling.end()
        let isSentAtEnd = filling.again(without: .parents)
        #expect(!isSentAtEnd && filling.sends == 1)
    }

    @Test func `no request follows a failed parent if the origin is down`() {
        var story = story()
        let ends = story.again(
            without: .parents, refusal: ProxyFailure(.origin, .badGateway, "down"))
        #expect(ends && story.sends == 1 && story.machine.budget.requests == 1)
        #expect(Array(story.told.values) == [.failure(.badGateway)])
        story.checkEnd()
        #expect(story.broken == [])
    }

    @Test func `the wait of a repeated request for a slot is not charged to the origin`() {
        var story = story()
        story.slot()
        story.pass(1_000)
        story.again(without: .conditions)
        story.pass(20_000)
        story.slot()
        story.roundEnds()
        #expect(!story.machine.hasEnded && story.told.isEmpty)
        story.pass(19_000)
        story.roundEnds()
        #expect(!story.machine.hasEnded)
        story.pass(1)
        story.roundEnds()
        #expect(Array(story.told.values) == [.failure(.gatewayTimeout)])
        story.checkEnd()
        #expect(story.broken == [])
    }
}
