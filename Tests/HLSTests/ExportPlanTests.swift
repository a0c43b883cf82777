import HLS
import Testing
import URISyntax

/// What an export has of each playlist of a title.
@Suite struct ExportPlanTests {
    private typealias Plans = OfflinePlanTests

    /// A plan of lists of six segments of 4 s, of which those with the given numbers are stored.
    private static func plan(
        _ variants: [OfflinePlan.Variant], _ kept: [String: Set<Int>], tags: String = "",
        isLive: Bool = false
    ) throws -> ExportPlan {
        var lists: [AbsoluteURL: OfflineList] = [:]
        for (name, numbers) in kept {
            lists[Plans.url(name)] = try Plans.list(
                name, Plans.six, keeps: numbers, tags: tags, isLive: isLive)
        }
        return ExportPlan(variants, lists: lists, subtitles: [])
    }

    private static let pair = [Plans.variant("v", sound: ["s"])]

    @Test(arguments: ["", "#EXT-X-MAP:URI=\"i.mp4\"\n"], [false, true])
    func `a hole in the video is left out of the audio too, and only that`(
        _ tags: String, _ isLive: Bool
    ) throws {
        let plan = try Self.plan(
            Self.pair, ["v": [0, 1, 3, 4, 5], "s": Set(0..<6)], tags: tags, isLive: isLive)
        let missing = plan.missing(at: Plans.url("v"))
        #expect(missing.count == 1 && plan.missing(at: Plans.url("s")) == missing)
        #expect(plan.lists(Plans.url("v")) && plan.lists(Plans.url("s")))
    }

    @Test func `the start is the same point of what is exported, or none`() throws {
        // A hole in common, another one in the audio with little in common, and no hole.
        for sound in [Set(0..<6), [0, 5]] {
            let plan = try Self.plan(Self.pair, ["v": [0, 2, 3, 4, 5], "s": sound])
            #expect(plan.movedStart(.seconds(9)) == .seconds(5))
            #expect(plan.movedStart(.seconds(5)) == nil)
        }
        let whole = try Self.plan(Self.pair, ["v": Set(0..<6), "s": Set(0..<6)])
        #expect(whole.movedStart(.seconds(5)) == .seconds(5))
    }

    @Test func `a hole in the audio is left out of whole video too`() throws {
        let plan = try Self.plan(Self.pair, ["v": Set(0..<6), "s": [0, 1, 2, 5]])
        let missing = plan.missing(at: Plans.url("v"))
        #expect(missing.count == 2 && plan.missing(at: Plans.url("s")) == missing)
    }

    @Test func `of whole playlists nothing is left out, whatever their lengths`() throws {
        let plan = ExportPlan(
            Self.pair,
            lists: [
                Plans.url("v"): try Plans.list("v", [4, 4, 0], keeps: Set(0..<3)),
                Plans.url("s"): try Plans.list("s", [4, 4, 4], keeps: Set(0..<3)),
                Plans.url("t"): try Plans.list("t", [12], keeps: []),
            ], subtitles: [])
        #expect(plan.lists(Plans.url("v")) && plan.lists(Plans.url("s")))
        #expect(plan.missing(at: Plans.url("v")).isEmpty)
        #expect(plan.missing(at: Plans.url("s")).isEmpty)
        #expect(!plan.lists(Plans.url("t")))
    }

    @Test func `a variant with holes is left out beside a whole one`() throws {
        let plan = try Self.plan(
            Self.pair + [Plans.variant("w", sound: ["s"])],
            ["v": [0, 1, 3], "w": Set(0..<6), "s": Set(0..<6)])
        #expect(!plan.lists(Plans.url("v")))
        #expect(plan.lists(Plans.url("w")) && plan.missing(at: Plans.url("w")).isEmpty)
    }

    @Test func `whole video of which no audio is stored is exported without it`() throws {
        let plan = try Self.plan(Self.pair, ["v": Set(0..<6)])
        #expect(plan.lists(Plans.url("v")) && plan.missing(at: Plans.url("v")).isEmpty)
    }

