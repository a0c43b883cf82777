import HLS
import Testing
import URISyntax

/// Lists in M3U that are not of HLS.
@Suite struct ChannelListTests {
    @Test(arguments: [
        ("#EXTM3U\n#EXTINF:-1 tvg-id=\"a\",A\nhttp://h/a.m3u8\n", true),
        ("#EXTM3U x-tvg-url=\"g\"\n#EXTVLCOPT:http-referrer=r\n#EXTINF:-1,A\na.m3u8\n", true),
        ("#EXTM3U\n#EXTINF tvg-id=\"a\",A\na.m3u8\n", true),
        ("#EXTM3U\n#EXTINF:4,\na.ts\n#EXT-X-ENDLIST\n", false),
        ("#EXTM3U\n#EXT-X-TARGETDURATION:4\n", false),
        ("#EXTM3U\n#EXT-X-PROGRAM-DATE-TIME:2031-05-06T07:08:09Z\n#EXTINF:4,\na.ts\n", false),
        ("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8\n", false),
    ])
    func `a list without a tag of HLS is one of channels`(text: String, isOne: Bool) throws {
        let base = try AbsoluteURL("http://h/list.m3u8")
        let made = try PlaylistRewriter.rewrite(
            Array(text.utf8), base: base, map: { _, _ in false })
        #expect(made.summary.isChannelList == isOne)
    }

    /// Rewrites a list to `<role>:<URL>` at each URI.
    private func roles(_ lines: [String]) throws -> (text: [String], list: RewrittenPlaylist) {
        let made = try PlaylistRewriter.rewrite(
            Array((["#EXTM3U"] + lines).joined(separator: "\n").utf8),
            base: try AbsoluteURL("http://h/list.m3u"),
            map: { reference, output in
                output.append(contentsOf: "\(reference.role):\(reference.url.text)".utf8)
                return true
            })
        let text = String(decoding: made.bytes, as: UTF8.self)
        return (text.split(separator: "\n").dropFirst().map(String.init), made)
    }

    @Test(arguments: [
        "#EXTINF:-1,A", "#EXTINF:0,A", "#EXTINF:0 tvg-id=\"a\",A", "#EXTINF:,A", "#EXTINF:- 1,A",
        "#EXTINF:\"-1\",A", "#EXTINF:-1tvg-id=\"a\",A", "#EXTINF tvg-id=\"a\",A", "# no duration",
    ])
    func `an entry without a positive duration is a channel`(line: String) throws {
        let found = try roles([line, "a.m3u8?b", line, "b.M3U", line, "live/7", line, "8.ts"])
        #expect(
            found.text.filter { !$0.hasPrefix("#") } == [
                "playlist:http://h/a.m3u8?b", "playlist:http://h/b.M3U", "media:http://h/live/7",
                "media:http://h/8.ts",
            ])
        #expect(found.list.summary.isChannelList)
    }

    @Test func `a timed entry is a segment, unless a channel list names a playlist`() throws {
        #expect(
            try roles(["#EXTINF:4,", "a.ts", "#EXTINF:4,", "a.m3u8"]).text == [
                "#EXTINF:4,", "segment:http://h/a.ts", "#EXTINF:4,", "playlist:http://h/a.m3u8",
            ])
        #expect(
            try roles(["#EXT-X-TARGETDURATION:4", "#EXTINF:0,", "a.m3u8"]).text.last
                == "segment:http://h/a.m3u8")
    }

    @Test(arguments: [
        ("http://h/a.mpd", true), ("a.MPD?b#c", true), ("a.mpd|x=y", true), (".mpd", true),
        ("a.mpd%7Cx=y", true), ("a%20b.mpd%7cx=y", true), ("a%7", false), ("a%7Cb.mpd", true),
        ("http://h/a.ism/Manifest", true), ("http://h/a.isml/manifest?b", true),
        ("http://h/a.m3u8", false), ("a?b=.mpd", false), ("http://h/ism/Manifest", false),
        ("ampd", false), ("", false),
    ])
    func `manifests of DASH and Smooth Streaming are known by their path`(
        url: String, isOne: Bool
    ) {
        #expect(ForeignManifest.isNamed(by: Array(url.utf8)[...]) == isOne)
    }

    @Test(arguments: ["rtmp://h/a", "udp://@239.0.0.1:1", "plugin://x/?a=b", "http://[bad/a"])
    func `an entry that players cannot open through the daemon is left out`(uri: String) throws {
        let bad = ["#KODIPROP:a=b", "#EXTINF:-1,Bad", "#EXTGRP:c", uri]
        let good = ["#EXTINF:-1,One", "#EXTGRP:d", "http://h/1", "#EXTINF:-1,Two", "http://h/2"]
        let kept = ["#EXTINF:-1,One", "#EXTGRP:d", "media:http://h/1", "#EXTINF:-1,Two"]
        for lines in [bad + good, good + bad, good[..<3] + bad + good[3...] + bad] {
            let found = try roles(lines)
            #expect(found.text == kept + ["media:http://h/2"])
            #expect(found.list.unusable.count >= 1 && found.list.unusable.segmentLines.isEmpty)
        }
        #expect(throws: PlaylistError.self) { try roles(bad) }
        #expect(throws: PlaylistError.self) {
            try roles(["#EXT-X-TARGETDURATION:4", "#EXTINF:4,", "a.ts", "#EXTINF:4,", "rtmp://h/a"])
        }
    }
}
