import Posix
import Synchronization

/// Statistics and limits.
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
}
