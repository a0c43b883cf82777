import Glibc
import Logging
import Posix
import Synchronization

/// Bringing headers up to date: the first that claims bytes at once, later ones after what they claim.
extension StoreWorker {
    /// Headers that are held in memory at once.
    private static let batch = 256

    /// Commits objects, without what is reserved beyond their bytes where no fill works on them.
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
    /// The first of an object that claims bytes is not made to wait for them: until both are synced
    /// nothing was promised, and what a power cut leaves of them is compared. A later one waits, since
    /// it replaces a claim that was certain, and its stretches hold bytes that were.
    private func commit(_ objects: ArraySlice<StoredObject>) {
        var due: [DueHeader] = []
        for object in objects {
            object.sumUp()
            noteEarlyClaim(of: object)
            if let next = object.dueHeader(epoch: core.folder.epoch) { due.append(next) }
        }
        // Where that fails, each file says for itself what is the matter.
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
        // Written over the only header of a file of format 1, a torn one would be the end of it.
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

    /// After a failed write the body is what it was, and can be read on; its header is written again
    /// later, as when a full disk has room.
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

    /// After a failed sync the kernel may have dropped the pages: nothing of the object is certain.
    func giveUp(_ object: StoredObject, _ error: SystemError) {
        noteFailure(of: object, error)
        object.discard(because: error)
    }

    /// Gives back what was counted or reserved for bytes that the ended fills did not bring.
    private func dropReservation(of object: StoredObject) {
        object.state.withLock { state in
            guard state.fills.isEmpty, state.place != .unnamed else { return }
            if state.isPreallocated {
                guard let total = state.total else { return }
                // Under the lock, so that no fill begins to write into a hole that is being punched.
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
            // The index counts the reservation still.
            state.hasNewFacts = true
        }
    }
}

/// A header to be written.
struct DueHeader {
    let object: StoredObject
    let header: ObjectHeader
    /// Whether what it claims, and the header before it, must be on the disk first.
    let mustSync: Bool
    /// Whether it may come to the disk before what it claims.
    let isClaimedEarly: Bool
}

extension StoredObject {
    /// The header that says what there is now; nil unless the object is current and has something to
    /// say.
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

    /// The header after the one that was written last.
    func header(_ state: ObjectState, epoch: UInt64) -> ObjectHeader {
        let description = ObjectDescription(
            key: key, url: url, role: role, head: state.head, total: state.total,
            created: created, isStorable: true, title: title, kind: kind, isRead: isRead)
        var header = ObjectHeader(
            pages: UInt32(bodyOffset / ObjectHeader.pageSize), generation: generation,
            description: description, spans: state.spans, extents: state.extents)
        header.sequence = state.sequence + 1
        // Until all is proven, nobody vouches for it.
        header.epoch = state.extents.isProven ? epoch : 0
        return header
    }
}
