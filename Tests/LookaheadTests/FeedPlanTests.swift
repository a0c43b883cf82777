import HLS
import Testing
import URISyntax

@testable import Lookahead

/// Which bytes form the beginning of an item, and which parameters a feed accepts.
@Suite struct FeedPlanTests {
    private func part(_ seconds: Double, _ begins: Double = 0) -> FeedPlan.Part {
        FeedPlan.Part(
            MediaPiece(LookaheadStory.url("\(begins).ts"), role: .segment), seconds: seconds,
            begins: begins)
    }

    @Test func `a long first segment is fetched in part`() {
        let plan = FeedPlan(parts: [part(10), part(10, 10)], rate: 250_000)
        let head = plan.head(.standard)
        #expect(head.count == 1 && head[0].range == 0..<1_250_000)
    }

    @Test func `a segment of unknown size is fetched whole`() {
        let head = FeedPlan(parts: [part(10), part(10, 10)], rate: nil).head(.standard)
        #expect(head.count == 1 && head[0].range == nil)
    }

    @Test func `both seconds and bytes must be reached`() {
        let plan = FeedPlan(parts: (0..<9).map { part(2, Double($0) * 2) }, rate: 10_000)
        #expect(plan.head(.standard).count == 9, "9 times 20 kB are less than 200 kB")
        var fewer = FeedParameters()
        fewer.headBytes = 30_000
        #expect(plan.head(fewer).count == 3, "5 s need three of 2 s")
    }

    @Test func `segments without a duration do not all belong to the head`() {
        let list = CompactMediaList(
            segments: (0..<20_000).map { number in
                let piece = MediaPiece(LookaheadStory.url("\(number).ts"), role: .segment)
                return .init(piece: piece, seconds: 0, sequence: number, structure: [])
            }, isLive: false)
        #expect(FeedPlan([list], rate: nil).head(.standard).count <= 51)
        #expect(FeedPlan([list], rate: 1).head(.standard).count == 512)
    }

    @Test func `of several keys in force the one without a key system is fetched`() throws {
        let system = "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"w\",KEYFORMAT=\"com.widevine\""
        let lines = [
            "#EXTM3U", "#EXT-X-TARGETDURATION:4", "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"k1\"",
            system, "#EXTINF:4,", "a.ts", "#EXT-X-KEY:METHOD=NONE", system, "#EXTINF:4,", "b.ts",
            "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"k2\",KEYFORMAT=\"identity\"", system,
            "#EXTINF:4,", "c.ts", "#EXT-X-KEY:METHOD=NONE,URI=\"x\"", "#EXTINF:4,", "d.ts",
            "#EXT-X-ENDLIST",
        ]
        let body = Array(lines.joined(separator: "\n").utf8)
        let list = CompactMediaList(try Playlist(body, base: LookaheadStory.url("v.m3u8")))
        let keys = list.segments.map { $0.structure.map(\.url.lastPathSegment) }
        #expect(keys == [["k1"], [], ["k2"], []])
    }

    @Test func `of a media file the first bytes are fetched`() {
        let file = FeedPlan.Part(
            MediaPiece(LookaheadStory.url("f.mp4"), role: .media), seconds: 0, begins: 0)
        let head = FeedPlan(parts: [file], rate: nil).head(.standard)
        #expect(head.count == 1 && head[0].range == 0..<200_000)
    }

    @Test func `a segment that is listed twice is meant where the viewer is`() {
        let parts = (0..<40).map { number in
            let name = [1, 31].contains(number) ? "slate.ts" : "\(number).ts"
            return FeedPlan.Part(
                MediaPiece(LookaheadStory.url(name), role: .segment), seconds: 4,
                begins: Double(number) * 4)
        }
        let plan = FeedPlan(parts: parts, rate: nil)
        func find(_ name: String, after last: Int?) -> Int? {
            plan.index(of: LookaheadStory.url(name), from: 0, after: last)
        }
        #expect(find("slate.ts", after: nil) == 1 && find("slate.ts", after: 1) == 1)
        #expect(find("slate.ts", after: 30) == 31 && find("slate.ts", after: 39) == 31)
        #expect(find("0.ts", after: 39) == 0 && find("39.ts", after: nil) == 39)
        #expect(find("0.ts", after: 99) == 0, "the former plan was longer")
        #expect(find("40.ts", after: 39) == nil)
    }

    @Test func `video and audio are fetched in step`() {
        let sound = LookaheadStory.picture("a", 0..<3)
        let plan = FeedPlan([LookaheadStory.picture("v", 0..<3), sound], rate: nil)
        let names = plan.parts.map { $0.piece.url.lastPathSegment }
        #expect(names == ["v0.ts", "a0.ts", "v1.ts", "a1.ts", "v2.ts", "a2.ts"])
    }

    @Test(arguments: [
        ("ahead", 3.0), ("behind", 0), ("headBytes", 0), ("headSeconds", 2.5), ("parallel", 32),
        ("costBudget", 0), ("byteBudget", 0), ("secureSeconds", 0), ("activeCost", 2),
        ("neighbourCost", 0.5),
    ])
    func `parameters in range are accepted`(name: String, value: Double) {
        var parameters = FeedParameters()
        #expect(parameters.set(name, value) == nil)
    }

    @Test(arguments: [
        ("ahead", -1.0), ("ahead", 101), ("parallel", 0), ("parallel", 33), ("headBytes", 1e13),
        ("speed", 1), ("headSeconds", .nan), ("byteBudget", .infinity),
    ])
    func `other parameters are rejected with a reason`(name: String, value: Double) {
        var parameters = FeedParameters()
        #expect(parameters.set(name, value)?.contains(name) == true)
        #expect(parameters == .standard)
    }

    @Test func `a stream is chosen by the order, the last play, the link, or as first`() throws {
        let sizes = [(360, 800_000), (720, 2_500_000), (1_080, 5_000_000)]
        let streams = sizes.map { (height: Int, rate: Int) in
            StreamGraph.Stream(
                url: LookaheadStory.url("\(height).m3u8"), bandwidth: rate, height: height,
                audio: nil, subtitles: nil)
        }
        let graph = StreamGraph(streams: streams)
        let heights = [
            StreamGraph.PlayerPreferences(height: 800, playedHeight: 360),
            .init(playedHeight: 1_080),
            .init(line: 500_000), .init(line: 10_000), .init(),
        ].map { graph.choice($0)?.height }
        #expect(heights == [720, 1_080, 720, 360, 360])
        #expect(graph.hasBetter(than: streams[1].url) && !graph.hasBetter(than: streams[2].url))
    }
}
