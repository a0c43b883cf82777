import Numbers
package import Posix
package import Retention

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
    /// Consumed bytes of unnamed objects are freed in steps of this size; a multiple of 4096.
    package var punchBytes: Int64 = 1 << 20
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
