import HLS
import Testing
import URISyntax

@testable import Lookahead

/// What a feed fetches while its viewer stays with an item or moves on.
@Suite struct FeedPaceTests {
    /// All items are known, and nothing is fetched yet.
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

    @Test func `the rest of the active item is fetched at the viewer's pace`() {
        var story = story()
        story.settle()
        #expect(!story.order.contains("0/3.m4s"), "it begins at 12 s")
        #expect(story.planner.needsTicks(at: 0))
        story.now = 4
        story.take(story.planner.tick(at: 4))
        story.settle()
        #expect(story.order.contains("0/3.m4s") && !story.order.contains("0/4.m4s"))
    }

    @Test func `no ticks are needed once the whole item is fetched`() {
        var story = story()
        for now in stride(from: 0.0, through: 20, by: 4) {
            story.now = now
            story.take(story.planner.tick(at: now))
            story.settle()
        }
        #expect(story.order.contains("0/4.m4s") && !story.planner.needsTicks(at: 20))
    }

    @Test func `the next segment is fetched beside the one that the player waits for`() {
        var story = story()
        play("init.mp4", &story)
        play("0.m4s", &story)
        #expect(story.yielding.contains("0/1.m4s"), "not beside the first picture")
        story.planner.noticed(part: 0, bytes: .max)
        story.planner.noticed(part: 1, bytes: 60_000)
        story.take(story.planner.tick(at: 0.5))
        #expect(story.running["0/1.m4s"] != nil && !story.yielding.contains("0/1.m4s"))
    }

    @Test func `in the first second only the next item is fetched beside the player`() {
        var story = story()
        play("0.m4s", &story)
        #expect(story.running["1/0.m4s"] != nil && story.running["2/0.m4s"] == nil)
        story.finish("1/init.mp4")
        story.finish("1/0.m4s")
        #expect(story.running["2/0.m4s"] != nil && story.running["3/0.m4s"] != nil)
    }

    @Test func `an unavailable next item delays no other`() {
        var story = FeedStory { $0.parallel = 16 }
        story.reads.removeAll { $0 == 1 }
        story.take(story.planner.isDead(1, "410", forGood: true, at: 0))
        story.answerReads()
        #expect(story.running["2/0.m4s"] != nil)
    }

    @Test func `first bytes are fetched beside a player until the viewer stays`() {
        var story = story()
        play("0.m4s", &story)
        #expect(!story.yielding.contains("1/0.m4s"))
        story.now = 1
        story.take(story.planner.tick(at: 1))
        #expect(story.yielding.contains("1/0.m4s"), "the active item has nothing in hand")
    }

    @Test func `segments that the player fetched count as its buffer`() {
        var story = story()
        play("0.m4s", &story)
        story.now = 1
        story.planner.noticed(part: 0, bytes: .max)
        story.planner.noticed(part: 1, bytes: 90_000)
        story.take(story.planner.tick(at: 1))
        #expect(!story.yielding.contains("1/0.m4s"), "3.6 s, of which one is over")
    }

    @Test func `prefetches of neighbours are cancelled while the player's buffer is low`() {
        var story = story { $0.startBytes = 0 }
        #expect(story.running["1/0.m4s"] != nil, "no player is there")
        play("init.mp4", &story)
        #expect(story.cancelled.contains("1/0.m4s"))
        for part in 0...2 { story.planner.noticed(part: part, bytes: .max) }
        story.take(story.planner.tick(at: 1))
        #expect(story.running["1/0.m4s"] != nil)
    }
}
