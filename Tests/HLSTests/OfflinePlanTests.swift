import HLS
import Testing
import URISyntax

/// Which parts of a partly stored title are played.
@Suite struct OfflinePlanTests {
    static func url(_ name: String) -> AbsoluteURL {
        // A literal that is a URL.
        (try? AbsoluteURL("https://cdn.example.com/\(name)")) ?? Corpus.base
    }

    /// A list of segments with the given durations, some of them stored.
    static func list(
        _ name: String, _ seconds: [Double], keeps: Set<Int>, first: Int = 0, tags: String = "",
        isLive: Bool = false, wasLive: Bool = false, received: Double? = nil
    ) throws -> OfflineList {
        let text = text(name, seconds, first: first, tags: tags, isLive: isLive)
        let list = try Playlist(Array(text.utf8), base: Corpus.base)
        return OfflineList(list, wasLive: wasLive, received: received) {
            $0.tag != .inf || keeps.contains($0.mediaSequence)
        }
    }

    private static func text(
        _ name: String, _ seconds: [Double], first: Int = 0, tags: String = "",
        isLive: Bool = false
    ) -> String {
        var text = "#EXTM3U\n#EXT-X-TARGETDURATION:60\n#EXT-X-MEDIA-SEQUENCE:\(first)\n\(tags)"
        for (index, duration) in seconds.enumerated() {
            text += "#EXTINF:\(duration),\n\(name)\(first + index)\n"
        }
        if !isLive { text += "#EXT-X-ENDLIST\n" }
        return text
    }

    /// A list of segments with the given durations, cut as planned.
    private static func cut(
        _ plan: OfflinePlan, _ name: String, _ seconds: [Double], tags: String = ""
    ) throws -> OfflinePlaylist.Cut {
        OfflinePlaylist.cut(
            try Corpus.list(Array(text(name, seconds, tags: tags).utf8)),
            missing: plan.missing(at: url(name)), pieces: plan.pieces(at: url(name)))
    }

    /// The durations of a list that is cut as planned, with `|` for a discontinuity and
    /// `+` before the number of those before its beginning.
    private static func outline(
        _ plan: OfflinePlan, _ name: String, _ seconds: [Double]
    ) throws -> String {
        let text = String(decoding: try cut(plan, name, seconds).bytes, as: UTF8.self)
        return text.split(separator: "\n").compactMap { line -> String? in
            if line == "#EXT-X-DISCONTINUITY" { return "|" }
            let sequence = "#EXT-X-DISCONTINUITY-SEQUENCE:"
            if line.hasPrefix(sequence) { return "+\(line.dropFirst(sequence.count))" }
            guard line.hasPrefix("#EXTINF:") else { return nil }
            return String(line.dropFirst(8).prefix { $0 != "," })
        }.joined(separator: " ")
    }

    @Test func `the memory of a plan grows with the segments of its lists`() throws {
        let list = try Self.list("v", Array(repeating: 4, count: 1_000), keeps: Set(0..<1_000))
        let plan = OfflinePlan(only: list, at: Self.url("v"))
        #expect((100_000...400_000).contains(plan.byteCount))
        #expect(OfflinePlan([], lists: [:]).byteCount == 0)
    }

    static func variant(
        _ name: String, sound: [String] = [], kin: String? = nil, isSoundOnly: Bool = false
    ) -> OfflinePlan.Variant {
        OfflinePlan.Variant(
            url: url(name), sound: sound.map(url), encodingGroup: kin, isSoundOnly: isSoundOnly)
    }

    static func names(_ plan: OfflinePlan) -> [String] {
        plan.playable.map(\.lastPathSegment).sorted()
    }

    static let six = [Double](repeating: 4, count: 6)

