import HLS
import Testing
import URISyntax

@testable import Lookahead

/// What is fetched ahead of a player: in which order, how far, and when no longer.
@Suite struct LookaheadPlannerTests {
    @Test func `only the next segments are fetched, the nearest first`() {
        var story = LookaheadStory()
        story.see("v", LookaheadStory.picture("v", 0..<20))
        story.read("v0.ts")
        #expect(Set(story.running.keys) == ["v1.ts", "v2.ts"])
        #expect(story.finishAll() == ["v1.ts", "v2.ts", "v3.ts"])
    }

    @Test func `a list that was dropped for others is planned again once it is seen again`() {
        var story = LookaheadStory()
        let first = ListID(session: 1, url: LookaheadStory.url("v.m3u8"))
        story.see("v", LookaheadStory.picture("v", 0..<20))
        for number in 0..<LookaheadPlanner.mostLists {
            #expect(story.planner.knows(first))
            story.now += 1
            story.see("other\(number)-", LookaheadStory.picture("other\(number)-", 0..<2))
        }
        #expect(!story.planner.knows(first))
        story.read("v0.ts")
        #expect(story.running.isEmpty)
        story.see("v", LookaheadStory.picture("v", 0..<20))
        story.read("v0.ts")
        #expect(Set(story.running.keys) == ["v1.ts", "v2.ts"])
    }

    @Test func `lists are bounded in bytes, and the last one stays however long it is`() {
        let picture = LookaheadStory.picture("v", 0..<1_000)
        #expect(picture.byteCount > 100_000)
        var story = LookaheadStory()
        story.planner = LookaheadPlanner(mostBytes: 3 * picture.byteCount)
        func known() -> [String] {
            ["a", "b", "c", "d", "e", "f"].filter { name in
                let url = LookaheadStory.url("\(name).m3u8")
                return story.planner.knows(ListID(session: 1, url: url))
            }
        }
        // Read again, a list counts once.
        for name in ["a", "b", "b", "c"] {
            story.now += 1
            story.see(name, picture)
        }
        #expect(known() == ["a", "b", "c"])
        story.now += 1
        story.see("a", picture)
        story.now += 1
        story.see("d", picture)
        #expect(known() == ["a", "c", "d"])
        story.now += 1
        story.see("e", LookaheadStory.picture("v", 0..<4_000))
        #expect(known() == ["e"])
        story.now += 1
        story.see("f", picture)
        #expect(known() == ["f"])
    }

    @Test func `nothing is fetched for a session whose viewer went on, until its next request`() {
        var story = LookaheadStory()
        story.see("v", LookaheadStory.picture("v", 0..<20))
        story.read("v0.ts")
        story.take(story.planner.movedOn(session: 2, at: 0))
        #expect(story.cancelled.isEmpty)
        story.take(story.planner.movedOn(session: 1, at: 0))
        #expect(Set(story.cancelled) == ["v1.ts", "v2.ts"] && story.running.isEmpty)
        story.read("v1.ts")
        #expect(story.running["v2.ts"] != nil)
    }

    @Test func `each requested segment allows one more fetch`() {
        var story = LookaheadStory()
        story.see("v", LookaheadStory.picture("v", 0..<20))
        story.read("v0.ts")
        _ = story.finishAll()
        story.read("v1.ts")
        #expect(Array(story.running.keys) == ["v4.ts"])
    }

    @Test func `a seek cancels fetches and starts at the new position`() {
        var story = LookaheadStory()
        story.see("v", LookaheadStory.picture("v", 0..<50))
        story.read("v0.ts")
        story.read("v30.ts")
        #expect(story.cancelled.sorted() == ["v1.ts", "v2.ts"])
        #expect(Set(story.running.keys) == ["v31.ts", "v32.ts"])
    }

    @Test func `running fetches continue if the link turns out to be faster than needed`() {
        var story = LookaheadStory()
        story.see("v", LookaheadStory.picture("v", 0..<9), .init(mode: .auto, bandwidth: 400_000))
        story.read("v0.ts")
        #expect(Set(story.running.keys) == ["v1.ts", "v2.ts"])
        story.finish("v1.ts", bytes: 200_000, seconds: 0.001)
        #expect(story.cancelled == [])
        #expect(Set(story.running.keys) == ["v2.ts"])
        story.read("v1.ts")
        #expect(story.cancelled == [])
        // A seek cancels it all the same.
        story.read("v7.ts")
        #expect(story.cancelled == ["v2.ts"])
    }

