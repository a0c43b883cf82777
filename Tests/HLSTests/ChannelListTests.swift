import HLS
import Testing
import URISyntax

/// Lists in M3U that are not of HLS.
@Suite struct ChannelListTests {
    @Test(arguments: [
        ("#EXTM3U\n#EXTINF:-1 tvg-id=\"a\",A\nhttp://h/a.m3u8\n", true),
        ("#EXTM3U x-tvg-url=\"g\"\n#EXTVLCOPT:http-referrer=r\n#EXTINF:-1,A\na.m3u8\n", true),
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
}
