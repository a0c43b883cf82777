import DurableState
import HLS
import Testing
import URISyntax

@testable import Library

/// Orders for titles, their choices and plans, without a daemon.
@Suite struct DownloadOrderTests {
    @Test(arguments: [("90", 90.0), ("1:30", 90), ("1:02:03", 3_723), ("0.5", 0.5)])
    func `times are parsed as people write them`(text: String, seconds: Double) {
        #expect(DownloadOrder.time(text) == seconds)
    }

    @Test(arguments: ["", "x", "-1", "1:2:3:4", "1:", "+5"])
    func `other text is not a time`(text: String) {
        #expect(DownloadOrder.time(text) == nil)
    }

    @Test func `an order is restored as it was stored`() throws {
        var order = DownloadOrder(url: try AbsoluteURL("http://h/a.m3u8?x=1"))
        for (name, value) in [
            ("variant", "720"), ("audio", "en"), ("subtitles", "all"), ("from", "1:00"),
            ("rate", "5000"),
        ] {
            #expect(order.set(name, value) == nil)
        }
        #expect(DownloadOrder(order.record) == order)
        #expect(order.set("audio", "en, de,EN,pt-BR") == nil)
        #expect(order.set("variant", "720p,360,720") == nil)
        #expect(order.record.audio == "en,de,pt-BR" && order.record.variant == "720,360")
        #expect(DownloadOrder(order.record) == order)
    }

    /// A list of so many members; with `padding`, of longer ones.
    private static func list(_ prefix: String, of count: Int, padding: Int = 0) -> String {
        let tail = String(repeating: "x", count: padding)
        return (1...count).map { "\(prefix)\($0)\(tail)" }.joined(separator: ",")
    }

    @Test(
        arguments: [
            ("audio", "en,"), ("audio", ",en"), ("audio", "en,none"), ("subtitles", "all,en"),
            ("subtitles", "default,de"), ("variant", "best,720"), ("variant", "720,"),
            ("variant", "720,x"), ("variant", list("", of: 33)),
            ("audio", list("l", of: 33)), ("audio", list("l", of: 5, padding: 60)),
        ] as [(String, String)])
    func `a list with a faulty member, or too long, changes nothing`(
        name: String, value: String
    ) throws {
        var order = DownloadOrder(url: try AbsoluteURL("http://h/a.m3u8"))
        let former = order
        #expect(order.set(name, value) != nil)
        #expect(order == former)
    }
}

@Suite struct DownloadPartTests {
    @Test(arguments: [Int64.min, 0, 1, 4 << 20, 1 << 53, .max])
    func `parts of a file of any length cover it without gaps`(total: Int64) throws {
        var plan = DownloadPlan()
        plan.addParts(of: try AbsoluteURL("http://h/a"), total: total)
        #expect(plan.pieces.first?.range?.lowerBound == 0)
        #expect(plan.pieces.last?.range?.upperBound == max(0, total))
        #expect(plan.pieces.count <= DownloadPlan.mostParts + 1)
    }
}

