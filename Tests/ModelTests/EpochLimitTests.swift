@testable import Model
import HLS
import Posix
import Store
import Testing
import URISyntax

/// The names that an epoch table remembers beyond its limit.
@Suite struct EpochLimitTests {
    private var epochs = EpochTable(mostNames: 100)

    /// Reads a window of 30 names, the first one shared by all lists.
    private mutating func read(_ list: Int, at time: Int64) throws {
        let names = ["shared"] + (1..<30).map { "\(list)-\($0)" }
        let text =
            "#EXTM3U\n#EXT-X-TARGETDURATION:1\n"
            + names.map { "#EXTINF:1,\n\($0)\n" }.joined()
        let reading = try #require(
            try LiveReading(
                Array(text.utf8), base: try AbsoluteURL("http://h/\(list).m3u8"),
                options: PlaylistReading()))
        let key = ObjectKey(sha256Of: "list \(list)")
        let window = WindowNames(reading, known: epochs.knownNames(of: key, version: 0)) { url, _ in
            ObjectKey(sha256Of: url.text)
        }
        let at = WallTime(seconds: 1_800_000_000 + time)
        _ = epochs.take(
            reading, generation: UInt64(time), EpochTable.Times(requested: at, received: at),
            at: (key, window, 0))
    }

    private func since(_ name: String) -> Int64? {
        epochs.since(ObjectKey(sha256Of: "http://h/\(name)")).map {
            $0.wall.seconds - 1_800_000_000
        }
    }

    @Test mutating func `names of the lists read longest ago are dropped, and no others`() throws {
        for list in 1...3 { try read(list, at: Int64(list)) }
        #expect(since("1-1") == 1 && since("shared") == 1)
        // Now the first list is not the one read longest ago.
        try read(1, at: 4)
        try read(4, at: 5)
        #expect(since("2-1") == nil && since("3-1") == 3)
        #expect(since("1-29") == 1 && since("4-29") == 5 && since("shared") == 1)
        for list in [1, 3, 4] { try read(list, at: Int64(10 + list)) }
        #expect(since("1-29") == 1 && since("3-1") == 3 && since("4-29") == 5)
        #expect(epochs.lists.count == 4)
    }

    @Test func `a window counts with its text and with URLs that the text lacks`() throws {
        /// Returns the bytes of the window of a list with these lines.
        func bytes(_ lines: String, base: String = "http://h/l.m3u8") throws -> Int {
            let text = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n" + lines
            let reading = try #require(
                try LiveReading(
                    Array(text.utf8), base: try AbsoluteURL(base), options: PlaylistReading()))
            let window = WindowNames(reading, known: WindowNames()) { url, _ in
                ObjectKey(sha256Of: url.text)
            }
            return window.byteCount
        }
        let one = try bytes("#EXTINF:1,\na\n")
        let comment = "#" + String(repeating: "x", count: 10_000) + "\n"
        #expect(try bytes(comment + "#EXTINF:1,\na\n") >= one + 10_000)
        let folder = "http://h/" + String(repeating: "d", count: 1_000) + "/l.m3u8"
        #expect(try bytes("#EXTINF:1,\na\n", base: folder) >= one + 1_000)
        let names = (0..<1_000).map { "#EXTINF:1,\n\($0)\n" }.joined()
        #expect(try bytes(names) >= 250 * 1_000)
        // One text in memory for all names of a folder.
        #expect(try bytes(names, base: folder) < bytes(names) + 10_000)
    }

    @Test mutating func `few windows with the same names are bounded in bytes`() throws {
        try read(1, at: 1)
        epochs = EpochTable(mostBytes: 4 * epochs.windowBytes)
        for list in 1...9 {
            try read(list, at: Int64(list))
            #expect(epochs.relation(of: ObjectKey(sha256Of: "list \(list)")) == .first)
        }
        let kept = (1...9).filter {
            epochs.relation(of: ObjectKey(sha256Of: "list \($0)")) != nil
        }
        // An eighth of the limit was made free when the ninth list was read.
        #expect(kept == [7, 8, 9])
        #expect(epochs.lists.count == 9)
    }

    @Test mutating func `the names of a single list stay, however many they are`() throws {
        epochs = EpochTable(mostNames: 10)
        for time in Int64(1)...3 { try read(7, at: time) }
        #expect(since("7-1") == 1 && since("7-29") == 1 && since("shared") == 1)
    }
}
