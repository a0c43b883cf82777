import Posix
import Reactor
import Synchronization

/// Syncing: which headers and names may not be durable yet, and what follows from failed syncs.
extension StoreWorker {
    // MARK: Unsynced headers

    /// Queues an object for syncing that was written whole, header included.
    func noteEarlyClaim(of object: StoredObject) {
        let isClaimed = object.state.withLock { state in
            defer { state.isClaimedEarly = false }
            return state.isClaimedEarly && state.place == .current && !state.isDiscarded
        }
        guard isClaimed else { return }
        noteUnsynced(object, isClaimedEarly: true)
        core.counters.commits.add(1, ordering: .relaxed)
    }

    /// Records that an object's last header, and the bytes it claims, may not be on the disk.
    ///
    /// Stores only the key: there may be many, and a weak reference would slow down every use of
    /// the object.
    func noteUnsynced(_ object: StoredObject, isClaimedEarly: Bool) {
        unsynced.append(UnsyncedHeader(key: object.key, isClaimedEarly: isClaimedEarly))
        if unsyncedSince == nil { unsyncedSince = .now() }
    }

    /// Removes and returns everything unsynced, as one batch.
    func takeUnsynced() -> SyncBatch {
        var batch = SyncBatch(folders: unsyncedFolders)
        var places: [ObjectKey: Int] = [:]
        for header in unsynced {
            guard let object = openObject(of: header.key) else {
                batch.closed.append(header)
                continue
            }
            if let place = places[header.key] {
                if header.isClaimedEarly { batch.open[place].header = header }
                continue
            }
            places[header.key] = batch.open.count
            batch.open.append(
                SyncBatch.Entry(
                    header: header, generation: object.generation, file: object.descriptor,
                    sequence: object.state.withLock { $0.sequence }))
        }
        unsynced = []
        unsyncedFolders = []
        unsyncedSince = nil
        return batch
    }

    private func openObject(of key: ObjectKey) -> StoredObject? {
        core.table.withShard(of: key) { $0.look(key) }
    }

    // MARK: Syncing

    /// Starts syncing everything unsynced on the sync thread, unless that is busy.
    func beginSync(on loop: EventLoop) {
        guard !isSyncing else { return }
        isSyncing = true
        let me = LoopBound(self, to: loop)
        syncer.begin(takeUnsynced()) {
            me.enqueue { worker, loop in
                worker.takeSyncOutcome()
                worker.lookForFolder(loop)
            }
        }
    }

    /// Starts syncing like `beginSync`; if the thread is busy, the next tick tries again.
    func syncSoon(_ loop: EventLoop) {
        guard isSyncing else { return beginSync(on: loop) }
        unsyncedSince = Monotonic(nanoseconds: 0)
    }

    /// Takes the outcome of the last batch, if any.
    ///
    /// - Returns: true if no sync failed.
    @discardableResult
    private func takeSyncOutcome() -> Bool {
        guard let outcome = syncer.takeOutcome() else { return true }
        isSyncing = false
        return absorb(outcome)
    }

    /// Syncs headers and names until a deadline; blocks.
    ///
    /// - Returns: true if nothing is left to sync and no sync failed: an object whose sync failed
    ///   may still be found at the next start, and must be compared then.
    @discardableResult
    func syncAll(by deadline: Monotonic) -> Bool {
        var isSound = true
        if isSyncing {
            // The kernel reports a failure only once, so this batch's outcome must not be lost.
            guard syncer.settle(by: deadline) else { return false }
            isSound = takeSyncOutcome()
        }
        isSound = absorb(takeUnsynced().sync(in: core.folder, by: deadline)) && isSound
        return isSound && unsynced.isEmpty && unsyncedFolders.isEmpty
    }

    /// Applies the outcome of the last batch.
    ///
    /// - Returns: true if the sync of no file failed.
    @discardableResult
    func absorb(_ outcome: SyncOutcome) -> Bool {
        let isFormer = isSyncingFormer
        isSyncingFormer = false
        for entry in outcome.synced {
            guard let object = openObject(of: entry.header.key),
                object.generation == entry.generation
            else { continue }
            object.state.withLock { state in
                // A header written meanwhile has another sequence and is not synced yet.
                if state.sequence == entry.sequence { state.isHeaderSynced = true }
            }
        }
        // If the folder was replaced meanwhile, the keys belong to other objects.
        for (header, error) in outcome.refused where !isFormer {
            if let object = openObject(of: header.key) {
                giveUp(object, error)
                // Remove it here and not by mail, since the store may be closing.
                _ = core.remove(header.key, only: object)
                continue
            }
            core.channel.noteStorageFailure(error)
            // The header may claim more than is on the disk.
            if header.isClaimedEarly { core.remove(header.key) }
        }
        if let error = outcome.refusal { core.channel.noteStorageFailure(error) }
        if !isFormer { unsynced += outcome.left }
        unsyncedFolders.formUnion(outcome.leftFolders)
        let isDone = outcome.left.isEmpty && outcome.leftFolders.isEmpty
        if !isDone, unsyncedSince == nil { unsyncedSince = .now() }
        return outcome.refused.isEmpty
    }
}
