import Numbers
import Posix

/// Space that deletions freed and that the file system does not report as free yet (statvfs(3)).
///
/// XFS frees the blocks of a deleted file in the background, Btrfs and ZFS with their next
/// transaction, up to 30 seconds later. An eviction that waited for the reported number would
/// delete the whole cache for a few missing bytes.
struct LaggingSpace {
    /// After this time, the space counts as not freed: a snapshot may hold it.
    static let longestLag = Interval.seconds(30 as Int64)
    /// Space freed within this time is one entry, which bounds their number.
    private static let step = Interval.seconds(1 as Int64)

    /// The bytes that are still missing from the reported number.
    private(set) var bytes: Int64 = 0
    /// What `bytes` consists of, oldest first.
    private var entries: [(bytes: Int64, since: Monotonic)] = []
    /// The free bytes reported last.
    private var reported: Int64?

    /// Records what the file system reports: what it has risen by is no longer missing.
    mutating func observe(free: Int64, at now: Monotonic) {
        var shown = reported.map { max(0, free.subtractingSaturated($0)) } ?? 0
        reported = free
        while let first = entries.first, shown > 0 || now - first.since >= Self.longestLag {
            let isLate = now - first.since >= Self.longestLag
            let part = isLate ? first.bytes : min(shown, first.bytes)
            if !isLate { shown -= part }
            bytes -= part
            entries[0].bytes -= part
            if entries[0].bytes == 0 { entries.removeFirst() }
        }
    }

    /// Records a deletion of a file of `freed` bytes between two reports.
    mutating func noteDeletion(
        of freed: Int64, before: Int64, after: Int64, at now: Monotonic
    ) {
        observe(free: before, at: now)
        reported = after
        let missing = freed.subtractingSaturated(max(0, after.subtractingSaturated(before)))
        guard missing > 0 else { return }
        let counted = bytes.addingSaturated(missing) - bytes
        bytes += counted
        if let last = entries.last, now - last.since < Self.step {
            entries[entries.count - 1].bytes += counted
        } else {
            entries.append((counted, now))
        }
    }
}
