import HLS
import Posix
import Store
import Testing

@testable import Model

/// The state of a list that a crash has left older than the longer window of it.
@Suite struct SavedWindowEpochTests {
    private let list = ObjectKey(sha256Of: "list")
    private var epochs = EpochTable()
    private let former = Epoch(number: 1_700_000_000)

    @Test(arguments: [true, false])
    mutating func `a list that went back behind the saved window counts anew`(
        takesNumbers: Bool
    ) throws {
        // The saved window goes to 5, and the origin has just restarted.
        _ = try epochs.read(0..<3, of: list, generation: 1, at: 0)
        epochs.catchUp(list, with: .first, end: 6, takesNumbers: takesNumbers)
        let relation = try epochs.read(0..<3, of: list, generation: 2, at: 6)
        #expect((relation == .reset) == takesNumbers)
        #expect((epochs.lists[list]?.epoch == .first) != takesNumbers)
    }

    @Test mutating func `names have the epoch that only the saved window tells`() throws {
        _ = try epochs.read(3..<6, of: list, generation: 1, at: 0)
        let head = try #require(epochs.lists[list])
        var restored = EpochTable()
        restored.restore(head, key: list)
        restored.catchUp(list, with: former, end: 3, takesNumbers: false)
        #expect(try restored.read(0..<3, of: list, generation: 2, at: 6) != .reset)
        #expect(restored.lists[list]?.epoch == former)
        #expect(restored.epoch(of: ObjectKey(sha256Of: "http://h/s2")) == former)
    }

    @Test mutating func `a saved window tells nothing of a list that this run has read`() throws {
        _ = try epochs.read(0..<3, of: list, generation: 1, at: 0, steady: 1)
        let head = epochs.lists[list]
        epochs.catchUp(list, with: former, end: 6, takesNumbers: true)
        #expect(epochs.lists[list] == head)
    }

    @Test mutating func `an older window changes nothing`() throws {
        _ = try epochs.read(3..<6, of: list, generation: 1, at: 0)
        let head = epochs.lists[list]
        epochs.catchUp(list, with: .first, end: 5, takesNumbers: true)
        #expect(epochs.lists[list] == head)
    }
}
