import CachePolicy
import HTTP
@testable import Model
@testable import Origin
import Store
import Testing

private let filmLength: Int64 = 10_000_000
private let wantedStart: Int64 = 5_000_000

/// An origin whose servers have strong validators of their own for the same bytes.
@Suite struct `Servers with validators of their own` {
    private let other = ResponseFacts(status: .ok, contentLength: filmLength, isOtherVersion: true)
    private let stored = KnownFacts(hasObject: true, total: filmLength)

    /// A flight whose request with If-Range was answered with the whole body of another version.
    private func story(
        wanted: Wanted = .span(start: wantedStart, end: nil), before: Int64 = 0,
        isMounted: Bool = false
    ) -> FlightStory {
        var story = FlightStory(
            resource: FlightStory.resource { if isMounted { $0.kind = .shared } },
            wanted: wanted, wasObjectGiven: true)
        story.join(wanted: wanted)
        story.start()
        story.before = before
        story.beginning.status = .ok
        story.head(other, stored)
        return story
    }

    /// The part that was requested again, where stored bytes before it are compared.
    private func part(before: Int64) -> ResponseFacts {
        ResponseFacts(
            status: .partialContent, contentLength: filmLength - wantedStart + before,
            range: .satisfied(
                first: wantedStart - before, last: filmLength - 1, total: filmLength))
    }

    private func compared() -> KnownFacts {
        var known = stored
        known.compared = StoredBody(
            spans: SpanSet([wantedStart - 100_000..<wantedStart]), total: filmLength)
        return known
    }

    @Test(arguments: [false, true])
    func `a part far from the start is requested once more, of any version`(isMounted: Bool) {
        var story = story(isMounted: isMounted)
        #expect(story.sends == 2 && story.told.isEmpty)
        #expect(story.machine.omitted.contains(.rangeCondition))
        #expect(story.attempt?.rangeField == "bytes=5000000-")
        story.part(wantedStart, filmLength - 1, of: filmLength)
        #expect(story.machine.isFilling && !story.machine.ranges.contains(.ignored))
        #expect(Array(story.told.values) == [.object])
        story.bytes(filmLength - wantedStart)
        story.end()
        #expect(story.completed && story.sends == 2)
        story.checkEnd()
        #expect(story.broken == [])
    }

    @Test func `the last bytes of a body are requested once more too`() {
        let story = story(wanted: .suffix(500))
        #expect(story.sends == 2 && story.attempt?.rangeField == "bytes=-500")
    }

    @Test func `a part near the start is taken from the whole, and another one has its own flight`()
    {
        let story = story(wanted: .span(start: 1_000, end: nil))
        #expect(story.sends == 1 && story.machine.isFilling)
        #expect(!story.machine.ranges.contains(.ignored))
        let isCovered = [1_000, wantedStart].map { start in
            story.machine.covers(
                JoinFacts(
                    isSameQuestion: true, wanted: .span(start: start, end: nil), position: 0,
                    hasObject: true, isAtHand: true))
        }
        #expect(isCovered == [true, false])
    }

    @Test func `an origin that sends the whole again ignores ranges, and gets no third request`() {
        var story = story()
        story.whole(filmLength)
        #expect(story.sends == 2 && story.machine.isFilling)
        #expect(story.machine.ranges.contains(.ignored))
    }

    @Test func `however servers alternate, a flight requests its part once more and no more`() {
        var story = story()
        story.head(other, stored)
        #expect(story.sends == 2 && story.machine.isFilling)
        story.bytes(wantedStart)
        story.breaks()
        story.timer()
        #expect(story.sends == 3)
        story.head(other, stored)
        #expect(story.sends == 3)
    }

    @Test func `the part is compared with the stored bytes before it, and joined if they agree`() {
        var story = story(before: 8_192)
        #expect(story.attempt?.rangeField == "bytes=4991808-")
        story.beginning.status = .partialContent
        story.head(part(before: 8_192), compared())
        #expect(story.machine.comparison?.start == wantedStart)
        story.perform(story.machine.compared(8_192, areSame: true))
        #expect(story.machine.isFilling && story.machine.wanted.start == wantedStart)
        #expect(story.sends == 2 && story.body?.isDiscarded == false && story.broken == [])
    }

    @Test func `stored bytes that differ are of another version, which is fetched`() {
        var story = story(before: 8_192)
        story.head(part(before: 8_192), compared())
        story.before = 0
        let actions = story.machine.compared(8_192, areSame: false)
        let isDiscarded = actions.contains { if case .discardObject = $0 { true } else { false } }
        story.perform(actions)
        #expect(isDiscarded && story.sends == 3 && story.told.isEmpty)
        story.part(wantedStart, filmLength - 1, of: filmLength)
        #expect(story.machine.isFilling && story.sends == 3)
    }

    @Test func `a body without length is asked whether it continues`() {
        var story = FlightStory(wanted: .span(start: 500, end: nil), wasObjectGiven: true)
        story.join()
        story.start()
        story.beginning.status = .ok
        story.beginning.provesItsEnd = false
        story.head(ResponseFacts(status: .ok, isOtherVersion: true), KnownFacts(hasObject: true))
        let machine = story.machine
        let isLost = machine.losesBody(
            provesItsEnd: false, hasStrongValidator: true, status: .ok)
        #expect(!isLost)
        story.bytes(1_000)
        story.end()
        #expect(story.sends == 2 && story.attempt?.question == .end)
        #expect(story.body?.isDiscarded == false && story.broken == [])
    }
}
