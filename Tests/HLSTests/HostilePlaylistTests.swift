import HLS
import Testing
import URISyntax

/// Malicious playlists are rejected or passed on by rule, in bounded time and memory.
@Suite(.timeLimit(.minutes(5))) struct HostilePlaylistTests {
    static func rewrite(_ bytes: [UInt8]) throws -> RewrittenPlaylist {
        try PlaylistRewriter.rewrite(bytes, base: Corpus.base, map: Corpus.map)
    }

    @Test func `a playlist of 50 MB is rejected by its size alone`() {
        let bytes = Array("#EXTM3U\n".utf8) + [UInt8](repeating: 0x0A, count: 50 << 20)
        // It has too many lines as well, which only parsing would find.
        let error = #expect(throws: PlaylistError.self) { try Self.rewrite(bytes) }
        guard case .tooLarge(byteCount: bytes.count, limit: _) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test func `a playlist with more lines than five days of segments have is rejected`() throws {
        let bytes = Array("#EXTM3U\n".utf8) + [UInt8](repeating: 0x0A, count: 500_001)
        #expect(throws: PlaylistError.tooManyLines(limit: 500_000)) { try Self.rewrite(bytes) }
    }

    @Test(arguments: ["", "#EXT-X-MAP:URI=\"", "#EXTINF:", "#EXT-X-KEY:A=", "#"])
    func `a line of 1 MB is rejected with its number`(start: String) {
        let line = start + String(repeating: "x", count: 1 << 20)
        #expect(throws: PlaylistError.lineTooLong(line: 2, limit: 64 << 10)) {
            try Self.rewrite(Array("#EXTM3U\n\(line)\n".utf8))
        }
    }

    @Test(arguments: HLS.Tag.table.filter { !$0.uris.isEmpty }.map(\.name))
    func `an unterminated quote hides no URI`(name: HLS.Tag.Name) throws {
        let uri = try #require(HLS.Tag.table.first { $0.name == name }?.uris.first)
        let list = try Self.rewrite(
            Array("#EXTM3U\n#\(name.rawValue):\(uri.name)=\"x/y,Z=\"1\nnext.ts\n".utf8))
        let open = try Self.rewrite(
            Array("#EXTM3U\n#\(name.rawValue):\(uri.name)=\"x/y,Z=1\nnext.ts\n".utf8))
        for text in [list, open].map({ String(decoding: $0.bytes, as: UTF8.self) }) {
            #expect(text.contains("\(uri.name)=\"/R/"))
            #expect(text.hasSuffix("/next.ts\n"))
        }
    }

    @Test func `zero bytes are rejected in a URI and kept elsewhere`() throws {
        #expect(throws: PlaylistError.self) {
            try Self.rewrite(Array("#EXTM3U\n#EXTINF:1,\na\0b.ts\n".utf8))
        }
        let kept = Array("#EXTM3U\n#EXT-X-X:\0\n# \0\n#EXTINF:1,\0\n".utf8)
        #expect(try Self.rewrite(kept).bytes == kept)
    }

    @Test func `bytes that are not UTF-8 are kept, also in URIs`() throws {
        let bytes: [UInt8] =
            Array("#EXTM3U\n# ".utf8) + [0xFF, 0xC3, 0x28, 0x0A]
            + Array("#EXTINF:1,".utf8) + [0xE9, 0x0A, 0xE9, 0x80, 0x2E, 0x74, 0x73, 0x0A]
        let list = try PlaylistRewriter.rewrite(bytes, base: Corpus.base) { reference, output in
            output.append(contentsOf: reference.url.bytes.suffix(5))
            return true
        }
        #expect(list.bytes == bytes)
    }

    @Test(arguments: [
        #"NAME="a",VALUE="{$a}""#, #"NAME="a",VALUE="x{$later}""#,
    ])
    func `a variable that refers to itself or to a later one is rejected`(definition: String) {
        let text =
            "#EXTM3U\n#EXT-X-DEFINE:\(definition)\n#EXT-X-DEFINE:NAME=\"later\",VALUE=\"y\"\n"
        #expect(throws: PlaylistError.self) {
            try Self.rewrite(Array((text + "#EXTINF:1,\na.ts\n").utf8))
        }
    }

    @Test func `variables that double each other are rejected before they fill memory`() {
        var text = "#EXTM3U\n#EXT-X-DEFINE:NAME=\"v0\",VALUE=\"xxxxxxxx\"\n"
        for number in 1...60 {
            let last = "{$v\(number - 1)}"
            text += "#EXT-X-DEFINE:NAME=\"v\(number)\",VALUE=\"\(last)\(last)\"\n"
        }
        let error = #expect(throws: PlaylistError.self) { try Self.rewrite(Array(text.utf8)) }
        guard case .variablesTooLong? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test(arguments: [
        "file:///etc/passwd", "FILE:/etc/passwd", "javascript:alert(1)", "concat:a|b",
        "data:application/x-mpegurl,x",
        "tcp://127.0.0.1:1", "pipe:0", "fd:3", "vbscript:x", "unix:/run/x",
    ])
    func `a variant with a custom scheme is rejected`(uri: String) {
        #expect(throws: PlaylistError.self) {
            try Self.rewrite(Array("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n\(uri)\n".utf8))
        }
        #expect(throws: PlaylistError.self) {
            try Self.rewrite(Array("#EXTM3U\n#EXT-X-MEDIA:URI=\"\(uri)\"\n".utf8))
        }
    }

    @Test(arguments: ["subfile,,start,0,end,9,,:/etc/passwd", "{file}:/x", "./file:/x"])
    func `text that only resembles a scheme is a relative name`(uri: String) throws {
        let list = try Self.rewrite(Array("#EXTM3U\n#EXT-X-MEDIA:URI=\"\(uri)\"\n".utf8))
        #expect(
            String(decoding: list.bytes, as: UTF8.self)
                .contains("URI=\"/R/p/https://cdn.example.com/vod/a/"))
    }

    @Test func `parent references above the root lead to the root`() throws {
        let list = try Self.rewrite(
            Array("#EXTM3U\n#EXTINF:1,\n\(String(repeating: "../", count: 10_000))s.ts\n".utf8))
        #expect(
            String(decoding: list.bytes, as: UTF8.self)
                .hasSuffix("\n/R/s/https://cdn.example.com/s.ts\n"))
    }

    @Test(arguments: ["[", "{\"a\":", "[{\"images\":", "{\"ASSETS\":[{\"a\":"])
    func `JSON that is nested too deeply is rejected`(open: String) {
        let text = String(repeating: open, count: 100_000)
        #expect(throws: PlaylistError.self) {
            try JSONRewriter.rewrite(
                Array(text.utf8), base: Corpus.base, host: Corpus.host, map: Corpus.map)
        }
    }

    @Test func `JSON of 5 MB is rejected`() {
        let bytes = [UInt8](repeating: 0x20, count: 5 << 20)
        #expect(throws: PlaylistError.self) {
            try JSONRewriter.rewrite(bytes, base: Corpus.base, host: Corpus.host, map: Corpus.map)
        }
    }
}

