/// What the front of the store and the store thread share, and the changes of names on disk.
import Glibc
import Logging
import Posix
import Retention
import Synchronization

/// The parts of one open store.
///
/// Each guards itself.
final class StoreCore: Sendable {
    let folder: StoreFolder
    let index: ObjectIndex
    let table: ObjectTable
    let channel: StoreChannel
    let pins: PinFile
    let log: Logger

    var ledger: DiskLedger { channel.ledger }
    var counters: StoreCounters { channel.counters }
    var configuration: StoreConfiguration { channel.configuration }

    init(
        folder: StoreFolder, index: ObjectIndex, channel: StoreChannel, log: Logger
    ) throws(SystemError) {
        pins = try PinFile(folder: folder, log: log)
        self.folder = folder
        self.index = index
        self.channel = channel
        self.log = log
        table = ObjectTable(maxOpenObjects: channel.configuration.maxOpenObjects)
    }

    // MARK: Names on disk

    /// Opens a key's file and believes it if its header verifies.
    ///
    /// The key's shard is locked.
    ///
    /// A file that does not verify is deleted; one that cannot be opened or read just now is left.
    func load(_ key: ObjectKey, _ shard: inout TableShard) -> StoredObject? {
        let path = folder.objectPath(key)
        do throws(SystemError) {
            let file = try openFile(path, flags: O_RDWR)
            guard let header = try ObjectHeader.read(from: file.number), header.key == key else {
                try removeFile(path)
                forgetDamaged(key, &shard)
                return nil
            }
            if !header.isComplete { dropUnclaimedBytes(header, file.number) }
            if shard.isUnsettled(key) { settle(header, &shard) }
            let parts = StoredObject.Parts(
                header: header, place: .current, charge: Footprint.bytes(of: header))
            return StoredObject(parts, descriptor: SharedDescriptor(file), channel: channel)
        } catch {
            if error.code != ENOENT {
                log.warning("cannot open a stored object", metadata: ["error": "\(error)"])
            }
            return nil
        }
    }

    /// Gives back what a process that was killed wrote and did not commit.
    private func dropUnclaimedBytes(_ header: ObjectHeader, _ file: CInt) {
        var found = stat()
        guard fstat(file, &found) == 0 else { return }
        let claimedEnd = header.bodyOffset + header.spans.end
        let claimed = Footprint.bytes(of: header)
        guard Int64(found.st_size) > claimedEnd || Int64(found.st_blocks) * 512 > claimed else {
            return
        }
        keepOnly(header.spans, of: file, bodyOffset: header.bodyOffset, total: header.total)
    }

    /// Makes ledger and index agree with a file that has not been compared since the start.
    private func settle(_ header: ObjectHeader, _ shard: inout TableShard) {
        let row = row(of: header.key)
        shard.settled?.insert(header.key)
        let found = IndexRow(
            key: header.key, url: header.url, role: header.role, title: header.title,
            kind: header.kind, isRead: header.isRead || row?.isRead == true,
            bytes: Footprint.bytes(of: header), total: header.total, isComplete: header.isComplete, created: header.created,
            lastUsed: row?.lastUsed ?? header.created)
        guard found != row else { return }
        ledger.charge(found.bytes - (row?.bytes ?? 0))
        channel.noteRow(.put(found), of: header.key)
        guard row == nil else { return }
        ledger.countObjects(1)
        counters.adoptedObjects.add(1, ordering: .relaxed)
    }

    /// Takes a file that did not verify, and is deleted, out of the books.
    private func forgetDamaged(_ key: ObjectKey, _ shard: inout TableShard) {
        counters.damagedObjects.add(1, ordering: .relaxed)
        log.warning("deleted a damaged object", metadata: ["object": "\(key)"])
        guard let row = row(of: key) else { return }
        ledger.release(row.bytes)
        noteRemoval(of: key, &shard)
    }

    /// What the index says of a key; a failing index says nothing.
    private func row(of key: ObjectKey) -> IndexRow? {
        do {
            return try index.row(of: key)
        } catch {
            counters.indexFailures.add(1, ordering: .relaxed)
            return nil
        }
    }

