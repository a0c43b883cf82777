import HLS
import Testing
import URISyntax

/// References and summary that a rewrite returns.
@Suite struct PlaylistRewriterTests {
    /// A rewritten playlist, and the references that the map received.
    @dynamicMemberLookup
    struct Rewritten {
        let list: RewrittenPlaylist
        let references: [ResourceReference]

        subscript<Value>(dynamicMember path: KeyPath<RewrittenPlaylist, Value>) -> Value {
            list[keyPath: path]
        }
    }

    static func rewrite(
        _ text: String, _ change: (inout PlaylistRewriter.Options) -> Void = { _ in }
    ) throws -> Rewritten {
        var options = PlaylistRewriter.Options()
        change(&options)
        var references: [ResourceReference] = []
        let list = try PlaylistRewriter.rewrite(
            Array(text.utf8), base: Corpus.base, options: options
        ) { reference, output in
            references.append(reference)
            return Corpus.map(reference, &output)
        }
        return Rewritten(list: list, references: references)
    }

    static func references(_ text: String) throws -> [ResourceReference] {
        try rewrite(text).references
    }

    @Test(arguments: ["\n", "\r\n", "\r"])
    func `repeated EXTINF lines are counted and copied like others`(
        _ end: String
    ) throws {
        let infs = ["4.0,", "4.0,", "4.0,", "4.0, ", "4.00,", "4.0,", "4.0,Title", "4.0,", "40.0,"]
        var lines = ["#EXTM3U", "#EXT-X-TARGETDURATION:40"]
        for (index, inf) in infs.enumerated() { lines += ["#EXTINF:\(inf)", "s\(index).ts"] }
        lines += ["#EXTINF:4.0,", "#EXT-X-GAP", "end.ts", "#EXT-X-ENDLIST", "# behind the end"]
        let list = try Self.rewrite(lines.map { $0 + end }.joined())
        let references = list.references
        #expect(references.map(\.line) == (0..<9).map { 4 + 2 * $0 } + [23])
        let four = Duration.seconds(4)
        #expect(references.map(\.duration) == Array(repeating: four, count: 8) + [four * 10, four])
        #expect(list.summary.lineCount == lines.count)
        let copied = String(decoding: list.bytes, as: UTF8.self).split(separator: "\n")
        #expect(copied.count == lines.count)
        for (line, other) in zip(lines, copied) where line.hasPrefix("#") {
            #expect(other == line)
        }
    }

    @Test(
        arguments: [
            ("ad.mp4", .media), ("ad.TS?x=1.m3u8", .media), ("ad.m3u8?x=1.mp4", .playlist),
            ("ad.php", .playlist), ("ad", .playlist), ("{$name}.mp4", .media),
        ] as [(String, ResourceRole)])
    func `an asset of an interstitial is a file if it has the extension of one`(
        _ uri: String, _ role: ResourceRole
    ) throws {
        let text = """
            #EXTM3U
            #EXT-X-DEFINE:NAME="name",VALUE="ad"
            #EXT-X-TARGETDURATION:4
            #EXT-X-DATERANGE:ID="1",X-ASSET-URI="\(uri)"

            """
        let references = try Self.references(text)
        #expect(references.map(\.role) == [role])
        #expect(references.map(\.tag) == [.dateRange])
    }

    @Test func `an asset that stands in its URI is no file, whatever it ends with`() throws {
        let text = """
            #EXTM3U
            #EXT-X-DEFINE:NAME="list",VALUE="data:application/vnd.apple.mpegurl,x"
            #EXT-X-TARGETDURATION:4
            #EXT-X-DATERANGE:ID="1",X-ASSET-URI="{$list}.mp4"

            """
        let list = try Self.rewrite(text)
        #expect(list.references.isEmpty && !list.unusable.isEmpty)
        #expect(!String(decoding: list.bytes, as: UTF8.self).contains("X-ASSET-URI"))
    }

