import HLS
import Posix
@testable import Library
@testable import Model
import Store
import Testing
import URISyntax

/// How much of a title is stored, and its name: the pure half.
private let base = "https://cdn.example.com/vod/show/s1e2/"

private func list(_ lines: String..., at name: String = "index.m3u8") throws -> TitleList {
    TitleList(
        try Playlist(
            Array((["#EXTM3U"] + lines).joined(separator: "\n").utf8),
            base: AbsoluteURL(base + name)))
}

private func variant(
    _ list: TitleList, _ kept: [String: KeptBytes]
) throws -> TitleVariant {
    let child = TitleChild(
        url: try AbsoluteURL(base + "v.m3u8"), kind: .variant, label: "v", bandwidth: nil)
    return TitleVariant(child, list: list) { kept[$0.url.lastPathSegment] }
}

private let whole = KeptBytes(isComplete: true, total: 100)

private func part(_ spans: Range<Int64>..., of total: Int64? = 100) -> KeptBytes {
    KeptBytes(isComplete: false, total: total, spans: SpanSet(spans))
}

@Suite struct `The share of a title that is kept` {
    @Test func `segments count by their duration`() throws {
        let list = try list("#EXTINF:6,", "a.ts", "#EXTINF:2,", "b.ts", "#EXT-X-ENDLIST")
        let made = try variant(list, ["a.ts": whole])
        #expect(made.seconds == 8 && made.keptSeconds == 6 && made.percent == 75)
        #expect(!made.isWhole && !made.isLive)
        #expect(try variant(list, ["a.ts": whole, "b.ts": whole]).percent == 100)
        #expect(try variant(list, [:]).percent == 0)
    }

    @Test(arguments: [
        (part(0..<50), 0.5), (part(0..<25, 75..<100), 0.5), (part(0..<50, of: nil), 0.0),
        (part(), 0.0), (whole, 1.0),
    ])
    func `a partial segment counts by its bytes`(
        _ kept: KeptBytes, _ share: Double
    ) throws {
        #expect(kept.share(of: nil) == share)
        let list = try list("#EXTINF:10,", "a.ts", "#EXT-X-ENDLIST")
        #expect(try variant(list, ["a.ts": kept]).keptSeconds == share * 10)
    }

    @Test func `a range of a file counts by its own bytes`() throws {
        let list = try list(
            "#EXT-X-VERSION:4", "#EXTINF:4,", "#EXT-X-BYTERANGE:40@10", "all.mp4", "#EXTINF:4,",
            "#EXT-X-BYTERANGE:40", "all.mp4", "#EXT-X-ENDLIST")
        #expect(list.pieces.map(\.range) == [10..<50, 50..<90])
        #expect(try variant(list, ["all.mp4": part(0..<60)]).keptSeconds == 5)
        // Bytes outside of the ranges are not needed.
        #expect(try variant(list, ["all.mp4": part(10..<90)]).isWhole)
    }

    @Test func `a range beyond the end of a complete file is missing`() throws {
        let list = try list(
            "#EXT-X-VERSION:4", "#EXTINF:4,", "#EXT-X-BYTERANGE:40@70", "all.mp4", "#EXTINF:4,",
            "#EXT-X-BYTERANGE:40@100", "all.mp4", "#EXT-X-ENDLIST")
        let made = try variant(list, ["all.mp4": whole])
        #expect(made.keptSeconds == 4 && !made.isWhole)
    }

    @Test func `each initialization section of one file is needed`() throws {
        let maps = ["40@0", "40@60", "40@0"].map {
            "#EXT-X-MAP:URI=\"i.mp4\",BYTERANGE=\"\($0)\""
        }
        let list = try list(
            maps[0], "#EXTINF:4,", "a.m4s", maps[1], "#EXTINF:4,", "b.m4s", maps[2], "#EXTINF:4,",
            "c.m4s", "#EXT-X-ENDLIST")
        #expect(list.pieces.compactMap(\.range) == [0..<40, 60..<100])
        let segments = ["a.m4s": whole, "b.m4s": whole, "c.m4s": whole]
        let first = ["i.mp4": part(0..<40)].merging(segments) { $1 }
        #expect(!(try variant(list, first).isWhole))
        let both = ["i.mp4": part(0..<40, 60..<100)].merging(segments) { $1 }
        #expect(try variant(list, both).isWhole)
    }

    @Test func `without its key nothing is complete`() throws {
        let list = try list(
            "#EXT-X-KEY:METHOD=AES-128,URI=\"k.key\"", "#EXT-X-MAP:URI=\"i.mp4\"", "#EXTINF:4,",
            "a.m4s", "#EXT-X-MAP:URI=\"i.mp4\"", "#EXTINF:4,", "b.m4s", "#EXT-X-ENDLIST")
        #expect(list.pieces.map(\.url.lastPathSegment) == ["k.key", "i.mp4", "a.m4s", "b.m4s"])
        var kept = ["i.mp4": whole, "a.m4s": whole, "b.m4s": whole]
        #expect(try variant(list, kept).percent == 99)
        kept["k.key"] = whole
        #expect(try variant(list, kept).percent == 100)
    }

