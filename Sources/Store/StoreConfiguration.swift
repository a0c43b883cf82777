// The store's settings, errors and numbers.
import Numbers
package import Posix
package import Retention
import Synchronization

/// Limits of one store.
package struct StoreConfiguration: Sendable {
    /// Bytes that objects may take on the disk; at least 0.
    package var budgetBytes: Int64
    /// Bytes that must stay free on the file system; with less, nothing new is stored.
    package var minFreeBytes: Int64
    /// The maximum number of descriptors kept open for idle objects.
    package var maxOpenObjects = 512
    /// The header of a growing object is rewritten after this many new bytes, or earlier by time.
    package var commitBytes: Int64 = 4 << 20
    /// The header of a growing object is rewritten this long after its last commit.
    package var commitInterval: Interval = .seconds(1 as Int64)
    /// Objects that are complete, or that no fill works on, are committed after this delay.
    ///
    /// Objects of the same period then share one wake-up of the store thread.
    package var finishedCommitDelay: Interval = .milliseconds(50)
    /// The maximum delay before written data is synced (syncfs(2), fdatasync(2), fsync(2)): as long
    /// as the kernel keeps any program's writes in memory (`vm.dirty_expire_centisecs`).
    ///
    /// Many files then share one sync, and an object evicted before costs no disk writes; see
    /// decision 0011.
    package var syncInterval: Interval = .seconds(30 as Int64)
    /// Syncing starts immediately at this many unsynced objects: each takes some 60 bytes
    /// meanwhile.
    package var mostUnsynced = 1 << 17
    /// The interval at which index writes are batched.
    package var indexInterval: Interval = .milliseconds(200)
    /// Blocks are preallocated for bodies up to this length: writes to preallocated files take
    /// about a quarter of the processor time of writes that extend a file.
    package var preallocationLimit: Int64 = 64 << 20
    /// Shorter bodies are written in one call; preallocation would cost more than it saves.
    package var preallocationStart: Int64 = 64 << 10
    /// Consumed bytes of unnamed objects are freed in steps of this size; a multiple of 4096.
    package var punchBytes: Int64 = 1 << 20
    /// How long no new objects are stored after the disk refused bytes.
    package var suspension: Interval = .seconds(5 as Int64)
    /// How long `close` may take to commit before it gives up.
    package var closeTimeout: Interval = .seconds(5 as Int64)
    /// Time between two attempts to delete files that the disk refused to delete.
    package var deletionInterval: Interval = .seconds(5 as Int64)
    /// Free bytes that the store's own disk needs for the body of an unnamed object to be placed
    /// there.
    package var unnamedRoom: Int64 = 64 << 20
    /// Folders for bodies that the store's own disk cannot take; the first with room is used.
    package var temporaryFolders: [String] = ["/dev/shm", "/tmp"]

    /// The maximum number of saved long URLs, of which those of 2 KiB and more count several times
    /// (`LongURLSize`); those saved longest ago are deleted first, and saved again when a list that
    /// names them is requested.
    package var longURLLimit = 100_000
    /// Texts in memory are rewritten this long after long URLs were saved, which saves them again.
    ///
    /// Those saved in the last two such times are in use: links get no short names if that would
    /// displace them.
    package var longURLRenewal: Interval = .seconds(43_200 as Int64)
    /// How long a long URL is in use after it was saved.
    var longURLUse: Interval {
        Interval(nanoseconds: longURLRenewal.nanoseconds.multipliedSaturated(by: 2))
    }

    /// What opens the store, for others that find the folder in use.
    package var holder = FolderHolder.Kind.daemon
    /// How long an open waits for a command that has the folder.
    package var lockWait = Interval.zero

    /// Creates the policy that selects eviction victims, for a capacity in bytes.
    package var makePolicy: @Sendable (Int64) -> any RetentionPolicy = { TitleAware(capacity: $0) }

    package init(budgetBytes: Int64, minFreeBytes: Int64) {
        self.budgetBytes = budgetBytes
        self.minFreeBytes = minFreeBytes
    }
}

