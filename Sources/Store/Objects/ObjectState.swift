// The lock-protected part of a stored object, and its life cycle.
//
//     unpublished ──publish──▶ current ──replaced, removed, evicted──▶ unlinked
//          │
//          └── last holder gone: the file is removed
//
// An unpublished object may leave the name to the current one until its body is whole (`former`).
// It then becomes current with its last byte, or not at all if that one is removed before. It keeps
// that one from being evicted until then, or until it becomes unnamed itself for want of room.
//
// If the budget has no room for the rest of a body, an unpublished or current object loses its name
// and becomes unnamed. So does an incomplete object that is replaced or removed: nothing of it is
// kept, so its readers get the rest through a window, and it takes no room from what is kept. An
// object that was complete becomes unlinked even if it has lost bytes since: `punch` does not know
// the readers that found it complete.
//
// The space of an unlinked or unnamed object is freed when its last holder releases it; an unnamed
// object is not storable. `isDiscarded` may be set in any state; a discarded object never becomes
// current.
import Posix
import Retention

/// The state of an object's file name.
enum Place: Sendable, Equatable {
    /// In the folder of new files, under its generation.
    case unpublished
    /// Under its key: what a lookup finds, now and after a restart.
    case current
    /// The name is removed; holders may still read.
    case unlinked
    /// The file never had a name or lost it; it is freed with its last holder.
    case unnamed
}

/// One running fill.
struct Fill: Sendable {
    let id: FillID
    let end: Int64?
    var watermark: Int64

    func covers(_ offset: Int64) -> Bool {
        offset >= watermark && (end.map { offset < $0 } ?? true)
    }
}

/// The mutable state of an object, guarded by the object's lock.
struct ObjectState: Sendable {
    var head: [UInt8]
    /// The role within the title.
    var kind = RetentionKind.media
    var total: Int64?
    var spans: SpanSet
    /// The checksums of the spans; unnamed objects keep them only until all are proven.
    var extents = ExtentMap()
    var fills: [Fill] = []
    var waiting = WaitingReaders()
    var lastFill: UInt64 = 0
    var endedFills: UInt64 = 0
    var lastFailure: FillFailure?
    /// The offset at which the last open-ended fill of a growing body ended cleanly.
    var growthEnd: Int64?
    /// Where the origin has said that a growing body ends for now.
    var probedEnd: ProbedEnd?
    /// True once any fill failed for lack of storage; later fills do not reset it.
    var didFailToStore = false
    var place: Place
    /// The object that keeps the name of the key until this one is whole; nil for none, and once
    /// this one is current.
    var former: StoredObject?
    var isDiscarded = false
    /// True if it was discarded only because the disk failed to read or write it.
    ///
    /// Not after a failed sync: the kernel may have dropped bytes that are not on the disk, and a
    /// comparison would still find them in its memory.
    var isFaultOfDisk = false
    /// True once its file was left, with name and charge, to the next lookup of the key.
    private(set) var hasLeftFile = false
    /// True once a purge, a clear or another generation has removed the name.
    private(set) var isRemoved = false
    /// The bytes charged to the disk usage for this object.
    var charge: Int64 = 0
    /// True once bytes were lost of a complete object.
    private(set) var wasComplete = false
    /// True while blocks beyond the spans are reserved.
    var isPreallocated = false
    /// The number of times that present bytes could not be read.
    var readFailures = 0
    /// Body bytes below this offset were freed by `punch`.
    var punchedEnd: Int64 = 0
    /// The files besides the object's own; nil while that one holds the whole body.
    var files: BodyFiles?
    /// True while the object is queued for a commit by the store thread.
    var isQueued = false
    /// The sequence of the last header written; used by the store thread only.
    var sequence: UInt64 = 0
    /// True once that header is synced; used by the store thread only.
    var isHeaderSynced = false
    /// True once a written header claims bytes; used by the store thread only.
    var hasClaims = false
    /// True while a header that was written together with its body has not been queued for syncing.
    var isClaimedEarly = false
    /// True if the file's header has no room for all spans; used by the store thread only.
    var isCramped = false
    /// The present bytes that the header on disk does not claim yet.
    var uncommittedBytes: Int64 = 0
    var hasNewFacts = false
    var attachment: (any Sendable & AnyObject)?
    /// The whole of a short body; nil until it is read, and after some of it was lost.
    var content: [UInt8]?

