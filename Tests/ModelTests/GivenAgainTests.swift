import DurableState
import HLS
import Posix
import Store
import Testing
import URISyntax

@testable import Model

/// Names that a list which goes on gives again, while a longer window is read from it.
@Suite struct GivenAgainTests {
    private let list = ObjectKey(sha256Of: "list")
    private var epochs = EpochTable()
    private var generation: UInt64 = 0

    private static let key = "#EXT-X-KEY:METHOD=AES-128,URI=\"k\",IV=0x1\n"
    private static let map = "#EXT-X-MAP:URI=\"init\"\n"

    private func name(_ name: String) -> ObjectKey { ObjectKey(sha256Of: "http://h/\(name)") }

    /// The seconds of the epoch of a name, at a number of the list; 0 for the first epoch.
    private func epoch(_ text: String, at number: Int = .max) -> Int64 {
        let number = epochs.epoch(of: name(text), at: number, in: list).number
        return number == 0 ? 0 : Int64(number) - 1_800_000_000
    }

    @discardableResult
    private mutating func ring(
        _ numbers: Range<Int>, of other: ObjectKey? = nil, at time: Int64
    ) throws -> EpochTable.Relation {
        generation += 1
        return try epochs.read(
            numbers, of: other ?? list, generation: generation, at: time, steady: time, ring: 8)
    }

