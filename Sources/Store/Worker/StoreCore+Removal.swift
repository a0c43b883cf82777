// The removal of names on disk.
import Glibc
import Logging
import Posix
import Reactor
import Synchronization

extension StoreCore {
    /// Removes a key's name; holders can still read the object.
    ///
    /// Blocks on the disk.
    ///
    /// With `only`, does nothing unless that is the key's open object; with `created`, unless the
    /// object has that creation time. With `only`, the file of an object that the disk failed to
    /// read or write keeps its name if the disk refuses to delete it, too.
    ///
    /// - Returns: true if an object was removed.
    @discardableResult
    func remove(
        _ key: ObjectKey, only: StoredObject? = nil, created: WallTime? = nil
    ) -> Bool {
        let (isRemoved, closed) = table.withName(of: key) { () -> (Bool, StoredObject?) in
            let open = table.look(key)
            if let only, open !== only { return (false, nil) }
            // Loaded from disk if it is not open: its size must be subtracted from the disk usage.
            switch open.map(OnDisk.object) ?? lookOnDisk(for: key, hides: false) {
            case .absent: return (false, nil)
            case .unreadable: return (removeUnread(key, created: created), nil)
            case .object(let object):
                if let created, object.created != created { return (false, nil) }
                _ = table.withShard(of: key) { $0.remove(key.name) }
                if only != nil, object.state.withLock({ $0.mayLeaveFile }) {
                    if leavesFile(of: object) { return (false, object) }
                    noteLoss()
                }
                deleteFile(of: key)
                object.state.withLock { $0.becomeRemoved() }
                noteRemoval(of: key)
                return (true, object)
            }
        }
        // Closing the file frees its space, outside the lock.
        _ = consume closed
        return isRemoved
    }

    /// Has complete downloads checked, since an object is lost to damage; by the next run if this
    /// one ends before.
    ///
    /// Called before the index loses the object's row, also with a key's name locked: the store
    /// thread, which writes the index, syncs the note.
    func noteLoss() {
        // Another folder may be at the path.
        guard !folder.isLost else { return }
        let isNew = folder.noteLossesUnsynced()
        channel.worker?.enqueue { worker, loop in
            if isNew { try? syncFolder(worker.core.folder.path) }
            worker.tellLossesSoon(loop)
        }
    }

    /// Removes an object whose file cannot be opened, by what is known of it; the caller holds the
    /// key's name lock.
    private func removeUnread(_ key: ObjectKey, created: WallTime?) -> Bool {
        if let created, latestRow(of: key)?.created != created { return false }
        guard let bytes = unreadBytes(of: key) else { return false }
        deleteFile(of: key)
        noteRemoval(of: key, releasing: bytes)
        return true
    }

    /// Returns the bytes charged for an object whose file cannot be opened; nil if none is known.
    ///
    /// The row of a file that was left may be on the disk that is away, or not be written yet.
    func unreadBytes(of key: ObjectKey) -> Int64? {
        undeleted.bytes(of: key) ?? latestRow(of: key)?.bytes
    }

    /// Returns the row of a key with the change that the store thread has not taken yet: the bytes
    /// of an object whose row is still to be deleted were released already.
    func latestRow(of key: ObjectKey) -> StoreEntry? {
        if let change = channel.pendingRow(of: key) { change.row } else { row(of: key) }
    }

    /// Leaves the file of a discarded object, with its name, row and charge, to the next lookup;
    /// the caller holds the key's name lock.
    ///
    /// A disk that is away for a moment reads nothing and deletes nothing: that says nothing about
    /// the bytes, which are compared with their checksums once it is back. A disk that is read-only
    /// still answers, so its read errors are damage. After a failed sync, the bytes that a
    /// comparison finds may be only in the kernel's memory: such a file is not left.
    ///
    /// - Parameter object: one that `mayLeaveFile`.
    /// - Returns: false if its file was deleted, or must be.
    private func leavesFile(of object: StoredObject) -> Bool {
        do throws(SystemError) {
            try removeFile(folder.objectPath(object.key))
            return false
        } catch {
            guard error.code != EROFS else { return false }
            undeleted.leave(object.key, bytes: object.state.withLock { $0.leaveFile() })
            log.error(
                "the disk fails to read and to delete a stored object, which is opened again later",
                metadata: ["object": "\(object.key)", "error": "\(error)"])
            // Has the store thread begin to wait.
            channel.hurry()
            return true
        }
    }

    /// Deletes a key's file, or records that the disk refused it; the caller holds the key's name
    /// lock.
    func deleteFile(of key: ObjectKey) {
        do throws(SystemError) {
            try removeFile(folder.objectPath(key))
            undeleted.remove(key)
        } catch {
            undeleted.insert(key)
            log.error("cannot delete a stored object", metadata: ["error": "\(error)"])
        }
    }

    /// Counts the file of an object that an earlier run removed as one that the disk refuses to
    /// delete, if it cannot be opened.
    ///
    /// Neither a lookup nor the comparison can tell that `hidden` matches it. An object that was
    /// stored later has a row.
    func noteUnopened(_ key: ObjectKey) {
        table.withName(of: key) {
            let open = table.look(key)
            guard open == nil, !undeleted.isLeft(key), latestRow(of: key) == nil,
                case .unreadable = lookOnDisk(for: key, hides: true)
            else { return }
            undeleted.insert(key)
            // Has the store thread begin to wait.
            channel.hurry()
        }
    }

    /// Deletes the files that the disk refused to delete, and stops if it takes no change at all;
    /// lets those be opened again that were left.
    ///
    /// Blocks on the disk.
    func deleteUndeleted() {
        undeleted.readmitLeft()
        for key in undeleted.all {
            let failure = table.withName(of: key) { () -> SystemError? in
                // An object published meanwhile has replaced the file.
                guard undeleted.contains(key) else { return nil }
                do throws(SystemError) {
                    try removeFile(folder.objectPath(key))
                } catch {
                    return error
                }
                undeleted.remove(key)
                return nil
            }
            if failure?.code == EROFS { return }
        }
    }

    /// Removes an object's name, so that it is freed with its last holder; its bytes stay charged.
    ///
    /// A complete object keeps its name: it needs no more room, and its readers are not registered
    /// with those that `punch` waits for.
    ///
    /// - Returns: false if it is not the current object of its key.
    func forgetName(of object: StoredObject) -> Bool {
        let key = object.key
        let (isForgotten, former) = table.withName(of: key) { () -> (Bool, StoredObject?) in
            if object.isComplete { return (true, nil) }
            switch object.state.withLock({ $0.place }) {
            case .unpublished:
                if let path = object.newPath { try? removeFile(path) }
            case .current:
                let isOpen = table.withShard(of: key) { shard -> Bool in
                    guard shard.look(key) === object else { return false }
                    return shard.remove(key.name) != nil
                }
                guard isOpen else { return (false, nil) }
                deleteFile(of: key)
                noteRemoval(of: key)
            case .unlinked, .unnamed: return (true, nil)
            }
            let isRemoved = object.isRemoved
            // Another fill may have completed it meanwhile.
            return object.state.withLock { state -> (Bool, StoredObject?) in
                if isRemoved { state.becomeRemoved() } else { state.loseName() }
                return (true, state.former.take())
            }
        }
        // Outside the locks: the last reference to one that was replaced frees its space. One that
        // is still current may be evicted, since the object will not replace it any more.
        _ = consume former
        return isForgotten
    }
}
