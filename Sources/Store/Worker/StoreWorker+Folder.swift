import DurableState
import Logging
import Posix
import Reactor
import Synchronization

/// The cache folder: whether it is in place, and the move into an empty one.
extension StoreWorker {
    /// Checks whether the folder is in place, and repeats every second until it is.
    ///
    /// `again` is true if it was missing at the last check, so that the error is logged once.
    func lookForFolder(_ loop: EventLoop, again: Bool = false) {
        guard lostTimer == nil else { return }
        let isInPlace = core.folder.isInPlace
        if isInPlace, !isMovingIn {
            guard core.folder.isLost else { return }
            core.folder.isLost = false
            core.table.withEachShard { $0.forgetAbsent() }
            core.log.notice("the cache folder is back", metadata: ["path": "\(core.folder.path)"])
            return
        }
        core.folder.isLost = true
        if !again {
            core.log.error("\(absence)", metadata: ["path": "\(core.folder.path)"])
        }
        if isInPlace || core.folder.isRemade {
            do {
                if !isInPlace { try takeFolder() }
                try moveIn()
                core.folder.isLost = false
                moveFailure = nil
                core.log.notice(
                    "a new cache folder is used", metadata: ["path": "\(core.folder.path)"])
                tellLosses?()
                return
            } catch {
                // Once, not each second.
                let reason = "\(error)"
                if reason != moveFailure {
                    core.log.error(
                        "cannot use the new cache folder; retrying every second",
                        metadata: ["error": "\(reason)"])
                }
                moveFailure = reason
            }
        }
        lostTimer = loop.schedule(after: .seconds(1 as Int64)) { [unowned self] loop in
            lostTimer = nil
            lookForFolder(loop, again: true)
        }
    }

    /// Why the folder is not in place, and what to do.
    private var absence: String {
        if core.folder.lacksDisk {
            """
            the disk of the cache folder is not mounted or does not answer: nothing is stored \
            until it is back; restart the daemon to use the folder without it
            """
        } else if core.folder.isReplaced {
            """
            another folder is in place of the cache folder: nothing is stored until that is back; \
            restart the daemon to use the other one
            """
        } else {
            """
            the cache folder is gone: nothing is stored until it is back or an empty one is created
            """
        }
    }

    /// Locks the folder now at the path, and forgets what was in the former one; open objects can
    /// be read to their end.
    private func takeFolder() throws {
        try core.folder.takeAnew()
        isMovingIn = true
        forgetQuota()
        core.usage.startAnew()
        core.undeleted.removeAll()
        core.counters.removals.add(1, ordering: .releasing)
        core.table.withEachShard { shard in
            for object in shard.removeAll() { object.state.withLock { $0.becomeRemoved() } }
            shard.reconciled = nil
        }
        committer.moveIn()
        sync.moveIn()
        index.moveIn()
        (comparison, refilling, awaitedDamage) = (nil, nil, nil)
        evictor.startAnew()
    }

    /// Begins an empty index in the locked folder, and writes the state there.
    ///
    /// If it throws, for want of room for instance, it is repeated.
    private func moveIn() throws {
        // All objects are, and the state that comes here names them.
        try core.folder.noteLosses()
        try core.index.openAnew(core.folder)
        core.counters.isIndexDamaged.store(false, ordering: .relaxed)
        core.counters.isReconciled.store(true, ordering: .releasing)
        try core.state.moveIntoNewFolder()
        isMovingIn = false
    }
}