    @Test func `whole video is not cut to a little of its audio`() throws {
        let plan = try Self.plan(Self.pair, ["v": Set(0..<6), "s": [0, 1]])
        #expect(plan.lists(Plans.url("v")) && plan.missing(at: Plans.url("v")).isEmpty)
        #expect(!plan.lists(Plans.url("s")))
    }

    @Test(arguments: [[0, 5], [5]])
    func `playlists with little or nothing in common keep all that is stored of each`(
        _ sound: [Int]
    ) throws {
        let plan = try Self.plan(Self.pair, ["v": [0, 1, 2, 3, 4], "s": Set(sound)])
        #expect(plan.lists(Plans.url("v")) && plan.missing(at: Plans.url("v")).count == 1)
        #expect(plan.lists(Plans.url("s")))
        #expect(plan.missing(at: Plans.url("s")).count == 6 - sound.count)
    }

    @Test func `beside the fullest variant no other is exported with other holes`() throws {
        let kept: [String: Set<Int>] = [
            "w": [0, 1], "v": [0, 1, 2, 3, 4], "s": [5], "b": [0, 1], "t": Set(0..<6),
        ]
        var lists: [AbsoluteURL: OfflineList] = [:]
        for (name, numbers) in kept {
            lists[Plans.url(name)] = try Plans.list(name, Plans.six, keeps: numbers)
        }
        let plan = ExportPlan(
            ["w", "v"].map { Plans.variant($0, sound: ["s"]) }, lists: lists,
            subtitles: [Plans.url("t")])
        // No other picture either.
        #expect(!plan.lists(Plans.url("w")) && !plan.lists(Plans.url("b")))
        for (name, count) in [("v", 1), ("s", 5), ("t", 0)] {
            #expect(plan.lists(Plans.url(name)))
            #expect(plan.missing(at: Plans.url(name)).count == count)
        }
    }

    @Test(arguments: [5, 6], [["s"], []])
    func `of live playlists of different times the latest are exported, and no others`(
        _ formerCount: Int, _ sound: [String]
    ) throws {
        var lists = [
            Plans.url("v"): try Plans.list(
                "v", Plans.six, keeps: Set(50..<(50 + formerCount)), first: 50, isLive: true,
                received: 1_000),
            Plans.url("w"): try Plans.list(
                "w", Plans.six, keeps: [203], first: 200, isLive: true, received: 2_000),
        ]
        for name in sound {
            lists[Plans.url(name)] = try Plans.list(
                name, Plans.six, keeps: [203], first: 200, isLive: true, received: 2_000)
        }
        let plan = ExportPlan(
            ["v", "w"].map { Plans.variant($0, sound: sound) }, lists: lists, subtitles: [])
        #expect(!plan.lists(Plans.url("v")))
        for name in ["w"] + sound {
            #expect(plan.lists(Plans.url(name)) && plan.missing(at: Plans.url(name)).count == 5)
        }
    }

    @Test(arguments: [["s"], []])
    func `a stream that has ended and is whole is exported, whatever is seen later`(
        _ sound: [String]
    ) throws {
        var lists = [
            Plans.url("w"): try Plans.list(
                "w", Plans.six, keeps: [203], first: 200, isLive: true, received: 2_000)
        ]
        for name in ["v"] + sound {
            lists[Plans.url(name)] = try Plans.list(
                name, Plans.six, keeps: Set(50..<56), first: 50, wasLive: true, received: 1_000)
        }
        let plan = ExportPlan(
            ["v", "w"].map { Plans.variant($0, sound: sound) }, lists: lists, subtitles: [])
        #expect(!plan.lists(Plans.url("w")))
        for name in ["v"] + sound {
            #expect(plan.lists(Plans.url(name)) && plan.missing(at: Plans.url(name)).isEmpty)
        }
    }

