// The state shared by the store's callers and the store thread, and the changes of names on disk.
import DurableState
import Glibc
import Logging
import Posix
import Retention
import Synchronization

/// Matches the objects that an unfinished purge still has to remove.
///
/// A type of its own: each generic access to a bare closure, such as that of `Mutex`, wraps it once
/// more and keeps the wrapped one, until a call of it fills the stack.
struct HiddenObjects: Sendable {
    let fits: @Sendable (StoreEntry) -> Bool
}

/// The parts of one open store; each is thread-safe.
final class StoreCore: Sendable {
    let folder: StoreFolder
    let index: ObjectIndex
    let state: StateDatabase
    let table: ObjectTable
    let channel: StoreChannel
    let pins: PinTable
    let cleaner: ClearedFolderCleaner
    let log: Logger
    private let lastGeneration: Atomic<UInt64>
    let allowance = Mutex(Allowance())
    /// What an unfinished purge still has to remove; lookups do not return it.
    let hidden = Mutex<HiddenObjects?>(nil)
    /// Removed objects whose files are still there; lookups do not return them either.
    let undeleted = UndeletedFiles()
    /// The uses that the store thread has collected, and the index does not have yet.
    let gatheredUses = Mutex<[ObjectKey: Use]>([:])
    let unsavedLongURLs = Mutex(UnsavedLongURLs())
    private let ending = Atomic<Bool>(false)
    /// The number of times that saved long URLs were deleted, or had to be saved again.
    let longURLVersion = Atomic<UInt64>(0)
    /// The wall-clock time up to which the saved long URLs in use leave no room for others, in
    /// nanoseconds.
    let longURLsCrowdedUntil = Atomic<Int64>(.min)

    var usage: DiskUsage { channel.usage }
    var counters: StoreCounters { channel.counters }
    var configuration: StoreConfiguration { channel.configuration }

    /// True once the store is about to be closed: nothing may wait for long work any more.
    var isEnding: Bool {
        get { ending.load(ordering: .relaxed) }
        set { ending.store(newValue, ordering: .relaxed) }
    }

    init(
        folder: StoreFolder, index: ObjectIndex, state: StateDatabase, channel: StoreChannel,
        log: Logger
    ) {
        pins = PinTable(state)
        cleaner = ClearedFolderCleaner(folder: folder, index: index, channel: channel, log: log)
        self.folder = folder
        self.index = index
        self.state = state
        self.channel = channel
        self.log = log
        table = ObjectTable(maxOpenObjects: channel.configuration.maxOpenObjects)
        // Random, so that generations of two runs do not collide.
        lastGeneration = Atomic(UInt64.random(in: 0..<UInt64.max / 2))
    }

    func makeGeneration() -> UInt64 {
        lastGeneration.add(1, ordering: .relaxed).newValue
    }

    // MARK: Finding

    /// Returns the current object of a key; nil if none is stored.
    ///
    /// Blocks on the disk if the object is not open.
    func find(_ key: ObjectKey) -> StoredObject? {
        let (known, isAbsent) = table.withShard(of: key) { shard in
            let open = shard.find(key)
            return (open, open == nil && shard.isAbsent(key))
        }
        if let open = known {
            guard open.isDiscarded else { return open }
            _ = remove(key, only: open)
            return nil
        }
        if isAbsent { return nil }
        let opened = table.withName(of: key) { () -> StoredObject? in
            // Another thread may have opened it first.
            if let open = table.withShard(of: key, { $0.find(key) }) {
                return open.isDiscarded ? nil : open
            }
            guard let loaded = load(key) else { return nil }
            return table.withShard(of: key) { shard in
                _ = shard.put(loaded)
                return loaded
            }
        }
        guard let opened else { return nil }
        table.trim(around: key)
        // Small objects, mainly playlists, are read whole, so they are verified whole.
        if opened.isDoubtfulAndSmall, opened.proveAll(again: false).lost > 0 {
            return removeLost(opened) ? nil : opened
        }
        return opened
    }

    /// Removes an object whose bytes all failed verification: it would count as stored, and
    /// complete downloads would not be told of their loss.
    ///
    /// - Returns: false if it has bytes, or a fill that another lookup has begun meanwhile.
    private func removeLost(_ object: StoredObject) -> Bool {
        guard object.presentBytes == 0, !object.hasFills else { return false }
        noteLoss()
        if remove(object.key, only: object) { countDamaged(object.key) }
        return true
    }

    private func countDamaged(_ key: ObjectKey) {
        counters.note { $0.damagedObjects += 1 }
        log.warning("deleted a damaged object", metadata: ["object": "\(key)"])
    }

