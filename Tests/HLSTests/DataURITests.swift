import HLS
import Testing
import URISyntax

/// Documents that stand in the URIs of playlists.
@Suite struct DataURITests {
    private static let steering = "#EXT-X-CONTENT-STEERING:SERVER-URI="
    private static let variant = "#EXT-X-STREAM-INF:BANDWIDTH=9\nv\n"

    private static func base64(_ text: String) -> String { Base64.encode(Array(text.utf8)) }

    /// Rewrites a list; each URI becomes `/own/` and the letter of its role.
    private static func rewrite(_ text: String) throws -> RewrittenPlaylist {
        let map: PlaylistRewriter.ReferenceMap = { reference, output in
            output.append(contentsOf: "/own/".utf8)
            output.append(reference.role.letter)
            return true
        }
        return try PlaylistRewriter.rewrite(
            Array(text.utf8), base: Corpus.base,
            documents: { document throws(PlaylistError) in
                try JSONRewriter.rewrite(
                    document, base: Corpus.base, host: { _ in ("h", [0x31]) }, map: map)
            }, map: map)
    }

    private static func text(_ list: RewrittenPlaylist) -> String {
        String(decoding: list.bytes, as: UTF8.self)
    }

    private static let manifest =
        #"{"RELOAD-URI":"https://o.example/s","PATHWAY-CLONES":[{"URI-REPLACEMENT":"#
        + #"{"PER-VARIANT-URIS":{"a":"https://b.example/a.m3u8"}}}]}"#

    @Test(arguments: ["application/json;base64,", "APPLICATION/JSON; BASE64,", ";base64,", ","])
    func `the manifest in the URI of a steering server is rewritten`(type: String) throws {
        let content =
            type == ","
            ? PercentCoding.encode(Self.manifest, allowed: .unreserved)
            : Self.base64(Self.manifest).replacing("=", with: "%3D")
        let list = try Self.rewrite(
            "#EXTM3U\n" + Self.steering + "\"data:\(type)\(content)\",PATHWAY-ID=\"p\"\n"
                + Self.variant)
        let expected = Self.base64(
            #"{"RELOAD-URI":"/own/j","PATHWAY-CLONES":[{"URI-REPLACEMENT":"#
                + #"{"PER-VARIANT-URIS":{"a":"/own/p"}}}]}"#)
        #expect(
            Self.text(list)
                == "#EXTM3U\n" + Self.steering
                + "\"data:application/json;base64,\(expected)\",PATHWAY-ID=\"p\"\n"
                + "#EXT-X-STREAM-INF:BANDWIDTH=9\n/own/p\n")
        #expect(list.hasDocuments && list.unusable.isEmpty)
    }

    @Test(arguments: [
        "data:", "data:,", "DATA:application/json;base64,e30*", "data:text/html,%3Cp%3E",
        "data:application/json;base64,e30" + String(repeating: "%20", count: 21_900),
    ])
    func `a steering server whose manifest cannot be read is left out`(uri: String) throws {
        var reading = PlaylistReading()
        reading.limits.lineLength = 1 << 20
        let body = "#EXTM3U\n" + Self.steering + "\"\(uri)\"\n" + Self.variant
        let list = try PlaylistRewriter.rewrite(
            Array(body.utf8), base: Corpus.base, options: PlaylistRewriter.Options(reading),
            documents: { document throws(PlaylistError) in
                try JSONRewriter.rewrite(
                    document, base: Corpus.base, host: Corpus.host, map: Corpus.map)
            }, map: { _, _ in false })
        #expect(Self.text(list) == "#EXTM3U\n" + Self.variant)
        #expect(list.unusable.count == 1 && !list.hasDocuments)
    }

    @Test func `an asset list in its URI is rewritten, or its attribute left out`() throws {
        func list(_ uri: String) throws -> String {
            try Self.text(
                Self.rewrite(
                    "#EXTM3U\n#EXT-X-DATERANGE:ID=\"a\",X-ASSET-LIST=\"\(uri)\",CUE=\"PRE\"\n"
                        + "#EXT-X-TARGETDURATION:2\n#EXTINF:2,\ns\n"))
        }
        let assets = Self.base64(#"{"ASSETS":[{"URI":"https://ads.example/a.m3u8"}]}"#)
        let own = Self.base64(#"{"ASSETS":[{"URI":"/own/p"}]}"#)
        #expect(
            try list("data:application/json;base64,\(assets)")
                .contains("X-ASSET-LIST=\"data:application/json;base64,\(own)\",CUE=\"PRE\"\n"))
        #expect(try list("data:;base64,*").contains("#EXT-X-DATERANGE:ID=\"a\",CUE=\"PRE\"\n"))
    }

    @Test func `session data in its URI stays`() throws {
        let data = "#EXT-X-SESSION-DATA:DATA-ID=\"d\",URI=\"data:application/json,%7B\"\n"
        let list = try Self.rewrite("#EXTM3U\n" + data + Self.variant)
        #expect(Self.text(list).contains(data) && !list.hasDocuments)
    }
}
