import Glibc
import Logging
import Posix
import Reactor
import Synchronization

/// Writes the headers of changed objects: the first one that claims bytes immediately, later ones
/// after a sync.
///
/// Owned by the store thread's loop.
final class Committer {
    private let core: StoreCore
    private let sync: SyncQueue
    // Changed by calls that do not re-enter: a check of exclusivity would cost a hundred instructions
    // for each object.
    /// Objects whose header on disk is outdated, each with the time of its last commit.
    @exclusivity(unchecked) private var dirty: [(object: StoredObject, since: Monotonic)] = []
    /// Objects that no fill works on any more, to be committed together.
    @exclusivity(unchecked) private var finished: [StoredObject] = []
    /// The time when the disk last refused a header, until that is written again: for
    /// `commitInterval` no other is tried.
    @exclusivity(unchecked) private var refusedAt: Monotonic?
    /// The time of the last failed sync of the whole file system.
    @exclusivity(unchecked) private var syncFailedAt: Monotonic?
    /// True if objects were released that the table may close now.
    @exclusivity(unchecked) var mayTrim = false
    /// The maximum number of headers held in memory together.
    private static let batch = 256

    init(core: StoreCore, sync: SyncQueue) {
        self.core = core
        self.sync = sync
    }

    /// True if the disk has refused a header that was not written again since.
    var hasRefused: Bool { refusedAt != nil }

    /// True if objects may become due by themselves.
    var hasWork: Bool { !dirty.isEmpty }

    /// Queues the objects of mail.
    func take(_ mail: StoreMail, at now: Monotonic) {
        for object in mail.dirty { dirty.append((object, now)) }
        finished += mail.finished
    }

    /// Forgets all changed objects, since the folder was replaced.
    func moveIn() {
        for object in dirty { object.object.state.withLock { $0.isQueued = false } }
        dirty = []
    }

    // MARK: Due objects

    /// Commits the finished objects.
    ///
    /// - Returns: their number.
    func commitFinished() -> Int {
        let done = finished
        finished = []
        commit(done[...])
        mayTrim = mayTrim || !done.isEmpty
        return done.count
    }

    /// Commits objects that have grown enough or waited long enough.
    func commitDue(at now: Monotonic) {
        let configuration = core.configuration
        if let refusedAt, now - refusedAt < configuration.commitInterval { return }
        // What it refused is among those that are due now.
        refusedAt = nil
        var kept: [(object: StoredObject, since: Monotonic)] = []
        var due: [StoredObject] = []
        for (object, since) in dirty {
            let isDue = object.state.withLock { state -> Bool? in
                guard state.isCurrent, state.isOutdated else {
                    // If it is published or changed later, it is queued again.
                    state.isQueued = false
                    return nil
                }
                // A growing object waits longer: each of its later headers waits for a sync.
                return state.uncommittedBytes >= configuration.commitBytes
                    || now - since >= configuration.commitInterval
                    || (state.isComplete && now - since >= configuration.finishedCommitDelay)
            }
            guard let isDue else { continue }
            if isDue { due.append(object) } else { kept.append((object, since)) }
        }
        commit(due[...])
        for object in due {
            // A growing object stays queued.
            let isBehind = object.state.withLock { state in
                state.isQueued = state.isOutdated
                return state.isQueued
            }
            if isBehind { kept.append((object, now)) }
        }
        mayTrim = mayTrim || kept.count < dirty.count
        dirty = kept
    }

    /// Commits everything, including the objects of the last mail, or as much as the deadline allows.
    ///
    /// - Returns: true if everything was committed.
    func commitAll(_ mail: StoreMail, by deadline: Monotonic) -> Bool {
        var behind = (finished + mail.finished + mail.dirty + dirty.map(\.object))[...]
        finished = []
        // Emptied first: a header that is refused is queued again.
        dirty = []
        for object in behind { object.state.withLock { $0.isQueued = false } }
        mayTrim = mayTrim || !behind.isEmpty
        while !behind.isEmpty, .now() < deadline {
            commit(behind.prefix(64))
            behind = behind.dropFirst(64)
        }
        return behind.isEmpty
    }

    // MARK: Headers

    /// Commits objects; where no fill is running, drops their reservations first.
    private func commit(_ objects: ArraySlice<StoredObject>) {
        var rest = objects
        while !rest.isEmpty {
            let some = rest.prefix(Self.batch)
            for object in some { dropReservation(of: object) }
            writeHeaders(of: some)
            for object in some { core.moveIfCramped(object) }
            rest = rest.dropFirst(Self.batch)
        }
    }

    /// Writes the headers of current objects.
    ///
    /// An object's first header that claims bytes does not wait until these are synced: before that
    /// nothing was promised, and after a power cut the bytes are compared with their checksums. A
    /// later header waits, since it replaces a durable claim and shares extents with it.
    private func writeHeaders(of objects: ArraySlice<StoredObject>) {
        var due: [DueHeader] = []
        for object in objects {
            object.sumUp()
            sync.noteEarlyClaim(of: object)
            if let next = object.dueHeader(epoch: core.folder.epoch) { due.append(next) }
        }
        // If that fails, a sync of each file finds the ones that are affected.
        let isTogether = due.count { $0.mustSync } >= SyncBatch.together && !isSyncDoubtful
        let isSynced = isTogether && (try? core.folder.syncEverything(for: .commits)) != nil
        for next in due {
            let object = next.object
            do throws(SystemError) {
                if next.mustSync, !isSynced { try syncData(object.descriptor.number) }
            } catch {
                core.giveUp(object, error)
                continue
            }
            do throws(SystemError) {
                try writeHeader(next)
            } catch {
                commitLater(object, error)
                continue
            }
            core.table.withName(of: object.key) {
                guard object.isCurrent else { return }
                core.channel.noteRow(.put(object.row(lastUsed: nil)), of: object.key)
            }
        }
        // At the end, since a failing disk may have taken long for the syncs above.
        if isTogether, !isSynced { syncFailedAt = .now() }
    }