    @Test func `gaps of the origin do not count as missing`() throws {
        let list = try list(
            "#EXTINF:4,", "#EXT-X-GAP", "gap.ts", "#EXTINF:4,", "a.ts", "#EXT-X-ENDLIST")
        #expect(try variant(list, ["a.ts": whole]).percent == 100)
    }

    @Test func `an empty list is not complete`() throws {
        let made = try variant(list("#EXT-X-TARGETDURATION:4"), [:])
        #expect(made.isLive && !made.isWhole && made.percent == 0)
    }

    @Test func `rounding of durations leaves a complete title at 100 percent`() throws {
        let list = try list(
            "#EXTINF:0.1,", "a.ts", "#EXTINF:0.2,", "a.ts", "#EXTINF:0.3,", "a.ts",
            "#EXT-X-ENDLIST")
        #expect(try variant(list, ["a.ts": whole]).percent == 100)
    }
}

@Suite struct `The lists of a title` {
    @Test func `variants and renditions have labels`() throws {
        let list = try list(
            "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"English\",LANGUAGE=\"en\",URI=\"a.m3u8\"",
            "#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"s\",LANGUAGE=\"de\",URI=\"s.m3u8\"",
            "#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID=\"c\",INSTREAM-ID=\"CC1\"",
            "#EXT-X-STREAM-INF:BANDWIDTH=2400000,RESOLUTION=1280x720", "# a comment", "v.m3u8",
            "#EXT-X-STREAM-INF:BANDWIDTH=640000", "low.m3u8",
            "#EXT-X-STREAM-INF:BANDWIDTH=640000", "low.m3u8",
            "#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=90000,URI=\"i.m3u8\"")
        #expect(list.isMultivariant && list.pieces.isEmpty)
        #expect(list.children.map(\.kind) == [.audio, .subtitles, .variant, .variant, .iFrames])
        #expect(
            list.children.map(\.label) == [
                "English (en)", "de", "1280x720 2.4 Mb/s", "640 kb/s", "90 kb/s",
            ])
    }

    @Test(arguments: [
        ("DATA-ID=\"com.apple.hls.title\",VALUE=\"The Harbour\"", "The Harbour"),
        ("DATA-ID=\"org.example.title\",VALUE=\"Two\u{7} \u{202E}words \"", "Two   words"),
        ("DATA-ID=\"com.apple.hls.poster\",VALUE=\"x\"", nil),
        ("DATA-ID=\"com.apple.hls.title\",URI=\"t.json\"", nil),
        ("DATA-ID=\"com.apple.hls.title\",VALUE=\" \"", nil),
    ])
    func `a list may contain its title`(_ attributes: String, _ name: String?) throws {
        let list = try list(
            "#EXT-X-SESSION-DATA:" + attributes, "#EXT-X-STREAM-INF:BANDWIDTH=1", "v.m3u8")
        #expect(list.name == name)
    }

    @Test(arguments: [
        ("{$show}, part {$n}", "The Sea, part 7"), ("{$show} {$none}", "{$show} {$none}"),
        ("{ {$}", "{ {$}"), ("{$all}", "The Sea 7"),
        // A query may hold a token, which no name may show.
        ("My {$tok}", "My {$tok}"), ("My {$copy}", "My {$copy}"), ("{$tok2}", "{$tok2}"),
    ])
    func `variables in the title of a list are replaced`(_ value: String, _ name: String) throws {
        let list = try list(
            "#EXT-X-DEFINE:QUERYPARAM=\"tok\"", "#EXT-X-DEFINE:NAME=\"show\",VALUE=\"The Sea\"",
            "#EXT-X-DEFINE:NAME=\"n\",VALUE=\"7\"",
            "#EXT-X-DEFINE:NAME=\"all\",VALUE=\"{$show} {$n}\"",
            "#EXT-X-DEFINE:NAME=\"copy\",VALUE=\"t={$tok}\"",
            "#EXT-X-DEFINE:NAME=\"tok2\",VALUE=\"{$copy}\"",
            "#EXT-X-SESSION-DATA:DATA-ID=\"com.apple.hls.title\",VALUE=\"\(value)\"",
            "#EXT-X-STREAM-INF:BANDWIDTH=1", "v.m3u8", at: "index.m3u8?tok=s3cret")
        #expect(list.name == name)
    }

    @Test func `titles of blanks from variables are skipped, and only so many are read`() throws {
        let blank = "#EXT-X-SESSION-DATA:DATA-ID=\"title\",VALUE=\"{$blank}\""
        let rest = [
            "#EXT-X-SESSION-DATA:DATA-ID=\"title\",VALUE=\"The Harbour\"",
            "#EXT-X-STREAM-INF:BANDWIDTH=1", "v.m3u8",
        ]
        let cases: [(count: Int, name: String?)] = [(3, "The Harbour"), (64, nil)]
        for (count, name) in cases {
            let lines =
                ["#EXTM3U", "#EXT-X-DEFINE:NAME=\"blank\",VALUE=\"  \""]
                + [String](repeating: blank, count: count) + rest
            let list = TitleList(
                try Playlist(
                    Array(lines.joined(separator: "\n").utf8),
                    base: AbsoluteURL(base + "m.m3u8")))
            #expect(list.name == name)
        }
    }
}

