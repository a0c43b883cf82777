@testable import Model
import HLS
import Routing
import Store
import Testing
import URISyntax

/// Where the paths of links into a live list lead without their queries.
@Suite struct LivePlacesTests {
    /// The file names of the parts at some places after readings of a list.
    private static func find(
        _ places: [LivePlace], after texts: [String]
    ) throws -> [String?] {
        var known = LivePlaces()
        let list = ObjectKey(sha256Of: "list")
        let head = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-PART-INF:PART-TARGET=1\n"
        for text in texts {
            let reading = try #require(
                try LiveReading(
                    Array((head + text).utf8), base: try AbsoluteURL("http://h/l.m3u8"),
                    options: PlaylistReading()))
            let keys = reading.names.map { ObjectKey(sha256Of: $0.place.url.text) }
            _ = known.take(reading, keys: keys, of: (list, EpochTable.List())) { _ in Epoch.first }
        }
        return places.map { place in
            let found = known.find(place, role: .part, in: (list, Epoch.first)) { _ in Epoch.first }
            guard case .url(let url, _) = found else { return nil }
            return url.lastPathSegment
        }
    }

    @Test func `parts are found after their segment is listed without them`() throws {
        var texts = [segment(0) + segment(1, own(1)) + segment(2, own(2))]
        texts.append(segment(0) + segment(1) + segment(2, own(2)) + segment(3, own(3)))
        let places = (1...3).flatMap { number in
            (0..<3).map { LivePlace.part(number, index: $0) }
        }
        let names = (1...3).flatMap { number -> [String?] in
            ["p\(number).0.ts", "p\(number).1.ts", nil]
        }
        #expect(try Self.find(places, after: texts) == names)
        // No segment has parts, and then the first two have left the window.
        texts.append((0...4).map { segment($0) }.joined())
        #expect(try Self.find(places, after: texts) == names)
        texts.append("#EXT-X-MEDIA-SEQUENCE:2\n" + (2...5).map { segment($0) }.joined())
        #expect(try Self.find(places, after: texts) == names)
    }

    @Test func `places that have left are bounded in bytes, the last ones stay`() throws {
        var places = LivePlaces()
        let list = ObjectKey(sha256Of: "list")
        let name = String(repeating: "x", count: 30_000)
        // 40 MB of URLs leave the window, one with each reading.
        for number in 0..<1_300 {
            let text =
                "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:\(number)\n"
                + "#EXTINF:2,\n\(number)-\(name).ts\n"
            let reading = try #require(
                try LiveReading(
                    Array(text.utf8), base: try AbsoluteURL("http://h/l.m3u8"),
                    options: PlaylistReading()))
            let keys = [ObjectKey(sha256Of: "\(number)")]
            _ = places.take(reading, keys: keys, of: (list, EpochTable.List())) { _ in .first }
        }
        let found = (0..<1_299).filter { number in
            let finding = places.find(
                .segment(number), role: .segment, in: (list, Epoch.first)
            ) { _ in .first }
            guard case .url = finding else { return false }
            return true
        }
        #expect(found == Array((found.first ?? 0)..<1_299))
        #expect((500...600).contains(found.count))
    }

    @Test func `sections keep their names in a list without some of its segments`() throws {
        let base = try AbsoluteURL("http://h/l.m3u8")
        let list = ObjectKey(sha256Of: "list")
        let head = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:"
        let parts = (0..<4).map {
            (map: "#EXT-X-MAP:URI=\"token/\($0).mp4\"\n", media: "#EXTINF:2,\ns\($0).m4s\n")
        }
        let text = head + "0\n" + parts.map { $0.map + $0.media }.joined()
        let reading = try #require(
            try LiveReading(Array(text.utf8), base: base, options: PlaylistReading()))
        // They have had these names since the token was another one.
        var known = EpochTable.List()
        known.sections = (0..<4).map { LiveSection(number: $0, name: 100 + UInt32($0)) }
        var places = LivePlaces()
        let keys = reading.names.map { ObjectKey(sha256Of: $0.place.url.text) }
        _ = places.take(reading, keys: keys, of: (list, known)) { _ in Epoch.first }
        let names = LiveNames(
            list: (list.listName, Epoch.first), sections: [0: 100, 1: 101, 2: 102, 3: 103],
            sectionsByURL: places.sectionNames(in: list))
        // The first segment and the third one are missing.
        let cut = [
            head, "1\n", parts[0].map, parts[1].map, parts[1].media, parts[2].map, parts[3].map,
            parts[3].media, "#EXT-X-ENDLIST\n",
        ].joined()
        var found: [LivePlace?] = []
        _ = try PlaylistRewriter.rewrite(Array(cut.utf8), base: base) { reference, _ in
            if reference.tag == .map { found.append(names.place(of: reference)) }
            return false
        }
        let named: [LivePlace?] = [.section(100), .section(101), .section(102), .section(103)]
        #expect(found == named)
    }

    /// A list whose segments are ranges of one file, and what is known of them.
    private struct RangeList {
        private let offersDeltas: Bool
        private var places = LivePlaces()

        init(offersDeltas: Bool = true) { self.offersDeltas = offersDeltas }

        /// Reads the list of these segments, of which the first ones are skipped.
        ///
        /// - Returns: the number of each range that is known then, and where it ends.
        mutating func read(_ numbers: Range<Int>, skipping skipped: Int = 0) throws -> [[Int]] {
            let list = ObjectKey(sha256Of: "list")
            var text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n"
            text += "#EXT-X-MEDIA-SEQUENCE:\(numbers.lowerBound)\n"
            if offersDeltas { text += "#EXT-X-SERVER-CONTROL:CAN-SKIP-UNTIL=12\n" }
            if skipped > 0 { text += "#EXT-X-SKIP:SKIPPED-SEGMENTS=\(skipped)\n" }
            for _ in numbers.dropFirst(skipped) {
                text += "#EXTINF:2,\n#EXT-X-BYTERANGE:100\nf.ts\n"
            }
            var options = PlaylistReading()
            options.rangesBefore = places.ranges(in: list)
            let reading = try #require(
                try LiveReading(
                    Array(text.utf8), base: try AbsoluteURL("http://h/l.m3u8"), options: options))
            let keys = reading.names.map { ObjectKey(sha256Of: $0.place.url.text) }
            _ = places.take(reading, keys: keys, of: (list, EpochTable.List())) { _ in .first }
            return places.ranges(in: list).map { [$0.number, $0.end] }
        }
    }

    @Test func `ranges go on from one delta update to the next`() throws {
        var list = RangeList()
        // Nothing is known of what these skip.
        #expect(try list.read(0..<4, skipping: 3) == [])
        #expect(try list.read(0..<3) == [[0, 100], [1, 200], [2, 300]])
        #expect(try list.read(1..<4, skipping: 2) == [[1, 200], [2, 300], [3, 400]])
        #expect(try list.read(2..<6, skipping: 2) == [[2, 300], [3, 400], [4, 500], [5, 600]])
        // The same update in another form.
        #expect(try list.read(2..<6, skipping: 2) == [[2, 300], [3, 400], [4, 500], [5, 600]])
        #expect(try list.read(9..<12, skipping: 2) == [])
    }

    @Test func `of the ranges that a delta update skips only the last ones stay`() throws {
        var list = RangeList()
        #expect(try list.read(0..<100).count == 100)
        func ends(_ numbers: Range<Int>) -> [[Int]] { numbers.map { [$0, 100 * ($0 + 1)] } }
        // Segments 83 to 98 are skipped.
        #expect(try list.read(1..<101, skipping: 98) == ends(83..<101))
        #expect(try list.read(2..<103, skipping: 98) == ends(84..<103))
        #expect(try list.read(90..<104, skipping: 12) == ends(90..<104))
    }

    @Test func `no ranges are kept of a list without delta updates`() throws {
        var list = RangeList(offersDeltas: false)
        #expect(try list.read(0..<3) == [])
    }

    @Test func `the file of an advertisement is no name of a live list`() throws {
        let range = "#EXT-X-DATERANGE:ID=\"1\",X-ASSET-URI=\"ad.mp4\"\n"
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n\(range)#EXTINF:2,\na.ts\n"
        let reading = try #require(
            try LiveReading(
                Array(text.utf8), base: try AbsoluteURL("http://h/l.m3u8"),
                options: PlaylistReading()))
        #expect(reading.names.map(\.place.url.lastPathSegment) == ["a.ts"])
    }

    @Test func `segments behind a hole are not named by the numbers that they have there`() throws {
        let base = try AbsoluteURL("http://h/l.m3u8")
        let head = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:7\n"
        let text = head + (7..<12).map { "#EXTINF:2,\ns\($0).ts\n" }.joined()
        let whole = try Playlist(Array(text.utf8), base: base, PlaylistReading(keepsLines: true))
        let segments = try #require(whole.media).segments
        func places(without missing: [Int]) throws -> [LivePlace?] {
            let cut = OfflinePlaylist.cut(whole, missing: Set(missing.map { segments[$0].line }))
            let names = LiveNames(
                list: (1, Epoch.first), sections: [:], sectionsByURL: [:],
                movedFrom: cut.movedFrom)
            var found: [LivePlace?] = []
            _ = try PlaylistRewriter.rewrite(cut.bytes, base: base) { reference, _ in
                found.append(names.place(of: reference))
                return false
            }
            return found
        }
        let all: [LivePlace?] = (7..<12).map { LivePlace.segment($0) }
        #expect(try places(without: [0]) == Array(all.dropFirst()))
        #expect(try places(without: [0, 2, 3]) == [all[1], nil])
        #expect(try places(without: [4]) == Array(all.dropLast()))
    }

    @Test func `ranges of several resources are not taken for each other`() throws {
        let first =
            segment(0, ranges("a.ts", "a.ts")) + segment(1, ranges("b.ts", "c.ts", "b.ts"))
        let places = [LivePlace.segment(0), .segment(1)]
        #expect(try Self.find(places, after: [first]) == ["a.ts", nil])
        #expect(try Self.find(places, after: [first, segment(0) + segment(1)]) == ["a.ts", nil])
    }
}

private func segment(_ number: Int, _ parts: [String] = []) -> String {
    parts.map { "#EXT-X-PART:DURATION=1,\($0)\n" }.joined() + "#EXTINF:2,\ns\(number).ts\n"
}

/// Attributes of two parts that are resources of their own.
private func own(_ number: Int) -> [String] {
    (0..<2).map { "URI=\"p\(number).\($0).ts\"" }
}

/// Attributes of parts that are ranges of resources.
private func ranges(_ names: String...) -> [String] {
    names.enumerated().map { "BYTERANGE=\"100@\($0.offset * 100)\",URI=\"\($0.element)\"" }
}