    @Test func `the limits of lines apply to repeated lines too`() throws {
        let text = "#EXTM3U\n" + String(repeating: "#EXTINF:4.0,\na.ts\n", count: 50)
        #expect(throws: PlaylistError.tooManyLines(limit: 60)) {
            try Self.rewrite(text) { $0.reading.limits.lineCount = 60 }
        }
        #expect(throws: PlaylistError.lineTooLong(line: 2, limit: 11)) {
            try Self.rewrite(text) { $0.reading.limits.lineLength = 11 }
        }
    }

    @Test func `a preload hint states whether it has an offset`() throws {
        let hints = try Self.references(
            """
            #EXTM3U
            #EXTINF:1,
            a.ts
            #EXT-X-PRELOAD-HINT:TYPE=PART,URI="b.ts"
            #EXT-X-PRELOAD-HINT:TYPE=PART,URI="b.ts",BYTERANGE-START=0
            #EXT-X-PRELOAD-HINT:TYPE=PART,URI="b.ts",BYTERANGE-START=7,BYTERANGE-LENGTH=9
            """
        ).filter { $0.tag == .preloadHint }
        #expect(hints.map(\.hasRangeStart) == [false, true, true])
        #expect(hints.map(\.byteRange) == [nil, nil, SubRange(offset: 7, length: 9)])
    }

    @Test(arguments: [("", false), (",BYTERANGE=\"5@0\"", true)])
    func `a preload hint without an offset is for a range if the part before it is one`(
        range: String, isRange: Bool
    ) throws {
        let hints = try Self.references(
            """
            #EXTM3U
            #EXT-X-PART:DURATION=1,URI="z.ts",BYTERANGE="5@0"
            #EXT-X-PART:DURATION=1,URI="a.ts"\(range)
            #EXTINF:2,
            a.ts
            #EXT-X-PRELOAD-HINT:TYPE=MAP,URI="i.mp4"
            #EXT-X-PRELOAD-HINT:TYPE=PART,URI="b.ts"
            """
        ).filter { $0.tag == .preloadHint }
        #expect(hints.map(\.hasRangeStart) == [false, isRange])
        #expect(hints.map(\.byteRange) == [nil, nil])
    }

    @Test func `an omitted offset continues the previous range of the same resource`() throws {
        let ranges = try Self.references(
            """
            #EXTM3U
            #EXTINF:1,
            #EXT-X-BYTERANGE:100@50
            a.ts
            #EXT-X-BYTERANGE:200
            #EXTINF:1,
            a.ts
            #EXTINF:1,
            #EXT-X-BYTERANGE:300
            b.ts
            #EXTINF:1,
            #EXT-X-BYTERANGE:10
            b.ts
            #EXTINF:1,
            b.ts
            #EXTINF:1,
            #EXT-X-BYTERANGE:20
            b.ts
            """
        ).map(\.byteRange)
        #expect(
            ranges == [
                SubRange(offset: 50, length: 100), SubRange(offset: 150, length: 200),
                SubRange(offset: 0, length: 300), SubRange(offset: 300, length: 10), nil,
                SubRange(offset: 0, length: 20),
            ])
    }

    @Test func `ranges of parts continue each other, not those of segments`() throws {
        let list = try Self.rewrite(
            """
            #EXTM3U
            #EXT-X-PART:DURATION=0.5,URI="a.mp4",BYTERANGE="100@0"
            #EXT-X-PART:DURATION=0.5,URI="a.mp4",BYTERANGE="50"
            #EXTINF:1,
            #EXT-X-BYTERANGE:150@0
            a.mp4
            #EXT-X-PART:DURATION=0.5,URI="a.mp4",BYTERANGE="70"
            #EXT-X-PRELOAD-HINT:TYPE=PART,URI="a.mp4",BYTERANGE-START=220
            #EXT-X-PRELOAD-HINT:TYPE=PART,URI="a.mp4",BYTERANGE-START=220,BYTERANGE-LENGTH=9
            """)
        let parts = list.references.filter { $0.tag == .part }
        #expect(parts.map(\.byteRange?.offset) == [0, 100, 150])
        #expect(parts.map(\.partIndex) == [0, 1, 0])
        #expect(parts.map(\.mediaSequence) == [0, 0, 1])
        #expect(parts.first?.duration == .milliseconds(500))
        let hints = list.references.filter { $0.tag == .preloadHint }
        #expect(hints.map(\.byteRange) == [nil, SubRange(offset: 220, length: 9)])
        #expect(hints.map(\.partIndex) == [1, 1])
        #expect(list.summary.trailingPartCount == 1)
    }

    @Test func `a reference has the key and the section in force`() throws {
        let references = try Self.references(
            """
            #EXTM3U
            #EXTINF:1,
            0.ts
            #EXT-X-KEY:METHOD=AES-128,URI="k1"
            #EXT-X-MAP:URI="i1.mp4",BYTERANGE="10@5"
            #EXTINF:1,
            1.m4s
            #EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://x",KEYFORMAT="com.apple.streamingkeydelivery"
            #EXTINF:1,
            2.m4s
            #EXT-X-KEY:METHOD=NONE
            #EXT-X-MAP:URI="i2.mp4"
            #EXTINF:1,
            1.m4s
            """)
        let segments = references.filter { $0.role == .segment }
        #expect(segments.map(\.hasMap) == [false, true, true, true])
        #expect(segments.map { $0.keyURL?.lastPathSegment } == [nil, "k1", "k1", nil])
        #expect(segments.map { $0.mapURL?.lastPathSegment } == [nil, "i1.mp4", "i1.mp4", "i2.mp4"])
        #expect(
            segments.map(\.mapByteRange) == [
                nil, SubRange(offset: 5, length: 10), SubRange(offset: 5, length: 10), nil,
            ])
    }

    @Test(arguments: [
        ("com.apple.fps.1_0://x", false), ("a_b://", false), ("key_1:2.bin", true),
        ("_a://x", true), ("k_1/a://x", true),
    ])
    func `the name of a key system before a key's identifier may have an underscore`(
        uri: String, isKey: Bool
    ) throws {
        let references = try Self.references(
            """
            #EXTM3U
            #EXT-X-KEY:METHOD=SAMPLE-AES,URI="\(uri)",KEYFORMAT="com.apple.fps.1_0"
            #EXTINF:1,
            1.ts
            """)
        let roles: [ResourceRole] = isKey ? [.key, .segment] : [.segment]
        #expect(references.map(\.role) == roles)
    }

    @Test func `segments have media and discontinuity sequence numbers, durations and gaps`() throws
    {
        let list = try Self.rewrite(
            """
            #EXTM3U
            #EXT-X-VERSION:4
            #EXT-X-TARGETDURATION:6
            #EXT-X-PLAYLIST-TYPE:EVENT
            #EXT-X-MEDIA-SEQUENCE:41
            #EXT-X-DISCONTINUITY-SEQUENCE:2
            #EXTINF:5.005,one
            a.ts
            #EXT-X-DISCONTINUITY
            #EXT-X-GAP
            #EXTINF:6
            b.ts
            """)
        #expect(list.references.map(\.mediaSequence) == [41, 42])
        #expect(list.references.map(\.discontinuitySequence) == [2, 3])
        #expect(list.references.map(\.line) == [8, 12])
        #expect(list.references.map(\.duration) == [.milliseconds(5005), .seconds(6)])
        #expect(list.references.map(\.isGap) == [false, true])
        let summary = list.summary
        #expect(summary.kind == .media && summary.version == 4 && summary.playlistType == .event)
        #expect(summary.targetDuration == .seconds(6))
        #expect(summary.segmentCount == 2 && summary.gapCount == 1)
        #expect(summary.mediaSequence == 41 && summary.nextMediaSequence == 43)
        #expect(summary.totalDuration == .milliseconds(11_005))
        #expect(summary.startsWithDiscontinuitySequence && summary.lineCount == 12)
    }

    @Test func `a media playlist is live until it has an end`() throws {
        let live =
            "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXT-X-PLAYLIST-TYPE:EVENT\n#EXTINF:6,\n1.ts\n"
        #expect(try Self.rewrite(live).summary.isLive)
        #expect(try !Self.rewrite(live + "#EXT-X-ENDLIST").summary.isLive)
        #expect(try !Self.rewrite("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\na").summary.isLive)
    }

    @Test func `a delta update counts skipped segments and keeps a map that it does not contain`()
        throws
    {
        let text = """
            #EXTM3U
            #EXT-X-TARGETDURATION:4
            #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,CAN-SKIP-UNTIL=24,HOLD-BACK=12,PART-HOLD-BACK=1.5
            #EXT-X-PART-INF:PART-TARGET=0.5
            #EXT-X-MEDIA-SEQUENCE:100
            #EXT-X-SKIP:SKIPPED-SEGMENTS=20
            #EXTINF:4,
            120.m4s
            """
        let list = try Self.rewrite(text) { $0.reading.assumesMap = true }
        #expect(list.references.map(\.mediaSequence) == [120])
        #expect(list.references.map(\.hasMap) == [true])
        let summary = list.summary
        #expect(summary.isSkipDelta && summary.skippedSegmentCount == 20)
        #expect(summary.nextMediaSequence == 121)
        #expect(summary.canSkipUntil == .seconds(24))
        #expect(summary.partTarget == .milliseconds(500))
    }

    @Test func `a delta update gets no offset for a range that may continue a skipped one`()
        throws
    {
        func ranges(_ tags: [String]) throws -> [String] {
            let written = ["10", "20", "5@100", "6"].flatMap { range in
                ["#EXTINF:4,", "#EXT-X-BYTERANGE:\(range)", "f.ts"]
            }
            let part = "#EXT-X-PART:DURATION=1,URI=\"f.ts\",BYTERANGE=\"7\""
            let lines = ["#EXTM3U", "#EXT-X-TARGETDURATION:4"] + tags + written + [part]
            let list = try Self.rewrite(lines.joined(separator: "\n")) { $0.writesOffsets = true }
            return String(decoding: list.bytes, as: UTF8.self).split(separator: "\n")
                .filter { $0.contains("BYTERANGE") }
                .map { $0.split(separator: "BYTERANGE").last.map(String.init) ?? "" }
        }
        let skip = ["#EXT-X-MEDIA-SEQUENCE:1", "#EXT-X-SKIP:SKIPPED-SEGMENTS=3"]
        #expect(try ranges(skip) == [":10", ":20", ":5@100", ":6@105", "=\"7\""])
        #expect(try ranges([]) == [":10@0", ":20@10", ":5@100", ":6@105", "=\"7@0\""])
    }

    @Test func `a delta update continues the range of a skipped segment that is known`() throws {
        func ranges(after number: Int, of name: String) throws -> [String] {
            let lines = [
                "#EXTM3U", "#EXT-X-TARGETDURATION:4", "#EXT-X-MEDIA-SEQUENCE:1",
                "#EXT-X-SKIP:SKIPPED-SEGMENTS=3", "#EXTINF:4,", "#EXT-X-BYTERANGE:10", "f.ts",
                "#EXTINF:4,", "#EXT-X-BYTERANGE:20", "f.ts",
            ]
            let url = try AbsoluteURL("https://cdn.example.com/vod/a/\(name)")
            let known = RangeEnd(number: number, place: .whole(url), end: 500)
            let list = try Self.rewrite(lines.joined(separator: "\n")) {
                $0.writesOffsets = true
                $0.reading.rangesBefore = [known]
            }
            #expect(list.summary.guessesRanges != (number == 3 && name == "f.ts"))
            return String(decoding: list.bytes, as: UTF8.self).split(separator: "\n")
                .filter { $0.hasPrefix("#EXT-X-BYTERANGE:") }
                .map { String($0.dropFirst(17)) }
        }
        #expect(try ranges(after: 3, of: "f.ts") == ["10@500", "20@510"])
        #expect(try ranges(after: 2, of: "f.ts") == ["10", "20"])
        #expect(try ranges(after: 3, of: "g.ts") == ["10", "20"])
    }

    @Test func `the position of a URI determines its role, not its extension`() throws {
        let references = try Self.references(
            """
            #EXTM3U
            #EXT-X-STREAM-INF:BANDWIDTH=5
            variant.ts
            #EXT-X-MEDIA:TYPE=AUDIO,URI="audio.mp4"
            #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=7,URI="iframes"
            #EXT-X-CONTENT-STEERING:SERVER-URI="s.m3u8"
            """)
        #expect(references.map(\.role) == [.playlist, .playlist, .playlist, .json])
        #expect(references.map(\.bandwidth) == [5, nil, 7, nil])
        #expect(references.map(\.tag) == [.streamInf, .media, .iFrameStreamInf, .contentSteering])
    }

    @Test func `segments of subtitles without an extension are WebVTT unless they have a section`()
        throws
    {
        let names = ["t?id=1", "a.ts", "b.vtt", "c.php"].map { "#EXTINF:6,\n\($0)\n" }.joined()
        let section = "#EXT-X-MAP:URI=\"i\"\n#EXTINF:6,\nt?id=2\n"
        func roles(_ type: String) throws -> [ResourceRole] {
            let text = "#EXTM3U\n#EXT-X-TARGETDURATION:6\n" + type + names + section
            return try Self.rewrite(text) { $0.reading.isSubtitles = true }.references.map(\.role)
        }
        #expect(
            try roles("#EXT-X-PLAYLIST-TYPE:VOD\n")
                == [.subtitle, .segment, .subtitle, .subtitle, .initialization, .segment])
        // The names in a live list must not depend on what the daemon knows.
        #expect(
            try roles("")
                == [.segment, .segment, .subtitle, .segment, .initialization, .segment])
    }

    @Test func `relative references resolve against the URL given as base`() throws {
        let base = try AbsoluteURL("https://edge.example.net/x/y/list.m3u8")
        let list = try PlaylistRewriter.rewrite(
            Array("#EXTM3U\n#EXTINF:1,\n../s.ts\n".utf8), base: base
        ) { reference, output in
            output.append(contentsOf: reference.url.bytes)
            return true
        }
        #expect(list.bytes == Array("#EXTM3U\n#EXTINF:1,\nhttps://edge.example.net/x/s.ts\n".utf8))
    }

    @Test func `a URI is unchanged if the map declines it`() throws {
        let text = "#EXTM3U\n#EXT-X-MAP:URI=i.mp4\n#EXTINF:1,\n{$v}.ts\n"
        let list = try PlaylistRewriter.rewrite(
            Array("#EXTM3U\n#EXT-X-DEFINE:NAME=\"v\",VALUE=\"1\"\n".utf8)
                + Array(text.utf8.dropFirst(8)),
            base: Corpus.base
        ) { _, output in
            output.append(0x58)
            return false
        }
        #expect(String(decoding: list.bytes, as: UTF8.self).hasSuffix(String(text.dropFirst(8))))
        #expect(list.definedVariables == ["v": "1"])
    }

    @Test func `a replacement cannot contain quotes or line breaks`() throws {
        let list = try PlaylistRewriter.rewrite(
            Array("#EXTM3U\n#EXT-X-MAP:URI=\"i\"\n".utf8), base: Corpus.base
        ) { _, output in
            output.append(contentsOf: "a\"\r\nb".utf8)
            return true
        }
        #expect(list.bytes == Array("#EXTM3U\n#EXT-X-MAP:URI=\"a%22%0D%0Ab\"\n".utf8))
    }

    @Test func `an initialization section within a data URI counts as a map`() throws {
        let references = try Self.references(
            "#EXTM3U\n#EXT-X-MAP:URI=\"data:video/mp4;base64,AAAA\"\n#EXTINF:1,\nx\n")
        #expect(references.map(\.hasMap) == [true])
        #expect(references.map(\.mapURL) == [nil])
    }

    @Test func `errors about a URI show neither user information nor query`() throws {
        let error = try #require(throws: PlaylistError.self) {
            try Self.rewrite("#EXTM3U\n#EXTINF:1,\nhttp://user:secret@ho st/x?token=secret\n")
        }
        #expect(error.description.contains("http://***@ho%20st/x"))
        #expect(!error.description.contains("secret"))
    }
}
