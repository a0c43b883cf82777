import HLS
import Testing
import URISyntax

/// Effects of URIs that players cannot or must not open.
@Suite struct UnusableURITests {
    static func rewrite(_ lines: [String]) throws -> (text: String, list: RewrittenPlaylist) {
        let text = (["#EXTM3U"] + lines).joined(separator: "\n") + "\n"
        let list = try PlaylistRewriter.rewrite(
            Array(text.utf8), base: Corpus.base, map: Corpus.map)
        return (String(decoding: list.bytes.dropFirst(8), as: UTF8.self), list)
    }

    /// Lines with a URI of the scheme `SCHEME`, and the lines that result.
    static let optional = [
        (
            #"#EXT-X-DATERANGE:ID="a",X-ASSET-URI="SCHEME:x",X-B=1"#,
            #"#EXT-X-DATERANGE:ID="a",X-B=1"#
        ),
        (#"#EXT-X-DATERANGE:X-ASSET-LIST="SCHEME:x",ID="a""#, #"#EXT-X-DATERANGE:ID="a""#),
        (
            #"#EXT-X-DATERANGE:X-ASSET-LIST="SCHEME:x" , X-ASSET-URI="SCHEME:x",B=x:,C=1"#,
            "#EXT-X-DATERANGE:B=x:,C=1"
        ),
        (#"#EXT-X-DATERANGE:B=x:,X-ASSET-LIST="SCHEME:x",C=1"#, "#EXT-X-DATERANGE:B=x:,C=1"),
        (
            #"#EXT-X-DATERANGE:X-ASSET-URI="a.m3u8",X-ASSET-LIST="SCHEME:x""#,
            #"#EXT-X-DATERANGE:X-ASSET-URI="/R/p/https://cdn.example.com/vod/a/a.m3u8""#
        ),
        (#"#EXT-X-DATERANGE:X-ASSET-LIST="SCHEME:x"#, "#EXT-X-DATERANGE:"),
        (
            #"#EXT-X-SESSION-DATA:DATA-ID="x",URI="SCHEME:x",VALUE="v""#,
            #"#EXT-X-SESSION-DATA:DATA-ID="x",VALUE="v""#
        ),
        (#"#EXT-X-SESSION-DATA:DATA-ID="x",URI="SCHEME:x""#, ""),
        (#"#EXT-X-SESSION-KEY:METHOD=AES-128,URI="SCHEME:x""#, ""),
        (#"#EXT-X-CONTENT-STEERING:SERVER-URI="SCHEME:x",PATHWAY-ID="a""#, ""),
        (#"#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI="SCHEME:x""#, ""),
        (#"#EXT-X-RENDITION-REPORT:URI="SCHEME:x""#, ""),
        (#"#EXT-X-PRELOAD-HINT:TYPE=PART,URI="SCHEME:x""#, ""), ("#EXT-X-PREFETCH:SCHEME:x", ""),
    ]

    @Test(arguments: optional)
    func `an optional tag loses a URI that players must not open`(
        _ line: String, _ left: String
    ) throws {
        let rest = left.isEmpty ? "" : left + "\n"
        for scheme in ["file", "JavaScript", "concat"] {
            let made = try Self.rewrite(
                ["# before", line.replacing("SCHEME", with: scheme), "# after"])
            #expect(made.text == "# before\n\(rest)# after\n")
            #expect(!made.list.unusable.isEmpty)
        }
    }

    @Test(arguments: optional.map(\.0))
    func `a custom scheme is kept in an optional tag`(_ line: String) throws {
        let kept = line.replacing("SCHEME", with: "com-example-app")
        let made = try Self.rewrite([kept])
        #expect(made.text.contains("com-example-app:x"))
        #expect(made.list.unusable.isEmpty)
    }

    @Test(arguments: [
        "#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n%", #"#EXT-X-KEY:METHOD=AES-128,URI="%""#,
        #"#EXT-X-MAP:URI="%""#,
        #"#EXT-X-PART:DURATION=1,URI="%""#, "#EXT-X-STREAM-INF:BANDWIDTH=1\n%",
        #"#EXT-X-MEDIA:TYPE=AUDIO,URI="%""#,
    ])
    func `a required URI that players must not open is rejected`(_ line: String) {
        #expect(throws: PlaylistError.self) {
            try Self.rewrite([
                line.replacing("%", with: "file:///etc/passwd"), "#EXTINF:1,", "a.ts",
            ])
        }
    }

    static let malformed = #"http://good.example\@evil.example/x.ts?secret=1"#

    @Test func `a malformed segment of a live list becomes a gap and keeps its number`() throws {
        let made = try Self.rewrite([
            "#EXT-X-TARGETDURATION:6", "#EXTINF:6,", "a.ts", "#EXTINF:6,", Self.malformed,
            "#EXTINF:6,", "c.ts",
        ])
        #expect(
            made.text.contains("#EXTINF:6,\n#EXT-X-GAP\n/R/s/https://cdn.example.com/vod/a/http%3A")
        )
        #expect(made.list.summary.segmentCount == 3)
        #expect(made.list.summary.gapCount == 1)
        #expect(made.list.unusable.segmentLines == [6])
    }

    @Test func `a malformed segment of an ended list is replaced by a discontinuity`()
        throws
    {
        let lines = [
            "#EXTM3U", "#EXT-X-TARGETDURATION:6", "#EXTINF:6,", "a.ts", "#EXTINF:6,",
            Self.malformed, "#EXTINF:6,", "c.ts", "#EXT-X-ENDLIST", "",
        ]
        let body = Array(lines.joined(separator: "\n").utf8)
        let list = try Corpus.list(body)
        let shorter = OfflinePlaylist.cut(list, missing: Set(list.unusable.segmentLines)).bytes
        #expect(
            String(decoding: shorter, as: UTF8.self)
                == "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\na.ts\n#EXT-X-DISCONTINUITY\n"
                + "#EXTINF:6,\nc.ts\n#EXT-X-ENDLIST\n")
    }

    @Test func `a malformed part becomes a gap`() throws {
        let made = try Self.rewrite([
            "#EXTINF:6,", "a.ts", #"#EXT-X-PART:URI="http://a\b/x",DURATION=1"#,
            #"#EXT-X-PART:DURATION=1,URI="b""#,
        ])
        #expect(made.text.contains(#"http%3A%2F%2Fa%5Cb%2Fx",GAP=YES,DURATION=1"#))
        #expect(made.list.summary.trailingPartCount == 2)
    }

    @Test func `a malformed variant is removed unless no other is left`() throws {
        let bad = ["#EXT-X-STREAM-INF:BANDWIDTH=1", "# comment", "http://h:99999/l.m3u8"]
        let good = ["#EXT-X-STREAM-INF:BANDWIDTH=2", "b.m3u8"]
        let made = try Self.rewrite(good + bad + good)
        let line = "#EXT-X-STREAM-INF:BANDWIDTH=2\n/R/p/https://cdn.example.com/vod/a/b.m3u8\n"
        #expect(made.text == line + "# comment\n" + line)
        #expect(made.list.summary.variantCount == 2)
        #expect(throws: PlaylistError.self) { try Self.rewrite(bad + bad) }
    }

    @Test func `an asset that must not be opened fails alone`() throws {
        let text = #"{"ASSETS":[{"URI":"file:\/\/\/x"},{"URI":"app:x"},{"URI":"a.m3u8"}]}"#
        #expect(
            try JSONRewriterTests.rewrite(text)
                == #"{"ASSETS":[{"URI":"about:invalid"},{"URI":"app:x"},{"URI":"/R/p/https://cdn.example.com/vod/a/a.m3u8"}]}"#
        )
    }

    @Test func `the line of a URI in JSON is reported`() throws {
        let text = "{\"ASSETS\":\n[{\"URI\":\"a\"},\n\n{\"URI\":\"file:x\"},{\"URI\":\"file:y\"}]}"
        let made = try JSONRewriter.rewrite(
            Array(text.utf8), base: Corpus.base, host: Corpus.host, map: Corpus.map)
        let reason = PlaylistError.forbiddenScheme(line: 4, tag: "EXT-X-DATERANGE", scheme: "file")
        #expect(made.unusable.reasons == [reason, reason])
    }
}
