import HLS
import Testing
import URISyntax

/// EXT-X-DEFINE (8216bis 4.4.2.3).
@Suite struct DefinitionTests {
    static func rewrite(
        _ lines: [String], url: String = "https://cdn.example.com/vod/l.m3u8?token=t%2Bk&empty=",
        parent: [String: String]? = nil
    ) throws -> String {
        var options = PlaylistRewriter.Options()
        options.reading.inheritedVariables = parent ?? [:]
        options.reading.knowsMultivariant = parent != nil
        let text = (["#EXTM3U"] + lines).joined(separator: "\n") + "\n"
        let list = try PlaylistRewriter.rewrite(
            Array(text.utf8), base: AbsoluteURL(url), options: options
        ) { reference, output in
            output.append(contentsOf: reference.url.bytes)
            return true
        }
        return String(decoding: list.bytes, as: UTF8.self)
    }

    @Test func `a value refers to variables defined before it`() throws {
        let list = try Self.rewrite(
            [
                #"#EXT-X-DEFINE:NAME="host",VALUE="https://e.example""#,
                #"#EXT-X-DEFINE:QUERYPARAM="token""#, #"#EXT-X-DEFINE:IMPORT="dir""#,
                #"#EXT-X-DEFINE:NAME="base",VALUE="{$host}/{$dir}""#,
                #"#EXT-X-DEFINE:NAME="all",VALUE="{$base}/s.ts?t={$token}""#, "#EXTINF:1,",
                "{$all}",
            ], parent: ["dir": "films"])
        #expect(list.hasSuffix("\nhttps://e.example/films/s.ts?t=t+k\n"))
    }

    @Test(arguments: [
        #"#EXT-X-DEFINE:NAME="token",VALUE="1""#, #"#EXT-X-DEFINE:NAME="token",VALUE="t+k""#,
        #"#EXT-X-DEFINE:QUERYPARAM="token""#, #"#EXT-X-DEFINE:IMPORT="token""#,
    ])
    func `a variable that is defined twice is rejected`(second: String) {
        let lines = [#"#EXT-X-DEFINE:QUERYPARAM="token""#, second, "#EXTINF:1,", "s{$token}.ts"]
        #expect(throws: PlaylistError.duplicateVariable(line: 3, name: "token")) {
            try Self.rewrite(lines, parent: ["token": "p"])
        }
    }

    @Test func `the value of a variable is not searched for variables`() throws {
        let list = try Self.rewrite(
            [#"#EXT-X-DEFINE:QUERYPARAM="q""#, "#EXTINF:1,", "{$q}/s.ts"],
            url: "https://h/l.m3u8?q=%7B%24q%7D")
        #expect(list.hasSuffix("/{$q}/s.ts\n"))
    }

    @Test(arguments: ["", "?other=1", "?token", "?xtoken=1"])
    func `a query parameter that the URL lacks is rejected`(query: String) {
        #expect(throws: PlaylistError.missingQueryParameter(line: 2, name: "token")) {
            try Self.rewrite(
                [#"#EXT-X-DEFINE:QUERYPARAM="token""#, "#EXTINF:1,", "s.ts"],
                url: "https://h/l.m3u8\(query)")
        }
    }

    @Test func `an empty query parameter is a value`() throws {
        let list = try Self.rewrite(
            [#"#EXT-X-DEFINE:QUERYPARAM="empty""#, "#EXTINF:1,", "s{$empty}.ts"])
        #expect(list.hasSuffix("/s.ts\n"))
    }

    @Test func `an import that the multivariant playlist does not define is rejected`() throws {
        let lines = [#"#EXT-X-DEFINE:IMPORT="dir""#, "#EXTINF:1,", "s.ts"]
        #expect(throws: PlaylistError.missingImport(line: 2, name: "dir")) {
            try Self.rewrite(lines, parent: ["other": "x"])
        }
        // The playlist that the player read before is unknown.
        #expect(try Self.rewrite(lines).contains(#"#EXT-X-DEFINE:IMPORT="dir""#))
    }
}