    /// The variants of a title whose audio is a variant stream too.
    private static func variantsWithSoundAlone(
        _ codecs: String
    ) throws -> [OfflinePlan.Variant] {
        let text = """
            #EXTM3U
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="g",NAME="a",URI="s"
            #EXT-X-STREAM-INF:BANDWIDTH=2,CODECS="avc1.4d401f,mp4a.40.2",AUDIO="g"
            v
            #EXT-X-STREAM-INF:BANDWIDTH=1,\(codecs)AUDIO="g"
            s

            """
        let list = try Playlist(Array(text.utf8), base: Plans.url("m"))
        return MultivariantFilter.variants(try #require(list.multivariant))
    }

    @Test(arguments: [
        ([0, 1, 2, 3], [0, 1, 2, 3, 4]), ([0, 1, 3, 4, 5], [0, 1, 2, 3, 4, 5]),
    ])
    func `a variant of sound alone does not displace the picture`(
        _ video: [Int], _ sound: [Int]
    ) throws {
        for codecs in ["", "CODECS=\"mp4a.40.2\","] {
            let plan = try Self.plan(
                Self.variantsWithSoundAlone(codecs), ["v": Set(video), "s": Set(sound)])
            for name in ["v", "s"] {
                #expect(plan.lists(Plans.url(name)))
                #expect(plan.missing(at: Plans.url(name)).count == 6 - video.count)
            }
        }
    }

    @Test func `a little of the picture does not shorten a variant of sound alone`() throws {
        let variants = try Self.variantsWithSoundAlone("")
        let plan = try Self.plan(variants, ["v": [0], "s": Set(0..<6)])
        #expect(!plan.lists(Plans.url("v")))
        #expect(plan.lists(Plans.url("s")) && plan.missing(at: Plans.url("s")).isEmpty)
        let silent = try Self.plan(variants, ["s": [0, 1]])
        #expect(silent.lists(Plans.url("s")) && !silent.lists(Plans.url("v")))
    }

    @Test(arguments: [([0], true), ([0, 1, 3, 4], false), ([0, 1, 2, 3, 4], false)])
    func `whole sound displaces a glimpse of the picture, and is cut with most of it`(
        _ video: [Int], _ isGlimpse: Bool
    ) throws {
        let variants = [Plans.variant("v"), Plans.variant("a", isSoundOnly: true)]
        let plan = try Self.plan(variants, ["v": Set(video), "a": Set(0..<6)])
        #expect(plan.lists(Plans.url("v")) == !isGlimpse)
        #expect(plan.lists(Plans.url("a")))
        for name in ["v", "a"] {
            #expect(
                plan.missing(at: Plans.url(name)).count == (isGlimpse ? 0 : 6 - video.count))
        }
        // A part of the sound was not ordered.
        let part = try Self.plan(variants, ["v": Set(video), "a": Set(0..<5)])
        #expect(part.lists(Plans.url("v")))
        #expect(part.missing(at: Plans.url("v")).count == 6 - video.count)
    }

    @Test(arguments: [
        ("CODECS=\"avc1.4d401f, mp4a.40.2\",", false), ("RESOLUTION=640x360,", false),
        ("CODECS=\"xyz1\",", false), ("CODECS=\" EC-3 ,wvtt\",", true), ("CODECS=\"\",", true),
    ])
    func `codecs tell whether a variant has pictures, otherwise its playlist`(
        _ attributes: String, _ isSoundOnly: Bool
    ) throws {
        let variants = try Self.variantsWithSoundAlone(attributes)
        #expect(variants.map(\.isSoundOnly) == [false, isSoundOnly])
    }

    @Test(arguments: [
        // Of one segment, of segments across the hole, and with some that lie in it.
        ([0, 1, 3, 4, 5], [24.0], [0], 0), ([0, 1, 3, 4, 5], [8.0, 8, 8], [0, 1, 2], 0),
        ([0, 4, 5], [6.0, 5, 5, 8], [0, 1, 2, 3], 2), ([0, 4, 5], [6.0, 5, 5, 8], [0, 3], 2),
    ])
    func `complete subtitles with longer segments are exported across a hole`(
        _ video: [Int], _ seconds: [Double], _ text: [Int], _ missingCount: Int
    ) throws {
        let plan = ExportPlan(
            [Plans.variant("v")],
            lists: [
                Plans.url("v"): try Plans.list("v", Plans.six, keeps: Set(video)),
                Plans.url("t"): try Plans.list("t", seconds, keeps: Set(text)),
            ], subtitles: [Plans.url("t")])
        #expect(plan.missing(at: Plans.url("v")).count == 6 - video.count)
        #expect(plan.lists(Plans.url("t")))
        #expect(plan.missing(at: Plans.url("t")).count == missingCount)
        #expect(!plan.pieces(at: Plans.url("t")).isEmpty)
    }

