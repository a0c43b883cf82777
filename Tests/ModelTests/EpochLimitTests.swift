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

    @Test mutating func `the names of a single list stay, however many they are`() throws {
        epochs = EpochTable(mostNames: 10)
        for time in Int64(1)...3 { try read(7, at: time) }
        #expect(since("7-1") == 1 && since("7-29") == 1 && since("shared") == 1)
    }
}
