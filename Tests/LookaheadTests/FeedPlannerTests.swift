import HLS
import Testing
import URISyntax

@testable import Lookahead

/// What is fetched for a feed, in which order and within which budgets.
@Suite struct FeedPlannerTests {
    @Test func `the active item is fetched whole, its neighbours in part`() {
        var story = FeedStory()
        story.settle()
        let ofActive = story.order.filter { $0.hasPrefix("0/") }
        #expect(ofActive.count == 6)
        #expect(story.order.filter { $0.hasPrefix("1/") } == ["1/init.mp4", "1/0.m4s", "1/1.m4s"])
    }

    @Test func `the beginning of the active item precedes its neighbours, its rest follows`() {
        var story = FeedStory { $0.parallel = 1 }
        story.settle()
        let first = story.order.prefix(3)
        #expect(first == ["0/init.mp4", "0/0.m4s", "1/init.mp4"])
        let lastOfNeighbours = story.order.lastIndex { !$0.hasPrefix("0/") } ?? 0
        let rest = story.order.firstIndex(of: "0/2.m4s") ?? 0
        #expect(rest > lastOfNeighbours)
    }

    @Test func `nearer neighbours are fetched first, two ahead for each one behind`() {
        var story = FeedStory(at: 10) { parameters in
            parameters.parallel = 1
            parameters.behind = 2
        }
        story.settle()
        var items: [String] = []
        for name in story.order {
            let item = String(name.prefix { $0 != "/" })
            if !items.contains(item) { items.append(item) }
        }
        #expect(items == ["10", "11", "12", "9", "13", "14", "8", "15"])
    }

    @Test func `fetches that leave the window are cancelled immediately`() {
        var story = FeedStory {
            $0.parallel = 4
            $0.parallelOfItem = 4
        }
        story.answerReads()
        story.finish("0/init.mp4")
        story.finish("0/0.m4s")
        let before = Set(story.running.keys.filter { $0.hasPrefix("1/") || $0.hasPrefix("2/") })
        story.move(to: 15)
        #expect(before.isSubset(of: Set(story.cancelled)))
        #expect(story.running.isEmpty)
        #expect(story.reads.contains(15))
    }

    @Test func `moving back reverses the window`() {
        var story = FeedStory(at: 10)
        story.settle()
        story.move(to: 9)
        #expect(story.planner.direction == .backward)
        #expect(Set(story.planner.window.map(\.index)) == [9, 8, 7, 6, 5, 4, 3, 10])
    }

    @Test func `unavailable items are skipped and cost nothing`() {
        var story = FeedStory {
            $0.ahead = 2; $0.behind = 0; $0.costBudget = 2
        }
        #expect(story.planner.window.map(\.index) == [0, 1])
        story.take(story.planner.isDead(1, "gone", forGood: true, at: 0))
        #expect(story.planner.window.map(\.index) == [0, 2])
    }

    @Test func `an item that was refused is read again when its viewer returns after a minute`() {
        var story = FeedStory()
        story.answerReads()
        // Two of its pieces, which count as one refusal.
        for _ in 0..<2 { story.take(story.planner.isRefused(1, "403", at: story.now)) }
        story.now = 59
        story.move(to: 1)
        story.move(to: 2)
        story.answerReads()
        #expect(story.planner.known[1]?.plan == nil)
        story.now = 61
        story.move(to: 1)
        #expect(story.reads.contains(1))
    }

    @Test func `a temporary failure is retried later`() {
        var story = FeedStory {
            $0.ahead = 0; $0.behind = 0
        }
        story.reads = []
        story.take(story.planner.isDead(0, "no answer", forGood: false, at: 0))
        #expect(story.reads.isEmpty && story.planner.needsTicks(at: 0))
        story.take(story.planner.tick(at: 2))
        #expect(story.reads == [0])
    }

    @Test func `repeated items are fetched once`() {
        var planner = FeedPlanner(contents: [0, 1, 0, 1, 0], weights: [1, 1, 1, 1, 1], at: 0)
        let reads = planner.start(at: 0)
        #expect(reads == [.read(content: 0), .read(content: 1)])
    }

    @Test(arguments: ["costBudget", "byteBudget"])
    func `budgets of zero fetch nothing`(name: String) {
        var story = FeedStory(20, at: 3) { _ = $0.set(name, 0) }
        story.settle()
        #expect(story.order.isEmpty)
        story.move(to: 4)
        #expect(story.order.isEmpty)
    }

    @Test func `the byte budget limits the window`() {
        var story = FeedStory { $0.byteBudget = 450_000 }
        story.settle()
        #expect(story.planner.fetchedBytes <= 600_000)
        #expect(story.planner.fetchedBytes >= 400_000)
    }

    @Test func `bytes that the viewer has reached no longer count for the byte budget`() {
        var story = FeedStory {
            $0.ahead = 1
            $0.behind = 1
            $0.byteBudget = 700_000
        }
        story.settle()
        // Two items in full, of 600 kB each; the former stays in the window.
        for content in 0...1 {
            if content > 0 { story.move(to: content) }
            for number in 0..<5 {
                let url = LookaheadStory.url("\(content)/\(number).m4s")
                story.take(story.planner.played(content, url, at: story.now))
                story.settle()
                story.now += 4
            }
        }
        let fetched = Set(story.order)
        #expect(fetched.isSuperset(of: (0..<5).map { "0/\($0).m4s" }))
        #expect(fetched.isSuperset(of: (0..<5).map { "1/\($0).m4s" }))
    }

