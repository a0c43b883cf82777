import HLS
import Testing
import URISyntax

/// The playlist model, tag by tag.
@Suite struct PlaylistModelTests {
    static func playlist(
        _ text: String, base: AbsoluteURL? = Corpus.base,
        _ reading: PlaylistReading = PlaylistReading(keepsLines: true)
    ) throws -> Playlist {
        try Playlist(Array(text.utf8), base: base, reading)
    }

    static func media(_ text: String) throws -> MediaPlaylist {
        try #require(try playlist("#EXTM3U\n#EXT-X-TARGETDURATION:6\n" + text).media)
    }

    static func multivariant(_ text: String) throws -> MultivariantPlaylist {
        try #require(try playlist("#EXTM3U\n" + text).multivariant)
    }

    // MARK: Segments

    @Test func `a segment has the values of the tags before its URI`() throws {
        let list = try Self.playlist(
            """
            #EXTM3U
            #EXT-X-TARGETDURATION:6
            #EXT-X-MEDIA-SEQUENCE:41
            #EXT-X-DISCONTINUITY-SEQUENCE:7
            #EXTINF:4.5,First
            a.ts
            #EXT-X-DISCONTINUITY
            #EXT-X-PROGRAM-DATE-TIME:1970-01-01T00:00:01Z
            #EXT-X-BITRATE:900
            #EXT-X-GAP
            #EXTINF:6,
            # a comment
              b.ts\u{20}
            #EXTINF:6,
            c.vtt
            """)
        let segments = try #require(list.media?.segments)
        #expect(segments.map(\.mediaSequence) == [41, 42, 43])
        #expect(segments.map(\.discontinuitySequence) == [7, 8, 8])
        #expect(segments.map(\.discontinuities) == [0, 1, 0])
        #expect(segments.map(\.duration) == [.milliseconds(4500), .seconds(6), .seconds(6)])
        #expect(segments.map(\.isGap) == [false, true, false])
        #expect(segments.map(\.date?.milliseconds) == [nil, 1_000, nil])
        #expect(segments.map(\.role) == [.segment, .segment, .subtitle])
        #expect(segments.map(\.line) == [6, 13, 15])
        #expect(segments.map { list.text($0.uri) } == ["a.ts", "b.ts", "c.vtt"])
        #expect(
            segments.map { list.text($0.source) } == [
                "#EXTINF:4.5,First\na.ts",
                "#EXT-X-DISCONTINUITY\n#EXT-X-PROGRAM-DATE-TIME:1970-01-01T00:00:01Z\n"
                    + "#EXT-X-BITRATE:900\n#EXT-X-GAP\n#EXTINF:6,\n# a comment\n  b.ts",
                "#EXTINF:6,\nc.vtt",
            ])
        #expect(
            segments.map { $0.place?.url.text } == [
                "https://cdn.example.com/vod/a/a.ts", "https://cdn.example.com/vod/a/b.ts",
                "https://cdn.example.com/vod/a/c.vtt",
            ])
        #expect(list.media?.dates.map(\.mediaSequence) == [42])
    }

    @Test func `dates have the number of the next segment, malformed ones are dropped`()
        throws
    {
        let list = try Self.playlist(
            """
            #EXTM3U
            #EXT-X-MEDIA-SEQUENCE:40
            #EXTINF:1,
            a.ts
              #EXT-X-PROGRAM-DATE-TIME: 1970-01-01T00:00:01Z
            #EXTINF:1,
            b.ts
            #EXT-X-PROGRAM-DATE-TIME:no date
            #EXTINF:1,
            c.ts
            """)
        #expect(list.media?.dates.map(\.mediaSequence) == [41])
        #expect(list.media?.dates.map(\.date.milliseconds) == [1_000])
    }

    @Test func `a byte range without an offset continues the one before it`() throws {
        let list = try Self.media(
            """
            #EXTINF:6,
            #EXT-X-BYTERANGE:100@50
            a.ts
            #EXTINF:6,
            #EXT-X-BYTERANGE:30
            a.ts
            #EXTINF:6,
            #EXT-X-BYTERANGE:30
            b.ts
            #EXTINF:6,
            c.ts
            """)
        #expect(
            list.segments.map(\.byteRange) == [
                SubRange(offset: 50, length: 100), SubRange(offset: 150, length: 30),
                SubRange(offset: 0, length: 30), nil,
            ])
    }

    @Test func `keys and maps apply from their tags on`() throws {
        let list = try Self.media(
            """
            #EXT-X-KEY:METHOD=AES-128,URI="k1",IV=0x0A
            #EXT-X-MAP:URI="i.mp4",BYTERANGE="10@2"
            #EXTINF:6,
            a.m4s
            #EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://x",KEYFORMAT="com.apple.streamingkeydelivery",\
            KEYFORMATVERSIONS="1"
            #EXTINF:6,
            b.m4s
            #EXT-X-KEY:METHOD=NONE
            #EXT-X-MAP:URI="j.mp4"
            #EXTINF:6,
            c.m4s
            """)
        let segments = list.segments
        #expect(segments.map(\.context.keyURL?.lastPathSegment) == ["k1", "k1", nil])
        #expect(segments.map(\.context.mapURL?.lastPathSegment) == ["i.mp4", "i.mp4", "j.mp4"])
        #expect(segments[0].context === segments[1].context)
        #expect(list.keys.map(\.method) == ["AES-128", "SAMPLE-AES", "NONE"])
        #expect(list.keys.map(\.isNone) == [false, false, true])
        #expect(
            list.keys.map(\.format) == ["identity", "com.apple.streamingkeydelivery", "identity"])
        #expect(list.keys.map(\.uri) == ["k1", "skd://x", nil])
        #expect(list.keys.map { $0.reference == nil } == [false, true, true])
        #expect(list.maps.map(\.byteRange) == [SubRange(offset: 2, length: 10), nil])
    }

    // MARK: Live lists

    @Test func `parts, hints and reports are parsed with their numbers`() throws {
        let list = try Self.playlist(
            """
            #EXTM3U
            #EXT-X-TARGETDURATION:4
            #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,CAN-SKIP-UNTIL=24,PART-HOLD-BACK=1.0,\
            HOLD-BACK=12,CAN-SKIP-DATERANGES=YES
            #EXT-X-PART-INF:PART-TARGET=0.5
            #EXT-X-MEDIA-SEQUENCE:10
            #EXT-X-PART:DURATION=0.5,URI="p.mp4",BYTERANGE="20@0",INDEPENDENT=YES
            #EXT-X-PART:DURATION=0.5,URI="p.mp4",BYTERANGE="20"
            #EXTINF:1,
            p.mp4
            #EXT-X-PART:DURATION=0.4,URI="q.mp4",GAP=YES
            #EXT-X-PRELOAD-HINT:TYPE=PART,URI="q.mp4",BYTERANGE-START=7,BYTERANGE-LENGTH=9
            #EXT-X-PRELOAD-HINT:TYPE=MAP,URI="i.mp4"
            #EXT-X-RENDITION-REPORT:URI="../b/l.m3u8",LAST-MSN=11,LAST-PART=3
            """)
        let media = try #require(list.media)
        #expect(media.parts.map(\.mediaSequence) == [10, 10, 11])
        #expect(media.parts.map(\.index) == [0, 1, 0])
        #expect(
            media.parts.map(\.duration) == [
                .milliseconds(500), .milliseconds(500), .milliseconds(400),
            ])
        #expect(media.parts.map(\.isGap) == [false, false, true])
        #expect(
            media.parts.map(\.reference?.byteRange) == [
                SubRange(offset: 0, length: 20), SubRange(offset: 20, length: 20), nil,
            ])
        #expect(media.preloadHints.map(\.type) == ["PART", "MAP"])
        #expect(
            media.preloadHints.map(\.reference?.byteRange)
                == [SubRange(offset: 7, length: 9), nil])
        #expect(media.preloadHints.map(\.reference?.role) == [.part, .initialization])
        let report = try #require(media.renditionReports.first)
        #expect(report.reference?.url.text == "https://cdn.example.com/vod/b/l.m3u8")
        let control = try #require(media.serverControl)
        #expect(control.canBlockReload)
        #expect(control.canSkipUntil == .seconds(24) && control.holdBack == .seconds(12))
        #expect(control.partHoldBack == .seconds(1))
        #expect(list.summary.partTarget == .milliseconds(500))
        #expect(
            list.text(media.parts[1].source)
                == "#EXT-X-PART:DURATION=0.5,URI=\"p.mp4\",BYTERANGE=\"20\"")
    }

    @Test func `a delta update continues the numbers behind skipped segments`() throws {
        let list = try Self.playlist(
            """
            #EXTM3U
            #EXT-X-TARGETDURATION:4
            #EXT-X-MEDIA-SEQUENCE:100
            #EXT-X-SKIP:SKIPPED-SEGMENTS=20,RECENTLY-REMOVED-DATERANGES="a\tb"
            #EXTINF:4,
            s.ts
            """)
        #expect(list.media?.segments.map(\.mediaSequence) == [120])
        #expect(list.media?.skip?.removedDateRanges == ["a", "b"])
        #expect(list.summary.isSkipDelta)
    }

    @Test func `date ranges are parsed with dates, durations and resources`() throws {
        let list = try Self.media(
            """
            #EXT-X-DATERANGE:ID="ad",CLASS="com.apple.hls.interstitial",\
            START-DATE="1970-01-01T00:00:01Z",END-DATE="1970-01-01T00:00:03Z",DURATION=2,\
            PLANNED-DURATION=2.5,END-ON-NEXT=YES,CUE="PRE,ONCE",X-ASSET-URI="ad.m3u8",\
            X-ASSET-LIST="list.json"
            #EXT-X-DATERANGE:ID="b",DURATION=-1
            """)
        let range = list.dateRanges[0]
        #expect(range.id == "ad" && range.isInterstitial && range.endsOnNext)
        #expect(range.start?.milliseconds == 1_000 && range.end?.milliseconds == 3_000)
        #expect(range.duration == .seconds(2) && range.plannedDuration == .milliseconds(2500))
        #expect(range.references.map(\.role) == [.playlist, .json])
        #expect(list.dateRanges[1].duration == nil && list.dateRanges[1].references.isEmpty)
    }

    // MARK: Multivariant playlists

    @Test func `variants have their attributes and the URI of the next line`() throws {
        let list = try Self.playlist(
            """
            #EXTM3U
            #EXT-X-INDEPENDENT-SEGMENTS
            #EXT-X-START:TIME-OFFSET=-2.5,PRECISE=YES
            #EXT-X-STREAM-INF:BANDWIDTH=100,AVERAGE-BANDWIDTH=90,CODECS="avc1.4d401e,mp4a.40.2",\
            RESOLUTION=640x360,FRAME-RATE=29.97,AUDIO="a",SUBTITLES="s",VIDEO="v",\
            CLOSED-CAPTIONS=NONE,VIDEO-RANGE=SDR,HDCP-LEVEL=NONE,PATHWAY-ID="p",SCORE=2.0,\
            STABLE-VARIANT-ID="x"
            # between
            low.m3u8
            #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=7,URI="i.m3u8"
            #EXT-X-IMAGE-STREAM-INF:BANDWIDTH=8,URI="t.m3u8"
            #EXT-X-STREAM-INF:BANDWIDTH=9223372036854775808
            urn:x
            """)
        let variants = try #require(list.multivariant?.variants)
        #expect(variants.map(\.kind) == [.stream, .iFrames, .images, .stream])
        #expect(variants.map(\.bandwidth) == [100, 7, 8, nil])
        let first = variants[0]
        #expect(first.line == 4 && first.uriLine == 6)
        #expect(first.reference?.url.lastPathSegment == "low.m3u8")
        #expect(first.codecs == "avc1.4d401e,mp4a.40.2")
        #expect(first.resolution?.width == 640 && first.resolution?.height == 360)
        #expect(first.audioGroup == "a" && first.subtitlesGroup == "s")
        #expect(first.group("AUDIO") == "a" && first.group("CLOSED-CAPTIONS") == nil)
        #expect(first.videoRange == "SDR" && first.pathwayID == "p")
        #expect(variants[1].reference?.bandwidth == 7)
        #expect(list.summary.variantCount == 2 && variants[3].reference == nil)
    }

    @Test func `an I-frame stream before the URI of a variant does not take that URI`() throws {
        let list = try Self.multivariant(
            """
            #EXT-X-STREAM-INF:BANDWIDTH=9
            #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=7,URI="i.m3u8"
            v.m3u8
            """)
        let names = list.variants.map { $0.reference?.url.lastPathSegment }
        #expect(names == ["v.m3u8", "i.m3u8"] && list.variants[1].uriLine == 3)
        #expect(MultivariantFilter.variants(list).map(\.url.lastPathSegment) == ["v.m3u8"])
    }

    @Test func `renditions, session data, session keys and steering are parsed`() throws {
        let list = try Self.multivariant(
            """
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="English",LANGUAGE="en",ASSOC-LANGUAGE="de",\
            DEFAULT=YES,AUTOSELECT=YES,FORCED=NO,CHARACTERISTICS="x,y",CHANNELS="2",URI="en.m3u8",\
            STABLE-RENDITION-ID="r"
            #EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="c",NAME="CC",INSTREAM-ID="CC1",FORCED=YES
            #EXT-X-SESSION-DATA:DATA-ID="com.x",VALUE="v",LANGUAGE="en"
            #EXT-X-SESSION-DATA:DATA-ID="com.y",URI="y.json"
            #EXT-X-SESSION-KEY:METHOD=AES-128,URI="k"
            #EXT-X-CONTENT-STEERING:SERVER-URI="steer",PATHWAY-ID="p"
            """)
        let first = list.renditions[0], second = list.renditions[1]
        #expect(first.type == "AUDIO" && first.groupID == "a" && first.name == "English")
        #expect(first.language == "en" && second.reference == nil)
        #expect(first.isDefault && !first.isForced && second.isForced)
        #expect(first.reference?.url.lastPathSegment == "en.m3u8")
        #expect(list.sessionData.map(\.dataID) == ["com.x", "com.y"])
        #expect(list.sessionData[1].reference?.role == .json)
        #expect(list.sessionKeys.map(\.method) == ["AES-128"])
        #expect(list.steering[0].reference?.url.lastPathSegment == "steer")
    }

    @Test func `a URI before the first tag of a kind is a reference without a segment`() throws {
        let list = try Self.playlist(
            "#EXTM3U\na.m3u8\nurn:x\n#EXT-X-STREAM-INF:BANDWIDTH=1\nb.m3u8\n")
        #expect(list.kind == .multivariant && list.media == nil)
        #expect(list.references.map(\.url.lastPathSegment) == ["a.m3u8", "b.m3u8"])
        #expect(list.multivariant?.variants.count == 1)
    }

    // MARK: Variables, base

    @Test func `variables are replaced, imported and taken from the query`() throws {
        let text = """
            #EXTM3U
            #EXT-X-TARGETDURATION:6
            #EXT-X-DEFINE:NAME="a",VALUE="x"
            #EXT-X-DEFINE:IMPORT="b"
            #EXT-X-DEFINE:QUERYPARAM="n"
            #EXTINF:6,
            {$a}/{$b}/{$n}.ts
            """
        let list = try Self.playlist(text, PlaylistReading(variables: ["b": "y"]))
        #expect(list.media?.segments[0].place?.url.path == "/vod/a/x/y/7.ts")
        #expect(list.definedVariables == ["a": "x", "b": "y", "n": "7"])
    }

    @Test func `without a base URL nothing is resolved, and no URI is rejected`() throws {
        let text = """
            #EXTM3U
            #EXT-X-TARGETDURATION:6
            #EXT-X-DEFINE:QUERYPARAM="n"
            #EXT-X-MAP:URI="file:///etc/passwd"
            #EXT-X-PART:DURATION=1,URI="{$unknown}"
            #EXTINF:6,
            http://a\\b/
            #EXTINF:6,
            #EXT-X-BYTERANGE:1
            b.ts
            """
        #expect(throws: PlaylistError.self) { try Self.playlist(text) }
        let list = try Self.playlist(text, base: nil)
        #expect(list.references.isEmpty && list.unusable.isEmpty)
        #expect(list.media?.segments.map(\.duration) == [.seconds(6), .seconds(6)])
        #expect(list.media?.segments.map { list.text($0.uri) } == ["http://a\\b/", "b.ts"])
        #expect(list.media?.parts.map(\.duration) == [.seconds(1)])
        #expect(list.summary.segmentCount == 2 && list.summary.nextMediaSequence == 2)
        #expect(list.media?.segments[0].context.hasMap == true)
    }

    // MARK: Lines

    @Test func `lines are kept in order with their kinds`() throws {
        let text = "# first\r\n\n  #EXTM3U \r#EXT-X-NEW:1\n#EXTINF:6,\n a.ts \n#EXT-X-ENDLIST\n"
        let list = try Self.playlist(text)
        #expect(list.lines.map(\.number) == Array(1...7))
        #expect(list.lines.map(\.tag) == [nil, nil, .extM3U, nil, .inf, nil, .endList])
        #expect(
            list.lines.map { list.text($0.range) } == [
                "# first", "", "#EXTM3U", "#EXT-X-NEW:1", "#EXTINF:6,", "a.ts", "#EXT-X-ENDLIST",
            ])
        #expect(list.lines.map(\.isPadded) == [false, false, true, false, false, true, false])
        guard case .unknownTag(let name) = list.lines[3].kind else {
            return #expect(Bool(false), "an unknown tag is not told")
        }
        #expect(list.text(name) == "EXT-X-NEW")
        #expect(try Self.playlist(text, PlaylistReading()).lines.isEmpty)
    }

    @Test func `numbers out of range are dropped or clamped`() throws {
        let list = try Self.playlist(
            """
            #EXTM3U
            #EXT-X-TARGETDURATION:99999999999999999999
            #EXT-X-MEDIA-SEQUENCE:18446744073709551615
            #EXT-X-SKIP:SKIPPED-SEGMENTS=99999999999999999999
            #EXTINF:99999999999999999999,
            #EXT-X-BYTERANGE:9007199254740991@9007199254740991
            a.ts
            #EXT-X-RENDITION-REPORT:URI="r",LAST-MSN=18446744073709551616,LAST-PART=-1
            """)
        let media = try #require(list.media)
        #expect(media.segments[0].duration == .seconds(500_000_000))
        #expect(media.segments[0].mediaSequence == (1 << 53) - 1)
    }
}
