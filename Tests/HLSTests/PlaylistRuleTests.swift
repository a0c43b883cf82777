import HLS
import Testing

/// The rules of the draft, each with a playlist that violates it.
@Suite struct PlaylistRuleTests {
    static func violations(_ lines: String) throws -> [Violation] {
        try Corpus.violations(in: Array(lines.utf8))
    }

    /// A media playlist with three valid first lines: the lines of a row start at 4.
    static func media(_ lines: String, version: Int = 13) -> String {
        "#EXTM3U\n#EXT-X-VERSION:\(version)\n#EXT-X-TARGETDURATION:4\n" + lines
    }

    /// A multivariant playlist: the lines of a row start at 3.
    static func multivariant(_ lines: String) -> String { "#EXTM3U\n#EXT-X-VERSION:13\n" + lines }

    struct Row: Sendable, CustomTestStringConvertible {
        let rule: String
        let line: Int
        let text: String

        init(_ rule: String, _ line: Int, _ text: String) {
            self.rule = rule
            self.line = line
            self.text = text
        }

        var testDescription: String { "\(rule) at line \(line)" }
    }

    static let segment = "#EXTINF:4,\na.ts\n"
    static let variant = "#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS=\"c\"\na\n"
    static let dated = "#EXT-X-PROGRAM-DATE-TIME:2031-05-06T07:08:09Z\n" + segment

    static let rows: [Row] =
        syntaxRows + mediaRows + keyRows + lowLatencyRows + dateRangeRows + multivariantRows
        + renditionRows + versionRows

    static let syntaxRows = [
        Row("byte-order-mark", 1, "\u{FEFF}" + media(segment)),
        Row("control-character", 4, media("#EXT-X-X:\u{1}\n" + segment)),
        Row("whitespace", 4, media("#EXTINF:4, \na.ts\n")),
        Row("whitespace", 4, media("#EXT-X-MAP:URI=\"a\", BYTERANGE=\"1@0\"\n" + segment)),
        Row("attribute-syntax", 4, media("#EXT-X-MAP:URI=\"a\n" + segment)),
        Row("attribute-syntax", 4, media("#EXT-X-MAP:URI=\"a\",uri=1\n" + segment)),
        Row("attribute-syntax", 4, media("#EXT-X-START:TIME-OFFSET=\n" + segment)),
        Row("attribute-twice", 4, media("#EXT-X-MAP:URI=\"a\",URI=\"b\"\n" + segment)),
        Row("first-line", 2, "#\n" + media(segment)),
        Row("wrong-playlist", 6, media(segment + variant)),
        Row("wrong-playlist", 3, media(variant)),
        Row("wrong-playlist", 5, multivariant(variant + "#EXT-X-ENDLIST\n")),
        Row("tag-twice", 4, media("#EXT-X-VERSION:13\n" + segment)),
        Row("tag-twice", 5, media("#EXT-X-ENDLIST\n#EXT-X-ENDLIST\n")),
        Row("integer", 4, media("#EXT-X-MEDIA-SEQUENCE:1.5\n" + segment)),
        Row("required-attribute", 4, media("#EXT-X-MAP:X=1\n" + segment)),
        Row("required-attribute", 3, multivariant("#EXT-X-STREAM-INF:CODECS=\"a\"\na\n")),
        Row("quoted-string", 4, media("#EXT-X-MAP:URI=a\n" + segment)),
        Row("quoted-string", 4, media("#EXT-X-KEY:METHOD=\"NONE\"\n" + segment)),
        Row("enumerated-string", 4, media("#EXT-X-KEY:METHOD=AES,URI=\"a\"\n" + segment)),
        Row("enumerated-string", 4, media("#EXT-X-PLAYLIST-TYPE:LIVE\n" + segment)),
        Row("define-form", 4, media("#EXT-X-DEFINE:NAME=\"a\"\n" + segment)),
        Row("define-form", 4, media("#EXT-X-DEFINE:IMPORT=\"a b\"\n" + segment)),
        Row(
            "define-twice", 5,
            media(
                "#EXT-X-DEFINE:NAME=\"a\",VALUE=\"1\"\n#EXT-X-DEFINE:IMPORT=\"a\"\n" + segment)),
        Row("define-import", 3, multivariant("#EXT-X-DEFINE:IMPORT=\"a\"\n" + variant)),
        Row("undefined-variable", 5, media("#EXTINF:4,\n{$a}.ts\n")),
    ]

