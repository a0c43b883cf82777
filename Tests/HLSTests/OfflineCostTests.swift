import HLS
import Testing
import URISyntax

/// Offline forms of playlists that repeat one thing thousands of times: the results are those of
/// short playlists, at a cost that grows with the length.
@Suite(.timeLimit(.minutes(5))) struct OfflineCostTests {
    private static func url(_ name: String) -> AbsoluteURL {
        // A literal that is a URL.
        (try? AbsoluteURL("https://cdn.example.com/\(name)")) ?? Corpus.base
    }

    private static func variant(_ name: String, kin: String? = nil) -> OfflinePlan.Variant {
        OfflinePlan.Variant(url: url(name), sound: [], encodingGroup: kin)
    }

    /// A list of segments named by their index, of which some are stored; with `sharesNumber`, all
    /// have one media sequence number.
    private static func list(
        _ name: String, count: Int, seconds: Double = 4, sharesNumber: Bool = false,
        keeps: (Int) -> Bool
    ) throws -> OfflineList {
        var text = "#EXTM3U\n#EXT-X-TARGETDURATION:60\n"
        for index in 0..<count {
            // The tag has the number of the list's first segment.
            if sharesNumber { text += "#EXT-X-MEDIA-SEQUENCE:\(count - index)\n" }
            text += "#EXTINF:\(seconds),\n\(name)\(index)\n"
        }
        var index = -1
        let list = try Playlist(Array((text + "#EXT-X-ENDLIST\n").utf8), base: Corpus.base)
        return OfflineList(list) { reference in
            guard reference.tag == .inf else { return true }
            index += 1
            return keeps(index)
        }
    }

    private static func names(_ plan: OfflinePlan) -> [String] {
        plan.playable.map(\.lastPathSegment).sorted()
    }

    // MARK: Multivariant playlists

    private static func variants(_ lines: [String]) throws -> [OfflinePlan.Variant] {
        let text = "#EXTM3U\n" + lines.joined(separator: "\n") + "\n"
        let list = try Playlist(Array(text.utf8), base: Corpus.base)
        return MultivariantFilter.variants(try #require(list.multivariant))
    }

    private static func rendition(_ uri: String) -> String {
        "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"n\",URI=\"\(uri)\""
    }

    private static let stream = "#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO=\"a\"\nv"

    @Test func `a playlist that a group names often is listed once, in the order of the group`()
        throws
    {
        let uris = ["c", "b", "c", "a", "b"]
        let variants = try Self.variants(uris.map(Self.rendition) + [Self.stream, Self.stream])
        let sound = variants.map { $0.sound.map(\.lastPathSegment) }
        #expect(sound == [["c", "b", "a"], ["c", "b", "a"]])
        let inside = "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"n\""
        let muxed = try Self.variants([Self.rendition("b"), inside, Self.stream])
        #expect(muxed.map(\.sound) == [[]])
    }

    @Test func `thousands of variants share thousands of renditions`() throws {
        let count = 5_000
        let lines =
            (0..<count).map { Self.rendition("s\($0)") }
            + [String](repeating: Self.stream, count: count)
        let variants = try Self.variants(lines)
        #expect(variants.count == count && variants.allSatisfy { $0.sound.count == count })
        let stored = "s\(count - 1)"
        let stream = try #require(variants.first?.url)
        let sound = try #require(variants.first?.sound.last)
        let plan = OfflinePlan(
            variants,
            lists: [
                stream: try Self.list("v", count: 3) { _ in true },
                sound: try Self.list("s", count: 3) { $0 < 2 },
            ])
        #expect(Self.names(plan) == [stored, "v"] && plan.stretches.ranges == [0..<8])
        let silent = OfflinePlan(
            variants, lists: [stream: try Self.list("v", count: 3) { _ in true }])
        #expect(Self.names(silent) == ["v"] && silent.stretches.ranges == [0..<12])
    }

    // MARK: Plans

    @Test func `a list with thousands of holes does not cover another`() throws {
        let count = 10_000
        let plan = OfflinePlan(
            [Self.variant("v")],
            lists: [
                Self.url("v"): try Self.list("v", count: count) { $0 % 2 == 0 },
                Self.url("t"): try Self.list("t", count: count) { $0 % 2 == 1 },
                Self.url("s"): try Self.list("s", count: count) { _ in true },
            ])
        #expect(Self.names(plan) == ["s", "v"] && plan.stretches.ranges.count == count / 2)
        #expect(plan.missing(at: Self.url("s")).count == count / 2)
    }

    @Test func `thousands of variants name the same two lists`() throws {
        let (count, length) = (5_000, 2_000)
        let lists = [
            Self.url("a"): try Self.list("a", count: length) { $0 != 7 },
            Self.url("b"): try Self.list("b", count: length) { $0 == 7 || $0 == 8 },
        ]
        let once = OfflinePlan(
            [Self.variant("a", kin: "k"), Self.variant("b", kin: "k")], lists: lists)
        let often = OfflinePlan(
            (0..<count).flatMap { number in
                ["a", "b"].map { Self.variant($0, kin: "k\(number)") }
            }, lists: lists)
        for plan in [once, often] {
            #expect(Self.names(plan) == ["a"] && plan.stretches.ranges == [0..<Double(4 * length)])
            let loan = plan.borrowed[Self.url("a")] ?? [:]
            #expect(loan.values.map(\.lastPathSegment) == ["b7"] && plan.borrowed.count == 1)
            #expect(plan.missing(at: Self.url("a")).isEmpty)
        }
        // Neither has anything for the other.
        let vain = OfflinePlan(
            (0..<count).flatMap { number in
                ["a", "c"].map { Self.variant($0, kin: "k\(number)") }
            },
            lists: [
                Self.url("a"): try Self.list("a", count: length) { $0 != 7 },
                Self.url("c"): try Self.list("c", count: length) { $0 == 8 },
            ])
        #expect(vain.borrowed.isEmpty && vain.stretches.ranges.count == 2)
    }

    @Test func `segments that all have the same number are told by their start`() throws {
        let count = 6_000
        let plan = OfflinePlan(
            [Self.variant("a", kin: "k"), Self.variant("b", kin: "k")],
            lists: [
                Self.url("a"): try Self.list("a", count: count, sharesNumber: true) {
                    $0 % 2 == 0 || $0 == 1
                },
                Self.url("b"): try Self.list("b", count: count, sharesNumber: true) { $0 % 2 == 1 },
            ])
        let loan = plan.borrowed[Self.url("a")] ?? [:]
        #expect(loan.count == count / 2 - 1 && plan.stretches.ranges == [0..<Double(4 * count)])
        let names = loan.sorted { $0.key < $1.key }.map(\.value.lastPathSegment)
        #expect(names == (1..<count / 2).map { "b\(2 * $0 + 1)" })
    }

    @Test func `the first variant with a fitting segment lends it`() throws {
        let lists = [
            Self.url("a"): try Self.list("a", count: 4) { $0 < 2 },
            // Its segments have the same numbers and other starts.
            Self.url("b"): try Self.list("b", count: 4, seconds: 4.5) { $0 == 2 },
            Self.url("c"): try Self.list("c", count: 4) { $0 == 2 },
            Self.url("d"): try Self.list("d", count: 4) { $0 == 3 },
            Self.url("e"): try Self.list("e", count: 4) { $0 == 3 },
        ]
        let plan = OfflinePlan(
            ["a", "b", "c", "d", "e"].map { Self.variant($0, kin: "k") }, lists: lists)
        let loan = plan.borrowed[Self.url("a")] ?? [:]
        #expect(loan.values.map(\.lastPathSegment).sorted() == ["c2", "d3"])
    }

    // MARK: Media playlists

    @Test func `each of thousands of headers gets the number of the first segment`() throws {
        let count = 20_000
        let header = "#EXTM3U\n"
        let text = String(repeating: header, count: count) + "#EXTINF:6,\na\n#EXTINF:6,\nb\n"
        let made = try OfflinePlaylistTests.make(text, without: ["a"])
        let numbered = String(repeating: header + "#EXT-X-MEDIA-SEQUENCE:1\n", count: count)
        #expect(made == numbered + "#EXTINF:6,\nb\n#EXT-X-ENDLIST\n")
    }

    /// A list with one key and without its second segment.
    private static func cut(keyLength: Int, count: Int) throws -> (key: String, made: [UInt8]) {
        let uri = String(repeating: "k", count: keyLength)
        let key = "#EXT-X-KEY:METHOD=AES-128,URI=\"\(uri)\""
        var text = "#EXTM3U\n#EXT-X-TARGETDURATION:6\n\(key)\n"
        for index in 0..<count { text += "#EXTINF:6,\ns\(index)\n" }
        let list = try Corpus.list(Array((text + "#EXT-X-ENDLIST\n").utf8))
        return (key, OfflinePlaylistTests.cut(list) { $0.url.lastPathSegment != "s1" })
    }

    @Test func `a list ends where a very long key was repeated for 64 MiB`() throws {
        let (limit, count) = (64 << 20, 1_300)
        let (key, made) = try Self.cut(keyLength: 60_000, count: count)
        // With an IV and a line break.
        let length = key.utf8.count + 39
        let last = 1 + (limit + length - 1) / length
        #expect(last < count - 1 && made.count < limit + 300_000)
        let end = String(decoding: made.suffix(60), as: UTF8.self)
        #expect(end.hasSuffix("\ns\(last)\n#EXT-X-ENDLIST\n"), "\(end)")
        #expect(String(decoding: made.prefix(80_000), as: UTF8.self).contains("\ns0\n"))
    }

    @Test func `a key of a plausible length is repeated for all segments`() throws {
        let count = 2_000
        let (key, made) = try Self.cut(keyLength: 300, count: count)
        let lines = String(decoding: made, as: UTF8.self).split(separator: "\n")
        #expect(lines.count(where: { $0.hasPrefix(key) }) == count - 1)
        #expect(lines.suffix(2) == ["s\(count - 1)", "#EXT-X-ENDLIST"])
    }

    // MARK: Time shift

    @Test func `a key without an IV is at most 8 KiB long in a longer window`() throws {
        func merge(_ length: Int, _ attributes: String = "") throws {
            let uri = "https://h/" + String(repeating: "k", count: length)
            let key = "#EXT-X-KEY:METHOD=AES-128,URI=\"\(uri)\"\(attributes)\n"
            let text = "#EXTM3U\n#EXT-X-TARGETDURATION:6\n\(key)#EXTINF:6,\ns.ts\n"
            var shift = TimeShift()
            _ = try shift.merge(Array(text.utf8), base: Corpus.base)
            let restored = try TimeShift(snapshot: shift.snapshot())
            #expect(restored.segments.count == 1)
        }
        try merge(8_000)
        try merge(50_000, ",IV=0x1")
        #expect(throws: PlaylistError.lineTooLong(line: 3, limit: 8 << 10)) { try merge(8_200) }
    }
}