    @Test func `subtitles and other audio that lack a part beside the hole are left out`() throws {
        let plan = ExportPlan(
            [Plans.variant("v", sound: ["s", "u"])],
            lists: [
                Plans.url("v"): try Plans.list("v", Plans.six, keeps: [0, 1, 3, 4, 5]),
                Plans.url("s"): try Plans.list("s", Plans.six, keeps: Set(0..<6)),
                // Audio is not shifted against the picture.
                Plans.url("u"): try Plans.list("u", [12, 12], keeps: [0, 1]),
                Plans.url("t"): try Plans.list("t", [8, 8, 8], keeps: [0, 2]),
            ], subtitles: [Plans.url("t")])
        #expect(plan.lists(Plans.url("v")) && plan.lists(Plans.url("s")))
        #expect(!plan.lists(Plans.url("u")) && !plan.lists(Plans.url("t")))
    }

    @Test func `sound alone and another picture are not exported uncut across a hole`() throws {
        let plan = ExportPlan(
            // The other picture is a rendition.
            [Plans.variant("v"), Plans.variant("a", isSoundOnly: true)],
            lists: [
                Plans.url("v"): try Plans.list("v", Plans.six, keeps: [0, 1, 3, 4, 5]),
                Plans.url("a"): try Plans.list("a", [12, 12, 6], keeps: [0, 1]),
                Plans.url("b"): try Plans.list("b", [12, 12], keeps: [0, 1]),
            ], subtitles: [])
        #expect(plan.lists(Plans.url("v")) && plan.missing(at: Plans.url("v")).count == 1)
        #expect(!plan.lists(Plans.url("a")) && !plan.lists(Plans.url("b")))
    }

    @Test func `of the renditions only subtitles may be listed across a hole`() throws {
        let text = """
            #EXTM3U
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="g",NAME="s",URI="s"
            #EXT-X-MEDIA:TYPE=VIDEO,GROUP-ID="g",NAME="b",URI="b"
            #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="g",NAME="t",URI="t"
            #EXT-X-STREAM-INF:BANDWIDTH=2,AUDIO="g",VIDEO="g",SUBTITLES="g"
            v

            """
        let list = try Playlist(Array(text.utf8), base: Plans.url("m"))
        let subtitles = MultivariantFilter.subtitles(try #require(list.multivariant))
        #expect(subtitles.map(\.lastPathSegment) == ["t"])
    }

    @Test func `another language with the segments of the chosen one is exported with it`() throws {
        let audio = [Double](repeating: 4, count: 9)
        let plan = ExportPlan(
            [Plans.variant("v", sound: ["s", "t"])],
            lists: [
                Plans.url("v"): try Plans.list(
                    "v", [Double](repeating: 6, count: 6), keeps: [0, 1, 2, 4, 5]),
                Plans.url("s"): try Plans.list("s", audio, keeps: Set(0..<9)),
                Plans.url("t"): try Plans.list("t", audio, keeps: Set(0..<9)),
            ], subtitles: [])
        for name in ["s", "t"] {
            #expect(plan.lists(Plans.url(name)) && plan.missing(at: Plans.url(name)).count == 2)
        }
    }

    @Test func `video borrows what another variant of its kind has`() throws {
        let plan = try Self.plan(
            ["v", "w"].map { Plans.variant($0, kin: "k") }, ["v": [0, 1, 2, 3], "w": [4, 5]])
        #expect(plan.lists(Plans.url("v")) && plan.missing(at: Plans.url("v")).isEmpty)
        #expect(
            Set(plan.borrowed(at: Plans.url("v")).values.map(\.lastPathSegment)) == ["w4", "w5"])
    }
}