    @Test func `every complete variant stays listed and borrows nothing`() throws {
        let plan = OfflinePlan(
            ["a", "b", "c"].map { Self.variant($0, kin: "k") },
            lists: [
                Self.url("a"): try Self.list("a", Self.six, keeps: Set(0..<6)),
                Self.url("b"): try Self.list("b", Self.six, keeps: Set(0..<6)),
                Self.url("c"): try Self.list("c", Self.six, keeps: [0, 1]),
            ])
        #expect(Self.names(plan) == ["a", "b"] && plan.borrowed.isEmpty)
        #expect(plan.stretches.ranges == [0..<24])
        #expect(plan.missing(at: Self.url("a")).isEmpty)
    }

    @Test func `audio with other segment durations skips the times that video skips`() throws {
        let plan = OfflinePlan(
            [Self.variant("v", sound: ["s"])],
            lists: [
                Self.url("v"): try Self.list("v", Self.six, keeps: [0, 1, 2]),
                Self.url("s"): try Self.list(
                    "s", [Double](repeating: 3, count: 8), keeps: Set(0..<8)),
            ])
        #expect(plan.stretches.ranges == [0..<12] && Self.names(plan) == ["s", "v"])
        #expect(plan.missing(at: Self.url("s")).count == 4)
        #expect(plan.missing(at: Self.url("v")).count == 3)
    }