@Suite struct DownloadPlanTests {
    private func plan(
        _ lines: [String], bandwidth: Int? = nil, from: Double? = nil, to: Double? = nil
    ) throws -> DownloadPlan {
        let text = (["#EXTM3U", "#EXT-X-TARGETDURATION:10"] + lines + ["#EXT-X-ENDLIST", ""])
            .joined(separator: "\n")
        let list = try Playlist(Array(text.utf8), base: try AbsoluteURL("http://h/l.m3u8"))
        var plan = DownloadPlan()
        plan.add(
            try #require(list.media), label: "", bandwidth: bandwidth, from: from, to: to)
        return plan
    }

    private static let ranges = [
        "#EXTINF:10,", "#EXT-X-BYTERANGE:300@0", "a.mp4", "#EXTINF:10,",
        "#EXT-X-BYTERANGE:500@300", "a.mp4",
    ]

    @Test func `byte ranges have an exact size`() throws {
        let found = try plan(Self.ranges)
        #expect(found.expectedTotal() == 800 && found.isExact)
        #expect(try plan(Self.ranges, bandwidth: 8_000, from: 10).expectedTotal() == 500)
    }

    @Test func `other segments have an estimated size, until their lengths are known`() throws {
        let segments = ["#EXTINF:10,", "0.ts", "#EXTINF:4,", "1.ts"]
        let found = try plan(["#EXT-X-KEY:METHOD=AES-128,URI=\"k\""] + segments, bandwidth: 8_000)
        #expect(found.expectedTotal() == 14_000 && !found.isExact)
        #expect(found.expectedTotal(knowing: [0: 16, 1: 9_000, 7: 1]) == 13_016)
        let unknown = try plan(Self.ranges + segments)
        #expect(unknown.expectedTotal() == nil)
        #expect(unknown.expectedTotal(knowing: [0: 300, 2: 9_000]) == nil)
        #expect(unknown.expectedTotal(knowing: [2: 9_000, 3: 4_000]) == 13_800)
    }

    @Test func `a size is bounded`() throws {
        let long = (0..<9).flatMap { ["#EXTINF:500000000,", "\($0).ts"] }
        let largest = 1 << 53 - 1
        let found = try plan(long, bandwidth: largest)
        #expect(found.expectedTotal() == Int64(largest))
        #expect(found.expectedTotal(knowing: [0: .min]) == 0)
        #expect(found.expectedTotal(knowing: [0: .max]) == Int64(largest))
    }

    @Test func `the size of a file is unknown until its length is`() throws {
        let url = try AbsoluteURL("http://h/film.mp4")
        var plan = DownloadPlan()
        plan.addFirstPart(of: url)
        #expect(plan.expectedTotal(knowing: [0: DownloadPlan.part]) == nil)
        plan.addParts(of: url, total: 9_000_000)
        #expect(plan.expectedTotal() == 9_000_000 && plan.isExact)
    }

    @Test func `gaps take their time in a part of a title`() throws {
        let lines = (0..<10).flatMap { number in
            ["#EXTINF:10,"] + (number < 5 ? ["#EXT-X-GAP"] : []) + ["\(number).ts"]
        }
        let found = try plan(lines, from: 50, to: 70)
        #expect(found.pieces.map(\.url.lastPathSegment) == ["5.ts", "6.ts"])
        #expect(try plan(lines, from: 20, to: 30).pieces.isEmpty)
    }

    /// RFC 8216bis section 4.4.4.5.
    @Test func `a part of a title has the key that decrypts its initialization section`() throws {
        func key(_ name: String) -> String { "#EXT-X-KEY:METHOD=AES-128,URI=\"\(name)\",IV=0x01" }
        let media = (0..<4).flatMap { ["#EXTINF:10,", "\($0).mp4"] }
        let lines = [key("k1"), "#EXT-X-MAP:URI=\"i.mp4\"", key("k2")] + media
        let found = try plan(lines, from: 20, to: 30)
        #expect(found.pieces.map(\.url.lastPathSegment) == ["k2", "k1", "i.mp4", "2.mp4"])
        let clear = try plan(["#EXT-X-KEY:METHOD=NONE", "#EXT-X-MAP:URI=\"i\"", key("k")] + media)
        #expect(clear.pieces.map(\.url.lastPathSegment).prefix(2) == ["k", "i"])
    }

    @Test func `a part of a title has the key in force before that of a key system`() throws {
        let keys = ["", ",KEYFORMAT=\"com.widevine\""].enumerated().map {
            "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"k\($0.offset)\"" + $0.element
        }
        let media = (0..<6).map { ["#EXTINF:10,", "\($0).ts"] }
        let once = keys + media.joined()
        #expect(names(try plan(once, from: 20, to: 30)) == ["k0", "2.ts"])
        // The key returns behind clear segments, and the first segment behind it is a gap.
        let clear = ["#EXT-X-KEY:METHOD=NONE,URI=\"none\""] + media[1]
        let gap = ["#EXT-X-GAP"] + media[2]
        let again = [keys, media[0], clear, keys, gap, media[3]].flatMap { $0 }
        #expect(names(try plan(again, from: 10, to: 20)) == ["1.ts"])
        #expect(names(try plan(again, from: 20)) == ["k0", "3.ts"])
    }

    private func names(_ plan: DownloadPlan) -> [String] {
        plan.pieces.map(\.url.lastPathSegment)
    }

    /// A segment needs the keys in front of it, not those of all segments with its number: that
    /// would take minutes.
    @Test(.timeLimit(.minutes(1)))
    func `segments of one number are planned at linear cost, each with its keys`() throws {
        let lines = (0..<10_000).flatMap { number in
            [
                "#EXT-X-MEDIA-SEQUENCE:\(10_000 - number)",
                "#EXT-X-KEY:METHOD=AES-128,URI=\"k\(number)\"", "#EXTINF:1,", "\(number).ts",
            ]
        }
        let found = try plan(lines, from: 9_000)
        #expect(found.pieces.count == 2_000)
        #expect(found.pieces.first?.url.lastPathSegment == "k9000")
    }
}

@Suite struct DownloadRulesTests {
    @Test(arguments: [
        ("18:00-23:30", 18 * 60, true), ("18:00-23:30", 23 * 60 + 30, false),
        ("22:00-06:00", 60, true), ("22:00-06:00", 12 * 60, false),
    ])
    func `hours may pass midnight`(text: String, minute: Int, isInside: Bool) throws {
        #expect(try #require(DownloadRules.Hours(text)).contains(minute: minute) == isInside)
    }

