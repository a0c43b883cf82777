import HLS
import Testing
import URISyntax

#if canImport(Glibc)
import Glibc
#endif

/// Rewrites each `name.m3u8` of `Fixtures/playlists` and compares the result with `name.expected`,
/// or the error with `name.refused`.
///
/// The map writes `/R/<letter>/<absolute URL>`; the base is `Corpus.base`.
@Suite struct CorpusTests {
    @Test(arguments: Corpus.names)
    func `each playlist of the corpus is rewritten as expected`(name: String) throws {
        let body = try #require(Corpus.read(name + ".m3u8"))
        var options = PlaylistRewriter.Options()
        options.reading.inheritedVariables = ["from-parent": "parent value"]
        if let refusal = Corpus.read(name + ".refused") {
            let expected = String(decoding: refusal, as: UTF8.self)
            let error = try #require(throws: PlaylistError.self) {
                try PlaylistRewriter.rewrite(
                    body, base: Corpus.base, options: options, map: Corpus.map)
            }
            #expect(error.description + "\n" == expected)
        } else {
            let expected = try #require(Corpus.read(name + ".expected"))
            let list = try PlaylistRewriter.rewrite(
                body, base: Corpus.base, options: options, map: Corpus.map)
            #expect(
                String(decoding: list.bytes, as: UTF8.self)
                    == String(decoding: expected, as: UTF8.self))
            #expect(list.bytes == expected)
        }
    }

    @Test func `the corpus contains every known tag`() throws {
        let all = try Corpus.names.flatMap { try #require(Corpus.read($0 + ".m3u8")) }
        let text = String(decoding: all, as: UTF8.self)
        for tag in Tag.Name.allCases {
            #expect(text.contains("#" + tag.rawValue), "\(tag.rawValue)")
        }
    }

    @Test(arguments: HLS.Tag.Name.allCases)
    func `every known tag has its own playlist`(name: HLS.Tag.Name) throws {
        let body = try #require(Corpus.read("tag-\(name.rawValue.lowercased()).m3u8"))
        #expect(String(decoding: body, as: UTF8.self).contains("#" + name.rawValue))
    }

    // Text that the caller leaves unchanged is copied byte for byte.
    @Test(arguments: Corpus.names)
    func `a playlist without errors is unchanged if the map declines every URI`(name: String) throws
    {
        let body = try #require(Corpus.read(name + ".m3u8"))
        guard Corpus.read(name + ".refused") == nil,
            name.hasPrefix("rfc-") || name.hasPrefix("tag-")
        else { return }
        var options = PlaylistRewriter.Options()
        options.reading.inheritedVariables = ["from-parent": "parent value"]
        let list = try PlaylistRewriter.rewrite(body, base: Corpus.base, options: options) {
            _, _ in false
        }
        #expect(list.bytes == body)
    }
}

/// The files of `Fixtures/playlists`.
enum Corpus {
    /// Names a host in a form that tests can read.
    static func host(_ host: [UInt8]) -> (name: String, value: [UInt8]) {
        (host.isEmpty ? "p" : "h", host)
    }

    static let base: AbsoluteURL = {
        guard let url = try? AbsoluteURL("https://cdn.example.com/vod/a/list.m3u8?token=t%2Bk&n=7")
        else { fatalError("the corpus base is a URL") }
        return url
    }()

    /// A playlist with the base URL of the corpus, with its lines kept.
    static func list(_ body: [UInt8]) throws(PlaylistError) -> Playlist {
        try Playlist(body, base: base, PlaylistReading(keepsLines: true))
    }

    /// The violations that the rules find in a playlist.
    static func violations(in body: [UInt8]) throws(PlaylistError) -> [Violation] {
        PlaylistRule.violations(
            in: try Playlist(body, base: nil, PlaylistReading(keepsLines: true)))
    }

    static func map(_ reference: ResourceReference, _ output: inout [UInt8]) -> Bool {
        output.append(contentsOf: "/R/".utf8)
        output.append(reference.role.letter)
        output.append(0x2F)
        output.append(contentsOf: reference.url.bytes)
        return true
    }

    private static let folder: String = {
        let parts = #filePath.split(separator: "/").dropLast(3)
        return "/" + parts.joined(separator: "/") + "/Fixtures/playlists"
    }()

    /// The names of all `.m3u8` files without that ending, sorted.
    static let names: [String] = {
        guard let directory = opendir(folder) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { raw in
                String(decoding: raw.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name.hasSuffix(".m3u8") { names.append(String(name.dropLast(5))) }
        }
        return names.sorted()
    }()

    /// The bytes of a file, or nil where it does not exist.
    static func read(_ name: String) -> [UInt8]? {
        guard let file = fopen(folder + "/" + name, "r") else { return nil }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = fread(&chunk, 1, chunk.count, file)
            if count == 0 { return bytes }
            bytes.append(contentsOf: chunk[..<count])
        }
    }
}
