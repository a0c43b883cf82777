import Synchronization

/// Statistics of the store since it was opened.
package struct StoreStatistics: Sendable, Equatable {
    /// Objects that a lookup can find.
    package var objects = 0
    /// The bytes of all objects, including unnamed ones and reservations.
    package var bytes: Int64 = 0
    package var budgetBytes: Int64 = 0
    package var openObjects = 0
    /// Cleared objects that are not deleted yet; their bytes are included in `bytes`.
    package var deletion = Deletion()
    package var evictions = 0
    /// The number of headers written.
    package var commits = 0
    package var indexFailures = 0
    /// True while the index rejects changes, which are kept in memory.
    package var isIndexBehind = false
    /// True once damage was found in the index, until it is rebuilt.
    package var isIndexDamaged = false
    /// Writes that the disk refused for lack of space or health.
    package var storageFailures = 0
    /// True while no new objects are stored because the disk refused a write.
    package var isStoringSuspended = false
    /// True while new objects are refused for lack of room, and evictions do not make enough.
    package var isOutOfRoom = false
    /// Files deleted because their header did not verify.
    package var damagedObjects = 0
    /// Bytes of extents that did not match their checksum; they are fetched again when requested.
    package var damagedBytes: Int64 = 0
    /// Files that were found without an index row, and kept.
    package var adoptedObjects = 0
    /// Index rows that were found without a file, and deleted.
    package var droppedRows = 0
    /// True once index and folder have been compared; false while a damaged index is rebuilt.
    package var isReconciled = false
    /// The result of the check at start.
    package var start = StartReport()
}

/// What the parts of a store count for its statistics, and the numbers by which callers notice
/// changes.
final class StoreCounters: Sendable {
    private let counted = Mutex(StoreStatistics())
    let isIndexDamaged = Atomic<Bool>(false)
    let isReconciled = Atomic<Bool>(false)
    /// How often a damaged index was replaced since the store was opened.
    let indexRebuilds = Atomic<Int>(0)
    let damagedExtents = Atomic<Int>(0)
    /// Objects that were removed, evicted or replaced.
    let removals = Atomic<Int>(0)
    /// Purges and clears that have ended.
    let orderedRemovals = Atomic<Int>(0)
    /// Batches of changed rows that were written to the index.
    let rowBatches = Atomic<Int>(0)

    /// Changes what is counted.
    func note(_ change: (inout StoreStatistics) -> Void) { counted.withLock { change(&$0) } }

    /// What was counted; the current sizes, which other parts of the store know, are 0.
    var statistics: StoreStatistics {
        // Before the report of the start, which is complete then.
        let isReconciled = isReconciled.load(ordering: .acquiring)
        var statistics = counted.withLock { $0 }
        statistics.isReconciled = isReconciled
        statistics.isIndexDamaged = isIndexDamaged.load(ordering: .relaxed)
        return statistics
    }
}