    /// Reads a window of one-second segments, with tags before some of them.
    private mutating func read(
        _ numbers: Range<Int>, _ tags: [Int: String], names: [String]? = nil,
        statesNumber: Bool = true, at time: Int64
    ) throws {
        generation += 1
        let number = statesNumber ? "#EXT-X-MEDIA-SEQUENCE:\(numbers.lowerBound)\n" : ""
        let head = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n" + number
        let names = names ?? numbers.map { "s\($0)" }
        let text = zip(numbers, names).reduce(head) { text, segment in
            text + tags[segment.0, default: ""] + "#EXTINF:1,\n\(segment.1)\n"
        }
        let reading = try #require(
            try LiveReading(
                Array(text.utf8), base: try AbsoluteURL("http://h/l.m3u8"),
                options: PlaylistReading()))
        let window = WindowNames(reading, known: epochs.knownNames(of: list, version: 0)) {
            url, _ in
            ObjectKey(sha256Of: url.text)
        }
        let at = WallTime(seconds: 1_800_000_000 + time)
        _ = epochs.take(
            reading, generation: generation, EpochTable.Times(requested: at, received: at),
            at: (list, window, 0))
    }

    @Test(arguments: [true, false])
    mutating func `a name of a ring begins an epoch of its own at its new number`(
        isExtended: Bool
    ) throws {
        try ring(10..<15, at: 0)
        if isExtended { epochs.noteExtended(list) }
        for step in 1...4 as ClosedRange<Int> {
            try ring((10 + step)..<(15 + step), at: Int64(step))
        }
        // 18 has the name of 10.
        #expect(epochs.since(name("s2"))?.wall == WallTime(seconds: 1_800_000_004))
        #expect(epoch("s2", at: 10) == 0 && epoch("s2", at: 18) == (isExtended ? 4 : 0))
        #expect(epoch("s3") == 0)
        #expect(epochs.lists[list]?.epoch == .first)
        for step in 5...12 as ClosedRange<Int> {
            try ring((10 + step)..<(15 + step), at: Int64(step))
        }
        #expect(epoch("s2", at: 18) == (isExtended ? 4 : 0))
        #expect(epoch("s2", at: 26) == (isExtended ? 12 : 0))
        // A new epoch of the list comes after those of its names.
        #expect(try ring(0..<4, at: 13) == .reset)
        #expect(epoch("s2") == 13)
    }

    @Test mutating func `a list that slides without a number gives a name again once it had left`()
        throws
    {
        for step in 0...9 as ClosedRange<Int> {
            let names = (step..<(step + 4)).map { "r\($0 % 6)" }
            try read(0..<4, [:], names: names, statesNumber: false, at: Int64(step))
            if step == 0 { epochs.noteExtended(list) }
        }
        // Segment 6 has the name of 0 and is listed from the third second on, 12 from the ninth.
        #expect((0..<6).map { epoch("r\($0)") } == [9, 4, 5, 6, 7, 8])
        #expect(epochs.lists[list]?.epoch == .first)
    }

    @Test mutating func `section and key begin an epoch behind a discontinuity, and not before it`()
        throws
    {
        let tags = Self.key + Self.map
        try read(10..<13, [10: tags], at: 0)
        epochs.noteExtended(list)
        // 13 is new, too, and still needs the former key.
        try read(11..<15, [11: tags, 14: "#EXT-X-DISCONTINUITY\n" + tags], at: 2)
        for name in ["k", "init"] { #expect(epoch(name, at: 13) == 0 && epoch(name, at: 14) == 2) }
        // Another rendition that shares the key may be at any number.
        let other = ObjectKey(sha256Of: "other")
        #expect(epochs.epoch(of: name("k"), at: 13, in: other).number == 1_800_000_002)
        try read(12..<16, [12: tags, 14: "#EXT-X-DISCONTINUITY\n" + tags], at: 3)
        #expect(epoch("k") == 2 && epoch("init") == 2)
    }

    /// Reads a window of a list whose key changes with every second segment, in a ring of three.
    private mutating func readKeyRing(_ numbers: Range<Int>, at time: Int64) throws {
        var lines: [Int: String] = [:]
        for number in numbers where number % 2 == 0 || number == numbers.lowerBound {
            let name = "k\(number / 2 % 3)"
            lines[number] = "#EXT-X-KEY:METHOD=AES-128,URI=\"\(name)\",IV=0x1\n"
        }
        try read(numbers, lines, at: time)
    }

    @Test(arguments: [true, false])
    mutating func `a key of a ring begins an epoch with the line that names it again`(
        isExtended: Bool
    ) throws {
        try readKeyRing(10..<13, at: 0)
        if isExtended { epochs.noteExtended(list) }
        for step in 1...10 as ClosedRange<Int> {
            try readKeyRing((10 + step)..<(13 + step), at: Int64(step))
            // 16 has the key name of 10, which left the window two readings before.
            if step == 5 {
                #expect(epochs.since(name("k2"))?.wall == WallTime(seconds: 1_800_000_004))
                #expect(epoch("k2", at: 15) == 0 && epoch("k2", at: 16) == (isExtended ? 4 : 0))
            }
        }
        #expect(epoch("k0", at: 17) == 0 && epoch("k0", at: 18) == (isExtended ? 6 : 0))
        #expect(epoch("k2", at: 22) == (isExtended ? 10 : 0))
        #expect(epochs.lists[list]?.epoch == .first)
    }

    /// The window moves by one segment or two; each key leaves it before it returns, as it returns,
    /// or later.
    @Test(arguments: 2...6, 1...5)
    mutating func `a ring of two keys is noticed whatever its window and its rotation`(
        size: Int, rotation: Int
    ) throws {
        for stride in 1..<min(size, 3) {
            epochs = EpochTable()
            var given = ["k0": 0, "k1": 0]
            for step in 0..<20 {
                let start = step * stride
                let numbers = start..<(start + size)
                let known = step == 0 ? 0 : start - stride + size
                var lines: [Int: String] = [:]
                for number in numbers where number % rotation == 0 || number == start {
                    let name = "k\(number / rotation % 2)"
                    lines[number] = "#EXT-X-KEY:METHOD=AES-128,URI=\"\(name)\",IV=0x1\n"
                    if number >= known, number % rotation == 0 { given[name] = start }
                }
                try read(numbers, lines, at: Int64(start))
                for (name, time) in given {
                    guard let since = epochs.since(self.name(name)) else { continue }
                    #expect(
                        since.wall == WallTime(seconds: 1_800_000_000 + Int64(time)),
                        "\(name) in \(numbers)")
                }
            }
        }
    }

    @Test mutating func `a key that a delta update names after another one is noticed`()
        throws
    {
        let lines = ["a", "b"].map { "#EXT-X-KEY:METHOD=AES-128,URI=\"\($0)\",IV=0x1\n" }
        try read(0..<6, [0: lines[0], 3: lines[1]], at: 0)
        let skip = "#EXT-X-SKIP:SKIPPED-SEGMENTS=4\n"
        try read(1..<3, [1: skip, 2: lines[0]], names: ["s5", "s6"], at: 1)
        #expect(epochs.since(name("a"))?.wall == WallTime(seconds: 1_800_000_001))
        // A line for each segment repeats the key in force.
        try read(2..<4, [2: skip, 3: lines[0]], names: ["s6", "s7"], at: 2)
        #expect(epochs.since(name("a"))?.wall == WallTime(seconds: 1_800_000_001))
        #expect(epochs.since(name("b"))?.wall == WallTime(seconds: 1_800_000_000))
    }

    @Test mutating func `a key that stays, or that a lagging list repeats, begins no epoch`()
        throws
    {
        try readKeyRing(10..<13, at: 0)
        epochs.noteExtended(list)
        try readKeyRing(9..<12, at: 1)
        // The line of 12 is the one that was known.
        try readKeyRing(10..<13, at: 2)
        for key in ["k0", "k1", "k2"] { #expect(epoch(key) == 0) }
        for first in 13...20 as ClosedRange<Int> {
            try read(first..<(first + 3), [first: Self.key], at: Int64(first))
        }
        #expect(epoch("k") == 0)
        #expect(epochs.since(name("k"))?.wall == WallTime(seconds: 1_800_000_013))
        #expect(epochs.lists[list]?.namesEpoch == nil)
    }

    @Test mutating func `a name at several places of a window begins no epoch`() throws {
        try read(10..<13, [:], names: ["black", "a", "black"], at: 0)
        epochs.noteExtended(list)
        try read(11..<14, [:], names: ["a", "black", "black"], at: 1)
        try read(13..<15, [:], names: ["black", "b"], at: 3)
        #expect(epoch("black") == 0)
    }

    @Test mutating func `after a restart all names begin later than any that was given again`()
        throws
    {
        try read(10..<13, [10: Self.key], at: 0)
        epochs.noteExtended(list)
        try read(11..<14, [11: Self.key, 13: "#EXT-X-DISCONTINUITY\n" + Self.key], at: 1)
        #expect(epoch("k") == 1)
        let kept = try #require(epochs.lists[list])
        let record = kept.record(of: list)
        #expect(record.isValid && record.namesEpoch == 1_800_000_001)
        epochs = EpochTable()
        epochs.restore(EpochTable.List(record), key: list)
        // The stored text is read first.
        try read(11..<14, [11: Self.key, 13: "#EXT-X-DISCONTINUITY\n" + Self.key], at: 1)
        #expect(epoch("k") == 2 && epoch("s11") == 2)
        try read(12..<15, [12: Self.key, 13: "#EXT-X-DISCONTINUITY\n" + Self.key], at: 2)
        #expect(epoch("k") == 2 && epoch("s14") == 2)
        #expect(epochs.lists[list]?.epoch == .first)
    }

    @Test(arguments: [1, 2, 6])
    mutating func `a name of a ring is given again in each of several lists that are read in turn`(
        count: Int
    ) throws {
        // A recording reads a list of its own, and each user with credentials does.
        let lists = [list] + (1..<count).map { ObjectKey(sha256Of: "list \($0)") }
        for step in 0...12 {
            for (place, list) in lists.enumerated() {
                try ring((10 + step)..<(15 + step), of: list, at: Int64(step * 7 + place))
                epochs.noteExtended(list)
            }
            if step == 4 { #expect(epoch("s2", at: 18) == 28) }
        }
        #expect(epoch("s2", at: 18) == 28 && epoch("s2", at: 26) == 84)
        for list in lists.dropFirst() {
            #expect(epochs.epoch(of: name("s2"), at: 26, in: list).number == 1_800_000_084)
        }
        #expect(epochs.since(name("s2"))?.wall == WallTime(seconds: 1_800_000_084))
    }

    @Test mutating func `a name that two lists give again at the same time begins one epoch`()
        throws
    {
        let other = ObjectKey(sha256Of: "other")
        for list in [list, other] {
            try ring(10..<15, of: list, at: 0)
            epochs.noteExtended(list)
        }
        try ring(11..<16, of: other, at: 4)
        // Requested before the last text of the other list was received.
        generation += 1
        _ = try epochs.read(
            14..<19, of: list, generation: generation, at: 5, requested: 3, steady: 5,
            ring: 8)
        #expect(epoch("s2", at: 18) == 3)
        try ring(14..<19, of: other, at: 5)
        #expect(epochs.epoch(of: name("s2"), at: 18, in: other).number == 1_800_000_003)
        #expect(epoch("s2", at: 18) == 3)
    }

    @Test mutating func `a name that other lists showed is given again where its list shows it`()
        throws
    {
        let other = ObjectKey(sha256Of: "other")
        try ring(10..<15, at: 0)
        // It counts its segments in another way, and is read no more.
        try ring(102..<107, of: other, at: 0)
        try ring(14..<19, at: 4)
        #expect(epochs.since(name("s2"))?.wall == WallTime(seconds: 1_800_000_004))
        #expect(epochs.since(name("s6"))?.wall == WallTime(seconds: 1_800_000_000))
    }
}
