import HLS
import Lookahead
import Testing
import URISyntax

/// Feeds of lists with absurd bit rates and durations.
@Suite struct AbsurdFeedTests {
    @Test(arguments: [
        ("9223372036854775807", 10.0), ("9007199254740991", 500_000_000),
        ("200000000000", 400_000_000), ("18446744073709551616", 10),
    ])
    func `a feed with absurd announcements is planned and reported`(
        bandwidth: String, seconds: Double
    ) throws {
        let base = try AbsoluteURL("http://origin.test/main.m3u8")
        let text = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=\(bandwidth),RESOLUTION=1x-1\nv.m3u8\n"
        let graph = StreamGraph(
            try #require(try Playlist(Array(text.utf8), base: base).multivariant))
        let stream = try #require(graph.choice(.init(height: 720)))
        let pieces = try (0..<3).map { number in
            MediaPiece(try AbsoluteURL("http://origin.test/\(number).ts"), role: .segment)
        }
        let picture = CompactMediaList(
            segments: pieces.enumerated().map {
                .init(piece: $1, seconds: seconds, sequence: $0, structure: [])
            }, isLive: false)
        let plan = FeedPlan([picture], rate: Double(stream.bandwidth) / 8)
        var planner = FeedPlanner(contents: [0, 1], weights: [1, 1], at: 0)
        _ = planner.start(at: 0)
        for content in 0...1 { _ = planner.learned(content, plan, at: 0) }
        let actions = planner.tick(at: 1)
        for case .fetch(let id, _, _, _) in actions {
            _ = planner.ended(id, AheadResult(.stored, bytes: .max), at: 2)
        }
        #expect(planner.window.map { planner.report(on: $0).seconds }.allSatisfy { $0 >= 0 })
    }
}
