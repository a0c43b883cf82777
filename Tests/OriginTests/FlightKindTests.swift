import CachePolicy
import HLS
import HTTP
@testable import Model
@testable import Origin
import Posix
import Store
import Testing
import Upstream

/// Flights under a mount, where HTTP's rules apply, and flights for growing resources.
@Suite struct `Kinds of flights` {
    private func story(
        wanted: Wanted = .whole, wasObjectGiven: Bool = false,
        _ change: (inout Resource.Parts) -> Void,
        _ job: (inout FlightJob) -> Void = { _ in }
    ) -> FlightStory {
        var story = FlightStory(
            resource: FlightStory.resource(change), wanted: wanted, wasObjectGiven: wasObjectGiven,
            job: job)
        story.join()
        story.start()
        return story
    }

    // MARK: Under a mount

    private func mounted(_ change: (inout FlightJob) -> Void = { _ in }) -> FlightStory {
        story(wasObjectGiven: true, { $0.kind = .shared }, change)
    }

    @Test func `a 304 under a mount answers the client's condition or ours, else it is an error`() {
        var ours = mounted { $0.revalidates = true }
        ours.status(.notModified)
        #expect(Array(ours.told.values) == [.renewed])
        var oursByHead = mounted {
            $0.revalidates = true
            $0.method = .head
        }
        oursByHead.status(.notModified)
        #expect(Array(oursByHead.told.values) == [.renewed])
        var clients = mounted { $0.hasConditions = true }
        clients.status(.notModified)
        #expect(Array(clients.told.values) == [.head])
        var nobodys = mounted()
        nobodys.status(.notModified)
        #expect(Array(nobodys.told.values) == [.failure(.badGateway)])
    }

    @Test func `a 5xx under a mount is passed on unless a stale response can be used`() {
        var fresh = mounted()
        fresh.status(.serviceUnavailable)
        #expect(fresh.machine.isFilling)
        var stale = mounted {
            $0.revalidates = true
            $0.staleServes = true
        }
        stale.status(.serviceUnavailable, retryAfter: .seconds(1 as Int64))
        #expect(Array(stale.told.values) == [.failure(.badGateway)])
        stale.checkEnd()
        #expect(stale.broken == [])
    }

    @Test func `a 416 to a condition of the client is passed on`() {
        var story = story(
            wanted: .span(start: 100, end: nil), { $0.kind = .shared }, { $0.hasConditions = true })
        story.status(.rangeNotSatisfiable)
        #expect(story.machine.isFilling)
    }

    /// The part of a playlist that a client requests of a resource that is not named like one.
    private func part(
        wanted: Wanted = .span(start: 10, end: 41),
        _ change: (inout Resource.Parts) -> Void = { _ in }
    ) -> FlightStory {
        var story = story(wanted: wanted) {
            ($0.kind, $0.role) = (.shared, nil)
            change(&$0)
        }
        story.beginning.status = .partialContent
        story.head(
            ResponseFacts(
                status: .partialContent, range: .satisfied(first: 10, last: 40, total: 41),
                namesPlaylist: true))
        return story
    }

    @Test(arguments: [Wanted.span(start: 10, end: 41), .suffix(31)])
    func `a part of a playlist under a mount is not passed on; the whole is requested`(
        _ wanted: Wanted
    ) {
        var story = part(wanted: wanted)
        #expect(story.sends == 2 && story.attempt?.askedRange == nil && story.told.isEmpty)
        // An origin that sends a part again is not asked a third time.
        story.head(
            ResponseFacts(
                status: .partialContent, range: .satisfied(first: 10, last: 40, total: 41),
                namesPlaylist: true))
        #expect(story.sends == 2 && story.machine.isFilling && story.broken == [])
    }

    @Test func `a part under a mount that is not rewritten is passed on, whatever its type`() {
        for story in [part { $0.isVerbatim = true }, part { $0.role = .segment }] {
            #expect(story.sends == 1 && story.machine.isFilling && story.broken == [])
        }
    }

    // MARK: Resources that grow

    private func growing(wanted: Wanted = .whole) -> FlightStory {
        story(wanted: wanted) { $0.live.growth = .init(end: 1_000) }
    }

    @Test func `the received bytes of a growing resource are not its length`() {
        var story = growing()
        story.whole(1_000)
        #expect(story.machine.isFilling && story.body?.total == nil)
        story.bytes(1_000)
        story.end()
        #expect(story.completed && story.body?.total == nil && story.broken == [])
    }

    @Test func `a part of a growing resource may have no end`() {
        var open = growing(wanted: .span(start: 500, end: nil))
        open.head(
            ResponseFacts(
                status: .partialContent,
                range: .satisfied(first: 500, last: Wanted.openEnd, total: nil)))
        #expect(open.machine.wanted == .span(start: 500, end: nil))
        var bounded = growing(wanted: .span(start: 500, end: 1_000))
        bounded.part(500, 999, of: nil)
        #expect(bounded.machine.wanted == .span(start: 500, end: 1_000))
    }

    @Test func `a resource that grew is resumed by its offset alone`() {
        var story = growing()
        story.hasStrongValidator = false
        story.whole(1_000)
        story.bytes(400)
        story.breaks()
        story.timer()
        #expect(story.attempt?.rangeField == "bytes=400-999")
    }
}
