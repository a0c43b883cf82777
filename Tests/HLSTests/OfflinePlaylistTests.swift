import HLS
import Testing
import URISyntax

/// Media playlists of which only some segments are stored.
@Suite struct OfflinePlaylistTests {
    /// The list without the given file names.
    static func make(_ text: String, without names: Set<String>) throws -> String {
        let made = cut(try Corpus.list(Array(text.utf8))) {
            !names.contains($0.url.lastPathSegment)
        }
        return String(decoding: made, as: UTF8.self)
    }

    /// The list without the segments of which something is not present.
    static func cut(_ list: Playlist, _ isPresent: (ResourceReference) -> Bool) -> [UInt8] {
        OfflinePlaylist.cut(list, missing: OfflineList(list, isPresent: isPresent).missing).bytes
    }

    static let film = """
        #EXTM3U
        #EXT-X-TARGETDURATION:6
        #EXT-X-MEDIA-SEQUENCE:7
        #EXTINF:6,
        a
        #EXTINF:6,
        b
        #EXT-X-DISCONTINUITY
        #EXTINF:6,
        c
        #EXTINF:6,
        d
        #EXT-X-ENDLIST

        """

    @Test func `a completely stored list is unchanged`() throws {
        #expect(try Self.make(Self.film, without: []) == Self.film)
    }

