@testable import Model
import DurableState
import HLS
import Posix
import Routing
import Store
import Testing
import URISyntax

/// Since when the names of live lists have had their meaning, list by list.
@Suite struct `Epochs of names` {
    private let list = ObjectKey(sha256Of: "list")
    private var epochs = EpochTable()
    private var generation: UInt64 = 0
    /// The number of names processed at a time; nil for all.
    private var piece: Int?

    private static func key(_ name: String) -> ObjectKey {
        ObjectKey(sha256Of: "http://h/\(name)")
    }

    /// A window of one-second segments, and its names with their keys.
    private func reading(
        _ first: Int, _ names: [String], head: String = "", tail: String = "",
        of list: ObjectKey? = nil
    ) throws -> (LiveReading, WindowNames) {
        let text =
            "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:\(first)\n\(head)"
            + names.map { "#EXTINF:1,\n\($0)\n" }.joined() + tail
        let reading = try #require(
            try LiveReading(
                Array(text.utf8), base: try AbsoluteURL("http://h/l.m3u8"),
                wasLive: epochs.lists[list ?? self.list] != nil, options: PlaylistReading()))
        let window = WindowNames(
            reading, known: epochs.knownNames(of: list ?? self.list, version: 0)
        ) { url, _ in ObjectKey(sha256Of: url.text) }
        return (reading, window)
    }

    /// Processes a window of one-second segments at a time in seconds.
    @discardableResult
    private mutating func read(
        _ first: Int, _ names: [String], at time: Int64, head: String = "", tail: String = "",
        of list: ObjectKey? = nil, steady: Int64? = nil
    ) throws -> EpochTable.Relation {
        let (reading, window) = try self.reading(first, names, head: head, tail: tail, of: list)
        generation += 1
        let at = WallTime(seconds: 1_800_000_000 + time)
        let times = EpochTable.Times(
            requested: at, received: at, steady: steady.map(Self.steadyTimes))
        let place = (list ?? self.list, window, UInt64(0))
        guard let piece else {
            return epochs.take(reading, generation: generation, times, at: place).relation
        }
        var taking = epochs.begin(reading, generation: generation, times, at: place)
        while epochs.goOn(&taking, names: piece) {
            #expect(!epochs.knows(list ?? self.list, generation: generation))
        }
        #expect(epochs.end(taking) == EpochTable.Dropped())
        #expect(epochs.knows(list ?? self.list, generation: generation))
        return taking.relation
    }

    private static func steadyTimes(_ seconds: Int64) -> SteadyTimes {
        let time = Monotonic(nanoseconds: seconds * 1_000_000_000)
        return SteadyTimes(requested: time, received: time)
    }

    private func since(_ name: String) -> Int64? {
        epochs.since(Self.key(name)).map { $0.wall.seconds - 1_800_000_000 }
    }

    private func epoch(_ name: String) -> Int64 {
        let number = epochs.epoch(of: Self.key(name)).number
        return number == 0 ? 0 : Int64(number) - 1_800_000_000
    }

    @Test mutating func `names of a continuing list keep their meaning`() throws {
        #expect(try read(0, ["a", "b", "c"], at: 0) == .first)
        #expect(try read(1, ["b", "c", "d"], at: 1) == .goesOn)
        #expect(since("b") == 0 && since("d") == 1 && epoch("b") == 0)
    }

    @Test(arguments: [1, 2, 3, 1_000])
    mutating func `a list processed in pieces has the same result as at once`(
        count: Int
    ) throws {
        var other = self
        other.piece = count
        let names = "abcdefghijklm".map(String.init)
        let windows = [
            (10, 0..<5), (12, 2..<9), (13, 3..<9), (14, 4..<10), (0, 0..<6), (3, 3..<13),
        ]
        for (time, (first, range)) in windows.enumerated() {
            let window = Array(names[range])
            let relation = try read(first, window, at: Int64(time))
            #expect(try other.read(first, window, at: Int64(time)) == relation)
            for name in names {
                #expect(other.since(name) == since(name) && other.epoch(name) == epoch(name))
            }
        }
        #expect(epoch("a") == 4)
    }

    @Test
    mutating func `a list that is overtaken while it is processed does not undo the newer one`()
        throws
    {
        try read(0, ["a", "b"], at: 0)
        let (reading, window) = try self.reading(1, ["b", "c"])
        let at = WallTime(seconds: 1_800_000_001)
        var taking = epochs.begin(
            reading, generation: 99, EpochTable.Times(requested: at, received: at),
            at: (list, window, 0))
        #expect(epochs.goOn(&taking, names: 1))
        #expect(try read(2, ["c", "d"], at: 2) == .goesOn)
        while epochs.goOn(&taking, names: 1) {}
        #expect(epochs.end(taking) == EpochTable.Dropped())
        #expect(epochs.lists[list]?.start == 2)
        #expect(try read(3, ["d", "e"], at: 3) == .goesOn)
        #expect(since("d") == 2 && epoch("d") == 0)
    }

    @Test mutating func `a list with restarted numbering begins an epoch`() throws {
        try read(10, ["a", "b", "c"], at: 0)
        #expect(try read(0, ["a"], at: 9) == .reset)
        #expect(epoch("a") == 9 && since("a") == 9 && epoch("c") == 0)
        #expect(try read(0, ["a", "b"], at: 10) == .goesOn)
        #expect(epoch("a") == 9 && epoch("b") == 9)
    }

    @Test(arguments: [["a"], ["a", "b", "c"], ["a", "b", "c", "d", "e", "f"]], [5, 86_400])
    mutating func `a list that had ended and is live again begins an epoch, however long it is`(
        names: [String], time: Int64
    ) throws {
        try read(0, ["a", "b"], at: 0)
        #expect(try read(0, ["a", "b", "c"], at: 1, tail: "#EXT-X-ENDLIST\n") == .goesOn)
        #expect(try read(0, names, at: time) == .reset)
        #expect(epoch("a") == time && since("a") == time)
        #expect(try read(0, names + ["x"], at: time + 1) == .goesOn)
        #expect(epoch("x") == time)
    }

    @Test
    mutating func `a list that goes on after its end, or from before it, begins no epoch`() throws {
        try read(4, ["a", "b", "c"], at: 0)
        try read(5, ["b", "c", "d"], at: 1, tail: "#EXT-X-ENDLIST\n")
        // A cache in between that lags.
        #expect(try read(4, ["a", "b", "c"], at: 2) == .doubtful)
        try read(5, ["b", "c", "d"], at: 3, tail: "#EXT-X-ENDLIST\n")
        #expect(try read(8, ["e"], at: 4) == .goesOn && epoch("e") == 0)
        let date = "#EXT-X-PROGRAM-DATE-TIME:2026-01-01T10:00:00Z\n"
        try read(9, ["f", "g"], at: 5, head: date, tail: "#EXT-X-ENDLIST\n")
        #expect(try read(9, ["f", "g", "h"], at: 60, head: date) == .goesOn && epoch("f") == 0)
    }

    @Test(arguments: [false, true])
    mutating func `a list that is read again as it ended has the same names`(
        restarts: Bool
    ) throws {
        try read(0, ["a", "b"], at: 0)
        try read(0, ["a", "b", "c"], at: 1, tail: "#EXT-X-ENDLIST\n")
        if restarts {
            let kept = try #require(epochs.lists[list])
            epochs = EpochTable()
            epochs.restore(EpochTable.List(kept.record(of: list)), key: list)
        }
        let again = try read(0, ["a", "b", "c"], at: 86_400, tail: "#EXT-X-ENDLIST\n")
        #expect(again == (restarts ? .doubtful : .same))
        #expect(since("a") == (restarts ? 1 : 0) && since("c") == 1)
        #expect(try read(0, ["a", "b", "c"], at: 90_000, tail: "#EXT-X-ENDLIST\n") == .same)
        #expect(epochs.lists[list]?.received.wall == WallTime(seconds: 1_800_000_001))
        #expect(try read(0, ["a"], at: 90_001) == .reset)
    }

    @Test mutating func `a list that was cut in the middle of a name begins no epoch`() throws {
        let names = (0..<10).map { "n\($0).ts" }
        try read(5, names, at: 0)
        #expect(try read(5, Array(names[..<3]) + ["n3"], at: 1) == .doubtful)
        #expect(try read(6, Array(names[1...]) + ["n10.ts"], at: 2) == .goesOn)
        #expect(names.allSatisfy { epoch($0) == 0 } && epoch("n10.ts") == 0)
    }

    @Test mutating func `a list that was taken for cut enters the epoch that another one began`()
        throws
    {
        let other = ObjectKey(sha256Of: "other")
        let names = (0..<10).map { "n\($0).ts" }
        try read(15, names, at: 0)
        try read(5, names, at: 0, of: other)
        #expect(try read(5, Array(names[..<2]), at: 3) == .reset)
        #expect(try read(5, Array(names[..<2]), at: 4, of: other) == .doubtful)
        #expect(try read(5, Array(names[..<3]), at: 5, of: other) == .reset)
        #expect(names[..<3].allSatisfy { epoch($0) == 3 })
    }

    @Test mutating func `names of a list that went back by a few segments are revalidated`() throws
    {
        try read(10, ["a", "b", "c"], at: 5)
        #expect(try read(9, ["z", "a", "b"], at: 6) == .doubtful)
        #expect(epoch("a") == 0 && since("a") == 6)
    }

    /// The parts of a segment that is not complete, and the one that is announced.
    private func parts(_ listed: [String], hint: String) -> String {
        listed.map { "#EXT-X-PART:DURATION=0.3,URI=\"\($0)\n" }.joined()
            + "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"\(hint)\n"
    }

    @Test mutating func `parts from before a list went back a little are revalidated again`()
        throws
    {
        try read(10, ["a", "b"], at: 4, tail: parts(["c0\"", "c1\""], hint: "c2\""))
        try read(10, ["a", "b", "c"], at: 5, tail: parts(["d0\""], hint: "d1\""))
        let back = try read(9, ["z", "a", "b"], at: 6, tail: parts(["c0\""], hint: "c1\""))
        #expect(back == .doubtful && since("c0") == 6 && since("c1") == 6)
        try read(9, ["z", "a", "b"], at: 7, tail: parts(["c0\"", "c1\""], hint: "c2\""))
        #expect(since("c1") == 6 && since("c2") == 7)
        try read(10, ["a", "b", "c"], at: 8, tail: parts(["d0\""], hint: "d1\""))
        #expect(since("c2") == 7 && since("c") == 8 && since("d0") == 8 && since("d1") == 8)
        try read(10, ["a", "b", "c"], at: 9, tail: parts(["d0\"", "d1\""], hint: "d2\""))
        #expect(since("d0") == 8 && since("d1") == 8 && since("d2") == 9)
    }

    @Test mutating func `ranges from before a list went back a little are revalidated again`()
        throws
    {
        let first = "d\",BYTERANGE=\"9@0\""
        let next = "d\",BYTERANGE-START=9"
        try read(10, ["a", "b", "c"], at: 5, tail: parts([first], hint: next))
        let start = "c\",BYTERANGE=\"9@0\""
        let rest = "c\",BYTERANGE-START=9"
        let back = try read(9, ["z", "a", "b"], at: 6, tail: parts([start], hint: rest))
        #expect(back == .doubtful && since("c") == 6)
        try read(10, ["a", "b", "c"], at: 7, tail: parts([], hint: "d\",BYTERANGE-START=0"))
        #expect(since("c") == 6 && since("d") == 7)
        try read(10, ["a", "b", "c"], at: 8, tail: parts([first], hint: next))
        #expect(since("d") == 7 && epoch("d") == 0)
    }

    /// Names of segments in a window whose key is `k`, with a line for it before some.
    private func keyed(_ names: String...) -> [String] {
        names.map { $0.replacing("!", with: "\n#EXT-X-KEY:METHOD=AES-128,URI=\"k\",IV=0x1") }
    }

    private static let key = "#EXT-X-KEY:METHOD=AES-128,URI=\"k\",IV=0x0\n"

    @Test mutating func `a key is revalidated once a new line names it again`() throws {
        try read(10, ["a", "b", "c"], at: 0, head: Self.key)
        try read(11, keyed("b", "c!", "d"), at: 1, head: Self.key)
        #expect(since("k") == 1 && epoch("k") == 0)
        try read(12, keyed("c!", "d", "e"), at: 2, head: Self.key)
        try read(13, ["d", "e", "f"], at: 3, head: Self.key)
        #expect(since("k") == 1)
    }

    @Test mutating func `a new line for a key that two renditions share is noticed once`() throws {
        let other = ObjectKey(sha256Of: "other")
        try read(10, ["a", "b", "c"], at: 0, head: Self.key)
        try read(10, ["A", "B", "C"], at: 1, head: Self.key, of: other)
        try read(11, keyed("b", "c!", "d"), at: 2, head: Self.key)
        try read(11, keyed("B", "C!", "D"), at: 3, head: Self.key, of: other)
        #expect(since("k") == 2)
    }

    @Test mutating func `a key with a line for each segment is not revalidated`() throws {
        try read(10, keyed("a!", "b!", "c"), at: 0, head: Self.key)
        try read(11, keyed("b!", "c!", "d"), at: 1, head: Self.key)
        try read(13, keyed("d!", "e!", "f"), at: 3, head: Self.key)
        #expect(since("k") == 0)
    }

    @Test mutating func `a new line is noticed once, however often a list of parts shows it`()
        throws
    {
        try read(10, ["a", "b", "c"], at: 0, head: Self.key)
        for (time, part) in zip(Int64(1)..., ["c0\"", "c1\"", "c2\""]) {
            let tail = Self.key + parts([part], hint: "c3\"")
            try read(10, ["a", "b", "c"], at: time, head: Self.key, tail: tail)
        }
        #expect(since("k") == 1)
        try read(11, keyed("b", "c!", "d"), at: 4, head: Self.key)
        #expect(since("k") == 1)
    }

    @Test mutating func `names from before a list went back a little are revalidated again`()
        throws
    {
        try read(10, ["a", "b", "c", "d"], at: 5)
        #expect(try read(9, ["z", "a", "b"], at: 6) == .doubtful)
        #expect(try read(10, ["a", "b", "c"], at: 7) == .goesOn)
        #expect(since("b") == 6 && since("c") == 7 && epoch("c") == 0)
        #expect(try read(11, ["b", "c", "d"], at: 8) == .goesOn)
        #expect(since("c") == 7 && since("d") == 8)
    }

    @Test mutating func `names that should have left the window are revalidated`() throws {
        try read(1_000, ["a", "b", "c"], at: 0)
        #expect(try read(1_001, ["b", "c", "d"], at: 60) == .doubtful)
        #expect(since("b") == 60 && epoch("b") == 0)
    }

    @Test(
        arguments: [
            (33, 1, .goesOn), (53, 1, .reset), (500, 50, .doubtful), (3_000, 50, .reset),
            (3_000, 3_000, .doubtful), (.max - 9, 1, .reset),
        ] as [(Int, Int64, EpochTable.Relation)])
    mutating func `numbers that leap farther than time has passed begin an epoch`(
        first: Int, time: Int64, relation: EpochTable.Relation
    ) throws {
        let map = "#EXT-X-MAP:URI=\"init\"\n"
        try read(10, ["a", "b", "c"], at: 0, head: map)
        #expect(try read(first, ["x", "y", "z"], at: time, head: map) == relation)
        #expect(epoch("init") == (relation == .reset ? time : 0))
        #expect(epoch("x") == epoch("init"))
    }

    @Test mutating func `dates prove that a list continues, or does not`() throws {
        let date = "#EXT-X-PROGRAM-DATE-TIME:2026-01-01T10:00:"
        try read(5, ["a", "b", "c"], at: 0, head: date + "00Z\n")
        #expect(try read(6, ["b", "c", "d"], at: 90, head: date + "01Z\n") == .goesOn)
        #expect(since("b") == 0)
        #expect(try read(6, ["b", "c", "d"], at: 95, head: date + "40Z\n") == .reset)
        #expect(epoch("b") == 95)
    }

    @Test mutating func `a discontinuity sequence that decreases begins an epoch`() throws {
        try read(5, ["a", "b"], at: 0, head: "#EXT-X-DISCONTINUITY-SEQUENCE:4\n")
        #expect(
            try read(5, ["a", "b"], at: 1, head: "#EXT-X-DISCONTINUITY-SEQUENCE:0\n") == .reset)
    }

    @Test mutating func `a name that returns at another number is revalidated`() throws {
        try read(10, ["a", "b"], at: 0)
        try read(11, ["b", "c"], at: 1)
        #expect(try read(12, ["c", "a"], at: 2) == .goesOn)
        #expect(since("a") == 2 && epoch("a") == 0 && since("c") == 1)
    }

    @Test
    mutating func `a name at several positions of a window is not revalidated for that reason`()
        throws
    {
        try read(10, ["black", "a", "black"], at: 0)
        try read(11, ["a", "black", "black"], at: 1)
        #expect(since("black") == 0)
    }

    @Test mutating func `two lists with the same names begin a new epoch once`() throws {
        let other = ObjectKey(sha256Of: "other")
        try read(10, ["a", "b"], at: 0)
        try read(10, ["a", "b"], at: 0, of: other)
        #expect(try read(0, ["a", "b"], at: 5) == .reset)
        #expect(try read(0, ["a", "b"], at: 6, of: other) == .reset)
        #expect(epoch("a") == 5 && epoch("b") == 5)
    }

    @Test
    mutating func
        `a list with restarted numbering begins an epoch even if another list was doubtful`()
        throws
    {
        let other = ObjectKey(sha256Of: "other")
        try read(30, ["a", "b"], at: 0)
        #expect(try read(10, ["a", "b"], at: 1) == .reset)
        try read(10, ["a", "b"], at: 2, of: other)
        #expect(try read(9, ["a", "b"], at: 3, of: other) == .doubtful)
        #expect(epoch("a") == 1 && since("a") == 3)
        #expect(try read(0, ["a"], at: 5) == .reset)
        #expect(epoch("a") == 5 && since("a") == 5)
    }

    @Test mutating func `names that have left their window are forgotten eventually`() throws {
        for number in 0..<5_000 { try read(number, ["s\(number)"], at: Int64(number)) }
        #expect(since("s4999") == 4_999 && since("s4000") == 4_000)
        #expect(since("s2000") == nil)
    }

    @Test mutating func `restarted numbering is noticed after the wall clock was set back`()
        throws
    {
        try read(10, ["a", "b"], at: 0, steady: 0)
        try read(11, ["b", "c"], at: 2, steady: 2)
        #expect(try read(0, ["a", "b"], at: -7_200, steady: 5) == .reset)
        #expect(epoch("a") != 0)
        #expect(try read(1, ["b", "c"], at: -7_198, steady: 7) == .goesOn)
        // Received before that, and processed later.
        #expect(try read(0, ["a", "b"], at: -7_199, steady: 6) == .same)
        let since = try #require(epochs.since(Self.key("a")))
        // By the wall clock, the bytes of the former epoch were received hours later.
        let came = { (time: Int64) in WallTime(seconds: 1_800_000_000 + time) }
        #expect(since.isAfter(Self.steadyTimes(4), responseTime: came(1)))
        #expect(!since.isAfter(Self.steadyTimes(6), responseTime: came(-7_199)))
        #expect(since.isAfter(nil, responseTime: came(1)))
        #expect(!since.isAfter(nil, responseTime: came(60)))
    }

    @Test mutating func `the wall clock of an earlier run does not order lists of the current one`()
        throws
    {
        try read(10, ["a", "b"], at: 7_200)
        let kept = try #require(epochs.lists[list])
        epochs = EpochTable()
        epochs.restore(EpochTable.List(kept.record(of: list)), key: list)
        #expect(try read(11, ["b", "c"], at: 0, steady: 0) == .doubtful)
        #expect(try read(0, ["a"], at: 1, steady: 1) == .reset)
    }

    @Test mutating func `the state of a list is restored in the next run`() throws {
        try read(10, ["a", "b"], at: 0)
        try read(0, ["a", "b"], at: 5)
        var kept = try #require(epochs.lists[list])
        kept.storedEnd = nil
        let restored = EpochTable.List(kept.record(of: list))
        #expect(restored == kept)
        epochs = EpochTable()
        epochs.restore(restored, key: list)
        try read(1, ["b", "c"], at: 6)
        #expect(epoch("b") == 5 && since("b") == 6 && epoch("c") == 5)
    }
}
