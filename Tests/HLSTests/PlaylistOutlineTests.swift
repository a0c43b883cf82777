import HLS
import Testing
import URISyntax

/// The outline of a playlist that `inspect` prints.
@Suite struct PlaylistOutlineTests {
    static func outline(_ name: String) throws -> PlaylistOutline {
        let body = try #require(Corpus.read(name + ".m3u8"))
        return try PlaylistOutline(body, base: Corpus.base)
    }

    @Test func `the outline of a multivariant playlist lists its references`() throws {
        let outline = try Self.outline("rfc-multivariant")
        #expect(outline.summary.kind == .multivariant)
        #expect(
            outline.entries.map(\.kind) == [
                .variant, .variant, .variant, .iFrames, .images, .rendition, .rendition,
                .rendition, .sessionData, .sessionData, .sessionData, .sessionKey, .steering,
            ])
        #expect(outline.entries[0].attribute("BANDWIDTH") == "1280000")
        #expect(outline.entries[2].url?.lastPathSegment == "audio-only")
        #expect(outline.entries[7].url == nil)
        #expect(outline.entries[5].attribute("URI") == nil)
    }

    @Test func `the outline of a media playlist has its segments and features`() throws {
        let outline = try Self.outline("rfc-low-latency-whole")
        #expect(outline.segments.map(\.mediaSequence) == [266, 267, 268])
        #expect(outline.segmentDurations?.upperBound == .nanoseconds(4_000_080_000))
        #expect(
            outline.features == [
                "parts", "preload hints", "blocking reload", "delta updates", "rendition reports",
                "initialization sections", "program date-time",
            ])
        #expect(outline.violations.isEmpty)
    }

    @Test func `the outline lists each key once`() throws {
        let outline = try Self.outline("rfc-keys")
        #expect(outline.encryption.count == 4)
        #expect(outline.encryption.first?.method == "AES-128")
        #expect(outline.encryption.first?.keyFormat == "identity")
    }

    @Test func `unknown tags are counted`() throws {
        let text = "#EXTM3U\n#EXT-X-NEW:1\n#EXTINF:1,\na\n#EXT-X-NEW:2\n#comment\n#EXTVLCOPT:x\n"
        let outline = try PlaylistOutline(Array(text.utf8), base: Corpus.base)
        #expect(outline.unknownTags.map(\.name) == ["EXT-X-NEW", "EXTVLCOPT"])
        #expect(outline.unknownTags.map(\.count) == [2, 1])
        #expect(outline.unknownTags.map(\.line) == [2, 7])
    }

    @Test func `a playlist that the proxy rejects has an outline`() throws {
        let outline = try Self.outline("hostile-javascript-variant")
        #expect(outline.refusal != nil)
        #expect(outline.entries.map(\.kind) == [.variant])
        #expect(outline.entries.map(\.url) == [nil])
    }

    @Test func `text that is not a playlist has no outline`() {
        #expect(throws: PlaylistError.self) { try Self.outline("hostile-html") }
    }
}