/// The process that has the folder of a store.
package struct FolderHolder: Equatable, Sendable, CustomStringConvertible {
    package enum Kind: String, Sendable {
        /// Has the folder for as long as it runs.
        case daemon
        /// Has the folder for one order, mostly for a moment.
        case command
    }

    package let kind: Kind
    package let processID: Int

    package var description: String { "a \(kind.rawValue), process ID \(processID)" }
}

/// Why a store cannot be opened.
///
/// `inUse`, `newerFormat` and `foreignFolder` are thrown before anything in the folder is changed,
/// except for the lock's file.
package enum StoreError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Another store, in this or another process, has the folder; the holder is nil if it has not
    /// said what it is.
    case inUse(folder: String, by: FolderHolder?)
    /// A newer program wrote the folder.
    case newerFormat(folder: String, found: Int, supported: Int)
    /// The folder holds other things than a store.
    case foreignFolder(folder: String, holds: String)
    /// The folder cannot be made, read or written; the daemon can run without storing.
    case unusable(folder: String, SystemError)
    /// SQLite cannot make an index there.
    case index(folder: String, reason: String)
    /// A newer program wrote the index.
    case newerIndex(folder: String)
    /// The state database cannot be opened.
    case state(folder: String, reason: String)
    /// A newer program wrote the state database.
    case newerState(folder: String)

    package var description: String {
        switch self {
        case .inUse(let folder, let holder):
            "the cache folder \(folder) is in use by another process"
                + (holder.map { ": \($0)" } ?? "")
        case .newerFormat(let folder, let found, let supported):
            "the store \(folder) has format \(found), of a newer program, and this one knows up to \(supported); use the newer one, or another folder"
        case .foreignFolder(let folder, let name):
            "\(folder) is no store and not empty, it holds '\(name)'; choose another folder"
        case .unusable(let folder, let error): "the store \(folder) cannot be used: \(error)"
        case .index(let folder, let reason): "the index of the store \(folder) fails: \(reason)"
        case .newerIndex(let folder):
            "a newer program wrote the index of the store \(folder); use that, or another folder"
        case .state(let folder, let reason):
            "the state database of the store \(folder) fails: \(reason)"
        case .newerState(let folder):
            "a newer program wrote the state database of the store \(folder); use that, or another folder"
        }
    }
}

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

/// The counters behind `StoreStatistics`.
final class StoreCounters: Sendable {
    let evictions = Atomic<Int>(0)
    let commits = Atomic<Int>(0)
    let indexFailures = Atomic<Int>(0)
    let isIndexBehind = Atomic<Bool>(false)
    let isIndexDamaged = Atomic<Bool>(false)
    /// How often a damaged index was replaced since the store was opened.
    let indexRebuilds = Atomic<Int>(0)
    let storageFailures = Atomic<Int>(0)
    let damagedObjects = Atomic<Int>(0)
    let damagedExtents = Atomic<Int>(0)
    let damagedBytes = Atomic<Int64>(0)
    let adoptedObjects = Atomic<Int>(0)
    let droppedRows = Atomic<Int>(0)
    let isReconciled = Atomic<Bool>(false)
    /// Objects that were removed, evicted or replaced.
    let removals = Atomic<Int>(0)
    /// Purges and clears that have ended.
    let orderedRemovals = Atomic<Int>(0)
    /// Batches of changed rows that were written to the index.
    let rowBatches = Atomic<Int>(0)
    let start = Mutex(StartReport())

    func fill(_ statistics: inout StoreStatistics) {
        statistics.evictions = evictions.load(ordering: .relaxed)
        statistics.commits = commits.load(ordering: .relaxed)
        statistics.indexFailures = indexFailures.load(ordering: .relaxed)
        statistics.isIndexBehind = isIndexBehind.load(ordering: .relaxed)
        statistics.isIndexDamaged = isIndexDamaged.load(ordering: .relaxed)
        statistics.storageFailures = storageFailures.load(ordering: .relaxed)
        statistics.damagedObjects = damagedObjects.load(ordering: .relaxed)
        statistics.damagedBytes = damagedBytes.load(ordering: .relaxed)
        statistics.adoptedObjects = adoptedObjects.load(ordering: .relaxed)
        statistics.droppedRows = droppedRows.load(ordering: .relaxed)
        statistics.isReconciled = isReconciled.load(ordering: .acquiring)
        statistics.start = start.withLock { $0 }
    }
}
