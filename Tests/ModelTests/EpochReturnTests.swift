@testable import Model
import HLS
import Posix
import Store
import Testing
import URISyntax

/// Live lists that are empty once, or go back as from a lagging cache.
@Suite struct EpochReturnTests {
    private let list = ObjectKey(sha256Of: "list")
    private var epochs = EpochTable()
    private var generation: UInt64 = 0

    /// Reads a window of one-second segments with these numbers, received at a time in seconds.
    @discardableResult
    private mutating func read(
        _ numbers: Range<Int>, at time: Int64
    ) throws -> EpochTable.Relation {
        generation += 1
        return try epochs.read(numbers, of: list, generation: generation, at: time)
    }

    private static func key(_ number: Int) -> ObjectKey {
        ObjectKey(sha256Of: "http://h/s\(number)")
    }

    private func since(_ number: Int) -> Int64? {
        epochs.since(Self.key(number)).map { $0.wall.seconds - 1_800_000_000 }
    }

    private func isInFirstEpoch(_ number: Int) -> Bool {
        epochs.epoch(of: Self.key(number)) == .first
    }

    @Test(arguments: [0..<0, 95..<95, 500..<500])
    mutating func `a reading without segments changes nothing`(empty: Range<Int>) throws {
        try read(95..<102, at: 0)
        let before = epochs.lists[list]
        #expect(try read(empty, at: 2) == .empty)
        #expect(epochs.lists[list] == before && epochs.relation(of: list) == .empty)
        #expect(epochs.knows(list, generation: generation), "it is not read again")
        #expect(epochs.knownNames(of: list, version: 0).keys == (95..<102).map(Self.key))
        #expect(try read(96..<103, at: 4) == .goesOn)
        #expect(since(96) == 0 && since(102) == 4 && isInFirstEpoch(102))
    }

    @Test mutating func `restarted numbering behind a reading without segments begins an epoch`()
        throws
    {
        try read(95..<102, at: 0)
        #expect(try read(0..<0, at: 2) == .empty)
        #expect(try read(0..<1, at: 4) == .reset)
        #expect(!isInFirstEpoch(0) && since(0) == 4)
        #expect(try read(0..<2, at: 5) == .goesOn)
        #expect(!isInFirstEpoch(1))
    }

    @Test mutating func `a list that was restored is not changed by a reading without segments`()
        throws
    {
        try read(95..<102, at: 0)
        let kept = try #require(epochs.lists[list])
        epochs = EpochTable()
        epochs.restore(kept, key: list)
        #expect(try read(0..<0, at: 2) == .empty)
        #expect(epochs.lists[list] == kept && epochs.relation(of: list) == nil)
        #expect(try read(96..<103, at: 4) == .goesOn)
    }

    /// The window before begins at `former`, and each has 30 segments.
    @Test(
        arguments: [
            (95, 90, 2, .doubtful), (95, 90, 71, .doubtful), (95, 90, 72, .reset),
            (5, 0, 2, .reset),
            (1_000, 982, 2, .doubtful), (1_000, 981, 2, .reset), (1_000, 970, 2, .reset),
        ] as [(Int, Int, Int64, EpochTable.Relation)])
    mutating func `a list may go back 18 seconds if it cannot have counted that far`(
        former: Int, first: Int, time: Int64, relation: EpochTable.Relation
    ) throws {
        try read(former..<(former + 30), at: 0)
        #expect(try read(first..<(first + 30), at: time) == relation)
        #expect(isInFirstEpoch(first) == (relation == .doubtful) && since(first) == time)
        // What the older text lacked may have another meaning by now.
        #expect(try read((former + 1)..<(former + 31), at: time + 1) == .goesOn)
        #expect(since(former + 29) == time + 1)
        #expect(isInFirstEpoch(former + 29) == (relation == .doubtful))
    }

    /// A new stream whose short list lags by four segments now and then.
    @Test(arguments: [(24, .doubtful), (23, .reset)] as [(Int, EpochTable.Relation)])
    mutating func `a list goes back in the first minute of a stream, too`(
        former: Int, relation: EpochTable.Relation
    ) throws {
        try read(former..<(former + 6), at: 0)
        #expect(try read((former - 4)..<(former + 2), at: 1) == relation)
    }

    @Test mutating func `a list that was cut in its middle begins no epoch`() throws {
        try read(10..<40, at: 0)
        #expect(try read(10..<15, at: 2) == .doubtful)
        #expect(try read(10..<13, at: 3) == .doubtful)
        #expect(try read(12..<42, at: 4) == .goesOn)
        #expect(try read(13..<43, at: 5) == .goesOn)
        #expect([12, 30, 41, 42].allSatisfy { isInFirstEpoch($0) })
        // What the cut text lacked may have another meaning by now.
        #expect(since(14) == 4 && since(30) == 4 && since(42) == 5)
    }

    /// The second text ends later than the first one: by more segments than can have come since, or
    /// by fewer than have left its start.
    @Test(arguments: [10..<25, 12..<16] as [Range<Int>])
    mutating func `a list that was cut twice, at different places, begins no epoch`(
        second: Range<Int>
    ) throws {
        try read(10..<40, at: 0)
        #expect(try read(10..<15, at: 2) == .doubtful)
        #expect(try read(second, at: 3) == .goesOn)
        #expect(try read(12..<42, at: 4) == .goesOn)
        #expect([12, 30, 41].allSatisfy { isInFirstEpoch($0) })
    }

    @Test mutating func `a list that grows from where it was cut begins an epoch`() throws {
        try read(10..<40, at: 0)
        #expect(try read(10..<11, at: 2) == .doubtful)
        #expect(try read(10..<11, at: 3) == .goesOn)
        #expect(isInFirstEpoch(10))
        #expect(try read(10..<12, at: 4) == .reset)
        #expect(try read(10..<13, at: 5) == .goesOn)
        #expect((10..<13).allSatisfy { !isInFirstEpoch($0) })
    }

    @Test mutating func `a list that has never slid begins an epoch where it is shorter`() throws {
        try read(0..<30, at: 0)
        #expect(try read(0..<1, at: 2) == .reset)
        #expect(!isInFirstEpoch(0))
    }

    @Test(arguments: [20..<25, 5..<16] as [Range<Int>])
    mutating func `a list of fewer segments than before may begin an epoch all the same`(
        numbers: Range<Int>
    ) throws {
        try read(10..<40, at: 0)
        // Other names at the same numbers, and numbers before the window.
        let ring = numbers.lowerBound > 10 ? 7 : Int.max
        generation += 1
        let relation = try epochs.read(
            numbers, of: list, generation: generation, at: 2, ring: ring)
        #expect(relation == .reset)
    }
}
