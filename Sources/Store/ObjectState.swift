// The guarded part of a stored object, and its life cycle.
//
//     unpublished ──publish──▶ current ──replaced, removed, evicted──▶ unlinked
//          │
//          └── last holder gone: the file is removed
//
// Where the budget has no room for the rest of a body, an unpublished or current object loses its name
// and becomes an unnamed one.
//
// An unlinked object's space is given back when its last holder is gone; so is that of an unnamed
// one, which is not storable. `isDiscarded` may be set in any state; a discarded object never
// becomes current.
import Posix

/// Where an object's file stands.
enum Place: Sendable, Equatable {
    /// In the folder of new files, under its generation.
    case unpublished
    /// Under its key: what a lookup finds, now and after a restart.
    case current
    /// Its name is gone; holders may still read.
    case unlinked
    /// It has no name, or has lost it: its file ends with its holders.
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

/// One reader that waits for the byte at an offset.
struct WaitingReader: Sendable {
    let offset: Int64
    let waiter: Waiter
}

/// Everything about an object that changes.
///
/// One lock guards it: the object's.
struct ObjectState: Sendable {
    var head: [UInt8]
    var total: Int64?
    var spans: SpanSet
    /// The checksums of the spans; not kept for what has no name.
    var extents = ExtentMap()
    var fills: [Fill] = []
    var waiting: [WaitingReader] = []
    var lastFill: UInt64 = 0
    var endedFills: UInt64 = 0
    var lastFailure: FillFailure?
    /// Where a body that is still being made ended in order when all of it was last asked for.
    var growthEnd: Int64?
    /// Set for good when a fill failed for want of storage, whatever ends others after it.
    var didFailToStore = false
    var place: Place
    var isDiscarded = false
    /// Bytes that the disk usage counts for this object.
    var charge: Int64 = 0
    /// True while blocks beyond the spans are reserved.
    var isPreallocated = false
    /// How often bytes that are there could not be read.
    var readFailures = 0
    /// Body bytes below this were given back to the disk.
    var punchedEnd: Int64 = 0
    /// The files beside the object's own; nil while that one takes the whole body.
    var files: BodyFiles?
    /// True while the store thread has the object on its list.
    var isQueued = false
    /// The number of the header that was written last; the store thread's.
    var sequence: UInt64 = 0
    /// True once that header is on the disk for certain; the store thread's.
    var isHeaderSynced = false
    /// True once a header of the file claims bytes; the store thread's.
    var hasClaims = false
    /// True while a header that was written with its body waits to be synced with it.
    var isClaimedEarly = false
    /// True when the file's header has no room for all there is; the store thread's.
    var isCramped = false
    /// What of the object is not in its header yet.
    var uncommittedBytes: Int64 = 0
    var hasNewFacts = false
    var attachment: (any Sendable & AnyObject)?
    /// The whole of a short body; nil while nobody read it, and once some of it was lost.
    var content: [UInt8]?

    var isComplete: Bool { spans.isComplete(total: total) }

    /// Ends all that is kept of the object beside its bytes.
    mutating func becomeUnnamed() {
        place = .unnamed
        extents = ExtentMap()
        content = nil
        uncommittedBytes = 0
        hasNewFacts = false
    }

    /// What a reader finds at an offset.
    func read(at offset: Int64) -> ReadState {
        let end = spans.contiguousEnd(from: offset)
        if end > offset {
            // Up to what has to be compared with its checksum first; that is asked for apart.
            let proven = extents.unprovenStart(after: offset) ?? end
            return .present(count: min(end, proven) - offset)
        }
        if let total, offset >= total { return .end }
        let fill = fills.filter { $0.covers(offset) }.max { $0.watermark < $1.watermark }
        let next = spans.ranges.first { $0.lowerBound > offset }?.lowerBound
        return .hole(
            Hole(
                fill: fill?.id, fillDistance: fill.map { offset - $0.watermark } ?? 0,
                end: next ?? total, endedFills: endedFills))
    }

    /// Takes out the waiters that have something to look at now.
    mutating func takeReadyWaiters() -> [Waiter] {
        guard !waiting.isEmpty else { return [] }
        var ready: [Waiter] = []
        waiting.removeAll { entry in
            let isReady =
                spans.contains(entry.offset) || (total.map { entry.offset >= $0 } ?? false)
            if isReady { ready.append(entry.waiter) }
            return isReady
        }
        return ready
    }

    mutating func takeAllWaiters() -> [Waiter] {
        defer { waiting = [] }
        return waiting.map(\.waiter)
    }

    /// Notes that the header on disk is behind; true when the store thread must be told.
    mutating func markDirty() -> Bool {
        guard place == .current || place == .unpublished, !isDiscarded, !isQueued else {
            return false
        }
        isQueued = true
        return true
    }
}
