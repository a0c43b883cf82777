import HLS
import Testing
import URISyntax

/// Hostile sizes and numbers.
@Suite struct PlaylistLimitTests {
    static func rewrite(_ text: String, _ limits: PlaylistLimits) throws -> RewrittenPlaylist {
        var options = PlaylistRewriter.Options()
        options.reading.limits = limits
        return try PlaylistRewriter.rewrite(
            Array(text.utf8), base: Corpus.base, options: options, map: Corpus.map)
    }

    @Test func `a body over the limit is rejected unread`() {
        #expect(throws: PlaylistError.tooLarge(byteCount: 11, limit: 10)) {
            try Self.rewrite("#EXTM3U\n#12", PlaylistLimits(byteCount: 10))
        }
    }

    @Test func `a line over the limit is rejected`() {
        #expect(throws: PlaylistError.lineTooLong(line: 2, limit: 8)) {
            try Self.rewrite("#EXTM3U\n#12345678\n", PlaylistLimits(lineLength: 8))
        }
    }

    @Test func `more lines than the limit are rejected`() {
        #expect(throws: PlaylistError.tooManyLines(limit: 2)) {
            try Self.rewrite("#EXTM3U\n\n\n", PlaylistLimits(lineCount: 2))
        }
    }

    @Test func `a rewritten list over the limit is rejected`() {
        let text = "#EXTM3U\n" + String(repeating: "#EXTINF:1,\na\n", count: 100)
        #expect(throws: PlaylistError.self) {
            try Self.rewrite(text, PlaylistLimits(outputByteCount: 1000))
        }
    }

    /// Rewrites 100 segments with a limit of 20,000 bytes, and links of one length.
    private static func rewritten(
        base: AbsoluteURL, linkLength: Int
    ) throws(PlaylistError) -> RewrittenPlaylist {
        var options = PlaylistRewriter.Options()
        options.reading.limits = PlaylistLimits(outputByteCount: 20_000)
        let link = [UInt8](repeating: UInt8(ascii: "l"), count: linkLength)
        let text = (0..<100).reduce("#EXTM3U\n") { "\($0)#EXTINF:1,\n?\($1)\n" }
        return try PlaylistRewriter.rewrite(
            Array(text.utf8), base: base, options: options,
            map: { _, output in
                output.append(contentsOf: link)
                return true
            })
    }

    @Test func `a list that only its reader's links make too long may suit those of shorter ones`()
        throws
    {
        let base = try AbsoluteURL("http://h/l.m3u8")
        #expect(try Self.rewritten(base: base, linkLength: 100).bytes.count < 20_000)
        let error = #expect(throws: PlaylistError.self) {
            try Self.rewritten(base: base, linkLength: 1_000)
        }
        #expect(error?.dependsOnReader(linksCarrySession: true) == true)
        // Nobody has shorter ones.
        #expect(error?.dependsOnReader(linksCarrySession: false) == false)
    }

    @Test func `a list whose own URLs are too long suits nobody`() throws {
        let base = try AbsoluteURL("http://h/" + String(repeating: "b", count: 1_000))
        let error = #expect(throws: PlaylistError.self) {
            try Self.rewritten(base: base, linkLength: 1)
        }
        #expect(error?.dependsOnReader(linksCarrySession: true) == false)
    }

    @Test func `variables cannot expand into a giant URI`() {
        let value = String(repeating: "v", count: 60_000)
        let text =
            "#EXTM3U\n#EXT-X-DEFINE:NAME=\"a\",VALUE=\"\(value)\"\n#EXTINF:1,\n"
            + String(repeating: "{$a}", count: 10_000) + "\n"
        #expect(throws: PlaylistError.self) { try Self.rewrite(text, .standard) }
    }

    @Test(arguments: [
        "#EXT-X-MEDIA-SEQUENCE:9007199254740991", "#EXT-X-MEDIA-SEQUENCE:18446744073709551615",
        "#EXT-X-SKIP:SKIPPED-SEGMENTS=9007199254740991\n#EXT-X-SKIP:SKIPPED-SEGMENTS=9007199254740991",
        "#EXT-X-BYTERANGE:9007199254740991@9007199254740991", "#EXT-X-BYTERANGE:-1@-1",
        "#EXT-X-TARGETDURATION:999999999999999999999999999999", "#EXT-X-TARGETDURATION:-",
        "#EXTINF:99999999999999999999999999999999.99999999999999999999999999999",
        "#EXT-X-DISCONTINUITY-SEQUENCE:9007199254740991\n#EXT-X-DISCONTINUITY", "#EXT-X-PART:",
        "#EXT-X-KEY", "#EXT-X-MAP:URI", "#EXT-X-MAP:URI=", "#EXT-X-MAP:URI=\"", "#EXT-X-DEFINE:",
        "#EXT-X-PART:URI=\"x\",BYTERANGE=\"@\"", "#EXT-X-:", "#", "#:", "#EXTINF",
        "#EXT-X-PREFETCH:",
    ])
    func `absurd values neither trap nor stop rewriting`(line: String) throws {
        let text = "#EXTM3U\n" + line + "\n#EXTINF:1,\n1.ts\n#EXTINF:1,\n2.ts\n"
        let list = try Self.rewrite(text, .standard)
        #expect(list.summary.segmentCount == 2)
        #expect(String(decoding: list.bytes, as: UTF8.self).contains(line.prefix(14)))
    }

    @Test func `sums of ranges that overflow are dropped`() throws {
        let range = "#EXTINF:1,\n#EXT-X-BYTERANGE:9007199254740990\na\n"
        let text = "#EXTM3U\n" + String(repeating: range, count: 3000)
        #expect(try Self.rewrite(text, .standard).summary.segmentCount == 3000)
    }

    /// Every prefix and every changed byte of a list with many tags results in a list or a
    /// `PlaylistError`.
    @Test(arguments: ["rfc-low-latency", "rfc-keys", "define", "odd-attributes"])
    func `damaged lists never trap`(name: String) throws {
        let body = try #require(Corpus.read(name + ".m3u8"))
        for index in body.indices {
            _ = try? PlaylistRewriter.rewrite(
                Array(body[..<index]), base: Corpus.base, map: Corpus.map)
            for byte: UInt8 in [0x00, 0x0A, 0x22, 0x2C, 0x3A, 0x40, 0x7B, 0xFF] {
                var damaged = body
                damaged[index] = byte
                _ = try? PlaylistRewriter.rewrite(damaged, base: Corpus.base, map: Corpus.map)
            }
        }
    }
}
