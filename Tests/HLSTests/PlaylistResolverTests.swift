@testable import HLS
import Testing
import URISyntax

/// The URIs of one playlist as URLs.
@Suite struct PlaylistResolverTests {
    private static let base = "https://cdn.example.com/vod/l.m3u8?token=t%2Bk"

    private static func resolver(limit: Int = 1 << 20) throws -> PlaylistResolver {
        PlaylistResolver(base: try AbsoluteURL(base), limit: limit)
    }

    private static func resolve(
        _ text: String, line: Int = 1, by resolver: inout PlaylistResolver
    ) throws -> String? {
        try resolver.resolve(Array(text.utf8)[...], .segment, line: line, tag: nil).map {
            String(decoding: $0.bytes, as: UTF8.self)
        }
    }

    @Test func `URIs are joined with the URL of the playlist`() throws {
        var resolver = try Self.resolver()
        for (text, expected) in [
            ("s.ts", "https://cdn.example.com/vod/s.ts"),
            ("../s.ts", "https://cdn.example.com/s.ts"),
            ("https://e.example/s.ts", "https://e.example/s.ts"),
            ("https://e.example/t.ts", "https://e.example/t.ts"),
        ] {
            let found = try Self.resolve(text, by: &resolver)
            #expect(found == expected)
        }
    }

    @Test func `without a URL nothing is resolved and nothing is refused`() throws {
        var resolver = PlaylistResolver(base: nil, limit: 0)
        for text in ["s.ts", "file:///s.ts", "{$unknown}.ts"] {
            let found = try Self.resolve(text, by: &resolver)
            #expect(found == nil)
        }
        let form = try resolver.define(
            AttributeList(#"IMPORT="unknown""#), at: 1, PlaylistReading())
        #expect(form == nil)
        let placeholder = try resolver.placeholder(of: Array("s.ts".utf8)[...])
        #expect(placeholder == nil)
    }

    @Test func `the URLs of all lines count against one limit`() throws {
        let length = "https://cdn.example.com/vod/s.ts".utf8.count
        var resolver = try Self.resolver(limit: 2 * length)
        _ = try Self.resolve("s.ts", by: &resolver)
        _ = try Self.resolve("s.ts", by: &resolver)
        #expect(throws: PlaylistError.outputTooLarge(line: 3, limit: 2 * length)) {
            try Self.resolve("s.ts", line: 3, by: &resolver)
        }
    }

    @Test func `variables are replaced before a URI is joined`() throws {
        var resolver = try Self.resolver()
        _ = try resolver.define(
            AttributeList(#"NAME="name",VALUE="s""#), at: 1, PlaylistReading())
        let found = try Self.resolve("{$name}.ts", by: &resolver)
        #expect(found == "https://cdn.example.com/vod/s.ts")
    }

    @Test func `an undefined variable is told from one whose import is open`() throws {
        var resolver = try Self.resolver()
        _ = try resolver.define(AttributeList(#"IMPORT="open""#), at: 1, PlaylistReading())
        for (name, isImported) in [("open", true), ("other", false)] {
            let expected = PlaylistError.undefinedVariable(
                line: 2, tag: "URI", name: name, isImported: isImported)
            #expect(throws: expected) {
                try Self.resolve("{$\(name)}.ts", line: 2, by: &resolver)
            }
        }
    }
}
