import Logging
import Posix
import Synchronization

/// Statistics, limits and listings.
extension ObjectStore {
    /// The folder's path; files that others put there are left alone.
    package var folderPath: String { core.folder.path }

    /// Returns the current statistics.
    package func statistics() -> StoreStatistics {
        var statistics = core.counters.statistics
        statistics.objects = core.usage.objectCount
        statistics.bytes = core.usage.used
        statistics.budgetBytes = core.usage.budget
        statistics.openObjects = core.table.count
        statistics.deletion = core.cleaner.left
        statistics.isStoringSuspended = core.channel.isStoringSuspended
        statistics.isOutOfRoom = core.isOutOfRoom
        return statistics
    }

    /// Returns the disk space in use and available; asks the file system (statvfs(3)).
    package func space() -> StoreSpace {
        StoreSpace(
            used: core.usage.used, budget: core.usage.budget,
            minFree: core.usage.minFree, free: freeBytes(at: core.folder.path),
            objects: core.usage.objectCount, pinnedTitles: core.pins.count)
    }

    /// Changes the limits of the disk usage; what exceeds them is evicted.
    ///
    /// - Parameters:
    ///   - budget: bytes that objects may take; at least 0.
    ///   - minFree: bytes that must stay free on the file system.
    package func limit(budget: Int64, minFree: Int64) {
        core.usage.budget = budget
        core.usage.minFree = minFree
        core.allowance.withLock { $0 = StoreCore.Allowance() }
        onStoreThread { worker, loop in worker.followLimits(loop) }
    }

    // MARK: Listing

    /// Returns the most recently used objects, newest first, all if `limit` is negative; blocks on
    /// the disk.
    package func entries(limit: Int) -> [StoreEntry] {
        indexed("list objects", []) { try core.index.newest(limit: limit) }
    }

    /// Returns the objects that were first fetched for a title; blocks on the disk.
    package func rows(ofTitle title: UInt64) -> [StoreEntry] {
        indexed("list a title", []) { try core.index.rows(ofTitle: title) }
    }

    /// Returns the index's entries for some keys, in the order of `keys`; blocks on the disk.
    package func entries(of keys: [ObjectKey]) -> [StoreEntry?] {
        indexed("find objects", [StoreEntry?](repeating: nil, count: keys.count)) {
            try core.index.rows(of: keys)
        }
    }

    // MARK: Access to the index

    /// Runs an index operation; counts and logs an error and returns `fallback` instead.
    func indexed<Value>(
        _ what: String, _ fallback: Value, _ body: () throws -> Value
    ) -> Value {
        do {
            return try body()
        } catch {
            tellIndexFailure(error, to: what)
            return fallback
        }
    }

    /// Counts and logs an error of the index.
    func tellIndexFailure(_ error: any Error, to what: String) {
        core.noteIndexFailure(error)
        core.log.error("the index failed", metadata: ["to": "\(what)", "error": "\(error)"])
    }
}