    static let mediaRows = [
        Row("target-duration-missing", 3, "#EXTM3U\n" + segment),
        Row("segment-too-long", 4, media("#EXTINF:4.5,\na.ts\n")),
        Row("sequence-after-segment", 6, media(segment + "#EXT-X-MEDIA-SEQUENCE:1\n")),
        Row(
            "discontinuity-sequence-place", 5,
            media(
                "#EXT-X-DISCONTINUITY\n#EXT-X-DISCONTINUITY-SEQUENCE:1\n" + segment)),
        Row("segment-without-extinf", 4, media("a.ts\n")),
        Row("extinf-syntax", 4, media("#EXTINF:4\na.ts\n")),
        Row("extinf-syntax", 4, media("#EXTINF:-1,\na.ts\n")),
        Row("extinf-syntax", 4, media("#EXTINF:x,\na.ts\n")),
        Row("tag-without-segment", 6, media(segment + "#EXTINF:4,\n")),
        Row("tag-without-segment", 4, media("#EXTINF:4,\n" + segment)),
        Row("byte-range", 4, media("#EXT-X-BYTERANGE:9\n" + segment)),
        Row("byte-range", 4, media("#EXT-X-BYTERANGE:9@x\n" + segment)),
        Row("map-byte-range", 4, media("#EXT-X-MAP:URI=\"a\",BYTERANGE=\"9\"\n" + segment)),
        Row("program-date-time", 4, media("#EXT-X-PROGRAM-DATE-TIME:yesterday\n" + segment)),
        Row("start-offset", 4, media("#EXT-X-START:TIME-OFFSET=-4.5\n" + segment)),
    ]

    static let keyRows = [
        Row("key-uri", 4, media("#EXT-X-KEY:METHOD=AES-128\n" + segment)),
        Row("key-none", 4, media("#EXT-X-KEY:METHOD=NONE,URI=\"a\"\n" + segment)),
        Row("key-iv", 4, media("#EXT-X-KEY:METHOD=AES-128,URI=\"a\",IV=12\n" + segment)),
        Row("key-iv", 4, media("#EXT-X-KEY:METHOD=AES-128,URI=\"a\",IV=0xg\n" + segment)),
        Row("key-gcm-iv", 4, media("#EXT-X-KEY:METHOD=AES-256-GCM,URI=\"a\",IV=0x1\n" + segment)),
        Row("session-key-none", 3, multivariant("#EXT-X-SESSION-KEY:METHOD=NONE\n" + variant)),
        Row(
            "session-key-twice", 4,
            multivariant(
                "#EXT-X-SESSION-KEY:METHOD=AES-128,URI=\"a\"\n"
                    + "#EXT-X-SESSION-KEY:METHOD=AES-128,URI=\"a\"\n" + variant)),
    ]

    static let parts =
        "#EXT-X-SERVER-CONTROL:PART-HOLD-BACK=3\n#EXT-X-PART-INF:PART-TARGET=1\n"

    static let lowLatencyRows = [
        Row("part-inf-missing", 4, media("#EXT-X-PART:DURATION=1,URI=\"a\"\n" + segment)),
        Row("part-too-long", 6, media(parts + "#EXT-X-PART:DURATION=1.1,URI=\"a\"\n")),
        Row(
            "part-byte-range", 6,
            media(
                parts + "#EXT-X-PART:DURATION=1,URI=\"a\",BYTERANGE=\"9\"\n")),
        Row("part-hold-back", 4, media("#EXT-X-PART-INF:PART-TARGET=1\n" + segment)),
        Row(
            "part-hold-back", 4,
            media(
                "#EXT-X-SERVER-CONTROL:PART-HOLD-BACK=1.9\n#EXT-X-PART-INF:PART-TARGET=1\n")),
        Row(
            "part-hold-back-short", 4,
            media(
                "#EXT-X-SERVER-CONTROL:PART-HOLD-BACK=2.9\n#EXT-X-PART-INF:PART-TARGET=1\n")),
        Row("hold-back", 4, media("#EXT-X-SERVER-CONTROL:HOLD-BACK=11\n" + segment)),
        Row("can-skip-until", 4, media("#EXT-X-SERVER-CONTROL:CAN-SKIP-UNTIL=23\n" + segment)),
        Row(
            "can-skip-dateranges", 4,
            media(
                "#EXT-X-SERVER-CONTROL:CAN-SKIP-DATERANGES=YES\n" + segment)),
        Row("skip-control-missing", 4, media("#EXT-X-SKIP:SKIPPED-SEGMENTS=1\n" + segment)),
        Row(
            "preload-hint-twice", 7,
            media(
                segment + "#EXT-X-PRELOAD-HINT:TYPE=MAP,URI=\"a\"\n"
                    + "#EXT-X-PRELOAD-HINT:TYPE=MAP,URI=\"b\"\n")),
    ]