extension HostilePlaylistTests {
    private static func rewrite(_ lines: [String]) throws -> String {
        let text = (["#EXTM3U", "#EXT-X-TARGETDURATION:5"] + lines).joined(separator: "\n") + "\n"
        var options = PlaylistRewriter.Options()
        options.writesOffsets = true
        let list = try PlaylistRewriter.rewrite(
            Array(text.utf8), base: Corpus.base, options: options, map: Corpus.map)
        return String(decoding: list.bytes, as: UTF8.self)
    }

    /// RFC 8216bis section 4.2 forbids it.
    @Test(arguments: [
        #"DURATION=1,BYTERANGE="5",URI="a",URI="b""#, #"URI="a",URI="b",BYTERANGE="5",DURATION=1"#,
        #"URI="a",BYTERANGE="5",URI="b",URI="c""#, #"BYTERANGE="5",URI="",URI="b""#,
        #"URI="http://[bad",BYTERANGE=5,URI="b",BYTERANGE="6""#,
    ]) func `a URI that a part has twice moves its byte range once`(attributes: String) throws {
        let second = #"#EXT-X-PART:DURATION=1,BYTERANGE="7",URI="a""#
        let text = try Self.rewrite(["#EXT-X-PART:\(attributes)", second])
        let parts = text.split(separator: "\n").suffix(2)
        #expect(parts.first?.ranges(of: "@").count == 1, "\(text)")
        #expect(!text.contains("URI=\"b"), "\(text)")
    }

    @Test func `thousands of URIs in one tag are rewritten at linear cost`() throws {
        let many = String(repeating: #",URI="b""#, count: 7_000)
        let text = try Self.rewrite(["#EXT-X-PART:DURATION=1,URI=\"a\"\(many),BYTERANGE=\"5\""])
        #expect(text.hasSuffix(",BYTERANGE=\"5@0\"\n") && text.ranges(of: "/a/b").count == 7_000)
    }

    /// The variant's line is removed again from in front of the place that the offset has.
    @Test(arguments: [0, 300]) func `an offset is written behind a variant that is left out`(
        length: Int
    ) throws {
        let text = try Self.rewrite([
            "#EXT-X-STREAM-INF:BANDWIDTH=1", "v.m3u8",
            "#EXT-X-STREAM-INF:BANDWIDTH=1,X-A=\"\(String(repeating: "A", count: length))\"",
            "#EXT-X-BYTERANGE:5", "http://[bad/", "#EXTINF:5,", "x.ts",
        ])
        #expect(text.contains("#EXT-X-BYTERANGE:5@0\n#EXTINF:5,\n"), "\(text)")
        #expect(!text.contains("X-A"), "\(text)")
    }
}
