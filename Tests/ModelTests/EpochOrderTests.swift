@testable import Model
import HLS
import Posix
import Store
import Testing
import URISyntax

/// Texts of a live list that several threads read in another order than they arrived in.
@Suite struct EpochOrderTests {
    private let list = ObjectKey(sha256Of: "list")
    private var epochs = EpochTable()

    /// Reads a window of one-second segments with these numbers, received at a time in seconds.
    @discardableResult
    private mutating func read(
        _ numbers: ClosedRange<Int>, generation: UInt64, at time: Int64
    ) throws -> EpochTable.Relation {
        try epochs.read(Range(numbers), of: list, generation: generation, at: time)
    }

    private var named: [String] {
        epochs.epochs(in: list).keys.map(\.lastPathSegment).sorted()
    }

    @Test mutating func `an older text leaves the newest one's names in place`() throws {
        try read(5...6, generation: 1, at: 0)
        #expect(try read(0...1, generation: 2, at: 9) == .reset)
        #expect(try read(1...2, generation: 4, at: 11) == .goesOn)
        #expect(named == ["s1", "s2"])
        // Both texts are being rewritten.
        #expect(try read(0...1, generation: 3, at: 10) == .same)
        #expect(named == ["s0", "s1", "s2"])
        #expect(epochs.knows(list, generation: 4) && !epochs.knows(list, generation: 3))
        #expect(epochs.relation(of: list) == .goesOn)
        #expect(try read(2...3, generation: 5, at: 12) == .goesOn)
        #expect(named == ["s2", "s3"])
    }

    @Test mutating func `the same text under another generation is known from then on`() throws {
        try read(5...6, generation: 1, at: 0)
        #expect(try read(5...6, generation: 2, at: 0) == .same)
        #expect(epochs.knows(list, generation: 2))
    }
}
