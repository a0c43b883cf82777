import HLS
import Testing
import URISyntax

@testable import Lookahead

/// What becomes of items of which the store has lost something.
@Suite struct FeedLossTests {
    /// An active item and one neighbour, fetched as far as wanted.
    private func story() -> FeedStory {
        var story = FeedStory {
            $0.ahead = 1
            $0.behind = 0
        }
        story.settle()
        return story
    }

    private func claims(_ content: Int, _ story: FeedStory) -> [FeedPlanner.Claim] {
        story.planner.claims(at: story.now).filter { $0.content == content }
    }

    private func lose(_ content: Int, _ story: inout FeedStory) {
        let lost = claims(content, story)
        #expect(!lost.isEmpty)
        story.take(story.planner.lost(lost, at: story.now))
    }

    private func fetches(_ content: Int, _ story: FeedStory) -> Int {
        story.order.count { $0.hasPrefix("\(content)/") }
    }

    @Test func `beginnings are compared, and what lies ahead of the active item's player`() {
        var story = story()
        #expect(claims(0, story).map(\.part) == [0, 1, 2, 3, 4, 5])
        #expect(claims(1, story).map(\.part) == [0, 1, 2])
        story.take(story.planner.played(0, LookaheadStory.url("0/2.m4s"), at: 0))
        #expect(claims(0, story).map(\.part) == [4, 5])
    }

    @Test func `what holds changes nothing`() {
        var story = story()
        #expect(story.planner.lost([], at: 0).isEmpty)
        #expect(story.reads.isEmpty && story.running.isEmpty)
    }

    @Test func `a neighbour is read and fetched again`() {
        var story = story()
        lose(1, &story)
        #expect(story.reads == [1], "its playlists may be lost too")
        story.settle()
        #expect(fetches(1, story) == 6 && fetches(0, story) == 6)
        let report = story.planner.report(on: story.planner.window[1])
        #expect(report.readiness == .ready && report.reason == nil)
    }

    @Test func `the active item's rest is fetched again without reading it`() {
        var story = story()
        lose(0, &story)
        #expect(story.reads.isEmpty)
        story.settle()
        #expect(fetches(0, story) == 12)
    }

    @Test func `a neighbour that is lost again waits, each time longer, and says why`() {
        var story = story()
        lose(1, &story)
        story.settle()
        for (pause, count) in [(60.0, 6), (120, 9), (240, 12)] {
            lose(1, &story)
            #expect(story.reads.isEmpty && fetches(1, story) == count)
            let report = story.planner.report(on: story.planner.window[1])
            #expect(report.readiness == .waiting && report.reason?.contains("cache") == true)
            #expect(story.planner.needsTicks(at: story.now))
            story.now += pause - 1
            story.take(story.planner.tick(at: story.now))
            #expect(story.reads.isEmpty && story.planner.needsTicks(at: story.now))
            story.now += 1
            story.take(story.planner.tick(at: story.now))
            #expect(story.reads == [1])
            story.settle()
        }
    }

    @Test func `a viewer who reaches a lost item does not wait`() {
        var story = story()
        lose(1, &story)
        story.settle()
        lose(1, &story)
        #expect(story.reads.isEmpty)
        story.move(to: 1)
        #expect(story.reads.contains(1))
        story.settle()
        lose(1, &story)
        #expect(story.running.keys.contains { $0.hasPrefix("1/") }, "the first time again")
    }

    @Test func `lost bytes no longer count for the byte budget`() {
        var story = FeedStory {
            $0.ahead = 0
            $0.behind = 0
            $0.byteBudget = 250_000
        }
        story.settle()
        lose(0, &story)
        story.settle()
        #expect(story.planner.fetchedBytes == 600_000)
    }

    @Test func `bytes that the store still has keep their share of the byte budget`() throws {
        var story = FeedStory {
            $0.ahead = 0
            $0.behind = 0
            $0.byteBudget = 250_000
        }
        story.settle()
        // The initialization section and two segments, the second of which is lost.
        let lost = try #require(claims(0, story).last)
        #expect(lost.part == 2 && story.planner.fetchedBytes == 300_000)
        story.take(story.planner.lost([lost], at: story.now))
        #expect(story.planner.report(on: story.planner.window[0]).seconds == 4)
        story.settle()
        #expect(story.planner.fetchedBytes == 400_000)
        #expect(story.order.last == "0/1.m4s" && !story.order.contains("0/2.m4s"))
    }
}