    @Test func `a player that seeks often gets no look-ahead until it plays on`() {
        var story = LookaheadStory()
        story.see("v", LookaheadStory.picture("v", 0..<100))
        for number in [0, 40, 10, 70] { story.read("v\(number).ts") }
        #expect(story.running.isEmpty)
        for number in 71...73 { story.read("v\(number).ts") }
        #expect(!story.running.isEmpty)
    }

    @Test func `after a switch the new rendition is fetched`() {
        var story = LookaheadStory()
        story.see("low", LookaheadStory.picture("low", 0..<20))
        story.see("high", LookaheadStory.picture("high", 0..<20))
        story.read("low3.ts")
        story.read("high4.ts")
        #expect(Set(story.running.keys) == ["high5.ts", "high6.ts"])
    }

    @Test func `video and audio are fetched ahead in step`() {
        var story = LookaheadStory()
        story.see("v", LookaheadStory.picture("v", 0..<20))
        story.see("a", LookaheadStory.picture("a", 0..<20), .init(kind: .sound, mode: .seconds(12)))
        story.read("v0.ts")
        _ = story.finishAll()
        story.read("a0.ts")
        story.read("v1.ts")
        #expect(Set(story.running.keys) == ["a1.ts", "a2.ts"])
    }

    @Test func `later keys and sections are fetched before their segment`() {
        let change = MediaPiece(LookaheadStory.url("k2.key"), role: .key)
        let first = LookaheadStory.picture("v", 0..<2)
        let second = LookaheadStory.picture("v", 2..<6, structure: [change])
        var story = LookaheadStory()
        story.see(
            "v", CompactMediaList(segments: first.segments + second.segments, isLive: false))
        story.read("v0.ts")
        story.finish("v1.ts")
        #expect(Set(story.running.keys) == ["k2.key", "v2.ts"])
    }

    @Test func `only what a live list contains is fetched`() {
        var story = LookaheadStory()
        story.see("v", LookaheadStory.picture("v", 10..<13, isLive: true))
        story.read("v12.ts")
        #expect(story.running.isEmpty)
        story.see("v", LookaheadStory.picture("v", 11..<14, isLive: true))
        #expect(Array(story.running.keys) == ["v13.ts"])
    }

    @Test func `a list with restarted numbering is fetched from its start`() {
        var story = LookaheadStory()
        story.see("v", LookaheadStory.picture("v", 10..<13, isLive: true))
        story.read("v10.ts")
        _ = story.finishAll()
        story.see("v", LookaheadStory.picture("v", 0..<3, isLive: true))
        story.read("v0.ts")
        #expect(Set(story.running.keys) == ["v1.ts", "v2.ts"])
    }

    @Test func `a silent player counts as stopped`() {
        var story = LookaheadStory()
        story.see("v", LookaheadStory.picture("v", 0..<20))
        story.read("v0.ts")
        story.now = 7
        story.take(story.planner.tick(at: 7))
        #expect(story.running.count == 2, "a segment lasts longer than that")
        story.now = 9
        story.take(story.planner.tick(at: 9))
        #expect(story.running.isEmpty)
        #expect(!story.planner.needsTicks)
    }

    @Test func `a body that the player aborts cancels fetches, and its next request resumes them`()
    {
        var story = LookaheadStory()
        story.see("v", LookaheadStory.picture("v", 0..<20))
        story.read("v0.ts")
        story.take(
            story.planner.left(story.player, LookaheadStory.url("v5.ts"), since: 0, at: 0.1))
        #expect(story.running.count == 2, "another was asked for since")
        story.take(
            story.planner.left(story.player, LookaheadStory.url("v0.ts"), since: 0, at: 0.1))
        #expect(story.running.isEmpty)
        story.read("v1.ts")
        #expect(Set(story.running.keys) == ["v2.ts", "v3.ts"])
    }

    @Test func `a player that requests again before its abort is reported has not stopped`() {
        var story = LookaheadStory()
        story.see("v", LookaheadStory.picture("v", 0..<20))
        story.read("v0.ts")
        story.now = 0.01
        story.read("v0.ts")
        story.take(
            story.planner.left(story.player, LookaheadStory.url("v0.ts"), since: 0, at: 0.1))
        #expect(story.cancelled == [])
    }