    /// Notes that a key's name is gone.
    ///
    /// The key's shard is locked.
    func noteRemoval(of key: ObjectKey, _ shard: inout TableShard) {
        shard.settled?.insert(key)
        ledger.countObjects(-1)
        channel.noteRow(.delete, of: key)
    }

    /// Removes a key's name; holders of the object keep it.
    ///
    /// May block on the disk.
    ///
    /// - Returns: the object that was removed.
    func remove(_ key: ObjectKey) -> StoredObject? {
        table.withShard(of: key) { shard in unlink(key, &shard) }
    }

    /// As `remove`, with the key's shard locked.
    func unlink(_ key: ObjectKey, _ shard: inout TableShard) -> StoredObject? {
        // Read from disk if need be: its size must leave the ledger.
        guard let object = shard.remove(key) ?? load(key, &shard) else { return nil }
        do throws(SystemError) {
            try removeFile(folder.objectPath(key))
        } catch {
            log.error("cannot delete a stored object", metadata: ["error": "\(error)"])
        }
        object.state.withLock { $0.place = .unlinked }
        noteRemoval(of: key, &shard)
        return object
    }

    /// Counts the object of a key that had none.
    ///
    /// The key's shard is locked.
    private func countNew(_ key: ObjectKey, _ shard: inout TableShard) {
        // A kill between the deletion of a file and that of its row leaves a row that counts still.
        if shard.isUnsettled(key), let row = row(of: key) {
            ledger.release(row.bytes)
        } else {
            ledger.countObjects(1)
        }
    }

    /// Makes an object what its key stands for.
    ///
    /// May block on the disk.
    func publish(_ object: StoredObject) throws(SystemError) {
        guard let newPath = object.newPath else { return }
        let key = object.key
        let path = folder.objectPath(key)
        let old = try table.withShard(of: key) { shard throws(SystemError) -> StoredObject? in
            let (place, isDiscarded) = object.state.withLock { ($0.place, $0.isDiscarded) }
            guard place == .unpublished, !isDiscarded else { return nil }
            let known = shard.contains(key) ? nil : load(key, &shard)
            do throws(SystemError) {
                try renameFile(newPath, to: path)
            } catch {
                guard error.code == ENOENT else { throw error }
                try makeFolder(String(path.prefix(upTo: path.lastIndex(of: "/") ?? path.endIndex)))
                try renameFile(newPath, to: path)
            }
            let old = shard.put(object) ?? known
            old?.state.withLock { $0.place = .unlinked }
            if old == nil { countNew(key, &shard) }
            shard.settled?.insert(key)
            object.state.withLock { state in
                state.place = .current
                state.hasNewFacts = true
            }
            channel.noteRow(.put(object.row(lastUsed: .now())), of: key)
            return old
        }
        // Its space is given back here if nobody reads it, outside the lock.
        _ = consume old
        if object.state.withLock({ $0.markDirty() }) { channel.noteDirty(object) }
        table.trim(around: key)
    }
}

/// Gives back every block of a body outside its spans, reserved ones too (fallocate(2),
/// ftruncate(2)).
///
/// Nobody may be writing the body.
func keepOnly(_ spans: SpanSet, of file: CInt, bodyOffset: Int64, total: Int64?) {
    let size = (try? fileSize(file)) ?? 0
    let end = max(size - bodyOffset, total ?? 0, spans.end)
    // Blocks reserved beyond the end of a file cannot be punched, so the file gets its full length
    // first. Failures cost space only.
    if bodyOffset + end > size { _ = ftruncate(file, off_t(bodyOffset + end)) }
    for hole in spans.holes(in: 0..<end) {
        punchHole(file, offset: bodyOffset + hole.lowerBound, length: Int64(hole.count))
    }
    _ = ftruncate(file, off_t(bodyOffset + spans.end))
}

extension Footprint {
    /// What an object at rest takes.
    static func bytes(of header: ObjectHeader) -> Int64 {
        bytes(header: header.bodyOffset, present: header.spans.totalBytes)
    }
}

extension StoredObject {
    /// The object's row in the index, as of now.
    func row(lastUsed: WallTime?) -> IndexRow {
        state.withLock { state in
            IndexRow(
                key: key, url: url, role: role, title: title, kind: kind, isRead: isRead,
                bytes: state.charge, total: state.total, isComplete: state.isComplete, created: created, lastUsed: lastUsed)
        }
    }
}