    static func range(_ attributes: String) -> String {
        media(dated + "#EXT-X-DATERANGE:ID=\"a\",START-DATE=\"2031-05-06T07:08:09Z\"," + attributes)
    }

    static let dateRangeRows = [
        Row(
            "date-range-without-date-time", 6,
            media(
                segment + "#EXT-X-DATERANGE:ID=\"a\",START-DATE=\"2031-05-06T07:08:09Z\"\n")),
        Row("date-range-start", 7, media(dated + "#EXT-X-DATERANGE:ID=\"a\"\n")),
        Row("date-range-date", 7, range("END-DATE=\"x\"\n")),
        Row("date-range-end", 7, range("END-DATE=\"2031-05-06T07:08:08Z\"\n")),
        Row("date-range-end", 7, range("DURATION=5,END-DATE=\"2031-05-06T07:08:10Z\"\n")),
        Row("date-range-duration", 7, range("DURATION=-1\n")),
        Row("date-range-end-on-next", 7, range("END-ON-NEXT=YES\n")),
        Row("date-range-end-on-next", 7, range("CLASS=\"c\",END-ON-NEXT=YES,DURATION=1\n")),
        Row("date-range-conflict", 8, range("X-A=1\n#EXT-X-DATERANGE:ID=\"a\",X-A=2\n")),
        Row("interstitial-assets", 7, range("CLASS=\"com.apple.hls.interstitial\"\n")),
        Row(
            "interstitial-assets", 7,
            range(
                "CLASS=\"com.apple.hls.interstitial\",X-ASSET-URI=\"a\",X-ASSET-LIST=\"b\"\n")),
    ]

    static func stream(_ attributes: String) -> String {
        "#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS=\"c\",\(attributes)\na\n"
    }

    static let multivariantRows = [
        Row("variant-without-uri", 3, multivariant("#EXT-X-STREAM-INF:BANDWIDTH=1\n" + variant)),
        Row("variant-without-uri", 3, multivariant("#EXT-X-STREAM-INF:BANDWIDTH=1\n")),
        Row("uri-without-variant", 5, multivariant(variant + "b\n")),
        Row("bandwidth", 3, multivariant("#EXT-X-STREAM-INF:BANDWIDTH=1.5,CODECS=\"c\"\na\n")),
        Row("codecs-missing", 3, multivariant("#EXT-X-STREAM-INF:BANDWIDTH=1\na\n")),
        Row("resolution", 3, multivariant(stream("RESOLUTION=640"))),
        Row("group-missing", 3, multivariant(stream("AUDIO=\"x\""))),
        Row("captions-none", 5, multivariant(stream("CLOSED-CAPTIONS=NONE") + variant)),
        Row(
            "session-data-form", 3,
            multivariant(
                "#EXT-X-SESSION-DATA:DATA-ID=\"a\"\n" + variant)),
        Row(
            "session-data-twice", 4,
            multivariant(
                "#EXT-X-SESSION-DATA:DATA-ID=\"a\",VALUE=\"1\"\n"
                    + "#EXT-X-SESSION-DATA:DATA-ID=\"a\",VALUE=\"2\"\n" + variant)),
        Row(
            "pathway-missing", 3,
            multivariant(
                "#EXT-X-CONTENT-STEERING:SERVER-URI=\"s\",PATHWAY-ID=\"x\"\n" + variant)),
    ]

    static func rendition(_ type: String, _ attributes: String) -> String {
        "#EXT-X-MEDIA:TYPE=\(type),GROUP-ID=\"g\",\(attributes)\n"
    }

