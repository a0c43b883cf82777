@testable import Model
import FuzzSupport
import HLS
import Store
import Testing
import URISyntax

/// The names of a live window compared with those of the previous one.
@Suite struct WindowNamesTests {
    private static func reading(_ names: [String], head: String = "") throws -> LiveReading {
        let text =
            "#EXTM3U\n#EXT-X-TARGETDURATION:1\n" + head
            + names.map { "#EXTINF:1,\n\($0)\n" }.joined()
        return try #require(
            try LiveReading(
                Array(text.utf8), base: try AbsoluteURL("http://h/d/l.m3u8"),
                options: PlaylistReading()))
    }

    private static func key(_ url: AbsoluteURL) -> ObjectKey { ObjectKey(sha256Of: url.text) }

    /// The names of a list, and those for which a key was made.
    private static func names(
        _ names: [String], after known: WindowNames = WindowNames()
    ) throws -> (window: WindowNames, made: [String]) {
        var made: [String] = []
        let window = WindowNames(try reading(names), known: known) { url, _ in
            made.append(url.lastPathSegment)
            return key(url)
        }
        return (window, made)
    }

    @Test func `a key is made only for names that are new in the window`() throws {
        let first = try Self.names((0..<40).map { "v/\($0).ts?t=1" })
        #expect(first.made.count == 40)
        let second = try Self.names((3..<42).map { "v/\($0).ts?t=1" }, after: first.window)
        #expect(second.made == ["40.ts", "41.ts"])
    }

    @Test func `a key is made once for a name at several positions`() throws {
        let window = try Self.names(["black.ts", "a.ts", "black.ts", "b.ts", "black.ts"])
        #expect(window.made == ["black.ts", "a.ts", "b.ts"])
    }

    @Test func `every name has its own key, whatever the previous window was`() throws {
        var dice = SeededNumbers(seed: 1)
        let folders = ["", "a/", "b/", "../", "https://g/x/", "a/b/"]
        func list() -> [String] {
            (0..<Int.random(in: 0..<30, using: &dice)).map { _ in
                (folders.randomElement(using: &dice) ?? "")
                    + "\(Int.random(in: 0..<12, using: &dice)).ts"
                    + (Bool.random(using: &dice) ? "" : "?a/b=\(Int.random(in: 0..<3))")
            }
        }
        var known = WindowNames()
        for _ in 0..<200 {
            let names = list()
            let reading = try Self.reading(names)
            known = WindowNames(reading, known: known) { url, _ in Self.key(url) }
            #expect(known.keys == reading.names.map { Self.key($0.place.url) }, "\(names)")
        }
    }

    @Test func `searching a window of only new names is limited`() throws {
        let count = 3_000
        let known = try Self.names((0..<count).map { "\($0).ts" }).window
        var search = WindowNames.Search(in: known)
        for name in try Self.reading((0..<count).map { "\($0).ts?new" }).names {
            #expect(search.find(name.place, name.place.tailDigest) == nil)
        }
        #expect(search.misses == 8 * count + 1_024)
    }

    @Test func `dates follow from durations if they are absent`() throws {
        let date = "#EXT-X-PROGRAM-DATE-TIME:1970-01-01T00:00:"
        let reading = try Self.reading(
            ["a.ts", "b.ts", date + "09Z\nc.ts", "d.ts"],
            head: "#EXT-X-MEDIA-SEQUENCE:7\n" + date + "05Z\n")
        #expect(reading.dates == [7: 5_000, 8: 6_000, 9: 9_000, 10: 10_000])
        let undated = try Self.reading(["a.ts", date + "09Z\nb.ts"])
        #expect(undated.dates == [1: 9_000])
    }
}
