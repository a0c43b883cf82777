import DurableState
import Logging
import Posix

@testable import Model

/// What is known of live streams, in a folder of its own that is removed at the end.
final class LiveMemoryFolder {
    let live: LiveMemory
    /// The time of the start.
    let zero = WallTime(seconds: 1_800_000_000)
    private let folder: String
    private let database: StateDatabase

    init(_ name: String) throws {
        folder = try makeTemporaryFolder(name)
        var log = Logger(label: name)
        log.logLevel = .critical
        database = try StateDatabase(folder: folder, log: log)
        live = LiveMemory(database: database, counters: Counters(), now: zero)
    }

    deinit {
        database.close()
        removeTree(folder)
    }
}

/// Times that are known to be of this run.
func steadyTimes(_ seconds: Int64) -> SteadyTimes {
    let time = Monotonic(nanoseconds: seconds * 1_000_000_000)
    return SteadyTimes(requested: time, received: time)
}
