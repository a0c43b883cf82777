import HLS
import Testing
import URISyntax

@testable import Lookahead

/// Whether the feed sees to what the active item's player needs next, or look-ahead has to.
@Suite struct FeedLeadTests {
    /// Only the active item is fetched, 9 s ahead of its viewer.
    private func story(_ change: (inout FeedParameters) -> Void = { _ in }) -> FeedStory {
        FeedStory {
            $0.ahead = 0
            $0.behind = 0
            $0.activeSeconds = 9
            change(&$0)
        }
    }

    private func leads(_ story: FeedStory, after name: String) -> Bool {
        story.planner.leads(after: LookaheadStory.url(name), at: story.now)
    }

    private static let live = FeedPlan(
        [LookaheadStory.picture("v", 0..<3, isLive: true)], rate: nil)

    @Test func `the feed leads as far as it fetches ahead`() {
        var story = story()
        #expect(leads(story, after: "0/0.m4s"), "its list is being read")
        story.answerReads()
        #expect(leads(story, after: "0/0.m4s") && leads(story, after: "0/init.mp4"))
        story.settle()
        #expect(leads(story, after: "0/1.m4s"))
        #expect(!leads(story, after: "0/2.m4s"), "what follows begins at 12 s")
        #expect(leads(story, after: "0/4.m4s"), "nothing follows")
    }

    @Test func `a player of what the feed did not choose is left to look-ahead`() {
        var story = story()
        story.settle()
        #expect(!leads(story, after: "0/french0.m4s"))
    }

    @Test func `a live stream is left to look-ahead`() {
        var story = story()
        story.take(story.planner.learned(0, Self.live, at: 0))
        #expect(!leads(story, after: "v0.ts"))
    }

    @Test func `an item that was given up is left to look-ahead, and so is one that rests`() {
        var story = story()
        story.answerReads()
        story.take(story.planner.isDead(0, "503", forGood: false, at: 0))
        #expect(!leads(story, after: "0/0.m4s"))
        story.now = 1
        #expect(leads(story, after: "0/0.m4s"), "it is read again")
        story.take(story.planner.isDead(0, "404", forGood: true, at: 1))
        #expect(!leads(story, after: "0/0.m4s"))
    }

    @Test func `once a budget is used up the active item is left to look-ahead`() {
        var story = self.story {
            $0.ahead = 1
            $0.byteBudget = 900_000
        }
        story.answerReads()
        for name in ["0/init.mp4", "0/0.m4s"] { story.finish(name) }
        #expect(leads(story, after: "0/0.m4s"))
        story.finish("1/init.mp4", bytes: 1_000_000)
        #expect(!leads(story, after: "0/0.m4s"))
    }

    @Test func `of the ranges of one file the requested one counts`() {
        let file = LookaheadStory.url("f.mp4")
        let parts = (0..<4).map { number in
            let range = Int64(number) * 100..<Int64(number + 1) * 100
            return FeedPlan.Part(
                MediaPiece(file, range: range, role: .segment), seconds: 4,
                begins: Double(number) * 4)
        }
        var story = story()
        story.take(story.planner.learned(0, FeedPlan(parts: parts, rate: nil), at: 0))
        #expect(story.planner.leads(after: file, from: 100, at: 0))
        #expect(!story.planner.leads(after: file, from: 200, at: 0), "12 s are too far ahead")
    }

    @Test(arguments: [5.99, 6, 6.01])
    func `what the player requests beside a segment is left to neither`(ofAudio seconds: Double) {
        func track(_ name: String, _ seconds: Double) -> CompactMediaList {
            CompactMediaList(
                segments: (0..<4).map { number in
                    CompactMediaList.Segment(
                        piece: MediaPiece(
                            LookaheadStory.url("\(name)\(number).ts"), role: .segment),
                        seconds: seconds, sequence: number, structure: [])
                }, isLive: false)
        }
        let plan = FeedPlan([track("v", 6), track("a", seconds)], rate: nil)
        for names in [["v1.ts", "a1.ts"], ["a1.ts", "v1.ts"]] {
            var story = self.story { $0.activeSeconds = 20 }
            story.take(story.planner.learned(0, plan, at: 0))
            for name in names {
                story.take(story.planner.played(0, LookaheadStory.url(name), at: 0))
                #expect(leads(story, after: name), "\(name) of \(names)")
            }
            #expect(!leads(story, after: "v0.ts"), "nobody fetches a0.ts")
        }
    }

    @Test func `a live item whose list is old is read again when its viewer reaches it`() {
        var planner = FeedPlanner(contents: [0, 1], weights: [1, 1], at: 0)
        _ = planner.start(at: 0)
        _ = planner.learned(1, Self.live, at: 0)
        #expect(!planner.move(to: 1, at: 3).contains(.read(content: 1)))
        _ = planner.move(to: 0, at: 3)
        #expect(planner.move(to: 1, at: 4).contains(.read(content: 1)))
    }

    @Test func `what was fetched by a former plan is not taken for a part of the next one`()
        throws
    {
        var story = story()
        story.answerReads()
        let id = try #require(story.running["0/0.m4s"])
        let actions = story.planner.learned(0, FeedStory.plan(7), at: 0)
        #expect(actions.contains(.cancel(id)))
        // It may have ended before it could be cancelled.
        _ = story.planner.ended(id, AheadResult(.stored, bytes: 1), at: 0)
        #expect(story.planner.known[0]?.present.isEmpty == true)
    }
}
