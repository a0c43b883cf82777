/// What of objects and names is not certain yet, and what is made of the disk's word.
import Glibc
import Posix
import Reactor
import Synchronization

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

    func noteUnsynced(_ object: StoredObject, isClaimedEarly: Bool) {
        let isEarly = isClaimedEarly || unsynced[object.key]?.isClaimedEarly == true
        unsynced[object.key] = Remembered(object: object, isClaimedEarly: isEarly)
        if unsyncedSince == nil { unsyncedSince = .now() }
    }

    /// All that waits, which counts as being synced from now on.
    func takeUnsynced() -> SyncBatch {
        var batch = SyncBatch(folders: unsyncedFolders)
        for (key, known) in unsynced {
            let object = known.object
            batch.entries.append(
                SyncBatch.Entry(
                    key: key, file: object?.descriptor,
                    sequence: object?.state.withLock { $0.sequence } ?? 0,
                    isClaimedEarly: known.isClaimedEarly))
        }
        syncing = unsynced
        unsynced = [:]
        unsyncedFolders = []
        unsyncedSince = nil
        return batch
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

    private func takeSyncOutcome() {
        guard let outcome = syncer.takeOutcome() else { return }
        isSyncing = false
        absorb(outcome)
    }

    /// Waits until headers and names are on the disk, or until a deadline; blocks.
    ///
    /// - Returns: true when nothing is left to sync.
    @discardableResult
    func syncAll(by deadline: Monotonic) -> Bool {
        if isSyncing {
            // What it is told of a failing disk, nobody else is told again.
            guard syncer.settle(by: deadline) else { return false }
            takeSyncOutcome()
        }
        absorb(takeUnsynced().sync(in: core.folder, by: deadline))
        return unsynced.isEmpty && unsyncedFolders.isEmpty
    }

    /// Goes by what the disk said of the batch that was taken last.
    func absorb(_ outcome: SyncOutcome) {
        let known = syncing
        syncing = [:]
        for entry in outcome.synced {
            known[entry.key]?.object?.state.withLock { state in
                // A header that was written meanwhile is another one.
                if state.sequence == entry.sequence { state.isHeaderSynced = true }
            }
        }
        for (entry, error) in outcome.refused {
            if let object = known[entry.key]?.object {
                giveUp(object, error)
                continue
            }
            core.channel.noteStorageFailure(error)
            // Its header says more than what may be on the disk, unless it was not even asked.
            if entry.isClaimedEarly, error.code != EMFILE, error.code != ENFILE {
                core.remove(entry.key)
            }
        }
        if let error = outcome.refusal { core.channel.noteStorageFailure(error) }
        for entry in outcome.left.entries where unsynced[entry.key] == nil {
            unsynced[entry.key] = known[entry.key]
        }
        unsyncedFolders.formUnion(outcome.left.folders)
        if !outcome.left.isEmpty, unsyncedSince == nil { unsyncedSince = .now() }
    }
}
