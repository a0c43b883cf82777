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

    /// A reading of a list whose token is a folder in the paths of its segments.
    private func reading(
        _ segments: [Segment], token: String, from first: Int = 0, breaks: Int? = nil
    ) throws -> Succession.Reading {
        var text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:\(first)\n"
        if let breaks { text += "#EXT-X-DISCONTINUITY-SEQUENCE:\(breaks)\n" }
        for segment in segments {
            if segment.isBehindBreak { text += "#EXT-X-DISCONTINUITY\n" }
            text += "#EXTINF:\(segment.seconds),\n\(token)/\(segment.name).ts\n"
        }
        return Succession.Reading(
            try Playlist(Array(text.utf8), base: AbsoluteURL("http://h/l.m3u8")))
    }

    private func pairs(
        _ now: Succession.Reading, after former: Succession.Reading
    ) -> [String: String] {
        let succession = Succession(now) { url, _ in ObjectKey(sha256Of: url.text) }
        let named = succession.pairs(with: former).map { ($0.dead.path, $0.url.path) }
        return Dictionary(uniqueKeysWithValues: named)
    }

    private let film = ["0", "1", "2"].map { Segment(name: $0) }

    @Test func `segments under another path are paired by their numbers`() throws {
        let former = try reading(film, token: "a")
        let now = try reading(film, token: "b")
        #expect(
            pairs(now, after: former)
                == ["/a/0.ts": "/b/0.ts", "/a/1.ts": "/b/1.ts", "/a/2.ts": "/b/2.ts"])
    }

    @Test func `the files of advertisements are not paired by their place`() throws {
        func reading(_ ads: [String]) throws -> Succession.Reading {
            let ranges = ads.map {
                "#EXT-X-DATERANGE:ID=\"\($0)\",START-DATE=\"2026-01-01T00:00:00Z\","
                    + "X-ASSET-URI=\"\($0)\"\n"
            }
            let text =
                "#EXTM3U\n#EXT-X-TARGETDURATION:4\n" + ranges.joined() + "#EXTINF:4,\ns.ts\n"
            return Succession.Reading(
                try Playlist(Array(text.utf8), base: AbsoluteURL("http://h/l.m3u8")))
        }
        let former = try reading(["a.mp4", "b.mp4"])
        #expect(former.children.map(\.role) == [.media, .media, .segment])
        // The first one was withdrawn, without and with another one behind.
        #expect(try pairs(reading(["b.mp4"]), after: former).isEmpty)
        #expect(try pairs(reading(["b.mp4", "c.mp4"]), after: former).isEmpty)
        #expect(
            try pairs(reading(["b.mp4?token=2"]), after: former) == ["/b.mp4": "/b.mp4"],
            "its path tells which one it is")
    }

    @Test func `segments of a live list are paired by their numbers`() throws {
        let former = try reading(film, token: "a")
        let next = ["1", "2", "3"].map { Segment(name: $0) }
        let now = try reading(next, token: "b", from: 1)
        #expect(pairs(now, after: former) == ["/a/1.ts": "/b/1.ts", "/a/2.ts": "/b/2.ts"])
    }

    @Test func `discontinuities are told apart from those that have left the window`() throws {
        let segments = (0..<5).map { Segment(name: "\($0)", isBehindBreak: $0 == 1 || $0 == 3) }
        let former = try reading(segments, token: "a")
        let common = ["/a/2.ts": "/b/2.ts", "/a/3.ts": "/b/3.ts", "/a/4.ts": "/b/4.ts"]
        let now = try reading(Array(segments[2...]), token: "b", from: 2)
        #expect(pairs(now, after: former) == common)
        // The same with the tag that counts them.
        let counted = try reading(Array(segments[2...]), token: "b", from: 2, breaks: 1)
        #expect(pairs(counted, after: former) == common)
        // One of them is elsewhere.
        var moved = segments
        moved[3].isBehindBreak = false
        moved[4].isBehindBreak = true
        let others = try reading(Array(moved[2...]), token: "b", from: 2)
        #expect(pairs(others, after: former).isEmpty)
        // An origin that has restarted counts them from zero again.
        let before = try reading(film, token: "a", breaks: 5)
        let anew = try reading(film, token: "b")
        #expect(pairs(anew, after: before).isEmpty)
        // An advertisement and its break were put before the segments that have a number in common.
        let window = try reading(film, token: "a", from: 11)
        let ad = [Segment(name: "ad"), Segment(name: "p", isBehindBreak: true)]
        let longer = try reading(ad + film, token: "b", from: 10)
        #expect(pairs(longer, after: window).isEmpty)
    }

    @Test func `a list that counts its discontinuities has restarted if it counts otherwise`()
        throws
    {
        func window(_ numbers: Range<Int>, breakAt: Int? = nil) -> [Segment] {
            numbers.map { Segment(name: "\($0)", isBehindBreak: $0 == breakAt) }
        }
        // One has left before the former window; the origin then counts from the start.
        let former = try reading(window(10..<16), token: "a", from: 10, breaks: 1)
        let anew = try reading(window(12..<18), token: "b", from: 12)
        #expect(pairs(anew, after: former).isEmpty)
        // One is in the former window, and none has left the next one.
        let broken = try reading(window(10..<16, breakAt: 11), token: "a", from: 10, breaks: 0)
        let whole = try reading(window(12..<18), token: "b", from: 12, breaks: 0)
        #expect(pairs(whole, after: broken).isEmpty)
        // Without the tag it has left a window that has moved on, and no other.
        let uncounted = try reading(window(10..<16, breakAt: 11), token: "a", from: 10)
        #expect(pairs(anew, after: uncounted).count == 4)
        let still = try reading(window(10..<16), token: "b", from: 10)
        let later = try reading(window(11..<16), token: "b", from: 11)
        let led = try reading(window(11..<16, breakAt: 11), token: "a", from: 11)
        #expect(pairs(still, after: led).isEmpty && pairs(later, after: led).isEmpty)
    }

    @Test func `a list with another segment in front pairs none of them`() throws {
        let former = try reading(film, token: "a")
        let short = try reading([Segment(name: "ad", seconds: 2)] + film, token: "b")
        #expect(pairs(short, after: former).isEmpty)
        var broken = film
        broken[0].isBehindBreak = true
        let alike = try reading([Segment(name: "ad")] + broken, token: "b")
        #expect(pairs(alike, after: former).isEmpty)
    }

    // MARK: Playlists

    /// A reading of a multivariant playlist, each child with the line of its tag.
    private func reading(
        _ children: [(tag: String, uri: String)]
    ) throws -> Succession.Reading {
        var text = "#EXTM3U\n"
        for child in children {
            text +=
                child.tag.hasPrefix("TYPE=")
                ? "#EXT-X-MEDIA:\(child.tag),URI=\"\(child.uri)\"\n"
                : "#EXT-X-STREAM-INF:BANDWIDTH=\(child.tag)\n\(child.uri)\n"
        }
        return Succession.Reading(
            try Playlist(Array(text.utf8), base: AbsoluteURL("http://h/m.m3u8")))
    }

    private func audio(_ language: String) -> String {
        "TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"\(language)\",LANGUAGE=\"\(language)\""
    }

    private let video = ["900000,RESOLUTION=1280x720", "2000000,RESOLUTION=1920x1080"]

    @Test func `renditions are paired by language, variants by resolution, whatever their order`()
        throws
    {
        // All files have one name.
        let former = try reading([
            (audio("en"), "/t1/en/l.m3u8"), (video[0], "/t1/0/l.m3u8"),
            (video[1], "/t1/1/l.m3u8"),
        ])
        let now = try reading([
            (audio("es"), "/t2/es/l.m3u8"), (audio("en"), "/t2/en/l.m3u8"),
            (video[1], "/t2/1/l.m3u8"), (video[0], "/t2/0/l.m3u8"),
        ])
        #expect(
            pairs(now, after: former)
                == [
                    "/t1/en/l.m3u8": "/t2/en/l.m3u8", "/t1/0/l.m3u8": "/t2/0/l.m3u8",
                    "/t1/1/l.m3u8": "/t2/1/l.m3u8",
                ])
        // The language is not there any more: no other one takes its place.
        let other = try reading([(audio("es"), "/t3/es/l.m3u8"), (video[0], "/t3/0/l.m3u8")])
        #expect(pairs(other, after: former) == ["/t1/0/l.m3u8": "/t3/0/l.m3u8"])
    }

    @Test func `variants without a label of their own are paired by file name, then by order`()
        throws
    {
        let former = try reading([("1", "/t1/lo.m3u8"), ("2", "/t1/hi.m3u8")])
        let turned = try reading([("2", "/t2/hi.m3u8"), ("1", "/t2/lo.m3u8")])
        #expect(
            pairs(turned, after: former)
                == ["/t1/lo.m3u8": "/t2/lo.m3u8", "/t1/hi.m3u8": "/t2/hi.m3u8"])
        let renamed = try reading([("1", "/t2/a.m3u8"), ("3", "/t2/b.m3u8")])
        #expect(
            pairs(renamed, after: former)
                == ["/t1/lo.m3u8": "/t2/a.m3u8", "/t1/hi.m3u8": "/t2/b.m3u8"])
        // With another number of them no order tells which is which.
        let more = try reading([("1", "/t2/a.m3u8"), ("2", "/t2/b.m3u8"), ("3", "/t2/c.m3u8")])
        #expect(pairs(more, after: former).isEmpty)
    }

    @Test func `a list of an unknown former session is found by what all lists have in common`()
        throws
    {
        let now = try reading([
            (audio("en"), "/x/s3/en/l.m3u8"), (video[0], "/x/s3/0/l.m3u8"),
            (video[1], "/x/s3/1/l.m3u8"),
        ])
        func renamed(_ path: String) throws -> String? {
            try now.renamed(AbsoluteURL("http://h\(path)"))?.path
        }
        #expect(try renamed("/x/s0/1/l.m3u8") == "/x/s3/1/l.m3u8")
        #expect(try renamed("/x/s0/en/l.m3u8?a=b") == "/x/s3/en/l.m3u8")
        // It is not there any more, and no other one takes its place.
        #expect(try renamed("/x/s0/2/l.m3u8") == nil)
        #expect(try renamed("/x/s3/2/l.m3u8") == nil)
        // More than a session differs.
        #expect(try renamed("/y/s0/1/l.m3u8") == nil)
        #expect(try renamed("/s0/1/l.m3u8") == nil)
        #expect(try now.renamed(AbsoluteURL("http://other/x/s0/1/l.m3u8")) == nil)
        let twice = try reading([("1", "/s3/l.m3u8?v=1"), ("2", "/s3/l.m3u8?v=2")])
        #expect(try twice.renamed(AbsoluteURL("http://h/s0/l.m3u8?v=1")) == nil)
    }

    @Test func `no language takes the place of one that was removed, however deep its path`()
        throws
    {
        for (now, former) in [
            ("/audio/en.m3u8", "/audio/de.m3u8"), ("/en/l/a.m3u8", "/de/l/a.m3u8"),
        ] {
            let list = try reading([(audio("en"), "/x\(now)"), (video[0], "/x/v.m3u8")])
            #expect(try list.renamed(AbsoluteURL("http://h/x\(former)")) == nil, "\(former)")
            let renamed = try list.renamed(AbsoluteURL("http://h/s\(now)"))
            #expect(renamed?.path == "/x\(now)", "\(now)")
        }
    }
}