    @Test(arguments: ["", "18-23", "18:00", "24:00-01:00", "10:00-10:00", "1:60-2:00"])
    func `malformed hours are rejected`(text: String) {
        #expect(DownloadRules.Hours(text) == nil)
    }
}

@Suite struct DownloadChoiceTests {
    private static let master = """
        #EXTM3U
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="E",LANGUAGE="en-GB",DEFAULT=YES,URI="en.m3u8"
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="F",LANGUAGE="fr",URI="fr.m3u8"
        #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="D",LANGUAGE="de",URI="de.m3u8"
        #EXT-X-STREAM-INF:BANDWIDTH=900000,RESOLUTION=640x360,AUDIO="a",SUBTITLES="s"
        low.m3u8
        #EXT-X-STREAM-INF:BANDWIDTH=800000,RESOLUTION=1280x720,AUDIO="a",SUBTITLES="s"
        high.m3u8

        """

    private func names(_ settings: [(String, String)]) throws -> [String] {
        let base = try AbsoluteURL("http://h/master.m3u8")
        var order = DownloadOrder(url: base)
        for (name, value) in settings { _ = order.set(name, value) }
        let list = try #require(try Playlist(Array(Self.master.utf8), base: base).multivariant)
        return try DownloadChoice(order, list).playlists().map(\.url.lastPathSegment)
    }

    @Test func `resolution has precedence over bandwidth`() throws {
        #expect(try names([]) == ["high.m3u8", "en.m3u8"])
    }

    @Test func `a language also selects its regional variants`() throws {
        #expect(try names([("audio", "en"), ("variant", "360")]) == ["low.m3u8", "en.m3u8"])
    }

    @Test func `the choice of all selects everything exactly once`() throws {
        let settings = [("variant", "all"), ("audio", "all"), ("subtitles", "all")]
        #expect(
            try names(settings)
                == ["low.m3u8", "high.m3u8", "en.m3u8", "fr.m3u8", "de.m3u8"])
    }

    @Test func `renditions add nothing to the bandwidth of their variant`() throws {
        let base = try AbsoluteURL("http://h/master.m3u8")
        let text = Self.master.replacing("=800000,", with: "=800000,AVERAGE-BANDWIDTH=600000,")
        let list = try #require(try Playlist(Array(text.utf8), base: base).multivariant)
        var order = DownloadOrder(url: base)
        #expect(order.set("variant", "all") == nil)
        let chosen = try DownloadChoice(order, list).playlists()
        #expect(chosen.map(\.bandwidth) == [900_000, 600_000, 0])
    }

    @Test func `several heights and languages are selected`() throws {
        let settings = [("variant", "720,360"), ("audio", "fr,en"), ("subtitles", "de")]
        #expect(
            try names(settings)
                == ["high.m3u8", "low.m3u8", "en.m3u8", "fr.m3u8", "de.m3u8"])
    }

    @Test(
        arguments: [
            ("audio", "it", "the title has no audio in 'it'; it has en-GB, fr"),
            ("audio", "fr,it,es", "the title has no audio in 'it' or 'es'; it has en-GB, fr"),
            (
                "variant", "360,480,1080",
                "the title has no variant of height 480 or 1080: it has 360, 720"
            ),
        ] as [(String, String, String)])
    func `a missing choice is rejected with those that the title has`(
        name: String, value: String, message: String
    ) throws {
        let fault = #expect(throws: DownloadChoice.Fault.self) { try names([(name, value)]) }
        #expect(fault?.message == message)
    }
}
