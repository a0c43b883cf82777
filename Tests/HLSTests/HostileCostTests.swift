import HLS
import Testing
import URISyntax

/// Playlists whose few bytes would make many: each is rejected or read in linear time.
@Suite(.timeLimit(.minutes(1))) struct HostileCostTests {
    private static func playlist(_ lines: [String], base: AbsoluteURL = Corpus.base) throws
        -> Playlist
    {
        let text = (["#EXTM3U"] + lines).joined(separator: "\n") + "\n"
        return try Playlist(Array(text.utf8), base: base, PlaylistReading())
    }

    @Test func `a long variable in each URI is rejected before the memory is full`() {
        let value = String(repeating: "v", count: 60_000)
        let lines =
            ["#EXT-X-DEFINE:NAME=\"v\",VALUE=\"\(value)\""]
            + Array(repeating: ["#EXTINF:1,", "{$v}"], count: 3_000).joined()
        let error = #expect(throws: PlaylistError.self) { try Self.playlist(lines) }
        guard case .outputTooLarge = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(throws: Never.self) { try Self.playlist(Array(lines.prefix(201))) }
    }

    @Test func `a long base URL in each URI is rejected before the memory is full`() throws {
        let base = try AbsoluteURL("http://h/" + String(repeating: "b", count: 60_000))
        let lines = (0..<3_000).flatMap { ["#EXTINF:1,", "?\($0)"] }
        let error = #expect(throws: PlaylistError.self) {
            try Self.playlist(lines, base: base)
        }
        guard case .outputTooLarge = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test func `many malformed URIs in one tag cost one look at the others`() throws {
        let line =
            "#EXT-X-SESSION-DATA:DATA-ID=\"x\"," + String(repeating: "URI=http:,", count: 6_000)
            + "VALUE=\"y\""
        let lines = Array(repeating: line, count: 40) + ["#EXT-X-STREAM-INF:BANDWIDTH=1", "v.m3u8"]
        #expect(try Self.playlist(lines).summary.variantCount == 1)
    }

    @Test func `many URIs of one rendition cost one look at its type`() throws {
        // The type stands behind all of them.
        let line =
            "#EXT-X-MEDIA:GROUP-ID=\"g\",NAME=\"n\","
            + String(repeating: "URI=\"a\",", count: 7_000) + "TYPE=SUBTITLES"
        let lines = Array(repeating: line, count: 40) + ["#EXT-X-STREAM-INF:BANDWIDTH=1", "v.m3u8"]
        #expect(try Self.playlist(lines).summary.variantCount == 1)
    }

    @Test func `a restored window has no more discontinuities than a live one`() throws {
        var shift = TimeShift()
        let window = """
            #EXTM3U
            #EXT-X-TARGETDURATION:6
            #EXT-X-MEDIA-SEQUENCE:1
            #EXT-X-DISCONTINUITY-SEQUENCE:4503599627370495
            #EXTINF:6,
            a.ts
            #EXTINF:6,
            data:video/mp2t;base64,AA
            #EXTINF:6,
            b.ts

            """
        _ = try shift.merge(Array(window.utf8), base: TimeShiftTests.base)
        let restored = try TimeShift(snapshot: shift.snapshot())
        #expect(restored.segments.count == shift.segments.count)
        #expect(restored.snapshot() == shift.snapshot())
        let damaged =
            "#EXTM3U\n#EXTINF:6,\nhttp://h/a.ts\n"
            + "#EXT-X-DISCONTINUITY-SEQUENCE:9007199254740991\n#EXTINF:6,\nhttp://h/b.ts\n"
        let read = try TimeShift(snapshot: Array(damaged.utf8))
        let steps = zip(read.segments, read.segments.dropFirst()).map {
            $1.discontinuity - $0.discontinuity
        }
        #expect(steps == [16])
    }
}
