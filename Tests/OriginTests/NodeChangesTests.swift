import DurableState
import Logging
import Origin
import Posix
import SharedStore
import Testing

/// The times of pins that all nodes repeat in their order.
@Suite struct NodeChangesTests {
    /// A node whose clock was ahead, and a row that no pin could follow.
    @Test(arguments: [(Int64(2_000_000_000), true), (Int64.max / 1_000_000_000, false)])
    func `a pin follows the latest one of an earlier run, if any can`(
        seconds: Int64, isFollowed: Bool
    ) throws {
        let folder = try makeTemporaryFolder("node-changes")
        defer { removeTree(folder) }
        let log = Logger(label: "node-changes-tests")
        let state = try StateDatabase(folder: folder, log: log)
        defer { state.close() }
        let latest = WallTime(seconds: seconds)
        try state.keep([NodeChangeRecord(latestPin: latest.nanoseconds)])
        let now = WallTime(seconds: 1_900_000_000)
        let changes = NodeChanges(state, log: log)
        let times = (0..<2).compactMap { _ in
            changes.saved(path: "/api/pin", query: "url=http://h/a", now: now)?.given.nanoseconds
        }
        let first = isFollowed ? latest.nanoseconds + 1 : now.nanoseconds
        #expect(times == [first, first + 1])
    }
}
