import Posix
import Reactor
import Synchronization

/// The headers and names that may not be on the disk yet, and the batches in which they are synced.
///
/// Owned by the store thread's loop.
final class SyncQueue {
    private let core: StoreCore
    private let syncer: Syncer
    /// Headers that may not be on the disk yet; a key may occur more than once.
    private(set) var headers: [UnsyncedHeader] = []
    /// First bytes of the keys whose names may not be on the disk yet.
    private(set) var folders: Set<UInt8> = []
    /// When the oldest unsynced change was recorded; nil if everything is synced.
    private(set) var since: Monotonic?
    /// True from the start of a batch on the sync thread until its outcome is taken.
    private var isSyncing = false
    /// True if the running batch belongs to a folder that was replaced meanwhile.
    var isSyncingFormer = false
    /// Whoever waits for the next batch.
    private var waiting: [@Sendable (_ isSynced: Bool) -> Void] = []
    /// Whoever waits for the batch under way.
    private var awaited: [@Sendable (_ isSynced: Bool) -> Void] = []
    /// The last failed sync of the whole file system, while it may concern queued headers.
    private var failure: (error: SystemError, time: Monotonic)?

    init(core: StoreCore, syncer: Syncer) {
        self.core = core
        self.syncer = syncer
    }

    // MARK: Unsynced headers

    /// Queues an object for syncing that was written whole, header included.
    func noteEarlyClaim(of object: StoredObject) {
        let isClaimed = object.state.withLock { state in
            defer { state.isClaimedEarly = false }
            return state.isClaimedEarly && state.isCurrent
        }
        guard isClaimed else { return }
        note(object, isClaimedEarly: true)
        core.counters.note { $0.commits += 1 }
    }

    /// Records that an object's last header, and the bytes it claims, may not be on the disk.
    ///
    /// Stores only the key: there may be many, and a weak reference would slow down every use of
    /// the object.
    func note(_ object: StoredObject, isClaimedEarly: Bool) {
        headers.append(UnsyncedHeader(key: object.key, isClaimedEarly: isClaimedEarly))
        if since == nil { since = .now() }
    }

    /// Records that names of keys with these first bytes may not be on the disk.
    func note(folders changed: Set<UInt8>) {
        guard !changed.isEmpty else { return }
        folders.formUnion(changed)
        if since == nil { since = .now() }
    }

    /// Forgets everything, since the folder was replaced.
    func moveIn() {
        headers = []
        folders = []
        failure = nil
        isSyncingFormer = isSyncing
    }

    /// Removes and returns everything unsynced, as one batch.
    func take(at now: Monotonic = .now()) -> SyncBatch {
        var batch = SyncBatch(folders: folders, formerFailure: takeFailure(at: now))
        var places: [ObjectKey: Int] = [:]
        for header in headers {
            // One that was opened again counts as closed: its own sync might succeed although the
            // write failed, since the kernel may have dropped the inode and the error in between.
            guard let object = core.table.look(header.key),
                object.newPath != nil || !header.isClaimedEarly
            else {
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
        headers = []
        folders = []
        since = nil
        return batch
    }

    /// Returns the failure that may concern what is queued: headers that were queued when it was
    /// reported, and those that came later and claim bytes written before it.
    private func takeFailure(at now: Monotonic) -> SystemError? {
        guard let known = failure else { return nil }
        if now - known.time >= core.configuration.syncInterval { failure = nil }
        return known.error
    }

    // MARK: Syncing

    /// True if the oldest change has waited long enough, or many headers wait.
    func isDue(at now: Monotonic) -> Bool {
        guard let since else { return false }
        return now - since >= core.configuration.syncInterval
            || headers.count >= core.configuration.mostUnsynced
    }

    /// Starts syncing everything unsynced on the sync thread, unless that is busy.
    ///
    /// - Parameter whenDone: called on the sync thread once there is an outcome, for which it has
    ///   `takeOutcome` called on the store thread.
    func begin(whenDone: @escaping @Sendable () -> Void) {
        guard !isSyncing else { return }
        isSyncing = true
        (awaited, waiting) = (waiting, [])
        syncer.begin(take(), whenDone: whenDone)
    }

    /// Calls `done` once a batch that begins from now on has ended.
    ///
    /// Objects that it failed to sync are removed by then. With false if names or headers are left
    /// to a later batch.
    func whenSynced(_ done: @escaping @Sendable (_ isSynced: Bool) -> Void) {
        waiting.append(done)
    }

    /// True if somebody waits for a batch that has not begun.
    var isAwaited: Bool { !waiting.isEmpty }

    /// Takes the outcome of the last batch, if any, and tells those who waited for it.
    ///
    /// - Returns: true if no sync failed.
    @discardableResult
    func takeOutcome() -> Bool {
        guard let outcome = syncer.takeOutcome() else { return true }
        isSyncing = false
        let isSound = absorb(outcome)
        let told = awaited
        awaited = []
        let isSynced = outcome.left.isEmpty && outcome.leftFolders.isEmpty
        for done in told { done(isSynced) }
        return isSound
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
            guard syncer.waitForBatch(by: deadline) else { return false }
            isSound = takeOutcome()
        }
        isSound = absorb(take().sync(in: core.folder, by: deadline)) && isSound
        return isSound && headers.isEmpty && folders.isEmpty
    }

    /// Applies the outcome of the last batch.
    ///
    /// - Returns: true if the sync of no file failed.
    @discardableResult
    func absorb(_ outcome: SyncOutcome) -> Bool {
        let isFormer = isSyncingFormer
        isSyncingFormer = false
        for entry in outcome.synced {
            guard let object = core.table.look(entry.header.key),
                object.generation == entry.generation
            else { continue }
            object.state.withLock { state in
                // A header written meanwhile has another sequence and is not synced yet.
                if state.sequence == entry.sequence { state.isHeaderSynced = true }
            }
        }
        // If the folder was replaced meanwhile, the keys belong to other objects.
        for (header, error) in outcome.refused where !isFormer {
            if let object = core.table.look(header.key) {
                core.giveUp(object, error)
                // Remove it here and not by mail, since the store may be closing.
                _ = core.remove(header.key, only: object)
                continue
            }
            core.channel.noteStorageFailure(error)
            // The header may claim more than is on the disk.
            if header.isClaimedEarly { core.remove(header.key) }
        }
        if let error = outcome.failure, !isFormer { failure = (error, .now()) }
        if let error = outcome.refusal { core.channel.noteStorageFailure(error) }
        if !isFormer { headers += outcome.left }
        folders.formUnion(outcome.leftFolders)
        let isDone = outcome.left.isEmpty && outcome.leftFolders.isEmpty
        if !isDone, since == nil { since = .now() }
        return outcome.refused.isEmpty
    }
}
