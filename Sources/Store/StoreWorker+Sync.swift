import Posix
import Reactor
import Synchronization

/// What of objects and names is not certain yet, and what is made of the disk's word.
extension StoreWorker {
    // MARK: What waits

    /// An object that was written whole has its header already; it only has to be certain.
    func noteEarlyClaim(of object: StoredObject) {
        let isClaimed = object.state.withLock { state in
            defer { state.isClaimedEarly = false }
            return state.isClaimedEarly && state.place == .current && !state.isDiscarded
        }
        guard isClaimed else { return }
        noteUnsynced(object, isClaimedEarly: true)
        core.counters.commits.add(1, ordering: .relaxed)
    }

    /// Notes that an object's last header, and what it claims, may not be on the disk.
    ///
    /// By its key only: many may wait, and a weak reference would make every use of the object slower.
    func noteUnsynced(_ object: StoredObject, isClaimedEarly: Bool) {
        unsynced.append(UnsyncedHeader(key: object.key, isClaimedEarly: isClaimedEarly))
        if unsyncedSince == nil { unsyncedSince = .now() }
    }

    /// All that waits, which counts as being synced from now on.
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

    /// Has all that waits made certain by the syncing thread, unless that is still busy.
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

    /// As `beginSync`; where the thread is busy, it is asked again at the next tick.
    func syncSoon(_ loop: EventLoop) {
        guard isSyncing else { return beginSync(on: loop) }
        unsyncedSince = Monotonic(nanoseconds: 0)
    }

    /// - Returns: true when the disk refused nothing.
    @discardableResult
    private func takeSyncOutcome() -> Bool {
        guard let outcome = syncer.takeOutcome() else { return true }
        isSyncing = false
        return absorb(outcome)
    }

    /// Waits until headers and names are on the disk, or until a deadline; blocks.
    ///
    /// - Returns: true when nothing is left to sync, and the disk refused nothing: what it refused may
    ///   be found at the next start, and must be compared then.
    @discardableResult
    func syncAll(by deadline: Monotonic) -> Bool {
        var isSound = true
        if isSyncing {
            // What it is told of a failing disk, nobody else is told again.
            guard syncer.settle(by: deadline) else { return false }
            isSound = takeSyncOutcome()
        }
        isSound = absorb(takeUnsynced().sync(in: core.folder, by: deadline)) && isSound
        return isSound && unsynced.isEmpty && unsyncedFolders.isEmpty
    }

    /// Goes by what the disk said of the batch that was taken last.
    ///
    /// - Returns: true when it refused no file.
    @discardableResult
    func absorb(_ outcome: SyncOutcome) -> Bool {
        let isFormer = isSyncingFormer
        isSyncingFormer = false
        for entry in outcome.synced {
            guard let object = openObject(of: entry.header.key),
                object.generation == entry.generation
            else { continue }
            object.state.withLock { state in
                // A header that was written meanwhile is another one.
                if state.sequence == entry.sequence { state.isHeaderSynced = true }
            }
        }
        // In a folder that was made anew meanwhile the keys are other objects'.
        for (header, error) in outcome.refused where !isFormer {
            if let object = openObject(of: header.key) {
                giveUp(object, error)
                // Now, because a stop may be all that follows.
                _ = core.remove(header.key, only: object)
                continue
            }
            core.channel.noteStorageFailure(error)
            // It says more than what may be on the disk.
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