@Suite struct `The name of a title` {
    @Test(arguments: [
        ("https://h/vod/show/s1e2/master.m3u8", "show/s1e2"),
        ("https://h/clips/harbour.m3u8", "clips/harbour"),
        ("https://h/harbour.m3u8?token=x", "harbour"),
        ("https://h/films/The%20Sea.mp4", "films/The Sea.mp4"),
        ("https://h/live/news/index.m3u8", "news"),
        ("https://h/exp=1~hmac=2/show/7/playlist.m3u8", "show/7"),
        ("https://h/exp=1~hmac=s3cret/master.m3u8", "h/master"),
        ("https://h/films/sea.mp4;jsessionid=s3cret", "films/sea.mp4"),
        ("https://h/films/sea.mp4%3Ftoken%3Ds3cret", "films/sea.mp4"),
        ("https://h/films/sea%3Fs3cret/index.m3u8", "films/sea"),
        ("https://h/films/sea%3D%CC%81s3cret/index.m3u8", "films"),
        ("https://h/token=s3cret", "h"),
        ("https://h/master.m3u8", "h/master"),
        ("https://h/", "h"),
        ("https://h/a/%00%1B%5B31m/index.m3u8", "a/[31m"),
    ])
    func `the name is derived from the informative parts of the URL`(_ url: String, _ name: String)
        throws
    {
        #expect(TitleName.derived(from: try AbsoluteURL(url)) == name)
    }

    @Test(arguments: [
        ("The Harbour", "The Harbour"), ("Part 7, sd", "Part 7, sd"),
        // Of an earlier version: variables were replaced with values of the query.
        ("My s3cret/token", "films/sea"), ("My s3cret%2Ftoken", "films/sea"),
        (String(repeating: "a", count: 70) + "s3cret/tok", "films/sea"),
        (String(repeating: "a", count: 80), String(repeating: "a", count: 80)),
        ("hdnts=exp~hmac=01234567/films", "films/sea"), ("joe:password", "films/sea"),
    ])
    func `a name that was saved shows no secret of the URL`(_ saved: String, _ name: String) throws
    {
        let url =
            "https://joe:password@h/hdnts=exp~hmac=01234567/films/sea.m3u8"
            + "?n=7&tok=s3cret%2Ftoken&sd"
        #expect(TitleName.saved(saved, of: try AbsoluteURL(url)) == name)
    }

    @Test func `a long name is truncated`() throws {
        let url = "https://h/" + String(repeating: "a", count: 900) + ".m3u8"
        #expect(TitleName.derived(from: try AbsoluteURL(url)).count == 80)
    }
}

@Suite struct `Texts of the pages` {
    @Test(arguments: [
        (JSONValue.text("a\"\\\n\u{1}\u{2028}é"), #""a\"\\\n\u0001\u2028é""#),
        (.fraction(12), "12"), (.fraction(11.9734), "11.973"), (.fraction(-0.5), "-0.5"),
        (.fraction(.nan), "null"), (.fraction(.infinity), "null"), (.fraction(1.05), "1.05"),
        (.optional(Int64?.none), "null"), (.list([]), "[]"),
        (
            .object([.init("a", .truth(true)), .init("b", .list([.number(-1), .null]))]),
            #"{"a":true,"b":[-1,null]}"#
        ),
    ])
    func `values are written as JSON`(_ value: JSONValue, _ text: String) {
        #expect(value.encoded == text)
    }

    @Test(arguments: [
        ("90s", 90), ("15m", 900), ("12h", 43_200), ("30d", 2_592_000), ("8w", 4_838_400),
        ("0s", 0),
    ])
    func `durations are parsed`(_ text: String, _ seconds: Int64) {
        #expect(AdministrationQuery.duration(text)?.nanoseconds == seconds * 1_000_000_000)
    }

    @Test(arguments: ["", "d", "30", "-1d", "1.5h", "1y", "1 d", "999999999w", "+1d"])
    func `other text is not a duration`(_ text: String) {
        #expect(AdministrationQuery.duration(text) == nil)
    }

    @Test(arguments: [
        ("http://h.example/x", "h.example", true), ("http://h.example:81/x", "h.example", true),
        ("http://h.example:81/x", "h.example:81", true), ("http://h.example/x", "example", false),
        ("http://h.example.net/x", "h.example", false), ("http://[::1]:9/x", "[::1]", true),
        ("no url", "h", false),
    ])
    func `hosts are compared as a whole`(_ url: String, _ host: String, _ isSame: Bool) {
        #expect(PurgeHost(host)?.matches(url) == isSame)
    }
}
