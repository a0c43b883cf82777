// What the front of the store and the store thread share, and the changes of names on disk.
import DurableState
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
    let state: StateDatabase
    let table: ObjectTable
    let channel: StoreChannel
    let pins: PinTable
    let cleaner: AsideCleaner
    let log: Logger
    private let lastGeneration: Atomic<UInt64>
    let allowance = Mutex(Allowance())
    /// Tells objects that are to be purged, and are not found any more; nil for none.
    let hidden = Mutex<(@Sendable (StoreEntry) -> Bool)?>(nil)

    var usage: DiskUsage { channel.usage }
    var counters: StoreCounters { channel.counters }
    var configuration: StoreConfiguration { channel.configuration }

    init(
        folder: StoreFolder, index: ObjectIndex, state: StateDatabase, channel: StoreChannel,
        log: Logger
    ) {
        pins = PinTable(state)
        cleaner = AsideCleaner(folder: folder, index: index, usage: channel.usage, log: log)
        self.folder = folder
        self.index = index
        self.state = state
        self.channel = channel
        self.log = log
        table = ObjectTable(maxOpenObjects: channel.configuration.maxOpenObjects)
        // Random, so that generations of two runs do not meet.
        lastGeneration = Atomic(UInt64.random(in: 0..<UInt64.max / 2))
    }

    func makeGeneration() -> UInt64 {
        lastGeneration.add(1, ordering: .relaxed).newValue
    }

    // MARK: Finding

    /// The current object of a key; nil if there is none.
    ///
    /// Blocks on the disk where it has to be opened.
    func find(_ key: ObjectKey) -> StoredObject? {
        let (known, isAbsent) = table.withShard(of: key) { ($0.find(key), $0.isAbsent(key)) }
        if let open = known {
            guard open.isDiscarded else { return open }
            _ = remove(key, only: open)
            return nil
        }
        if isAbsent { return nil }
        let opened = table.withName(of: key) { () -> StoredObject? in
            // Another thread may have been first.
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
        // What is read as a whole, playlists above all, is proven as a whole.
        if opened.isDoubtfulAndSmall { _ = opened.proveAll(again: false) }
        return opened
    }

    /// Opens a key's file and believes it if its header verifies; the key's name is locked.
    ///
    /// A file that does not verify is deleted; one that cannot be opened or read just now is left.
    ///
    /// With `hides`, one that is to be purged is deleted and not found.
    func load(_ key: ObjectKey, hides: Bool = true) -> StoredObject? {
        let path = folder.objectPath(key)
        do throws(SystemError) {
            let file = try openQuietly(path, flags: O_RDWR)
            guard let start = try ObjectHeader.readStart(of: file.number, epoch: folder.epoch),
                start.header.key == key
            else {
                try removeFile(path)
                forgetDamaged(key)
                return nil
            }
            let header = start.header
            if hides, isHidden(header) {
                try removeFile(path)
                forgetHidden(key)
                return nil
            }
            if !header.isComplete { dropUnclaimedBytes(header, file.number) }
            settle(header)
            let parts = StoredObject.Parts(
                header: header, place: .current, charge: Footprint.bytes(of: header),
                content: start.content)
            return StoredObject(parts, descriptor: SharedDescriptor(file), channel: channel)
        } catch {
            if error.code != ENOENT {
                log.warning("cannot open a stored object", metadata: ["error": "\(error)"])
            } else if !folder.isLost {
                table.withShard(of: key) { $0.noteAbsent(key) }
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

    /// Makes disk usage and index agree with a file that has not been compared since the start.
    private func settle(_ header: ObjectHeader) {
        let key = header.key
        let isUnsettled = table.withShard(of: key) { shard in
            guard shard.isUnsettled(key) else { return false }
            shard.settled?.insert(key)
            return true
        }
        guard isUnsettled else { return }
        let row = row(of: key)
        let found = IndexRow(
            key: key, url: header.url, role: header.role, title: header.title,
            kind: header.kind, isRead: header.isRead || row?.isRead == true,
            bytes: Footprint.bytes(of: header), total: header.total,
            isComplete: header.isComplete, created: header.created,
            lastUsed: row?.lastUsed ?? header.created)
        guard found != row else { return }
        usage.charge(found.bytes - (row?.bytes ?? 0))
        channel.noteRow(.adopt(found), of: key)
        guard row == nil else { return }
        usage.countObjects(1)
        counters.adoptedObjects.add(1, ordering: .relaxed)
    }

    private func isHidden(_ header: ObjectHeader) -> Bool {
        guard let fits = hidden.withLock({ $0 }) else { return false }
        let known = row(of: header.key)
        let row = IndexRow(
            key: header.key, url: header.url, role: header.role, title: header.title,
            kind: header.kind, isRead: header.isRead, bytes: Footprint.bytes(of: header),
            total: header.total, isComplete: header.isComplete, created: header.created,
            lastUsed: known?.lastUsed)
        return fits(StoreEntry(row))
    }

    /// Takes a file that was purged as it was found out of the books.
    private func forgetHidden(_ key: ObjectKey) {
        guard let row = row(of: key) else { return }
        usage.release(row.bytes)
        noteRemoval(of: key)
    }

    /// Takes a file that did not verify, and is deleted, out of the books.
    private func forgetDamaged(_ key: ObjectKey) {
        counters.damagedObjects.add(1, ordering: .relaxed)
        log.warning("deleted a damaged object", metadata: ["object": "\(key)"])
        guard let row = row(of: key) else { return }
        usage.release(row.bytes)
        noteRemoval(of: key)
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

    // MARK: Names on disk

    /// Notes that a key's name is gone; the key's name is locked.
    func noteRemoval(of key: ObjectKey) {
        table.withShard(of: key) { _ = $0.settled?.insert(key) }
        usage.countObjects(-1)
        counters.removals.add(1, ordering: .releasing)
        channel.noteRow(.delete, of: key)
        channel.noteName(of: key)
    }

    /// Removes a key's name; holders of the object keep it.
    ///
    /// Blocks on the disk.
    ///
    /// With `only`, nothing happens unless that is the key's open object; with `created`, unless the
    /// object was made then.
    ///
    /// - Returns: the object that was removed.
    @discardableResult
    func remove(
        _ key: ObjectKey, only: StoredObject? = nil, created: WallTime? = nil
    ) -> StoredObject? {
        table.withName(of: key) { () -> StoredObject? in
            if let created {
                let known = table.withShard(of: key) { $0.look(key) } ?? load(key, hides: false)
                guard known?.created == created else { return nil }
            }
            let open = table.withShard(of: key) { shard -> StoredObject? in
                if let only, shard.find(key) !== only { return nil }
                return shard.remove(key.name)
            }
            if only != nil, open == nil { return nil }
            // Read from disk if need be: its size must leave the disk usage.
            guard let object = open ?? load(key, hides: false) else { return nil }
            do throws(SystemError) {
                try removeFile(folder.objectPath(key))
            } catch {
                log.error("cannot delete a stored object", metadata: ["error": "\(error)"])
            }
            object.state.withLock { $0.place = .unlinked }
            noteRemoval(of: key)
            return object
        }
    }

    /// Takes an object's name away, so that it ends with its holders; what it takes stays counted.
    ///
    /// - Returns: false where it is not what its key stands for.
    func forgetName(of object: StoredObject) -> Bool {
        let key = object.key
        return table.withName(of: key) { () -> Bool in
            switch object.state.withLock({ $0.place }) {
            case .unpublished:
                if let path = object.newPath { try? removeFile(path) }
            case .current:
                let isOpen = table.withShard(of: key) { shard -> Bool in
                    guard shard.look(key) === object else { return false }
                    return shard.remove(key.name) != nil
                }
                guard isOpen else { return false }
                try? removeFile(folder.objectPath(key))
                noteRemoval(of: key)
            case .unlinked, .unnamed: return true
            }
            object.state.withLock { $0.becomeUnnamed() }
            return true
        }
    }

    /// Takes a row out of the books whose file is not there; the key's name is locked.
    ///
    /// A kill between the deletion of a file and that of its row leaves one, as does a power cut.
    private func forgetLost(_ key: ObjectKey) {
        guard table.withShard(of: key, { $0.isUnsettled(key) }), let row = row(of: key) else {
            return
        }
        usage.release(row.bytes)
        noteRemoval(of: key)
    }

    /// Makes an object what its key stands for.
    ///
    /// Blocks on the disk.
    func publish(_ object: StoredObject) throws(SystemError) {
        guard let newPath = object.newPath else { return }
        let key = object.key
        let old = try table.withName(of: key) { () throws(SystemError) -> StoredObject? in
            let (place, isDiscarded) = object.state.withLock { ($0.place, $0.isDiscarded) }
            guard place == .unpublished, !isDiscarded else { return nil }
            // Held from here on: the table may close it meanwhile, and its bytes would stay counted.
            let (open, isAbsent) = table.withShard(of: key) { ($0.find(key), $0.isAbsent(key)) }
            let known = open ?? (isAbsent ? nil : load(key))
            if known == nil { forgetLost(key) }
            try rename(newPath, of: key)
            object.state.withLock { state in
                state.place = .current
                // What its first header says of it is all there is to say.
                state.hasNewFacts = state.hasNewFacts || !state.isClaimedEarly
            }
            let old =
                table.withShard(of: key) { shard in
                    shard.settled?.insert(key)
                    return shard.put(object)
                } ?? known
            old?.state.withLock { $0.place = .unlinked }
            if old == nil {
                usage.countObjects(1)
            } else {
                counters.removals.add(1, ordering: .releasing)
            }
            channel.noteRow(.put(object.row(lastUsed: .now())), of: key)
            channel.noteName(of: key)
            return old
        }
        // Its space is given back here if nobody reads it, outside the lock.
        _ = consume old
        if object.state.withLock({ $0.markDirty() }) { channel.noteDirty(object) }
        table.trim(around: key)
    }

    private func rename(_ newPath: String, of key: ObjectKey) throws(SystemError) {
        let path = folder.objectPath(key)
        do throws(SystemError) {
            try renameFile(newPath, to: path)
        } catch {
            // The folder is there from the first start on, unless somebody deleted it.
            lookForFolder(after: error)
            guard error.code == ENOENT, !folder.isLost else { throw error }
            try makeFolder(folder.objectsFolder(of: key.firstByte))
            try renameFile(newPath, to: path)
        }
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
        bytes(header: header.bodyOffset, spans: header.spans)
    }
}

extension StoredObject {
    /// The object's row in the index, as of now.
    func row(lastUsed: WallTime?) -> IndexRow {
        state.withLock { state in
            IndexRow(
                key: key, url: url, role: role, title: title, kind: kind, isRead: isRead,
                bytes: state.charge, total: state.total, isComplete: state.isComplete,
                created: created, lastUsed: lastUsed)
        }
    }
}
