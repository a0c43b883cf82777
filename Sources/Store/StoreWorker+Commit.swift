import Glibc
import Logging
import Posix
import Synchronization

/// Commits: the first header that claims bytes is written immediately, later ones after a sync.
extension StoreWorker {
    /// The maximum number of headers held in memory together.
    private static let batch = 256

    /// Commits objects; where no fill is running, drops their reservations first.
    func settle(_ objects: [StoredObject]) {
        var rest = objects[...]
        while !rest.isEmpty {
            let some = rest.prefix(Self.batch)
            for object in some { dropReservation(of: object) }
            commit(some)
            for object in some { moveIfCramped(object) }
            rest = rest.dropFirst(Self.batch)
        }
    }

    /// Writes the headers of current objects.
    ///
    /// An object's first header that claims bytes does not wait until these are synced: before that
    /// nothing was promised, and after a power cut the bytes are compared with their checksums. A
    /// later header waits, since it replaces a durable claim and shares extents with it.
    private func commit(_ objects: ArraySlice<StoredObject>) {
        var due: [DueHeader] = []
        for object in objects {
            object.sumUp()
            noteEarlyClaim(of: object)
            if let next = object.dueHeader(epoch: core.folder.epoch) { due.append(next) }
        }
        // If that fails, a sync of each file finds the ones that are affected.
        let isSynced =
            due.count { $0.mustSync } >= SyncBatch.together
            && (try? core.folder.syncEverything()) != nil
        for next in due {
            let object = next.object
            do throws(SystemError) {
                if next.mustSync, !isSynced { try syncData(object.descriptor.number) }
            } catch {
                giveUp(object, error)
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
        noteUnsynced(object, isClaimedEarly: next.isClaimedEarly)
        core.counters.commits.add(1, ordering: .relaxed)
    }

    /// Queues another commit after a failed write, as when a full disk has room again; the body is
    /// unchanged and stays readable.
    private func commitLater(_ object: StoredObject, _ error: SystemError) {
        noteFailure(of: object, error)
        refusedAt = .now()
        let mustQueue = object.state.withLock { state in
            state.hasNewFacts = true
            defer { state.isQueued = true }
            return !state.isQueued
        }
        if mustQueue { dirty.append((object, .now())) }
    }

    private func noteFailure(of object: StoredObject, _ error: SystemError) {
        core.counters.commitFailures.add(1, ordering: .relaxed)
        core.log.error(
            "cannot commit a stored object",
            metadata: ["object": "\(object.key)", "error": "\(error)"])
        core.channel.noteStorageFailure(error)
    }

    /// Discards the object after a failed sync: the kernel may have dropped any of its pages.
    func giveUp(_ object: StoredObject, _ error: SystemError) {
        noteFailure(of: object, error)
        object.discard(because: error)
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
            let left = Footprint.bytes(header: object.bodyOffset, spans: state.spans)
            guard left < state.charge else { return }
            object.giveBack(state.charge - left)
            state.charge = left
            // The index still has the size with the reservation.
            state.hasNewFacts = true
        }
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
            guard state.place == .current, !state.isDiscarded,
                state.uncommittedBytes > 0 || state.hasNewFacts
            else { return nil }
            let isBehind = state.uncommittedBytes > 0 || !state.isHeaderSynced
            let next = DueHeader(
                object: self, header: header(state, epoch: epoch),
                mustSync: state.hasClaims && isBehind,
                isClaimedEarly: !state.hasClaims && state.uncommittedBytes > 0)
            state.uncommittedBytes = 0
            state.hasNewFacts = false
            return next
        }
    }

    /// Returns the header that follows the last one written.
    func header(_ state: ObjectState, epoch: UInt64) -> ObjectHeader {
        let description = ObjectDescription(
            key: key, url: url, role: role, head: state.head, total: state.total,
            created: created, isStorable: true, title: title, kind: kind, isRead: isRead)
        var header = ObjectHeader(
            pages: UInt32(bodyOffset / ObjectHeader.pageSize), generation: generation,
            description: description, spans: state.spans, extents: state.extents)
        header.sequence = state.sequence + 1
        // Until every extent is proven, the header belongs to no epoch.
        header.epoch = state.extents.isProven ? epoch : 0
        return header
    }
}