    @Test(
        arguments: [
            ([4, 4, 4, 4, 4, 4], [4, 4, 4, 4]), ([4, 4, 4, 4], [4, 4, 4, 4, 4, 4]),
            // The last segment of audio is often a few milliseconds long.
            ([4, 4, 4, 4, 4, 4], [4, 4, 4, 4, 4, 4, 0.023]), ([4, 4, 4, 4, 4, 3], [6, 6, 6, 6]),
        ] as [([Double], [Double])])
    func `what follows the end of the shorter of video and audio is played`(
        _ video: [Double], _ audio: [Double]
    ) throws {
        let lists = [
            Self.url("v"): try Self.list("v", video, keeps: Set(0..<9)),
            Self.url("s"): try Self.list("s", audio, keeps: Set(0..<9)),
            // A language that nobody played.
            Self.url("u"): try Self.list("u", audio, keeps: []),
            // Others that end early, too.
            Self.url("w"): try Self.list("w", [4, 4, 4], keeps: Set(0..<3)),
            Self.url("t"): try Self.list("t", [12], keeps: [0]),
        ]
        let plan = OfflinePlan([Self.variant("v", sound: ["s", "u"])], lists: lists)
        #expect(Self.names(plan) == ["s", "t", "v", "w"])
        for url in plan.playable { #expect(plan.missing(at: url).isEmpty) }
    }

    @Test(
        arguments: [
            // The last segment of the audio is missing.
            ([0, 1, 2, 3, 4, 5], [0, 1, 2], 0..<12),
            // The video has a hole behind the end of the audio.
            ([0, 1, 2, 3, 5], [0, 1, 2, 3], 0..<16), ([0, 1, 2, 3, 4], [0, 1, 2, 3], 0..<20),
        ] as [(Set<Int>, Set<Int>, Range<Double>)])
    func `video without audio is played up to its first hole behind the end of the audio`(
        _ video: Set<Int>, _ audio: Set<Int>, _ played: Range<Double>
    ) throws {
        let plan = OfflinePlan(
            [Self.variant("v", sound: ["s"])],
            lists: [
                Self.url("v"): try Self.list("v", Self.six, keeps: video),
                Self.url("s"): try Self.list("s", [4, 4, 4, 4], keeps: audio),
            ])
        #expect(Self.names(plan) == ["s", "v"] && plan.stretches.ranges == [played])
    }

    private static let twelve = [Double](repeating: 2, count: 12)

    @Test(
        arguments: [
            (Set(4...6), [6, 6, 6, 6], "6.0 2 | 4 6.0"), ([5], [6, 6, 6, 6], "6.0 4 | 6.0 6.0"),
            // In the midst of a segment, which is listed on both sides.
            ([4], [6, 6, 6, 6], "6.0 2 | 2 6.0 6.0"), ([0, 1], [6, 6, 6, 6], "2 6.0 6.0 6.0"),
            ([11], [6, 6, 6, 6], "6.0 6.0 6.0 4"),
            // One file for the whole title, and one that ends before the film.
            ([0], [24], "22"), ([5], [24], "10 | 12"), ([0, 5], [24], "8 | 12"),
            ([4], [6, 6], "6.0 2 | 2"),
        ] as [(Set<Int>, [Double], String)])
    func `complete subtitles are listed by the times of the film, whatever segments they have`(
        _ missing: Set<Int>, _ seconds: [Double], _ outline: String
    ) throws {
        for sound in [[], ["s"]] {
            let plan = OfflinePlan(
                [Self.variant("v", sound: sound)],
                lists: [
                    Self.url("v"): try Self.list(
                        "v", Self.twelve, keeps: Set(0..<12).subtracting(missing)),
                    Self.url("s"): try Self.list("s", Self.twelve, keeps: Set(0..<12)),
                    Self.url("t"): try Self.list("t", seconds, keeps: Set(0..<4)),
                ], subtitles: [Self.url("t")])
            #expect(plan.playable.contains(Self.url("t")))
            #expect(try Self.outline(plan, "t", seconds) == outline)
        }
    }

    @Test func `subtitles with the segments of longer audio are listed by the times of the video`()
        throws
    {
        let audio: [Double] = [6, 6, 6, 6]
        let plan = OfflinePlan(
            [Self.variant("v", sound: ["s"])],
            lists: [
                Self.url("v"): try Self.list("v", Self.twelve, keeps: Set(2..<11)),
                Self.url("s"): try Self.list("s", audio, keeps: Set(0..<4)),
                Self.url("t"): try Self.list("t", audio, keeps: Set(0..<4)),
            ], subtitles: [Self.url("t")])
        for name in ["s", "t"] {
            #expect(try Self.outline(plan, name, audio) == "2 6.0 6.0 4")
        }
    }

    @Test func `a segment that is listed on both sides of a hole keeps its key and date`() throws {
        let key = "#EXT-X-KEY:METHOD=AES-128,URI=\"k\""
        let tags = "\(key)\n#EXT-X-PROGRAM-DATE-TIME:2031-05-06T07:08:00Z\n"
        let plan = OfflinePlan(
            [Self.variant("v")],
            lists: [
                Self.url("v"): try Self.list("v", Self.six, keeps: [0, 2, 3, 4, 5]),
                Self.url("t"): try Self.list("t", [12, 12], keeps: [0, 1], tags: tags),
            ], subtitles: [Self.url("t")])
        let cut = try Self.cut(plan, "t", [12, 12], tags: tags)
        let number = "IV=0x" + String(repeating: "0", count: 31)
        #expect(
            String(decoding: cut.bytes, as: UTF8.self)
                == "#EXTM3U\n#EXT-X-TARGETDURATION:60\n#EXT-X-MEDIA-SEQUENCE:0\n\(tags)"
                + "#EXTINF:4,\nt0\n#EXT-X-DISCONTINUITY\n"
                + "#EXT-X-PROGRAM-DATE-TIME:2031-05-06T07:08:08.000Z\n"
                + "#EXTINF:4,\n\(key),\(number)0\nt0\n"
                + "#EXTINF:12.0,\n\(key),\(number)1\nt1\n#EXT-X-ENDLIST\n")
        #expect(cut.movedFrom == 1)
    }

    @Test func `subtitles that lack a part, or would be repeated too often, are left out`() throws {
        let part = OfflinePlan(
            [Self.variant("v")],
            lists: [
                Self.url("v"): try Self.list("v", Self.twelve, keeps: Set(0..<12).subtracting([4])),
                Self.url("t"): try Self.list("t", [6, 6, 6, 6], keeps: [0, 1, 2]),
            ], subtitles: [Self.url("t")])
        #expect(Self.names(part) == ["v"])
        let scattered = OfflinePlan(
            [Self.variant("v")],
            lists: [
                Self.url("v"): try Self.list(
                    "v", [Double](repeating: 1, count: 200),
                    keeps: Set((0..<200).filter { $0 % 2 == 0 })),
                Self.url("t"): try Self.list("t", [200], keeps: [0]),
            ], subtitles: [Self.url("t")])
        #expect(Self.names(scattered) == ["v"])
    }