    @Test func `a list without its first segments starts later`() throws {
        #expect(
            try Self.make(Self.film, without: ["a", "b"]) == """
                #EXTM3U
                #EXT-X-TARGETDURATION:6
                #EXT-X-MEDIA-SEQUENCE:9
                #EXT-X-DISCONTINUITY
                #EXTINF:6,
                c
                #EXTINF:6,
                d
                #EXT-X-ENDLIST

                """)
        let first = try Self.make(Self.film, without: ["a", "b", "c"])
        #expect(first.contains("#EXTM3U\n#EXT-X-DISCONTINUITY-SEQUENCE:1\n"))
        #expect(first.contains("\n#EXT-X-MEDIA-SEQUENCE:10\n#EXTINF:6,\nd\n"))
    }

    @Test func `a list without a media sequence number gets one when it starts later`() throws {
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\na\n#EXTINF:6,\nb\n"
        #expect(
            try Self.make(text, without: ["a"])
                == "#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:1\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\nb\n#EXT-X-ENDLIST\n"
        )
    }

    @Test(
        arguments: [
            // Behind the hole, before it and in it.
            ("14.5", "8.500"), ("-9.5", "-9.5"), ("2", "2"), ("-22", "-16"), ("7", nil),
            ("-17", nil),
            // Outside of the list.
            ("30", nil), ("-30", nil),
        ] as [(String, String?)])
    func `the start is the same point without the missing segments, or none`(
        _ offset: String, _ moved: String?
    ) throws {
        let line = { (offset: String) in "#EXT-X-START:TIME-OFFSET=\(offset),PRECISE=YES\n" }
        let text = Self.film.replacing("#EXTM3U\n", with: "#EXTM3U\n" + line(offset))
        let made = try Self.make(text, without: ["b"])
        #expect(
            made
                == (try Self.make(Self.film, without: ["b"])).replacing(
                    "#EXTM3U\n", with: "#EXTM3U\n" + (moved.map(line) ?? "")))
        #expect(try Self.make(text, without: []) == text)
    }

    @Test func `a discontinuity replaces missing segments`() throws {
        let text = try Self.make(Self.film, without: ["b", "c"])
        #expect(text.contains("a\n#EXT-X-DISCONTINUITY\n#EXTINF:6,\nd\n"))
        let other = try Self.make(Self.film, without: ["b"])
        #expect(other.contains("a\n#EXT-X-DISCONTINUITY\n#EXTINF:6,\nc\n"))
    }

    @Test func `the date continues behind missing segments`() throws {
        let text = try Self.make(
            Self.film.replacing(
                "SEQUENCE:7\n", with: "SEQUENCE:7\n#EXT-X-PROGRAM-DATE-TIME:2031-05-06T07:08:09Z\n"),
            without: ["b", "c"])
        #expect(
            text.contains(
                "#EXT-X-DISCONTINUITY\n#EXT-X-PROGRAM-DATE-TIME:2031-05-06T07:08:27.000Z\n#EXTINF:6,\nd\n"
            ))
    }

    @Test func `keys without an IV get that of the old sequence number`() throws {
        let text = Self.film.replacing(
            "SEQUENCE:7\n", with: "SEQUENCE:7\n#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n")
        let made = try Self.make(text, without: ["b"])
        #expect(!made.contains("IV=0x00000000000000000000000000000007"))
        #expect(made.contains("URI=\"k\",IV=0x00000000000000000000000000000009\nc\n"))
        #expect(made.contains("URI=\"k\",IV=0x0000000000000000000000000000000a\nd\n"))
        #expect(!(try Self.make(text, without: ["a"])).contains("IV="))
    }

    @Test func `keys and sections of missing segments remain in force`() throws {
        let text = Self.film.replacing(
            "#EXT-X-DISCONTINUITY\n",
            with: "#EXT-X-DISCONTINUITY\n#EXT-X-KEY:METHOD=NONE\n#EXT-X-MAP:URI=\"i2\"\n")
        let made = try Self.make(text, without: ["c"])
        #expect(
            made.contains(
                "#EXT-X-KEY:METHOD=NONE\n#EXT-X-MAP:URI=\"i2\"\n#EXT-X-DISCONTINUITY\n#EXTINF:6,\nd"
            ))
    }

    @Test func `what holds behind a hole or a gap of the origin is stated before the next segment`()
        throws
    {
        let head = """
            #EXTM3U
            #EXT-X-TARGETDURATION:6
            #EXT-X-PROGRAM-DATE-TIME:2031-05-06T07:08:00Z
            #EXT-X-MAP:URI="i",BYTERANGE="9@0"
            #EXT-X-KEY:METHOD=AES-128,URI="k1",IV=0x1
            #EXT-X-BITRATE:100
            #EXTINF:6,
            a

            """
        let changes = """
            #EXT-X-KEY:METHOD=AES-128,URI="k2",IV=0x2
            #EXT-X-MAP:URI="i",BYTERANGE="9@9"
            #EXT-X-BITRATE:200
            #EXT-X-DATERANGE:ID="d",START-DATE="2031-05-06T07:08:07Z"

            """
        let end = "#EXTINF:6,\nd\n#EXT-X-ENDLIST\n"
        let text = head + changes + "#EXTINF:6,\nb\n#EXT-X-GAP\n#EXTINF:6,\nc\n" + end
        #expect(
            try Self.make(text, without: ["b"])
                == head + changes + "#EXT-X-DISCONTINUITY\n"
                + "#EXT-X-PROGRAM-DATE-TIME:2031-05-06T07:08:18.000Z\n" + end)
        let gap = try Self.make(text, without: [])
        #expect(gap.contains("b\n#EXT-X-DISCONTINUITY\n") && !gap.contains("GAP"))
    }

    @Test func `a range behind a missing one gets its offset`() throws {
        let text =
            "#EXTM3U\n#EXT-X-TARGETDURATION:6\n"
            + "#EXTINF:6,\n#EXT-X-BYTERANGE:10@5\nf\n#EXTINF:6,\n#EXT-X-BYTERANGE:20\nf\n"
        let made = Self.cut(try Corpus.list(Array(text.utf8))) { $0.byteRange?.offset != 5 }
        let cut = String(decoding: made, as: UTF8.self)
        #expect(cut.contains("#EXT-X-BYTERANGE:20@15\nf\n") && uris(cut) == ["f"])
    }

    @Test func `a segment without its stored key or section counts as missing`() throws {
        let text = Self.film.replacing("#EXTINF:6,\nd", with: "#EXT-X-MAP:URI=\"i\"\n#EXTINF:6,\nd")
        #expect(try !Self.make(text, without: ["i"]).contains("\nd\n"))
    }

    @Test func `a key that only a key system can get is not missed beside a stored one`() throws {
        let system = "URI=\"https://drm.example/s\",KEYFORMAT=\"com.apple.streamingkeydelivery\""
        let text = Self.film.replacing(
            "SEQUENCE:7\n",
            with: "SEQUENCE:7\n#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"https://keys.example/k\"\n"
                + "#EXT-X-KEY:METHOD=SAMPLE-AES,\(system)\n"
        ).replacing("#EXTINF:6,\nd", with: "#EXT-X-KEY:METHOD=NONE\n#EXTINF:6,\nd")
        #expect(try Self.make(text, without: ["s"]) == text)
        let made = try Self.make(text, without: ["k"])
        #expect(uris(made) == ["d"])
    }

    @Test func `of several sections in one file only the missing one is missed`() throws {
        let section = "#EXT-X-MAP:URI=\"i\",BYTERANGE="
        let text = Self.film.replacing("SEQUENCE:7\n", with: "SEQUENCE:7\n\(section)\"9@0\"\n")
            .replacing("#EXTINF:6,\nc", with: "\(section)\"9@9\"\n#EXTINF:6,\nc")
            .replacing("#EXTINF:6,\nd", with: "\(section)\"9@0\"\n#EXTINF:6,\nd")
        func present(without offset: Int) throws -> [String] {
            let list = try Corpus.list(Array(text.utf8))
            let made = Self.cut(list) { $0.byteRange?.offset != offset }
            return uris(String(decoding: made, as: UTF8.self))
        }
        #expect(try present(without: 0) == ["c"])
        #expect(try present(without: 9) == ["a", "b", "d"])
    }

    /// The URI lines of a list.
    private func uris(_ text: String) -> [String] {
        text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map(String.init)
    }

    @Test func `tags that need a reachable origin are removed`() throws {
        let body = try #require(Corpus.read("rfc-low-latency-whole.m3u8"))
        let text = String(
            decoding: Self.cut(try Corpus.list(body)) { _ in true }, as: UTF8.self)
        for name in ["PART", "PRELOAD", "REPORT", "CONTROL"] { #expect(!text.contains(name)) }
        #expect(text.hasSuffix("#EXT-X-ENDLIST\n") && uris(text).count == 3)
    }

    @Test func `date ranges that need other resources can be left out`() throws {
        let others = [
            "#EXT-X-DATERANGE:ID=\"1\",CLASS=\"com.example.ad\",SCTE35-OUT=0xFC",
            "#EXT-X-DATERANGE:ID=\"2\",START-DATE=\"2026-01-01T00:00:00Z\",X-COM-A=\"b.m3u8\"",
        ]
        let interstitial = "CLASS=\"com.apple.hls.interstitial\""
        let schedule = "CLASS=\"com.apple.hls.daterange-schedule\""
        let ranges = [
            others[0], "#EXT-X-DATERANGE:ID=\"3\",\(interstitial),X-ASSET-URI=\"ad.m3u8?x=1\"",
            "#EXT-X-DATERANGE:ID=\"4\",\(interstitial),X-ASSET-LIST=\"list.json\"", others[1],
            "#EXT-X-DATERANGE:ID=\"5\",\(interstitial),X-ASSET-LIST=\"data:,%7B%7D\"",
            "#EXT-X-DATERANGE:ID=\"6\",\(schedule),X-URI=\"s.json\"",
        ]
        func film(_ ranges: [String]) -> String {
            let lines = ranges.map { $0 + "\n" }.joined()
            return "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\na\n\(lines)#EXTINF:6,\nb\n"
                + "#EXT-X-ENDLIST\n"
        }
        let list = try Corpus.list(Array(film(ranges).utf8))
        let media = try #require(list.media)
        let cut = OfflinePlaylist.cut(
            list, missing: [], omitting: OfflinePlaylist.interstitialLines(media))
        #expect(String(decoding: cut.bytes, as: UTF8.self) == film(others))
        #expect(OfflinePlaylist.cut(list, missing: []).bytes == Array(film(ranges).utf8))
    }

    @Test(arguments: Corpus.names.filter { $0.hasPrefix("rfc-") || $0.hasPrefix("tag-") })
    func `offline forms of the draft's lists break no rule`(name: String) throws {
        let body = try #require(Corpus.read(name + ".m3u8"))
        let summary = try Playlist(body, base: nil).summary
        guard summary.kind == .media, !summary.isSkipDelta, name != "tag-ext-x-define" else {
            return
        }
        for residue in 0..<3 {
            let made = Self.cut(try Corpus.list(body)) { $0.mediaSequence % 3 != residue }
            let text = String(decoding: made, as: UTF8.self)
            guard !uris(text).isEmpty else { continue }
            let found = try Corpus.violations(in: made)
                .filter { $0.level == .must && $0.rule != "version" }
            #expect(found.isEmpty, "\(found)\n\(text)")
        }
    }
}
