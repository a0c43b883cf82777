import HLS
import Testing
import URISyntax

@testable import Lookahead

/// What a feed does as its viewer stays with an item, or does not.
@Suite struct FeedPaceTests {
    /// All items are known, and nothing has come of any.
    private func story(_ change: (inout FeedParameters) -> Void = { _ in }) -> FeedStory {
        var story = FeedStory {
            $0.parallel = 16
            $0.parallelOfItem = 4
            $0.startBytes = 50_000
            $0.activeSeconds = 9
            change(&$0)
        }
        story.answerReads()
        return story
    }

    private func play(_ name: String, _ story: inout FeedStory) {
        story.take(story.planner.played(0, LookaheadStory.url("0/\(name)"), at: story.now))
    }

    @Test func `the rest of the active item comes as its viewer comes to it`() {
        var story = story()
        story.settle()
        #expect(!story.order.contains("0/3.m4s"), "it begins at 12 s")
        #expect(story.planner.needsTicks(at: 0))
        story.now = 4
        story.take(story.planner.tick(at: 4))
        story.settle()
        #expect(story.order.contains("0/3.m4s") && !story.order.contains("0/4.m4s"))
    }

    @Test func `nothing ticks once the whole item has come`() {
        var story = story()
        for now in stride(from: 0.0, through: 20, by: 4) {
            story.now = now
            story.take(story.planner.tick(at: now))
            story.settle()
        }
        #expect(story.order.contains("0/4.m4s") && !story.planner.needsTicks(at: 20))
    }

    @Test func `the next piece comes beside the one that the player waits for`() {
        var story = story()
        play("init.mp4", &story)
        play("0.m4s", &story)
        #expect(story.yielding.contains("0/1.m4s"), "not beside the first picture")
        story.planner.noticed(part: 0, bytes: .max)
        story.planner.noticed(part: 1, bytes: 60_000)
        story.take(story.planner.tick(at: 0.5))
        #expect(story.running["0/1.m4s"] != nil && !story.yielding.contains("0/1.m4s"))
    }

    @Test func `in the first second the next item has the line to itself beside the player`() {
        var story = story()
        play("0.m4s", &story)
        #expect(story.running["1/0.m4s"] != nil && story.running["2/0.m4s"] == nil)
        story.finish("1/init.mp4")
        story.finish("1/0.m4s")
        #expect(story.running["2/0.m4s"] != nil && story.running["3/0.m4s"] != nil)
    }

    @Test func `a dead next item holds no other up`() {
        var story = FeedStory { $0.parallel = 16 }
        story.reads.removeAll { $0 == 1 }
        story.take(story.planner.isDead(1, "410", forGood: true, at: 0))
        story.answerReads()
        #expect(story.running["2/0.m4s"] != nil)
    }

    @Test func `first bytes go on beside a player until the viewer has settled`() {
        var story = story()
        play("0.m4s", &story)
        #expect(!story.yielding.contains("1/0.m4s"))
        story.now = 1
        story.take(story.planner.tick(at: 1))
        #expect(story.yielding.contains("1/0.m4s"), "the active item has nothing in hand")
    }

    @Test func `what its player brought counts as in hand`() {
        var story = story()
        play("0.m4s", &story)
        story.now = 1
        story.planner.noticed(part: 0, bytes: .max)
        story.planner.noticed(part: 1, bytes: 90_000)
        story.take(story.planner.tick(at: 1))
        #expect(!story.yielding.contains("1/0.m4s"), "3.6 s, of which one is over")
    }

    @Test func `more of neighbours is let go of while the player is short`() {
        var story = story { $0.startBytes = 0 }
        #expect(story.running["1/0.m4s"] != nil, "no player is there")
        play("init.mp4", &story)
        #expect(story.cancelled.contains("1/0.m4s"))
        for part in 0...2 { story.planner.noticed(part: part, bytes: .max) }
        story.take(story.planner.tick(at: 1))
        #expect(story.running["1/0.m4s"] != nil)
    }
}
