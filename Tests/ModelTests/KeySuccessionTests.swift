import HLS
import Model
import Store
import Testing
import URISyntax

/// Which current child of a list replaces a former one.
@Suite struct KeySuccessionTests {
    /// A segment of a list: its name, its EXTINF, and whether a discontinuity precedes it.
    private struct Segment {
        let name: String
        var seconds = 4
        var isBehindBreak = false
    }

    /// The children of a list whose token is a folder in the paths of its segments.
    private func children(
        _ segments: [Segment], token: String, from first: Int = 0, breaks: Int? = nil
    ) throws -> [ResourceReference] {
        var text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:\(first)\n"
        if let breaks { text += "#EXT-X-DISCONTINUITY-SEQUENCE:\(breaks)\n" }
        for segment in segments {
            if segment.isBehindBreak { text += "#EXT-X-DISCONTINUITY\n" }
            text += "#EXTINF:\(segment.seconds),\n\(token)/\(segment.name).ts\n"
        }
        return try Playlist(Array(text.utf8), base: AbsoluteURL("http://h/l.m3u8")).references
    }

    private func pairs(
        _ now: [ResourceReference], after former: [ResourceReference]
    ) -> [String: String] {
        let succession = Succession(now) { url, _ in ObjectKey(sha256Of: url.text) }
        let named = succession.pairs(with: former).map { ($0.dead.path, $0.url.path) }
        return Dictionary(uniqueKeysWithValues: named)
    }

    private let film = ["0", "1", "2"].map { Segment(name: $0) }

    @Test func `segments under another path are paired by their numbers`() throws {
        let former = try children(film, token: "a")
        let now = try children(film, token: "b")
        #expect(
            pairs(now, after: former)
                == ["/a/0.ts": "/b/0.ts", "/a/1.ts": "/b/1.ts", "/a/2.ts": "/b/2.ts"])
    }

    @Test func `segments of a live list are paired by their numbers`() throws {
        let former = try children(film, token: "a")
        let next = ["1", "2", "3"].map { Segment(name: $0) }
        let now = try children(next, token: "b", from: 1)
        #expect(pairs(now, after: former) == ["/a/1.ts": "/b/1.ts", "/a/2.ts": "/b/2.ts"])
    }

    @Test func `discontinuities are told apart from those that have left the window`() throws {
        let segments = (0..<5).map { Segment(name: "\($0)", isBehindBreak: $0 == 1 || $0 == 3) }
        let former = try children(segments, token: "a")
        let common = ["/a/2.ts": "/b/2.ts", "/a/3.ts": "/b/3.ts", "/a/4.ts": "/b/4.ts"]
        let now = try children(Array(segments[2...]), token: "b", from: 2)
        #expect(pairs(now, after: former) == common)
        // The same with the tag that counts them.
        let counted = try children(Array(segments[2...]), token: "b", from: 2, breaks: 1)
        #expect(pairs(counted, after: former) == common)
        // One of them is elsewhere.
        var moved = segments
        moved[3].isBehindBreak = false
        moved[4].isBehindBreak = true
        let others = try children(Array(moved[2...]), token: "b", from: 2)
        #expect(pairs(others, after: former).isEmpty)
        // An origin that has restarted counts them from zero again.
        let before = try children(film, token: "a", breaks: 5)
        let anew = try children(film, token: "b")
        #expect(pairs(anew, after: before).isEmpty)
        // An advertisement and its break were put before the segments that have a number in common.
        let window = try children(film, token: "a", from: 11)
        let ad = [Segment(name: "ad"), Segment(name: "p", isBehindBreak: true)]
        let longer = try children(ad + film, token: "b", from: 10)
        #expect(pairs(longer, after: window).isEmpty)
    }

    @Test func `a list with another segment in front pairs none of them`() throws {
        let former = try children(film, token: "a")
        let short = try children([Segment(name: "ad", seconds: 2)] + film, token: "b")
        #expect(pairs(short, after: former).isEmpty)
        var broken = film
        broken[0].isBehindBreak = true
        let alike = try children([Segment(name: "ad")] + broken, token: "b")
        #expect(pairs(alike, after: former).isEmpty)
    }
}
