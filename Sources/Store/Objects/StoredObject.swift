// One stored representation: a generation of a key, its file, its spans and its waiting readers.
//
// A holder of the object can read the present bytes for as long as it likes, whatever happens to
// the key meanwhile, and keeps it from being evicted; of an object that is not storable, those that
// `punch` has not freed. Every method may be called on any thread.
// None blocks, except `write` and `punch`, which make the system calls they are named after, and
// `state(at:)` after an unclean stop.
package import Posix
package import Retention
import Synchronization

/// A stored object that may still be growing.
package final class StoredObject: Sendable {
    package let key: ObjectKey
    /// Distinguishes this representation from all others of the same key, across restarts.
    package let generation: UInt64
    package let url: String
    package let role: UInt8
    package let created: WallTime
    /// The title of the session that it was first fetched for; 0 for none.
    package let title: UInt64
    /// False if it was fetched ahead and unread when it was created or loaded; later reads do not
    /// change it.
    let isRead: Bool
    /// The object's own file; `stretch(at:count:)` finds the file of a body offset.
    package let descriptor: SharedDescriptor
    /// The file offset of body offset 0.
    package let bodyOffset: Int64
    /// True once the body continues in further files, which `ObjectState` holds.
    let spreads = Atomic<Bool>(false)
    /// True once it is to be published with its last byte, since it has left the name to `former`.
    let isDueWhenWhole = Atomic<Bool>(false)

    let state: Mutex<ObjectState>
    let channel: StoreChannel
    /// False for a temporary file on another disk than the store's.
    let countsForBudget: Bool
    /// The disk usage's era in which the object was created.
    private let era: Int
    /// False for objects that do not outlive the process.
    var keepsChecksums: Bool { newPath != nil || isStored }
    private let isStored: Bool
    /// The path of the file while the object is unpublished.
    let newPath: String?

    /// Creates an object in memory for its open file.
    ///
    /// With `content`, the whole body came with the header; with `isClaimedEarly`, both were just
    /// written together.
    init(
        header: ObjectHeader, place: Place, newPath: String? = nil, descriptor: SharedDescriptor,
        channel: StoreChannel, charge: Int64, isPreallocated: Bool = false,
        countsForBudget: Bool = true, content: [UInt8]? = nil, isClaimedEarly: Bool = false
    ) {
        key = header.key
        generation = header.generation
        url = header.url
        role = header.role
        created = header.created
        title = header.title
        isRead = header.isRead
        bodyOffset = place == .unnamed ? 0 : header.bodyOffset
        self.newPath = newPath
        isStored = place == .current
        self.countsForBudget = countsForBudget
        era = channel.usage.era
        self.descriptor = descriptor
        self.channel = channel
        var initial = ObjectState(
            head: header.head, total: header.total, spans: header.spans,
            place: place)
        initial.kind = header.kind
        initial.charge = charge
        initial.isPreallocated = isPreallocated
        initial.extents = header.extents
        initial.sequence = header.sequence
        initial.isCramped = header.isCramped
        initial.content = content
        initial.hasClaims = !header.spans.isEmpty
        initial.isClaimedEarly = isClaimedEarly
        state = Mutex(initial)
    }

    deinit {
        let (place, charge) = state.withLock { ($0.place, $0.charge) }
        if place != .current { giveBack(charge) }
        // The next start removes leftovers, so a failure here costs space only until then.
        if place == .unpublished, let newPath { try? removeFile(newPath) }
    }

    /// True while the store still uses the folder that the object was created in.
    var isOfThisEra: Bool { era == channel.usage.era }

    /// Releases bytes from the disk usage, unless that was reset for a new folder.
    func giveBack(_ bytes: Int64) {
        if isOfThisEra { channel.usage.release(bytes) }
    }

    /// Releases what is charged beyond the present bytes.
    ///
    /// - Returns: false if nothing was.
    @discardableResult
    func giveBackExcess(_ state: inout ObjectState) -> Bool {
        let needed = Footprint.bytes(header: bodyOffset, spans: state.spans)
        guard needed < state.charge else { return false }
        giveBack(state.charge - needed)
        state.charge = needed
        return true
    }

    /// Changes facts that the header states, and has the store thread rewrite it.
    ///
    /// - Parameter change: called under the object's lock; returns false if it changed nothing.
    func changeFacts(_ change: (inout ObjectState) -> Bool) {
        let mustQueue = state.withLock { state -> Bool in
            guard change(&state) else { return false }
            state.hasNewFacts = true
            return state.markDirty()
        }
        if mustQueue { channel.noteDirty(self) }
    }

    // MARK: Facts

    /// The opaque response head.
    package var head: [UInt8] { state.withLock { $0.head } }

    /// The object's role within its title.
    package var kind: RetentionKind { state.withLock { $0.kind } }

    /// Replaces the head after a 304 (RFC 9111, 4.3.4), or once the body has shown what it is; the
    /// file is updated a moment later.
    ///
    /// If the head no longer fits into the file's header, the file is rewritten.
    ///
    /// - Parameters:
    ///   - head: the new head.
    ///   - kind: the kind that the body has shown, before the object is published; nil if it stays.
    package func replaceHead(_ head: [UInt8], kind: RetentionKind? = nil) {
        changeFacts { state in
            state.head = head
            if let kind { state.kind = kind }
            state.attachment = nil
            return true
        }
    }

    /// The length of the whole body, if known.
    package var total: Int64? { state.withLock { $0.total } }

    /// True when every byte of a body of known length is present.
    package var isComplete: Bool { state.withLock { $0.isComplete } }

    /// The present bytes.
    package var spans: SpanSet { state.withLock { $0.spans } }

    /// Returns the first range of present bytes at or after an offset, cut to start there; nil for
    /// none.
    package func firstPresent(from offset: Int64) -> Range<Int64>? {
        state.withLock { $0.spans.firstRange(from: offset) }
    }

    /// The number of present bytes.
    package var presentBytes: Int64 { state.withLock { $0.spans.totalBytes } }

    /// False if the object has no name on disk and is freed with its last holder.
    package var isStorable: Bool { state.withLock { $0.place != .unnamed } }

    /// True after `discard`.
    package var isDiscarded: Bool { state.withLock { $0.isDiscarded } }

    /// True once a purge, a clear or another generation of the key has removed the object's name,
    /// or that of `former`: then it gets none.
    package var isRemoved: Bool {
        let (isRemoved, former) = state.withLock { ($0.isRemoved, $0.former) }
        return isRemoved || former?.isRemoved == true
    }

    /// True while a lookup of the key returns this object.
    package var isCurrent: Bool { state.withLock { $0.isCurrent } }

    /// The object that keeps the name of the key until this one is whole; nil for none, and once
    /// this one is current.
    package var former: StoredObject? { state.withLock { $0.former } }

    /// Leaves the name to the key's current object until this one is whole: if the rest does not
    /// come, that one is still found.
    ///
    /// Must be called before `ObjectStore.publish`. Holds `former`, so that it is not evicted
    /// meanwhile.
    package func leaveName(to former: StoredObject) {
        state.withLock { state in
            if state.place == .unpublished { state.former = former }
        }
    }

    /// True while at least one fill runs.
    package var hasFills: Bool { state.withLock { !$0.fills.isEmpty } }

    /// The last fill that ended with an error, if any did.
    package var lastFailure: FillFailure? { state.withLock { $0.lastFailure } }

    /// The offset at which the last open-ended fill of a growing body ended cleanly; nil if none
    /// has.
    package var growthEnd: Int64? { state.withLock { $0.growthEnd } }

    /// Sets `growthEnd`; to be called before that fill ends.
    package func noteGrowthEnd(_ offset: Int64) { state.withLock { $0.growthEnd = offset } }

    /// Notes where the origin has said that a growing body ends for now.
    package func note(_ probedEnd: ProbedEnd) { state.withLock { $0.probedEnd = probedEnd } }

    /// True if a range of a growing body is refused without a request, since the origin said just
    /// now that it has no such bytes.
    ///
    /// - Parameters:
    ///   - first: the first byte of the range.
    ///   - listedEnd: the end of the last range that the list of the body names.
    ///   - now: the time.
    /// - Returns: false if the bytes are stored, or the origin may have them.
    package func refuses(_ first: Int64, listedEnd: Int64, now: Monotonic) -> Bool {
        state.withLock { state in
            state.probedEnd?.refuses(
                first, storedEnd: state.spans.end, listedEnd: listedEnd, now: now) ?? false
        }
    }

    /// True if bytes of a fill could not be stored, in contrast to a failure of the transfer.
    package var didFailToStore: Bool { state.withLock { $0.didFailToStore } }

    /// A value of the caller that lives as long as the object in memory, such as the decoded head.
    ///
    /// `replaceHead` clears it.
    package var attachment: (any Sendable & AnyObject)? { state.withLock { $0.attachment } }

    /// Sets the attachment if there is none.
    ///
    /// - Returns: the attachment now set: if two threads make one concurrently, both get the same
    ///   one.
    package func attach(_ made: any Sendable & AnyObject) -> any Sendable & AnyObject {
        state.withLock { state in
            if let known = state.attachment { return known }
            state.attachment = made
            return made
        }
    }

    /// Replaces the attachment, unless it is another one by now.
    package func replaceAttachment(
        _ known: any Sendable & AnyObject, with made: any Sendable & AnyObject
    ) {
        state.withLock { state in
            if state.attachment === known { state.attachment = made }
        }
    }

    // MARK: Reading

    /// Returns what is at a body offset now.
    ///
    /// After an unclean stop the first access to an extent reads it (1 MiB or less; pread(2)) and
    /// compares it with its checksum; bytes that do not match become a hole.
    package func state(at offset: Int64) -> ReadState {
        while true {
            let (found, doubtful) = state.withLock { state in
                (state.read(at: offset), state.extents.unproven(at: offset))
            }
            guard let doubtful else { return found }
            prove(doubtful)
        }
    }

    /// Registers a waiter for the byte at an offset, unless there is something to see already: the
    /// byte, the end, a discarded object without a fill for the byte, or a fill that ended since
    /// `hole` was read.
    package func wait(at offset: Int64, since hole: Hole? = nil, _ waiter: Waiter) -> WaitOutcome {
        state.withLock { state in
            guard case .hole(let now) = state.read(at: offset) else { return .ready }
            // A discarded object gets no more bytes, except from a fill that still runs.
            if state.isDiscarded, now.fill == nil { return .ready }
            if let hole, hole.endedFills != now.endedFills { return .ready }
            state.waiting.add(waiter, at: offset)
            return .waiting
        }
    }

    /// Cancels a waiter.
    ///
    /// It may still be called if another thread is waking it at the same time.
    package func cancelWait(_ id: UInt64) {
        state.withLock { $0.waiting.remove(id) }
    }
}
