import Testing
import URISyntax

@testable import Ahead
@testable import Lookahead

/// In which stream the items of a feed are fetched.
@Suite struct FeedStreamsTests {
    private var streams = FeedStreams()
    private let heights = [360, 720, 1_080]

    private func stream(
        _ content: Int, _ height: Int?, bandwidth: Int = 1_000_000
    ) throws -> StreamGraph.Stream {
        let name = height.map { "\($0)" } ?? "plain"
        return StreamGraph.Stream(
            url: try AbsoluteURL("http://h/\(content)/\(name)-\(bandwidth).m3u8"),
            bandwidth: bandwidth, height: height, audio: nil, subtitles: nil)
    }

    private func graph(_ content: Int) throws -> StreamGraph {
        StreamGraph(streams: try heights.map { try stream(content, $0) })
    }

    /// Notes an item's streams; returns the height of the one that is chosen.
    private mutating func learn(_ content: Int, ordered height: Int? = nil) throws -> Int? {
        streams.learn(try graph(content), of: content, height: height, line: nil)?.height
    }

    private mutating func play(_ content: Int, _ height: Int) throws -> FeedStreams.Choice? {
        streams.played(try stream(content, height).url, of: content)
    }

    @Test mutating func `later items are fetched in the height that a player chose last`() throws {
        let first = try learn(1)
        #expect(first == 360)
        let up = try play(1, 1_080)
        #expect(up?.stream.height == 1_080 && up?.isOtherHeight == true)
        #expect(streams.chosen(of: 1)?.height == 1_080)
        let second = try learn(2)
        #expect(second == 1_080)
        let down = try play(2, 720)
        #expect(down?.isOtherHeight == true)
        let third = try learn(3)
        #expect(third == 720)
        // What was learned before stays as it is.
        #expect(streams.chosen(of: 1)?.height == 1_080)
    }

    @Test mutating func `a stream that is already fetched, and what is no stream, is no choice`()
        throws
    {
        _ = try learn(1)
        let same = try play(1, 360)
        let unknown = try play(2, 720)
        let segment = streams.played(try AbsoluteURL("http://h/1/a.ts"), of: 1)
        #expect(same == nil && unknown == nil && segment == nil)
        #expect(streams.graph(of: 2) == nil)
    }

    @Test mutating func `another bandwidth of one height leaves the plans of other items`() throws {
        let others = [try stream(1, 720), try stream(1, 720, bandwidth: 3_000_000)]
        let all = [try stream(1, 360)] + others
        _ = streams.learn(StreamGraph(streams: all), of: 1, height: nil, line: nil)
        let first = streams.played(others[0].url, of: 1)
        let second = streams.played(others[1].url, of: 1)
        #expect(first?.isOtherHeight == true)
        #expect(second == FeedStreams.Choice(stream: others[1], isOtherHeight: false))
    }

    @Test mutating func `a stream without a height says nothing of later items`() throws {
        let all = [try stream(1, 360), try stream(1, nil)]
        _ = streams.learn(StreamGraph(streams: all), of: 1, height: nil, line: nil)
        let up = streams.played(all[1].url, of: 1)
        #expect(up == FeedStreams.Choice(stream: all[1], isOtherHeight: false))
        let next = try learn(2)
        #expect(next == 360)
    }

    @Test mutating func `the order's height has precedence over what was played`() throws {
        _ = try learn(1)
        _ = try play(1, 1_080)
        let ordered = try learn(2, ordered: 720)
        #expect(ordered == 720)
    }

    @Test mutating func `a playlist without streams keeps the choice that was known`() throws {
        _ = try learn(1)
        let none = streams.learn(StreamGraph(streams: []), of: 1, height: nil, line: nil)
        #expect(none == nil && streams.chosen(of: 1)?.height == 360)
    }
}