    /// True for a while after a failed sync of the whole file system: the kernel reports the
    /// failure once, and it may concern bytes of objects that were not due then.
    private var isSyncDoubtful: Bool {
        syncFailedAt.map { .now() - $0 < core.configuration.syncInterval } ?? false
    }

    private func writeHeader(_ next: DueHeader) throws(SystemError) {
        let (object, header) = (next.object, next.header)
        // A file of format 1 has only one header; a torn write over it would lose the object.
        let isCramped = object.state.withLock { $0.isCramped && $0.sequence == 0 }
        guard !isCramped, let encoded = header.encoded() else {
            return object.state.withLock { $0.isCramped = true }
        }
        try write(encoded.bytes, to: object.descriptor.number, at: header.slotOffset)
        object.state.withLock { state in
            state.sequence = header.sequence
            state.isHeaderSynced = false
            state.hasClaims = state.hasClaims || !header.spans.isEmpty
            state.isCramped = state.isCramped || !encoded.isWhole
        }
        sync.note(object, isClaimedEarly: next.isClaimedEarly)
        core.counters.note { $0.commits += 1 }
    }

    /// Queues another commit after a failed write, as when a full disk has room again; the body is
    /// unchanged and stays readable.
    private func commitLater(_ object: StoredObject, _ error: SystemError) {
        core.noteCommitFailure(of: object, error)
        let now = Monotonic.now()
        refusedAt = now
        let mustQueue = object.state.withLock { state in
            state.hasNewFacts = true
            defer { state.isQueued = true }
            return !state.isQueued
        }
        if mustQueue { dirty.append((object, now)) }
    }

    /// Releases bytes that were charged or preallocated and that the ended fills did not write.
    private func dropReservation(of object: StoredObject) {
        object.state.withLock { state in
            guard state.fills.isEmpty, state.place != .unnamed else { return }
            if state.isPreallocated {
                guard let total = state.total else { return }
                // Under the lock, so that no fill starts writing into a range that is being
                // punched.
                if !state.isComplete {
                    keepOnly(
                        state.spans, of: object.descriptor.number, bodyOffset: object.bodyOffset,
                        total: total)
                }
                state.isPreallocated = false
                state.hasNewFacts = true
            }
            // The index still has the size with the reservation.
            if object.giveBackExcess(&state) { state.hasNewFacts = true }
        }
    }
}

extension StoreCore {
    /// Logs a header that the disk refused, and counts the failure of the disk.
    func noteCommitFailure(of object: StoredObject, _ error: SystemError) {
        log.error(
            "cannot commit a stored object",
            metadata: ["object": "\(object.key)", "error": "\(error)"])
        channel.noteStorageFailure(error)
    }

    /// Discards the object after a failed sync: the kernel may have dropped any of its pages.
    func giveUp(_ object: StoredObject, _ error: SystemError) {
        noteCommitFailure(of: object, error)
        object.discard(because: error, didSync: false)
    }
}

/// A header that is due to be written.
struct DueHeader {
    let object: StoredObject
    let header: ObjectHeader
    /// True if the bytes it claims and the previous header must be synced first.
    let mustSync: Bool
    /// True if it may reach the disk before the bytes it claims.
    let isClaimedEarly: Bool
}

extension StoredObject {
    /// Returns the header for the current state; nil if the object is not current or has no
    /// changes.
    func dueHeader(epoch: UInt64) -> DueHeader? {
        state.withLock { state in
            guard state.isCurrent, state.isOutdated else { return nil }
            let isBehind = state.uncommittedBytes > 0 || !state.isHeaderSynced
            let next = DueHeader(
                object: self, header: header(state, epoch: epoch),
                mustSync: state.hasClaims && isBehind,
                // Not by the uncommitted bytes: a header that the disk refused has reset them.
                isClaimedEarly: !state.hasClaims && !state.spans.isEmpty)
            state.uncommittedBytes = 0
            state.hasNewFacts = false
            return next
        }
    }

    /// Returns the header that follows the last one written.
    func header(_ state: ObjectState, epoch: UInt64) -> ObjectHeader {
        let description = ObjectDescription(
            key: key, url: url, role: role, head: state.head, total: state.total,
            created: created, isStorable: true, title: title, kind: state.kind,
            isRead: isRead)
        var header = ObjectHeader(
            pages: UInt32(bodyOffset / ObjectHeader.pageSize), generation: generation,
            description: description, spans: state.spans, extents: state.extents)
        header.sequence = state.sequence + 1
        // Until every extent is proven, the header belongs to no epoch.
        header.epoch = state.extents.isProven ? epoch : 0
        return header
    }
}
