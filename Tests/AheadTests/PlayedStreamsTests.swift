@testable import Lookahead
import Testing
import URISyntax

@testable import Ahead

/// With which playlists look-ahead runs.
@Suite struct PlayedStreamsTests {
    private var streams = PlayedStreams()
    private let low: AbsoluteURL
    private let high: AbsoluteURL
    private let sound: AbsoluteURL
    private let graph: StreamGraph

    init() throws {
        low = try AbsoluteURL("http://h/low.m3u8")
        high = try AbsoluteURL("http://h/high.m3u8")
        sound = try AbsoluteURL("http://h/sound.m3u8")
        graph = StreamGraph(
            streams: [(low, 1_000_000), (high, 5_000_000)].map { url, bandwidth in
                StreamGraph.Stream(
                    url: url, bandwidth: bandwidth, height: nil, audio: "a", subtitles: nil)
            },
            renditions: [.init(url: sound, kind: .sound, group: "a", isDefault: true)])
    }

    private mutating func mode(
        _ list: AbsoluteURL, in session: UInt64 = 1, _ mode: LookaheadMode = .auto,
        isPaced: Bool = false
    ) -> LookaheadMode {
        streams.mode(of: list, in: session, mode, isPaced: isPaced)
    }

    @Test mutating func `look-ahead begins when the player has reached the best stream`() {
        streams.note(graph, of: 1)
        // Nothing says yet which stream the sound belongs to.
        let modes = [sound, low, sound, high, sound, low, sound].map { mode($0) }
        #expect(modes == [.off, .off, .off, .auto, .auto, .off, .off])
    }

    @Test mutating func `the streams of one session do not limit another one`() {
        streams.note(graph, of: 1)
        streams.note(graph, of: 2)
        let first = mode(high, in: 1)
        let second = mode(sound, in: 2)
        #expect(first == .auto && second == .off)
    }

    @Test mutating func `a fixed depth, pacing or a list without streams is not limited`() {
        let alone = mode(low)
        #expect(alone == .auto)
        streams.note(graph, of: 1)
        let fixed = mode(low, .seconds(30))
        let paced = mode(low, isPaced: true)
        let off = mode(high, .off)
        #expect(fixed == .seconds(30) && paced == .auto && off == .off)
    }

    @Test mutating func `a session is forgotten after as many others as are kept`() {
        streams.note(graph, of: 1)
        _ = mode(low)
        for session in 2...UInt64(PlayedStreams.most) { streams.note(graph, of: session) }
        #expect(streams.kind(of: sound, in: 1) == .sound)
        #expect(streams.bandwidth(of: high, in: 1) == 5_000_000)
        streams.note(graph, of: UInt64(PlayedStreams.most) + 1)
        #expect(streams.kind(of: sound, in: 1) == .picture)
        #expect(streams.bandwidth(of: high, in: 1) == nil)
        let mode = mode(low)
        #expect(mode == .auto)
    }

    @Test mutating func `multivariant playlists are bounded in bytes, the last ones stay`() throws {
        let name = String(repeating: "x", count: 10_000)
        let urls = try (0..<600).map { try AbsoluteURL("http://h/\($0)\(name).m3u8") }
        // 6 MB each.
        let large = StreamGraph(
            streams: urls.map { url in
                StreamGraph.Stream(url: url, bandwidth: 1, height: nil, audio: nil, subtitles: nil)
            })
        for session in 1...8 as ClosedRange<UInt64> { streams.note(large, of: session) }
        let known = (1...8).filter { streams.bandwidth(of: urls[0], in: $0) != nil }
        #expect(known == [4, 5, 6, 7, 8])
    }
}