    static let renditionRows = [
        Row("subtitles-uri", 3, multivariant(rendition("SUBTITLES", "NAME=\"a\"") + variant)),
        Row(
            "captions-uri", 3,
            multivariant(
                rendition("CLOSED-CAPTIONS", "NAME=\"a\",INSTREAM-ID=\"CC1\",URI=\"u\"") + variant)),
        Row(
            "instream-id", 3,
            multivariant(
                rendition("CLOSED-CAPTIONS", "NAME=\"a\"") + variant)),
        Row(
            "instream-id", 3,
            multivariant(
                rendition("CLOSED-CAPTIONS", "NAME=\"a\",INSTREAM-ID=\"SERVICE64\"") + variant)),
        Row(
            "forced", 3,
            multivariant(
                rendition("AUDIO", "NAME=\"a\",FORCED=NO,CHANNELS=\"2\"") + variant)),
        Row(
            "default-autoselect", 3,
            multivariant(
                rendition("VIDEO", "NAME=\"a\",DEFAULT=YES,AUTOSELECT=NO") + variant)),
        Row(
            "rendition-name", 4,
            multivariant(
                rendition("VIDEO", "NAME=\"a\"") + rendition("VIDEO", "NAME=\"a\"") + variant)),
        Row(
            "default-twice", 4,
            multivariant(
                rendition("VIDEO", "NAME=\"a\",DEFAULT=YES")
                    + rendition("VIDEO", "NAME=\"b\",DEFAULT=YES") + variant)),
        Row("audio-channels", 3, multivariant(rendition("AUDIO", "NAME=\"a\"") + variant)),
    ]

    static let versionRows = [
        (1, "#EXT-X-KEY:METHOD=AES-128,URI=\"a\",IV=0x1\n"), (2, "#EXTINF:1.5,\nb.ts\n"),
        (3, "#EXT-X-BYTERANGE:1@0\n"), (3, "#EXT-X-I-FRAMES-ONLY\n"),
        (4, "#EXT-X-KEY:METHOD=AES-128,URI=\"a\",KEYFORMAT=\"identity\"\n"),
        (4, "#EXT-X-KEY:METHOD=AES-128,URI=\"a\",KEYFORMATVERSIONS=\"1\"\n"),
        (5, "#EXT-X-MAP:URI=\"a\"\n"), (7, "#EXT-X-DEFINE:NAME=\"a\",VALUE=\"\"\n"),
        (8, "#EXT-X-SKIP:SKIPPED-SEGMENTS=1\n"),
        (9, "#EXT-X-SKIP:SKIPPED-SEGMENTS=1,RECENTLY-REMOVED-DATERANGES=\"a\"\n"),
        (10, "#EXT-X-DEFINE:QUERYPARAM=\"a\"\n"),
    ].map { Row("version", 4, media($0.1 + segment, version: $0.0)) }

    @Test(arguments: rows)
    func `a violation is reported with its line`(row: Row) throws {
        let found = try Self.violations(row.text).filter { $0.rule == row.rule }
        #expect(found.map(\.line).contains(row.line), "\(found)")
    }

    @Test func `every rule has a playlist that violates it`() {
        let broken = Set(Self.rows.map(\.rule)).union(["utf-8"])
        #expect(broken == Set(PlaylistRule.table.map(\.name)))
        #expect(Set(PlaylistRule.table.map(\.name)).count == PlaylistRule.table.count)
    }

    @Test func `bytes that are not UTF-8 are a violation`() throws {
        let found = try Corpus.violations(in: Array("#EXTM3U\n#".utf8) + [0xFF, 0x0A])
        #expect(found.contains { $0.rule == "utf-8" && $0.line == 2 })
    }

    @Test(arguments: Corpus.names.filter { $0.hasPrefix("tag-") || $0.hasPrefix("rfc-") })
    func `the fixtures from the draft violate no rule`(name: String) throws {
        let body = try #require(Corpus.read(name + ".m3u8"))
        let found = try Corpus.violations(in: body)
            .filter { $0.level == .must }
        #expect(found.isEmpty, "\(found.map(\.description).joined(separator: "\n"))")
    }

    @Test func `a rule that every line violates is reported a few times`() throws {
        let text = Self.media(String(repeating: "#EXTINF:9,\na.ts\n", count: 5000))
        #expect(try Self.violations(text).count == 20)
    }

    @Test func `a violation states line, section and level`() throws {
        let found = try Self.violations("#EXTM3U\n" + Self.segment)
        #expect(
            found.map(\.description) == [
                "line 3 (EXT-X-TARGETDURATION): is missing [8216bis 4.4.3.1, must]"
            ])
    }

    @Test(arguments: ["odd-empty", "odd-channel-list", "hostile-define-scheme", "odd-latin1"])
    func `damaged lists never trap a rule`(name: String) throws {
        let body = try #require(Corpus.read(name + ".m3u8"))
        for index in body.indices {
            for byte: UInt8 in [0x00, 0x0A, 0x22, 0x2C, 0x3A, 0x40, 0x7B, 0xFF] {
                var damaged = body
                damaged[index] = byte
                _ = try? Corpus.violations(in: damaged)
            }
        }
    }
}