    /// What is found under a key's name.
    enum OnDisk: Sendable {
        case object(StoredObject)
        /// There is no file, or one that was just deleted, or is to be.
        case absent
        /// There is a file, or may be, that cannot be opened now.
        case unreadable

        var opened: StoredObject? { if case .object(let object) = self { object } else { nil } }
    }

    /// Opens a key's file like `lookOnDisk`; returns nil if there is none or it cannot be opened.
    func load(_ key: ObjectKey) -> StoredObject? { lookOnDisk(for: key, hides: true).opened }

    /// Opens a key's file and verifies its header; the caller holds the key's name lock.
    ///
    /// Deletes a file that fails verification; leaves a file that cannot be opened or read at the
    /// moment.
    ///
    /// With `hides`, deletes an object matched by `hidden`, which then counts as absent, also if
    /// the disk refuses to delete its file.
    func lookOnDisk(for key: ObjectKey, hides: Bool) -> OnDisk {
        guard !undeleted.contains(key) else { return .absent }
        guard !undeleted.isLeft(key) else { return .unreadable }
        let path = folder.objectPath(key)
        // Any other epoch has the bytes compared with their checksums.
        let epoch = undeleted.isDoubtful(key) ? folder.epoch &+ 1 : folder.epoch
        do throws(SystemError) {
            let file = try openQuietly(path, flags: O_RDWR)
            guard let start = try ObjectHeader.readStart(of: file.number, epoch: epoch),
                start.header.key == key
            else {
                try removeFile(path)
                forgetDamaged(key)
                return .absent
            }
            let header = start.header
            if hides, isHidden(header) {
                deleteFile(of: key)
                forgetHidden(key)
                return .absent
            }
            if !header.isComplete { dropUnclaimedBytes(header, file.number) }
            reconcile(header)
            return .object(
                StoredObject(
                    header: header, place: .current, descriptor: SharedDescriptor(file),
                    channel: channel, charge: Footprint.bytes(of: header), content: start.content))
        } catch {
            guard error.code == ENOENT else {
                log.warning("cannot open a stored object", metadata: ["error": "\(error)"])
                return .unreadable
            }
            if !folder.isLost { table.withShard(of: key) { $0.noteAbsent(key) } }
            return .absent
        }
    }

    /// Frees the space of bytes that a killed process wrote and did not commit.
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

    /// Corrects disk usage and index for a file that has not been compared since the start.
    private func reconcile(_ header: ObjectHeader) {
        let key = header.key
        let isUnreconciled = table.withShard(of: key) { shard in
            guard shard.isUnreconciled(key) else { return false }
            shard.reconciled?.insert(key)
            return true
        }
        guard isUnreconciled else { return }
        let row = row(of: key)
        let found = StoreEntry(header, indexedAs: row)
        guard found != row else { return }
        usage.charge(found.bytes - (row?.bytes ?? 0))
        channel.noteRow(.adopt(found), of: key)
        guard row == nil else { return }
        usage.countObjects(1)
        counters.note { $0.adoptedObjects += 1 }
    }

    func isHidden(_ header: ObjectHeader) -> Bool {
        guard let hidden = hidden.withLock({ $0 }) else { return false }
        let found = StoreEntry(header, indexedAs: row(of: header.key))
        return hidden.fits(withLatestUse(found))
    }

    /// Returns an object's row with the latest use, which the index may not have yet.
    func withLatestUse(_ row: StoreEntry) -> StoreEntry {
        // First the shard, from which the store thread collects.
        let uses = [
            table.withShard(of: row.key) { $0.uses[row.key] },
            gatheredUses.withLock { $0[row.key] },
        ]
        var latest = row
        for case let use? in uses {
            latest.knownUse = max(latest.lastUsed, use.time)
        }
        return latest
    }

    /// Removes a file from disk usage and index that was deleted because a purge matched it, or
    /// that waits for that.
    private func forgetHidden(_ key: ObjectKey) {
        guard let row = latestRow(of: key) else {
            // The change of a row would have the store thread begin to wait.
            if undeleted.contains(key) { channel.hurry() }
            return
        }
        noteRemoval(of: key, releasing: row.bytes)
    }

    /// Removes a file from disk usage and index that failed verification and was deleted.
    private func forgetDamaged(_ key: ObjectKey) {
        noteLoss()
        undeleted.remove(key)
        countDamaged(key)
        if let row = latestRow(of: key) { noteRemoval(of: key, releasing: row.bytes) }
    }

    /// Returns the index row of a key; nil also if the index fails.
    func row(of key: ObjectKey) -> StoreEntry? {
        do {
            return try index.row(of: key)
        } catch {
            noteIndexFailure(error)
            return nil
        }
    }

