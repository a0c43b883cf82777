// One stored representation: a generation of a key, its file, its spans and who waits for them.
//
// Whoever holds the object can read the present bytes for as long as it likes, whatever happens to
// the key meanwhile, and keeps it from being evicted. Every method may be called on any thread;
// none blocks, except for `write` and `punch`, which are the system calls they are named after, and
// `state(at:)` after an unclean stop.
package import Posix
package import Retention
import Synchronization

/// An object that may still be growing.
package final class StoredObject: Sendable {
    package let key: ObjectKey
    /// Tells this representation from every other one of the same key, across restarts.
    package let generation: UInt64
    package let url: String
    package let role: UInt8
    package let created: WallTime
    /// What the player started from that it was first fetched for; 0 for none.
    package let title: UInt64
    package let kind: RetentionKind
    /// False for what was fetched ahead of any player's wish; reads since do not show here.
    let isRead: Bool
    /// The open file; `stretch(at:count:)` says which bytes of the body lie in it.
    package let descriptor: SharedDescriptor
    /// File offset of body offset 0.
    package let bodyOffset: Int64
    /// True once bytes lie in further files; these are in the state.
    let spreads = Atomic<Bool>(false)

    let state: Mutex<ObjectState>
    let channel: StoreChannel
    /// False for a temporary file on another disk than the store's.
    let countsForBudget: Bool
    /// The folder's, among those that the store has had.
    private let era: Int
    /// False for what ends with the process.
    var keepsChecksums: Bool { newPath != nil || isStored }
    private let isStored: Bool
    /// The file's path while it is unpublished.
    let newPath: String?

    /// Parts of a new object in memory.
    struct Parts {
        var header: ObjectHeader
        var place: Place
        var newPath: String?
        var isPreallocated = false
        var charge: Int64
        var countsForBudget = true
        /// The whole body, if it came with the header.
        var content: [UInt8]?
        /// Whether header and body were written together just now.
        var isClaimedEarly = false
    }

    init(_ parts: Parts, descriptor: SharedDescriptor, channel: StoreChannel) {
        key = parts.header.key
        generation = parts.header.generation
        url = parts.header.url
        role = parts.header.role
        created = parts.header.created
        title = parts.header.title
        kind = parts.header.kind
        isRead = parts.header.isRead
        bodyOffset = parts.place == .unnamed ? 0 : parts.header.bodyOffset
        newPath = parts.newPath
        isStored = parts.place == .current
        countsForBudget = parts.countsForBudget
        era = channel.usage.era
        self.descriptor = descriptor
        self.channel = channel
        var initial = ObjectState(
            head: parts.header.head, total: parts.header.total, spans: parts.header.spans,
            place: parts.place)
        initial.charge = parts.charge
        initial.isPreallocated = parts.isPreallocated
        initial.extents = parts.header.extents
        initial.sequence = parts.header.sequence
        initial.isCramped = parts.header.isCramped
        initial.content = parts.content
        initial.hasClaims = !parts.header.spans.isEmpty
        initial.isClaimedEarly = parts.isClaimedEarly
        state = Mutex(initial)
    }

    deinit {
        let (place, charge) = state.withLock { ($0.place, $0.charge) }
        if place != .current { giveBack(charge) }
        // A leftover is removed at the next start, so a failure here costs space only until then.
        if place == .unpublished, let newPath { try? removeFile(newPath) }
    }

    /// True while the folder is the one that the object was made in.
    var isOfThisEra: Bool { era == channel.usage.era }

    /// Takes bytes out of the books, unless these were closed meanwhile.
    func giveBack(_ bytes: Int64) {
        if isOfThisEra { channel.usage.release(bytes) }
    }

    // MARK: Facts

    /// The opaque response head.
    package var head: [UInt8] { state.withLock { $0.head } }

    /// Replaces the head, as a 304 does (RFC 9111, 4.3.4); the file follows a moment later.
    ///
    /// For a head that outgrew the room in the file's header the file is written anew.
    package func replaceHead(_ head: [UInt8]) {
        let mustQueue = state.withLock { state in
            state.head = head
            state.attachment = nil
            state.hasNewFacts = true
            return state.markDirty()
        }
        if mustQueue { channel.noteDirty(self) }
    }

    /// The length of the whole body, if known.
    package var total: Int64? { state.withLock { $0.total } }

    /// True when every byte of a body of known length is present.
    package var isComplete: Bool { state.withLock { $0.isComplete } }

    /// The present bytes.
    package var spans: SpanSet { state.withLock { $0.spans } }

    /// The first stretch of present bytes at or behind an offset; nil for none.
    package func firstPresent(from offset: Int64) -> Range<Int64>? {
        state.withLock { state in
            state.spans.ranges.first { $0.upperBound > offset }.map {
                max(offset, $0.lowerBound)..<$0.upperBound
            }
        }
    }

    /// The number of present bytes.
    package var presentBytes: Int64 { state.withLock { $0.spans.totalBytes } }

    /// False when the object has no name on disk and ends with its last holder.
    package var isStorable: Bool { state.withLock { $0.place != .unnamed } }

    /// True once `discard` was called.
    package var isDiscarded: Bool { state.withLock { $0.isDiscarded } }

    /// True while this is what a lookup of the key finds.
    package var isCurrent: Bool { state.withLock { $0.place == .current && !$0.isDiscarded } }

    /// True while at least one fill runs.
    package var hasFills: Bool { state.withLock { !$0.fills.isEmpty } }

    /// The last fill that ended with an error, if any did.
    package var lastFailure: FillFailure? { state.withLock { $0.lastFailure } }

    /// Where a body that is still being made ended in order when all of it was last asked for; nil where
    /// nobody has asked for all of it.
    package var growthEnd: Int64? { state.withLock { $0.growthEnd } }

    /// Notes where such a body ended, before the fill that brought it ends.
    package func noteGrowthEnd(_ offset: Int64) { state.withLock { $0.growthEnd = offset } }

    /// True when bytes of a fill could not be stored: the disk's fault, not the body's.
    package var didFailToStore: Bool { state.withLock { $0.didFailToStore } }

    /// Something of the caller's that should live as long as the object in memory, such as the
    /// decoded head.
    ///
    /// `replaceHead` clears it.
    package var attachment: (any Sendable & AnyObject)? {
        get { state.withLock { $0.attachment } }
        set { state.withLock { $0.attachment = newValue } }
    }

    /// Sets the attachment if there is none.
    ///
    /// - Returns: The attachment that is there now: of two that are made at the same time on two
    ///   threads, both threads go on with the same one.
    package func attach(_ made: any Sendable & AnyObject) -> any Sendable & AnyObject {
        state.withLock { state in
            if let known = state.attachment { return known }
            state.attachment = made
            return made
        }
    }

    // MARK: Reading

    /// What is at a body offset now.
    ///
    /// After an unclean stop the first look at a block reads it (1 MiB; pread(2)) and compares it
    /// with its checksum; bytes that do not fit are a hole then.
    package func state(at offset: Int64) -> ReadState {
        while true {
            let (found, doubtful) = state.withLock { state in
                (state.read(at: offset), state.extents.unproven(at: offset))
            }
            guard let doubtful else { return found }
            prove(doubtful)
        }
    }

    /// Registers a waiter for the byte at an offset, unless there is something to look at already:
    /// the byte, the end, a discarded object without a fill for it, or a fill that ended since
    /// `hole` was read.
    package func wait(at offset: Int64, since hole: Hole? = nil, _ waiter: Waiter) -> WaitOutcome {
        state.withLock { state in
            guard case .hole(let now) = state.read(at: offset) else { return .ready }
            // Nothing more comes into a discarded object, except from a fill that still runs.
            if state.isDiscarded, now.fill == nil { return .ready }
            if let hole, hole.endedFills != now.endedFills { return .ready }
            state.waiting.append(WaitingReader(offset: offset, waiter: waiter))
            return .waiting
        }
    }

    /// Takes a waiter back.
    ///
    /// One that is just being woken on another thread may still be called.
    package func cancelWait(_ id: UInt64) {
        state.withLock { state in state.waiting.removeAll { $0.waiter.id == id } }
    }
}
