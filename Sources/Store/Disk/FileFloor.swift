import Posix

/// The number of files that the store leaves to be made on its file system (inodes).
///
/// A file system can run out of them with bytes free. SQLite then cannot open a database, and
/// nothing of the daemon can be replaced.
enum FileFloor {
    /// What must remain: the logs of both databases, and files that are replaced as a whole.
    static let least: Int64 = 32
    /// The number of objects evicted in a row once the floor is reached.
    static let batch = 64
    /// With more, many objects can be created without asking the file system again.
    private static let many: Int64 = 16_384

    /// True if no further object may be created; nil stands for a file system that counts no files.
    ///
    /// Some file systems report 0 whatever they hold. At 0, a refused creation tells. In advance of
    /// evictions, half of what must remain may be used.
    static func isReached(_ free: Int64?, inAdvance: Bool = false) -> Bool {
        guard let free, free > 0 else { return false }
        return free < (inAdvance ? least / 2 : least)
    }

    /// True if eviction has not freed a whole batch above the floor yet.
    static func isShort(_ free: Int64?) -> Bool {
        guard let free, free > 0 else { return false }
        return free < least + Int64(batch)
    }

    /// True if the file system need not be asked for each new object.
    static func isFar(_ free: Int64?) -> Bool {
        guard let free, free > 0 else { return free == nil }
        return free >= many
    }
}

/// The numbers of objects that are evicted after the disk refused to create files.
///
/// Where an eviction does not help, more would empty the cache: so a disk that has no more files
/// gets one batch until a file is created. A quota may refuse a file for want of bytes (Btrfs):
/// it gets a few objects, and more only if it refuses again.
struct FileRefusals {
    private static let leastBatch = 4
    private var last = 0
    private var since = Monotonic(nanoseconds: .min)

    /// Records a refusal.
    ///
    /// - Parameters:
    ///   - isFirst: true if a file was created since the last refusal.
    ///   - isQuota: true if a quota refused the file, and not the disk.
    ///   - now: the time; what was evicted may count against a quota for 30 seconds more.
    /// - Returns: how many objects are to be evicted; nil if no more.
    mutating func batch(isFirst: Bool, isQuota: Bool, at now: Monotonic) -> Int? {
        if isFirst {
            last = isQuota ? Self.leastBatch : FileFloor.batch
        } else {
            guard last < FileFloor.batch, now - since >= LaggingSpace.longestLag else {
                return nil
            }
            last *= 2
        }
        since = now
        return last
    }
}
