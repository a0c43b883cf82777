/// Bringing headers up to date, after the data that they claim.
import Glibc
import Logging
import Posix
import Synchronization

extension StoreWorker {
    /// From this many files on, one wait for the whole file system is shorter than one for each:
    /// measured on ext4, 512 new files take 0.09 ms each instead of 4.
    private static let together = 8
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

    /// Writes the headers of current objects, after the data that they claim and the headers before
    /// them are on the disk.
    private func commit(_ objects: ArraySlice<StoredObject>) {
        var due: [(object: StoredObject, header: ObjectHeader, mustSync: Bool)] = []
        for object in objects {
            object.sumUp()
            noteEarlyClaim(of: object)
            guard let (header, mustSync) = object.snapshot(epoch: core.folder.epoch) else {
                continue
            }
            due.append((object, header, mustSync))
        }
        // Where that fails, each file says for itself what is the matter.
        let isSynced =
            due.count { $0.mustSync } >= Self.together
            && (try? core.folder.syncEverything()) != nil
        for (object, header, mustSync) in due {
            do throws(SystemError) {
                if mustSync, !isSynced { try syncData(object.descriptor.number) }
            } catch {
                giveUp(object, error)
                continue
            }
            do throws(SystemError) {
                try writeHeader(header, of: object)
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

    private func writeHeader(
        _ header: ObjectHeader, of object: StoredObject
    ) throws(SystemError) {
        // Written over the only header of a file of format 1, a torn one would be the end of it.
        let isCramped = object.state.withLock { $0.isCramped && $0.sequence == 0 }
        guard !isCramped, let encoded = header.encoded() else {
            return object.state.withLock { $0.isCramped = true }
        }
        try write(encoded.bytes, to: object.descriptor.number, at: header.slotOffset)
        object.state.withLock { state in
            state.sequence = header.sequence
            state.isHeaderSynced = false
            state.isCramped = state.isCramped || !encoded.isWhole
        }
        noteUnsynced(object)
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

    // MARK: Certainty

    /// An object that was written whole has its header already; it only has to be certain.
    private func noteEarlyClaim(of object: StoredObject) {
        let isClaimed = object.state.withLock { state in
            defer { state.isClaimedEarly = false }
            return state.isClaimedEarly && state.place == .current && !state.isDiscarded
        }
        guard isClaimed else { return }
        noteUnsynced(object, isClaimedEarly: true)
        core.counters.commits.add(1, ordering: .relaxed)
    }

    private func noteUnsynced(_ object: StoredObject, isClaimedEarly: Bool = false) {
        let isEarly = isClaimedEarly || unsynced[object.key]?.isClaimedEarly == true
        unsynced[object.key] = Remembered(object: object, isClaimedEarly: isEarly)
        if unsyncedSince == nil { unsyncedSince = .now() }
    }

    /// Waits until headers and names are on the disk, or until a deadline; blocks.
    ///
    /// - Returns: true when nothing is left to sync.
    @discardableResult
    func syncAll(by deadline: Monotonic) -> Bool {
        if unsynced.count + unsyncedFolders.count >= Self.together, syncTogether() { return true }
        for (key, known) in unsynced {
            guard .now() < deadline else { break }
            sync(key, known)
            unsynced[key] = nil
        }
        for byte in unsyncedFolders {
            guard .now() < deadline else { break }
            do throws(SystemError) {
                try syncFolder(core.folder.objectsFolder(of: byte))
                unsyncedFolders.remove(byte)
            } catch {
                // Gone with everything in it, there is nothing to sync.
                if error.code == ENOENT { unsyncedFolders.remove(byte) }
                core.channel.noteStorageFailure(error)
            }
        }
        let isDone = unsynced.isEmpty && unsyncedFolders.isEmpty
        unsyncedSince = isDone ? nil : .now()
        return isDone
    }

    private func syncTogether() -> Bool {
        guard (try? core.folder.syncEverything()) != nil else { return false }
        for known in unsynced.values {
            known.object?.state.withLock { $0.isHeaderSynced = true }
        }
        unsynced = [:]
        unsyncedFolders = []
        unsyncedSince = nil
        return true
    }

    private func sync(_ key: ObjectKey, _ known: Remembered) {
        let object = known.object
        do throws(SystemError) {
            if let object {
                try syncData(object.descriptor.number)
                object.state.withLock { $0.isHeaderSynced = true }
            } else {
                // Closed by now: the kernel knows by the file what is not written yet.
                let file = try openFile(core.folder.objectPath(key), flags: O_RDONLY)
                try syncData(file.number)
            }
        } catch {
            guard error.code != ENOENT else { return }
            if let object { return giveUp(object, error) }
            core.channel.noteStorageFailure(error)
            // Its header says more than what may be on the disk, unless it was not even asked.
            if known.isClaimedEarly, error.code != EMFILE, error.code != ENFILE { core.remove(key) }
        }
    }
}

extension StoredObject {
    /// What a header written now may say once the data is synced, and whether there is anything to
    /// sync; nil unless the object is current and has something to say.
    fileprivate func snapshot(epoch: UInt64) -> (header: ObjectHeader, mustSync: Bool)? {
        state.withLock { state in
            guard state.place == .current, !state.isDiscarded,
                state.uncommittedBytes > 0 || state.hasNewFacts
            else { return nil }
            let header = self.header(state, epoch: epoch)
            let mustSync = state.uncommittedBytes > 0 || !state.isHeaderSynced
            state.uncommittedBytes = 0
            state.hasNewFacts = false
            return (header, mustSync)
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