    var isComplete: Bool { spans.isComplete(total: total) }

    /// True while a lookup of the key returns the object.
    var isCurrent: Bool { place == .current && !isDiscarded }

    /// True if the header on disk is outdated.
    var isOutdated: Bool { uncommittedBytes > 0 || hasNewFacts }

    /// Marks the object as unnamed and drops everything kept besides its bytes and the checksums
    /// that these still have to be compared with.
    mutating func becomeUnnamed() {
        place = .unnamed
        if extents.isProven { extents = ExtentMap() }
        content = nil
        uncommittedBytes = 0
        hasNewFacts = false
    }

    /// Marks the object as one whose name was removed while it may be in use.
    mutating func becomeRemoved() {
        isRemoved = true
        loseName()
    }

    /// True if its bytes may be sound although it was discarded.
    ///
    /// Only of a body that was complete: readers of another would go on writing to its file.
    var mayLeaveFile: Bool {
        place == .current && isDiscarded && isFaultOfDisk && (isComplete || wasComplete)
    }

    /// Leaves the file, its name and what is charged for it to the next lookup of the key.
    ///
    /// - Returns: the bytes charged.
    mutating func leaveFile() -> Int64 {
        place = .unlinked
        hasLeftFile = true
        defer { charge = 0 }
        return charge
    }

    /// Marks the object as one without a name.
    mutating func loseName() {
        // What is still to come would grow outside of the budget, and nobody could find it.
        if isComplete || wasComplete { place = .unlinked } else { becomeUnnamed() }
    }

    /// Adds written bytes; `sums` is that of `ExtentMap.insert`.
    mutating func insert(_ written: Range<Int64>, sums: [UInt32]) {
        removeUnproven(cutBy: written)
        spans.insert(written)
        if place != .unnamed {
            extents.insert(written, sums: sums)
        } else if !extents.isProven {
            extents.remove(written)
        }
    }

    /// Removes bytes that were lost or freed.
    mutating func remove(_ gone: Range<Int64>) {
        noteCompleteness()
        removeUnproven(cutBy: gone)
        spans.remove(gone)
        extents.remove(gone)
    }

    /// Removes the unproven extents at both ends of a range: what it leaves of them has no checksum
    /// that could prove it.
    private mutating func removeUnproven(cutBy range: Range<Int64>) {
        guard !extents.isProven, !range.isEmpty else { return }
        for offset in [range.lowerBound, range.upperBound - 1] {
            if let cut = extents.unproven(at: offset) { drop(cut) }
        }
    }

    /// Removes an extent whose bytes are damaged, or can no longer be proven.
    mutating func drop(_ extent: Extent) {
        noteCompleteness()
        spans.remove(extent.range)
        extents.remove(extent.range)
    }

    /// Forgets the length of the body, which has turned out to be longer.
    mutating func forgetTotal() {
        // Readers that found it complete have not entered.
        noteCompleteness()
        total = nil
        content = nil
    }

    private mutating func noteCompleteness() { wasComplete = wasComplete || isComplete }

    /// Returns what a reader finds at an offset.
    func read(at offset: Int64) -> ReadState {
        let end = spans.contiguousEnd(from: offset)
        if end > offset {
            // Stops before bytes that must be compared with their checksum; those need a call of
            // their own.
            let proven = extents.unprovenStart(after: offset) ?? end
            return .present(count: min(end, proven) - offset)
        }
        if let total, offset >= total { return .end }
        let fill = fills.filter { $0.covers(offset) }.max { $0.watermark < $1.watermark }
        let next = spans.firstRange(from: offset)?.lowerBound
        return .hole(
            Hole(
                fill: fill?.id, fillDistance: fill.map { offset - $0.watermark } ?? 0,
                fillEnd: fill?.end, end: next ?? total, endedFills: endedFills))
    }

    /// Notes that the header on disk is outdated; returns true if the object must be queued for a
    /// commit.
    mutating func markDirty() -> Bool {
        guard place == .current || place == .unpublished, !isDiscarded, !isQueued else {
            return false
        }
        isQueued = true
        return true
    }
}