    @Test func `a failed fetch is left to the player`() {
        var story = LookaheadStory()
        story.see("v", LookaheadStory.picture("v", 0..<20))
        story.read("v0.ts")
        guard let id = story.running.removeValue(forKey: "v1.ts") else { return }
        story.take(story.planner.ended(id, AheadResult(.failed), at: 0))
        #expect(Set(story.running.keys) == ["v2.ts", "v3.ts"])
    }

    @Test func `two players of one title share fetches`() {
        var story = LookaheadStory()
        story.see("v", LookaheadStory.picture("v", 0..<20))
        story.read("v0.ts")
        let other = PlayerID(session: 1, client: 8)
        let url = LookaheadStory.url("v0.ts")
        story.take(story.planner.read(url, by: other, at: 0))
        #expect(Set(story.running.keys) == ["v1.ts", "v2.ts", "v3.ts"])
    }

    @Test func `a segment is found by its whole URL, the first of equal ones`() {
        let names = ["a/1.ts", "b/1.ts", "b/1.ts?x", "b/1.ts"]
        let picture = CompactMediaList(
            segments: names.enumerated().map { number, name in
                CompactMediaList.Segment(
                    piece: MediaPiece(LookaheadStory.url(name), role: .segment), seconds: 4,
                    sequence: number, structure: [])
            }, isLive: false)
        #expect(picture.index(of: LookaheadStory.url("a/1.ts")) == 0)
        #expect(picture.index(of: LookaheadStory.url("b/1.ts"), from: 500) == 1)
        #expect(picture.index(of: LookaheadStory.url("b/1.ts?x")) == 2)
        #expect(picture.index(of: LookaheadStory.url("c/1.ts")) == nil)
    }

    @Test func `of a live list only the keys of its window are remembered`() {
        var story = LookaheadStory()
        for start in 0..<2_000 {
            let segments = (start..<start + 4).map { number in
                CompactMediaList.Segment(
                    piece: MediaPiece(LookaheadStory.url("v\(number).ts"), role: .segment),
                    seconds: 4, sequence: number,
                    structure: [MediaPiece(LookaheadStory.url("\(number).key"), role: .key)])
            }
            story.see("v", CompactMediaList(segments: segments, isLive: true))
            story.read("v\(start).ts")
            let fetched = story.finishAll()
            #expect(fetched.contains("\(start + 3).key"))
        }
        let known = story.planner.lists.values.map(\.finishedStructure.count)
        #expect(known.count == 1 && (known.first ?? 0) <= 4)
    }

    @Test func `byte ranges of one file are distinguished`() {
        let url = LookaheadStory.url("film.mp4")
        let segments = (0..<9).map { number in
            CompactMediaList.Segment(
                piece: MediaPiece(
                    url, range: Int64(number) * 100..<Int64(number + 1) * 100, role: .segment),
                seconds: 4, sequence: number, structure: [])
        }
        var story = LookaheadStory(LookaheadLimits())
        story.see("v", CompactMediaList(segments: segments, isLive: false))
        let actions = story.planner.read(url, from: 300, by: story.player, at: 0)
        let ranges = actions.compactMap { action -> Int64? in
            guard case .fetch(_, let piece, _) = action else { return nil }
            return piece.range?.lowerBound
        }
        #expect(ranges == [400, 500])
    }

    @Test func `a request within a byte range is for the segment of that range`() {
        let url = LookaheadStory.url("film.mp4")
        let ranges: [Range<Int64>] = [0..<10, 10..<20, 30..<40]
        let picture = CompactMediaList(
            segments: ranges.enumerated().map { number, range in
                CompactMediaList.Segment(
                    piece: MediaPiece(url, range: range, role: .segment), seconds: 4,
                    sequence: number, structure: [])
            }, isLive: false)
        let found = [0, 5, 10, 15, 20, 39, 40].map { picture.index(of: url, from: $0) }
        #expect(found == [0, 0, 1, 1, nil, 2, nil])
    }

    @Test func `nothing is fetched beyond the storage limit`() {
        var story = LookaheadStory()
        story.see(
            "v", LookaheadStory.picture("v", 0..<20),
            .init(mode: .seconds(60), reach: 3))
        story.read("v0.ts")
        #expect(story.finishAll() == ["v1.ts", "v2.ts"])
    }
}
