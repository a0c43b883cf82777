@testable import Model
import HLS
import Posix
import Store
import Testing
import URISyntax

/// The lists that an epoch table remembers, and their last windows.
@Suite struct EpochListLimitTests {
    private var epochs = EpochTable()

    private static func key(_ list: String) -> ObjectKey { ObjectKey(sha256Of: "list \(list)") }

    private static func name(_ name: String) -> ObjectKey {
        ObjectKey(sha256Of: "http://h/\(name)")
    }

    /// Reads a window of one-second segments at a time in seconds.
    @discardableResult
    private mutating func read(
        _ list: String, _ first: Int, _ names: [String], at time: Int64, head: String = ""
    ) throws -> (relation: EpochTable.Relation, dropped: EpochTable.Dropped) {
        let text =
            "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:\(first)\n\(head)"
            + names.map { "#EXTINF:1,\n\($0)\n" }.joined()
        let reading = try #require(
            try LiveReading(
                Array(text.utf8), base: try AbsoluteURL("http://h/\(list).m3u8"),
                options: PlaylistReading()))
        let key = Self.key(list)
        let window = WindowNames(reading, known: epochs.knownNames(of: key, version: 0)) { url, _ in
            ObjectKey(sha256Of: url.text)
        }
        let at = WallTime(seconds: 1_800_000_000 + time)
        return epochs.take(
            reading, generation: UInt64(time), EpochTable.Times(requested: at, received: at),
            at: (key, window, 0))
    }

    @Test mutating func `an origin that counts anew is noticed among thousands of lists`() throws {
        try read("own", 100, ["s100", "s101", "s102"], at: 0)
        for other in 0..<1_100 { try read("\(other)", 0, ["\(other)-0"], at: 1) }
        // The names of a list that goes on keep their meaning, so that nothing is revalidated.
        #expect(try read("own", 101, ["s101", "s102", "s103"], at: 2).relation == .goesOn)
        #expect(epochs.since(Self.name("s102"))?.wall.seconds == 1_800_000_000)
        for other in 0..<1_100 { try read("\(other)", 1, ["\(other)-1"], at: 3) }
        #expect(try read("own", 1, ["s1", "s2", "s3"], at: 4).relation == .reset)
        for other in 0..<1_100 { try read("\(other)", 2, ["\(other)-2"], at: 5) }
        // What was stored of an earlier run under these names has another key.
        #expect(epochs.epoch(of: Self.name("s3")) > .first)
        #expect(epochs.since(Self.name("s3"))?.wall.seconds == 1_800_000_004)
    }

    @Test mutating func `many windows with the same names are bounded, and heads stay`() throws {
        let date = "#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:00Z\n"
        try read("0", 5, ["a", "b", "c"], at: 0, head: date)
        let count = 64
        epochs = EpochTable(mostBytes: count * epochs.windowBytes)
        for list in 0..<count {
            let dropped = try read("\(list)", 5, ["a", "b", "c"], at: Int64(list), head: date)
            #expect(dropped.dropped == EpochTable.Dropped())
        }
        let last = try read("\(count)", 5, ["a", "b", "c"], at: Int64(count), head: date)
        let room = count / 8
        #expect(last.dropped == EpochTable.Dropped(windows: (0...room).map { Self.key("\($0)") }))
        #expect(epochs.relation(of: Self.key("\(room)")) == nil)
        #expect(epochs.relation(of: Self.key("\(room + 1)")) == .first)
        #expect(epochs.since(Self.name("a")) != nil)
        // Of its dates, one is enough to notice that the origin counts anew.
        let head = try #require(epochs.lists[Self.key("0")])
        let kept = epochs.lists[Self.key("\(room + 1)")]
        #expect(head.dates.keys.sorted() == [7] && kept?.dates.count == 3)
        // Not each further list causes a search for the oldest.
        for list in count + 1...count + room {
            let dropped = try read("\(list)", 5, ["a", "b", "c"], at: Int64(list), head: date)
            #expect(dropped.dropped == EpochTable.Dropped())
        }
        let time = Int64(count + room + 1)
        #expect(try read("0", 0, ["a", "b"], at: time).relation == .reset)
    }

    @Test mutating func `of too many lists those read longest ago are forgotten`() throws {
        epochs = EpochTable(mostLists: 64)
        for list in 0..<64 {
            let dropped = try read("\(list)", 0, ["\(list)"], at: Int64(list)).dropped
            #expect(dropped == EpochTable.Dropped())
        }
        let dropped = try read("64", 0, ["64"], at: 64).dropped
        #expect(dropped == EpochTable.Dropped(lists: [Self.key("0"), Self.key("1")]))
        #expect(epochs.lists.count == 63 && epochs.lists[Self.key("2")] != nil)
    }
}