    // MARK: Names on disk

    /// Records that a key's name was removed, and releases bytes that were charged for its file
    /// alone; the caller holds the key's name lock.
    func noteRemoval(of key: ObjectKey, releasing bytes: Int64 = 0) {
        usage.release(bytes)
        table.withShard(of: key) { _ = $0.reconciled?.insert(key) }
        usage.countObjects(-1)
        counters.removals.add(1, ordering: .releasing)
        channel.noteRow(.delete, of: key)
        channel.noteName(of: key)
    }

    /// Removes a row whose file is missing from disk usage and index; the caller holds the key's
    /// name lock.
    ///
    /// A kill or power cut between the deletion of a file and that of its row leaves such a row.
    private func forgetLost(_ key: ObjectKey) {
        guard table.isUnreconciled(key), let row = row(of: key) else { return }
        noteRemoval(of: key, releasing: row.bytes)
    }

    /// Makes an object the current one of its key; with `former`, or one that it has left the name
    /// to, only while that one still is.
    ///
    /// Blocks on the disk.
    func publish(
        _ object: StoredObject, replacing former: StoredObject? = nil
    ) throws(SystemError) {
        guard let newPath = object.newPath else { return }
        let key = object.key
        let former = former ?? object.former
        let old = try table.withName(of: key) { () throws(SystemError) -> StoredObject? in
            let (place, isDiscarded) = object.state.withLock { ($0.place, $0.isDiscarded) }
            guard place == .unpublished, !isDiscarded else { return nil }
            // A purge or another generation may have come first.
            if let former, !former.isCurrent { return nil }
            // Keep a reference from here on: if the table closed it meanwhile, its bytes would stay
            // charged.
            let (open, isAbsent) = table.withShard(of: key) { ($0.find(key), $0.isAbsent(key)) }
            let found =
                open.map(OnDisk.object) ?? (isAbsent ? .absent : lookOnDisk(for: key, hides: true))
            let unread = if case .unreadable = found { unreadBytes(of: key) } else { nil as Int64? }
            try rename(newPath, of: key)
            // Only now: while the cache folder is away, no file is found, and no rename succeeds.
            if case .absent = found { forgetLost(key) }
            undeleted.remove(key)
            usage.release(unread ?? 0)
            object.state.withLock { state in
                state.place = .current
                state.former = nil
                // A header that was written with its body needs no update.
                state.hasNewFacts = state.hasNewFacts || !state.isClaimedEarly
            }
            let old =
                table.withShard(of: key) { shard in
                    shard.reconciled?.insert(key)
                    return shard.put(object)
                } ?? found.opened
            old?.state.withLock { $0.becomeRemoved() }
            if old == nil, unread == nil {
                usage.countObjects(1)
            } else {
                counters.removals.add(1, ordering: .releasing)
            }
            channel.noteRow(.put(object.row(lastUsed: .now())), of: key)
            channel.noteName(of: key)
            return old
        }
        // Frees the old object's space, if it has no reader, outside the lock.
        _ = consume old
        if object.state.withLock({ $0.markDirty() }) { channel.noteDirty(object) }
        table.trim(around: key)
    }

    private func rename(_ newPath: String, of key: ObjectKey) throws(SystemError) {
        let path = folder.objectPath(key)
        do throws(SystemError) {
            try renameFile(newPath, to: path)
        } catch {
            // Every store has this folder from its first start, unless someone deleted it.
            lookForFolder(after: error)
            guard error.code == ENOENT, !folder.isLost else { throw error }
            try makeFolder(folder.objectsFolder(of: key.firstByte))
            try renameFile(newPath, to: path)
        }
    }
}

extension StoreEntry {
    /// The row of an object that was found on the disk, with what only its former row tells.
    fileprivate init(_ header: ObjectHeader, indexedAs former: StoreEntry?) {
        self.init(
            key: header.key, url: header.url, role: header.role, title: header.title,
            kind: header.kind, isRead: header.isRead || former?.isRead == true,
            bytes: Footprint.bytes(of: header), total: header.total,
            isComplete: header.isComplete, created: header.created,
            knownUse: former?.knownUse ?? header.created)
    }
}

extension StoredObject {
    /// Returns the object's index row for its current state.
    func row(lastUsed: WallTime?) -> StoreEntry {
        state.withLock { state in
            StoreEntry(
                key: key, url: url, role: role, title: title, kind: state.kind,
                isRead: isRead, bytes: state.charge, total: state.total,
                isComplete: state.isComplete, created: created, knownUse: lastUsed)
        }
    }
}