    @Test func `bytes of a former plan count until the viewer plays the next one`() {
        var story = FeedStory {
            $0.ahead = 0
            $0.behind = 0
            $0.byteBudget = 250_000
        }
        story.settle()
        #expect(story.planner.fetchedBytes == 300_000)
        story.take(story.planner.learned(0, FeedStory.plan(7), at: 0))
        #expect(story.running.isEmpty)
        story.take(story.planner.played(0, LookaheadStory.url("7/0.m4s"), at: 0))
        #expect(!story.running.isEmpty)
    }

    @Test(arguments: [(2, "v3.ts"), (3, "v3.ts"), (9, "v9.ts")])
    func `a live item that is read again is fetched from where its player is`(
        first: Int, next: String
    ) {
        func live(from first: Int) -> FeedPlan {
            FeedPlan([LookaheadStory.picture("v", first..<first + 3, isLive: true)], rate: nil)
        }
        var story = FeedStory {
            $0.ahead = 0
            $0.behind = 0
        }
        story.take(story.planner.learned(0, live(from: 0), at: 0))
        story.take(story.planner.played(0, LookaheadStory.url("v2.ts"), at: 0))
        #expect(story.running.isEmpty, "the list has no more")
        story.take(story.planner.isDead(0, "404", forGood: false, at: 0))
        story.now = 4
        story.take(story.planner.learned(0, live(from: first), at: 4))
        #expect(Array(story.running.keys) == [next])
        let awaited = story.planner.awaited.map { $0.piece.url.lastPathSegment }
        #expect(awaited == (first == 2 ? ["v2.ts"] : []))
    }

    @Test func `another rendition of a title is fetched from where its player is`() {
        var story = FeedStory {
            $0.ahead = 0
            $0.behind = 0
        }
        story.answerReads()
        story.take(story.planner.played(0, LookaheadStory.url("0/2.m4s"), at: 0))
        story.take(story.planner.learned(0, FeedStory.plan(7), at: 0))
        #expect(Array(story.running.keys) == ["7/3.m4s"])
    }

    @Test func `weights increase the cost of items`() {
        let weights = [1.0, 5, 1, 1]
        var parameters = FeedParameters()
        parameters.costBudget = 4
        let planner = FeedPlanner(
            contents: [0, 1, 2, 3], weights: weights, at: 0, .forward, parameters)
        #expect(planner.window.map(\.index) == [0])
    }

    @Test(arguments: [8.5, 1_000])
    func `the active item is fetched whatever it costs, alone`(weight: Double) {
        var planner = FeedPlanner(contents: [0, 1, 2], weights: [weight, 1, 1], at: 0)
        #expect(planner.start(at: 0) == [.read(content: 0)])
        // As a neighbour it is left out, and so are those behind it.
        _ = planner.move(to: 1, at: 1)
        #expect(planner.window.map(\.index) == [1, 2])
        _ = planner.move(to: 0, at: 2)
        #expect(planner.window.map(\.index) == [0])
    }

    @Test func `neighbours wait until the active item's player has enough buffered`() {
        var story = FeedStory {
            $0.parallel = 8
            $0.parallelOfItem = 8
            $0.startBytes = 0
        }
        story.answerReads()
        #expect(story.yielding.count == story.running.count)
        for name in ["0/init.mp4", "0/0.m4s", "0/1.m4s"] { story.finish(name) }
        #expect(story.yielding.isEmpty)
    }

    @Test func `an active item that is played faster than it is fetched gets the link back`() {
        var story = FeedStory {
            $0.parallel = 8
            $0.parallelOfItem = 8
            $0.startBytes = 0
        }
        story.answerReads()
        for name in ["0/init.mp4", "0/0.m4s", "0/1.m4s"] { story.finish(name) }
        story.take(story.planner.played(0, LookaheadStory.url("0/0.m4s"), at: 0))
        story.now = 6
        story.take(story.planner.tick(at: 6))
        #expect(!story.running.isEmpty && story.yielding.count == story.running.count)
    }

    @Test func `first bytes of all neighbours precede more of any`() {
        let parts = (0..<3).map { number in
            FeedPlan.Part(
                MediaPiece(LookaheadStory.url("p\(number).ts"), role: .segment), seconds: 4,
                begins: Double(number) * 4)
        }
        let plan = FeedPlan(parts: parts, rate: 200_000)
        var planner = FeedPlanner(contents: [0, 1, 2], weights: [1, 1, 1], at: 0)
        planner.parameters.parallel = 8
        planner.parameters.settleSeconds = 0
        _ = planner.start(at: 0)
        let actions = [1, 2].flatMap { planner.learned($0, plan, at: 0) }
        let ranges = actions.compactMap { action -> Range<Int64>? in
            guard case .fetch(_, _, let piece, _) = action else { return nil }
            return piece.range
        }
        #expect(ranges.filter { $0 == 0..<100_000 }.count == 2)
    }

    @Test func `the published scheme fetches each item by one transfer, all at once`() {
        var story = FeedStory(20, at: 10) { $0 = .published }
        story.answerReads()
        let large = story.running.keys.filter { !$0.hasSuffix("init.mp4") }
        let items = large.map { $0.prefix { $0 != "/" } }.sorted()
        #expect(items == ["10", "11", "12", "8", "9"])
    }

    @Test func `bytes of items that were never seen are reported as waste`() {
        var story = FeedStory()
        story.settle()
        #expect(story.planner.wastedBytes == 0)
        story.move(to: 18)
        #expect(story.planner.wastedBytes == 3 * 300_000 + 3 * 200_000)
    }

    @Test func `moving through a feed of 10,000 items is fast`() {
        var story = FeedStory(10_000)
        for index in stride(from: 0, to: 10_000, by: 7) { story.move(to: index) }
        #expect(story.planner.known.count <= 210)
    }
}
