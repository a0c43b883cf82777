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
        _ segments: [Segment], token: String, from first: Int = 0
    ) throws -> [ResourceReference] {
        var text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:\(first)\n"
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