    @Test(
        arguments: [
            // The audio begins before the first segment of the video that is stored.
            ([0, 1], "2 6.0 6.0 6.0"),
            // Beside a hole, audio is listed in the stretch of its middle, and never twice.
            ([3], "6.0 | 4 6.0 6.0"), ([2], "4 | 6.0 6.0 6.0"), ([4], "6.0 | 6.0 6.0"),
            // A stretch of the video that has no audio counts all the same.
            ([4, 6], "6.0 | | 4 6.0"), ([1], "+1 6.0 6.0 6.0"),
        ] as [(Set<Int>, String)])
    func `audio with longer segments than the video is listed by the times of the video`(
        _ missing: Set<Int>, _ outline: String
    ) throws {
        let audio: [Double] = [6, 6, 6, 6]
        let plan = OfflinePlan(
            [Self.variant("v", sound: ["s", "u"])],
            lists: [
                Self.url("v"): try Self.list(
                    "v", Self.twelve, keeps: Set(0..<12).subtracting(missing)),
                Self.url("s"): try Self.list("s", audio, keeps: Set(0..<4)),
                // Another language.
                Self.url("u"): try Self.list("u", audio, keeps: Set(0..<4)),
            ])
        #expect(Self.names(plan) == ["s", "u", "v"])
        for name in ["s", "u"] { #expect(try Self.outline(plan, name, audio) == outline) }
    }

    @Test func `audio that ends shortly after the video begins is not listed`() throws {
        let audio = [4.15, 4, 4, 4, 4, 3.85]
        let plan = OfflinePlan(
            [Self.variant("v", sound: ["s"])],
            lists: [
                Self.url("v"): try Self.list("v", Self.six, keeps: Set(1..<6)),
                Self.url("s"): try Self.list("s", audio, keeps: Set(0..<6)),
            ])
        #expect(Self.names(plan) == ["s", "v"])
        #expect(try Self.outline(plan, "s", audio) == "4.0 4.0 4.0 4.0 3.85")
    }

    @Test func `audio is not listed at times of which the video lists no segment`() throws {
        let (video, audio) = ([10.0, 10], [Double](repeating: 2, count: 10))
        let plan = OfflinePlan(
            [Self.variant("v", sound: ["s"])],
            lists: [
                Self.url("v"): try Self.list("v", video, keeps: [0, 1]),
                Self.url("s"): try Self.list("s", audio, keeps: [0, 1, 5, 6, 7, 8, 9]),
            ])
        #expect(Self.names(plan) == ["s", "v"] && plan.stretches.ranges == [10..<20])
        #expect(try Self.outline(plan, "v", video) == "10.0")
        #expect(try Self.outline(plan, "s", audio) == "2.0 2.0 2.0 2.0 2.0")
    }

    @Test(arguments: [[6], [6, 8], [9, 10]] as [Set<Int>])
    func `a segment of the video is not listed if audio is missing between its ends`(
        _ missing: Set<Int>
    ) throws {
        let (video, audio) = ([10.0, 10, 10], [Double](repeating: 2, count: 15))
        let plan = OfflinePlan(
            [Self.variant("v", sound: ["s"])],
            lists: [
                Self.url("v"): try Self.list("v", video, keeps: [0, 1, 2]),
                Self.url("s"): try Self.list(
                    "s", audio, keeps: Set(0..<15).subtracting(missing)),
            ])
        #expect(Self.names(plan) == ["s", "v"])
        // Players count the discontinuities of both.
        #expect(try Self.outline(plan, "v", video) == "10.0 | 10.0")
        let sound = try Self.outline(plan, "s", audio)
        #expect(sound.split(separator: "|").count == 2, "\(sound)")
    }

    @Test func `a picture of one segment is kept only if the film lacks its end`() throws {
        let text = try Self.list("t", [24], keeps: [0])
        for (kept, names) in [(Set(0..<2), ["t", "v"]), (Set(3..<6), ["v"])] {
            let plan = OfflinePlan(
                [Self.variant("v")],
                lists: [
                    Self.url("v"): try Self.list("v", Self.six, keeps: kept), Self.url("t"): text,
                ])
            #expect(Self.names(plan) == names && plan.missing(at: Self.url("t")).isEmpty)
        }
    }

    @Test(arguments: [
        // I-frames as long as the segments of the video, and images of twelve seconds.
        ([0, 1, 2, 3, 4, 5], ["i", "j", "v"]), ([3, 4, 5], ["i", "j", "v"]),
        ([0, 1, 2, 3], ["i", "j", "v"]),
        // Behind a hole, and from within an image, images would be late.
        ([1, 2, 4, 5], ["i", "v"]), ([4, 5], ["i", "v"]),
    ])
    func `I-frames and images that cover what is played are listed, cut to it`(
        _ video: [Int], _ names: [String]
    ) throws {
        let plan = OfflinePlan(
            [Self.variant("v")],
            lists: [Self.url("v"): try Self.list("v", Self.six, keeps: Set(video))],
            stills: [
                Self.url("i"): try Self.list("i", Self.six, keeps: Set(0..<6)),
                Self.url("j"): try Self.list("j", [12, 12], keeps: [0, 1]),
                // Those that are stored in part are left out, and cut nothing.
                Self.url("k"): try Self.list("k", Self.six, keeps: [5]),
            ])
        #expect(Self.names(plan) == names)
        #expect(plan.missing(at: Self.url("i")).count == 6 - video.count)
        #expect(plan.missing(at: Self.url("v")).count == 6 - video.count)
        let isLate = video.first == 3
        #expect(!names.contains("j") || plan.missing(at: Self.url("j")).count == (isLate ? 1 : 0))
    }

    @Test func `I-frames alone do not play`() throws {
        let plan = OfflinePlan(
            [Self.variant("v")],
            lists: [Self.url("v"): try Self.list("v", Self.six, keeps: [])],
            stills: [Self.url("i"): try Self.list("i", Self.six, keeps: Set(0..<6))])
        #expect(plan.isEmpty && Self.names(plan) == [])
    }

    @Test func `the start of a title is the same point of what is played, or none`() throws {
        let plan = OfflinePlan(
            [Self.variant("v")],
            lists: [Self.url("v"): try Self.list("v", Self.six, keeps: [2, 3, 5])])
        #expect(plan.movedStart(.seconds(14.5)) == .seconds(6.5))
        #expect(plan.movedStart(.seconds(-1)) == .seconds(-1))
        #expect(plan.movedStart(.seconds(-10)) == .seconds(-6))
        for seconds in [0, 7, 17, 99, -99, -17] {
            #expect(plan.movedStart(.seconds(seconds)) == nil)
        }
        #expect(OfflinePlan([], lists: [:]).movedStart(.seconds(7)) == .seconds(7))
    }

    @Test func `live windows fetched at different times are aligned by number`() throws {
        let plan = OfflinePlan(
            [Self.variant("v", sound: ["s"])],
            lists: [
                Self.url("v"): try Self.list(
                    "v", Self.six, keeps: Set(12..<16), first: 10, isLive: true),
                Self.url("s"): try Self.list(
                    "s", Self.six, keeps: Set(12..<18), first: 12, isLive: true),
            ])
        #expect(plan.stretches.ranges == [8..<24])
        #expect(plan.missing(at: Self.url("v")).count == 2)
        #expect(plan.missing(at: Self.url("s")).count == 2)
    }

    @Test(arguments: [(true, false), (false, true), (false, false)])
    func `windows of a stream that has ended since are aligned by number`(
        _ isVideoLive: Bool, _ isAudioLive: Bool
    ) throws {
        let plan = OfflinePlan(
            [Self.variant("v", sound: ["s"])],
            lists: [
                Self.url("v"): try Self.list(
                    "v", Self.six, keeps: Set(100..<106), first: 100, isLive: isVideoLive,
                    wasLive: true),
                Self.url("s"): try Self.list(
                    "s", Self.six, keeps: Set(101..<107), first: 101, isLive: isAudioLive,
                    wasLive: true),
            ])
        #expect(plan.stretches.ranges == [4..<24])
        #expect(plan.missing(at: Self.url("v")).count == 1)
        #expect(plan.missing(at: Self.url("s")).count == 1)
    }

    /// The plan of two variants: one left five minutes ago, one played last.
    private static func planOfSwitch(keeps: Set<Int>, isLive: Bool = true) throws -> OfflinePlan {
        OfflinePlan(
            [variant("former"), variant("latest")],
            lists: [
                url("former"): try list(
                    "former", six, keeps: Set(50..<56), first: 50, isLive: isLive, wasLive: true,
                    received: 1_000),
                url("latest"): try list(
                    "latest", six, keeps: keeps, first: 100, isLive: isLive, wasLive: true,
                    received: 1_300),
            ])
    }

    @Test(arguments: [true, false])
    func `a variant that was left minutes ago is played only if nothing later is kept`(
        _ isLive: Bool
    ) throws {
        let whole = try Self.planOfSwitch(keeps: Set(100..<106), isLive: isLive)
        #expect(Self.names(whole) == ["latest"] && whole.stretches.ranges == [0..<24])
        let holed = try Self.planOfSwitch(keeps: [103, 104, 105], isLive: isLive)
        #expect(Self.names(holed) == ["latest"] && holed.stretches.ranges == [12..<24])
        let nothing = try Self.planOfSwitch(keeps: [], isLive: isLive)
        #expect(Self.names(nothing) == ["former"] && nothing.stretches.ranges == [0..<24])
    }

    @Test func `live lists received together play together, whatever their numbers`() throws {
        let plan = OfflinePlan(
            [Self.variant("v", sound: ["s"])],
            lists: [
                Self.url("v"): try Self.list(
                    "v", Self.six, keeps: Set(100..<106), first: 100, isLive: true, received: 1_000),
                Self.url("s"): try Self.list(
                    "s", Self.six, keeps: Set(9_000..<9_006), first: 9_000, isLive: true,
                    received: 1_004),
                // It has no numbers of the stream.
                Self.url("t"): try Self.list("t", [24], keeps: [0]),
            ])
        #expect(Self.names(plan) == ["s", "t", "v"] && plan.stretches.ranges == [0..<24])
    }

    @Test func `audio with its own numbers plays although it was received half a window later`()
        throws
    {
        let three = [Double](repeating: 4, count: 3)
        let plan = OfflinePlan(
            [Self.variant("v", sound: ["s"])],
            lists: [
                Self.url("v"): try Self.list(
                    "v", three, keeps: Set(100..<103), first: 100, isLive: true, received: 1_000),
                Self.url("s"): try Self.list(
                    "s", three, keeps: Set(9_000..<9_003), first: 9_000, isLive: true,
                    received: 1_007),
            ])
        #expect(Self.names(plan) == ["s", "v"] && plan.stretches.ranges == [0..<12])
        for name in ["v", "s"] { #expect(plan.missing(at: Self.url(name)).isEmpty) }
    }

    @Test(arguments: [
        // Of one numbering: 50 and 10 segments of four seconds earlier.
        (50, 800.0), (90, 960.0),
        // Of its own numbering, four windows earlier.
        (9_000, 900.0),
    ])
    func `audio of another time of the stream is not played with the video`(
        _ first: Int, _ received: Double
    ) throws {
        let plan = OfflinePlan(
            [Self.variant("v", sound: ["s"])],
            lists: [
                Self.url("v"): try Self.list(
                    "v", Self.six, keeps: Set(100..<106), first: 100, isLive: true, received: 1_000),
                Self.url("s"): try Self.list(
                    "s", Self.six, keeps: Set(first..<(first + 6)), first: first, isLive: true,
                    received: received),
            ])
        #expect(plan.isEmpty && Self.names(plan) == [])
    }

    @Test func `a variant of another time is not listed beside audio with its own numbers`() throws
    {
        let plan = OfflinePlan(
            [Self.variant("w", sound: ["s"]), Self.variant("v", sound: ["s"])],
            lists: [
                Self.url("w"): try Self.list(
                    "w", Self.six, keeps: Set(50..<56), first: 50, isLive: true, received: 800),
                Self.url("v"): try Self.list(
                    "v", Self.six, keeps: Set(100..<106), first: 100, isLive: true, received: 1_000),
                Self.url("s"): try Self.list(
                    "s", Self.six, keeps: Set(9_000..<9_006), first: 9_000, isLive: true,
                    received: 1_020),
            ])
        #expect(Self.names(plan) == ["s", "v"] && plan.stretches.ranges == [0..<24])
    }

    /// The plan of a list of segments of four seconds from number 100 on.
    private static func plan(
        without missing: Set<Int>, of durations: [Double] = [Double](repeating: 4, count: 10),
        isLive: Bool = true
    ) throws -> OfflinePlan {
        let numbers = Set(100..<(100 + durations.count))
        let list = try Self.list(
            "v", durations, keeps: numbers.subtracting(missing), first: 100, isLive: isLive)
        return OfflinePlan(only: list, at: url("v"))
    }

    @Test func `of a live list with holes only the longest stretch is played`() throws {
        let live = try Self.plan(without: [103, 108])
        #expect(live.stretches.ranges == [16..<32])
        #expect(live.missing(at: Self.url("v")).count == 6)
        let ended = try Self.plan(without: [103, 108], isLive: false)
        #expect(ended.stretches.ranges.count == 3)
        #expect(ended.missing(at: Self.url("v")).count == 2)
        // The last of equally long ones is nearest to the live edge.
        #expect(try Self.plan(without: [103, 107]).stretches.ranges == [16..<28])
    }

    @Test func `a hole in a live list counts, however short it is`() throws {
        let odd = [4, 4, 0.05, 4, 4, 4]
        let live = try Self.plan(without: [102], of: odd)
        #expect(live.missing(at: Self.url("v")).count == 3)
        let ended = try Self.plan(without: [102], of: odd, isLive: false)
        #expect(ended.missing(at: Self.url("v")).count == 1)
    }

    @Test func `live video and audio play the same stretch`() throws {
        let ten = [Double](repeating: 4, count: 10)
        let plan = OfflinePlan(
            [Self.variant("w"), Self.variant("v", sound: ["s"])],
            lists: [
                // It has more segments, but no stretch as long.
                Self.url("w"): try Self.list(
                    "w", ten, keeps: [0, 1, 2, 4, 5, 6, 8, 9], isLive: true),
                Self.url("v"): try Self.list(
                    "v", ten, keeps: [2, 3, 4, 5, 6, 7, 9], isLive: true),
                Self.url("s"): try Self.list("s", ten, keeps: [0, 2, 3, 4, 5, 7], isLive: true),
            ])
        #expect(plan.stretches.ranges == [8..<24] && Self.names(plan) == ["s", "v"])
        for name in ["v", "s"] { #expect(plan.missing(at: Self.url(name)).count == 6) }
    }

    @Test func `segments of a shortened live list keep numbers, dates and keys`() throws {
        let segments = (100...105).map { number in
            (number == 101 ? "#EXT-X-DISCONTINUITY\n" : "") + "#EXTINF:6,\n\(number)\n"
        }.joined()
        let key = "#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n"
        let head = "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXT-X-MEDIA-SEQUENCE:"
        let dated = "#EXT-X-PROGRAM-DATE-TIME:2031-05-06T07:08:"
        let numbers = "100\n#EXT-X-DISCONTINUITY-SEQUENCE:7\n"
        let text = head + numbers + "\(key)\(dated)00Z\n" + segments
        let list = try Corpus.list(Array(text.utf8))
        let kept = OfflineList(list) { $0.tag != .inf || $0.mediaSequence != 102 }
        let plan = OfflinePlan(only: kept, at: Self.url("v"))
        let made = OfflinePlaylist.cut(list, missing: plan.missing(at: Self.url("v"))).bytes
        #expect(
            String(decoding: made, as: UTF8.self)
                == head + "103\n#EXT-X-DISCONTINUITY-SEQUENCE:8\n\(key)\(dated)18.000Z\n"
                + "#EXTINF:6,\n103\n#EXTINF:6,\n104\n#EXTINF:6,\n105\n#EXT-X-ENDLIST\n")
    }

    @Test(arguments: [
        ("#EXT-X-MAP:URI=\"i\"\n", "k"), ("#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n", "k"),
        // Keys that no request gets.
        ("#EXT-X-KEY:METHOD=AES-128,URI=\"data:;base64,MDEyMzQ1Njc4OWFiY2RlZg==\"\n", "k"),
        (
            "#EXT-X-KEY:METHOD=SAMPLE-AES,KEYFORMAT=\"com.apple.streamingkeydelivery\","
                + "URI=\"skd://k\"\n", "k"
        ),
        ("", "other"),
    ])
    func `segments with another section, key or codec are not borrowed`(
        _ tags: String, _ kin: String
    ) throws {
        let plan = OfflinePlan(
            [Self.variant("a", kin: "k"), Self.variant("b", kin: kin)],
            lists: [
                Self.url("a"): try Self.list("a", Self.six, keeps: [0, 1], tags: tags),
                Self.url("b"): try Self.list("b", Self.six, keeps: [2, 3, 4, 5], tags: tags),
            ])
        #expect(plan.borrowed.isEmpty && Self.names(plan) == ["b"])
        #expect(plan.stretches.ranges == [8..<24])
    }

    @Test func `segments with other times are not borrowed`() throws {
        let other = [4, 4, 4.2, 3.8, 4, 4]
        let plan = OfflinePlan(
            [Self.variant("a", kin: "k"), Self.variant("b", kin: "k")],
            lists: [
                Self.url("a"): try Self.list("a", Self.six, keeps: [0, 1, 4, 5]),
                Self.url("b"): try Self.list("b", other, keeps: [2, 3]),
            ])
        #expect(plan.borrowed.isEmpty && plan.stretches.ranges == [0..<8, 16..<24])
    }

    @Test(arguments: [0, 1e-9, 1e18, 1e300, .greatestFiniteMagnitude])
    func `absurd durations do no harm`(_ seconds: Double) throws {
        let odd = [4, seconds, 4, seconds, seconds, 4]
        let lists = [
            Self.url("v"): try Self.list("v", odd, keeps: [0, 1, 3, 5], first: 7, isLive: true),
            Self.url("s"): try Self.list("s", odd.reversed(), keeps: [7, 9], isLive: true),
        ]
        for sound in [["s"], []] {
            let plan = OfflinePlan([Self.variant("v", sound: sound, kin: "k")], lists: lists)
            for name in ["v", "s"] { #expect(plan.missing(at: Self.url(name)).count <= 6) }
        }
    }

    @Test func `variants have their audio renditions and their encoding group`() throws {
        let text = """
            #EXTM3U
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="in",NAME="a"
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="out",NAME="a",URI="s1"
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="out",NAME="b",URI="s2"
            #EXT-X-STREAM-INF:BANDWIDTH=1,CODECS="mp4a.40.2, avc1.4d400c",AUDIO="out"
            v1
            #EXT-X-STREAM-INF:BANDWIDTH=2,CODECS="avc1.4d401f,mp4a.40.2",AUDIO="out"
            v2
            #EXT-X-STREAM-INF:BANDWIDTH=2,AUDIO="in"
            v3

            """
        let list = try Playlist(Array(text.utf8), base: Corpus.base)
        let variants = MultivariantFilter.variants(try #require(list.multivariant))
        #expect(
            variants.map { $0.sound.map(\.lastPathSegment) } == [["s1", "s2"], ["s1", "s2"], []])
        #expect(
            variants[0].encodingGroup != nil
                && variants[0].encodingGroup == variants[1].encodingGroup)
        #expect(variants[2].encodingGroup == nil)
    }
}
