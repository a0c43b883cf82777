/// Objects on disk, found by key.
///
/// The files describe themselves: a lookup opens a file and verifies its header, and the index is
/// only for order, listing and counts. A header claims bytes only after they were synced, so
/// neither a killed process nor a power cut leaves an object that says more than it has.
import Glibc
package import Logging
package import Posix
import Reactor
import Retention
import Synchronization

/// An open store.
///
/// All methods may be called on any thread.
package final class ObjectStore: Sendable {
    let core: StoreCore
    private let thread: LoopThread
    private let lastGeneration: Atomic<UInt64>
    private let isClosed = Atomic<Bool>(false)
    /// Long URLs on their way into the index.
    let unsavedLongURLs = Mutex<[[UInt8]: String]>([:])

    // MARK: Life

    /// Opens or makes the store of a folder; blocks on the disk.
    ///
    /// A damaged index is set aside and built anew from the objects, in the background.
    package init(
        folder path: String, configuration: StoreConfiguration, log: Logger
    ) throws(StoreError) {
        let folder = try StoreFolder(path)
        let index = try Self.openIndex(folder, log)
        let channel = StoreChannel(configuration: configuration)
        do throws(SystemError) {
            core = try StoreCore(folder: folder, index: index, channel: channel, log: log)
        } catch {
            throw .unusable(folder: path, error)
        }
        let core = core
        // Random, so that generations of two runs do not meet.
        lastGeneration = Atomic(UInt64.random(in: 0..<UInt64.max / 2))
        do {
            let totals = try index.totals()
            core.ledger.charge(totals.bytes)
            core.ledger.countObjects(totals.objects)
        } catch {
            throw .index(folder: path, reason: "\(error)")
        }
        do throws(SystemError) {
            let isConnected = try Latch()
            thread = try LoopThread(name: "store") { loop in
                let worker = StoreWorker(core: core)
                core.channel.connect(LoopBound(worker, to: loop))
                isConnected.open()
                worker.reconcile(from: 0, on: loop)
            }
            // Only for the thread to start: from here on everything can be sent to it.
            _ = isConnected.wait(atMost: .seconds(60 as Int64))
        } catch {
            throw .unusable(folder: path, error)
        }
    }

    private static func openIndex(_ folder: StoreFolder, _ log: Logger) throws(StoreError)
        -> ObjectIndex
    {
        do {
            try folder.makeIndexFile()
            return try ObjectIndex(path: folder.indexPath)
        } catch let error as SystemError {
            throw .unusable(folder: folder.path, error)
        } catch {
            // A full or read-only disk is no reason to give up a sound index.
            guard ObjectIndex.isDamage(error) else {
                throw .index(folder: folder.path, reason: "\(error)")
            }
            log.warning("the index is damaged and is built anew", metadata: ["error": "\(error)"])
        }
        do {
            let aside = try folder.setIndexAside(at: .now())
            log.notice("the damaged index was set aside", metadata: ["path": "\(aside)"])
            try folder.makeIndexFile()
            return try ObjectIndex(path: folder.indexPath)
        } catch {
            throw .index(folder: folder.path, reason: "\(error)")
        }
    }

    /// Commits what is open, writes the index, ends the store thread and unlocks the folder;
    /// blocks, for about the configured time at most.
    ///
    /// Must be called before the store is let go. Objects can be read and filled afterwards, but
    /// nothing is found or kept any more.
    package func close() {
        guard !isClosed.exchange(true, ordering: .acquiringAndReleasing) else { return }
        let deadline = Monotonic.now() + core.configuration.closeTimeout
        core.channel.worker?.enqueue { worker, _ in worker.finishAll(by: deadline) }
        thread.stopAndJoin()
        core.channel.disconnect()
        do {
            try core.index.close()
        } catch {
            core.log.error("cannot close the index", metadata: ["error": "\(error)"])
        }
        core.folder.unlock()
    }

    /// Commits and writes to the index all there is now; blocks.
    ///
    /// - Returns: false when that took longer than `limit`; it goes on in the background then.
    package func flush(within limit: Interval) throws(SystemError) -> Bool {
        let latch = try Latch()
        let deadline = Monotonic.now() + limit
        guard let worker = core.channel.worker else { return false }
        worker.enqueue { worker, _ in
            worker.finishAll(by: deadline)
            latch.open()
        }
        return latch.wait(atMost: limit) && .now() < deadline
    }

    // MARK: Objects

    /// The current object of a key, complete or not, and marks its use; nil if there is none.
    ///
    /// Microseconds: from memory, or by opening the file and reading its header.
    package func lookup(_ key: ObjectKey) -> StoredObject? {
        guard let object = peek(key) else { return nil }
        // A structure's bytes are always read whole; those of media are told by `noteRead`.
        noteRead(object, bytes: object.kind == .structure ? max(1, object.total ?? 1) : 0)
        return object
    }

    /// As `lookup`, without a trace: for looking ahead and for listings.
    package func peek(_ key: ObjectKey) -> StoredObject? {
        guard !isClosed.load(ordering: .relaxed) else { return nil }
        let (object, isOpened) = core.table.withShard(of: key) { shard -> (StoredObject?, Bool) in
            if let object = shard.find(key) {
                guard object.isDiscarded else { return (object, false) }
                _ = core.unlink(key, &shard)
                return (nil, false)
            }
            guard let loaded = core.load(key, &shard) else { return (nil, false) }
            _ = shard.put(loaded)
            return (loaded, true)
        }
        if isOpened { core.table.trim(around: key) }
        return object
    }

    /// Tells that a player read bytes of an object, so that retention knows what is watched.
    package func noteRead(_ object: StoredObject, bytes: Int64) {
        let isFirst = core.table.withShard(of: object.key) { shard in
            let isFirst = shard.uses.isEmpty
            shard.note(Use(time: .now(), bytes: bytes), of: object.key)
            return isFirst
        }
        if isFirst { core.channel.noteTouches() }
    }

    /// Makes an object with no bytes.
    ///
    /// It is found by lookups once it is published.
    ///
    /// An object that is not storable, that the budget has no room for, or that the disk cannot
    /// take just now (full, failing, out of descriptors) comes without a name and is not storable.
    /// Throws when even that fails.
    package func create(_ description: ObjectDescription) throws(SystemError) -> StoredObject {
        let generation = lastGeneration.add(1, ordering: .relaxed).newValue
        var hasRoom = false
        if !core.channel.isStoringSuspended, !isClosed.load(ordering: .relaxed) {
            hasRoom =
                freeBytes(at: core.folder.path).map { $0 >= core.configuration.minFreeBytes }
                ?? true
            if !hasRoom { core.channel.askEviction(bytes: 0) }
        }
        if description.isStorable, hasRoom,
            reserve(description.expectsWholeBody ? description.total ?? 0 : 0),
            let pages = ObjectHeader.pages(url: description.url, head: description.head)
        {
            let header = ObjectHeader(
                pages: pages, generation: generation, description: description)
            do throws(SystemError) {
                return try createNamed(header, reservesBlocks: description.expectsWholeBody)
            } catch {
                core.channel.noteStorageFailure(error)
                core.log.warning("cannot store an object", metadata: ["error": "\(error)"])
            }
        }
        let header = ObjectHeader(pages: 1, generation: generation, description: description)
        let folders = core.configuration.temporaryFolders
        return try createUnnamed(header, in: hasRoom ? [core.folder.newFolder] + folders : folders)
    }

    private func createNamed(
        _ header: ObjectHeader, reservesBlocks: Bool
    ) throws(SystemError) -> StoredObject {
        let path = core.folder.newPath(header.generation)
        let file = try openFile(path, flags: O_RDWR | O_CREAT | O_EXCL)
        var isReserved = false
        do throws(SystemError) {
            guard let bytes = header.encoded() else { throw SystemError("pwrite", code: EFBIG) }
            try write(bytes, to: file.number, at: 0)
            if reservesBlocks, let total = header.total, total > 0,
                total <= core.configuration.preallocationLimit
            {
                isReserved = try Posix.reserve(
                    file.number, offset: header.bodyOffset, length: total)
            }
        } catch {
            try? removeFile(path)
            throw error
        }
        let reserved = isReserved ? header.total ?? 0 : 0
        let charge = Footprint.bytes(header: header.bodyOffset, present: reserved)
        core.ledger.charge(charge)
        if core.ledger.isOverBudget { core.channel.askEviction(bytes: 0) }
        let parts = StoredObject.Parts(
            header: header, place: .unpublished, newPath: path, isPreallocated: isReserved,
            charge: charge)
        return StoredObject(parts, descriptor: SharedDescriptor(file), channel: core.channel)
    }

    private func createUnnamed(
        _ header: ObjectHeader, in folders: [String]
    ) throws(SystemError) -> StoredObject {
        var failure = SystemError("open", code: ENOENT)
        for folder in folders {
            do throws(SystemError) {
                let parts = StoredObject.Parts(
                    header: header, place: .unnamed, charge: 0,
                    countsForBudget: folder == core.folder.newFolder)
                let file = try openNameless(in: folder, header.generation)
                return StoredObject(
                    parts, descriptor: SharedDescriptor(file), channel: core.channel)
            } catch {
                failure = error
            }
        }
        throw failure
    }

    private func openNameless(
        in folder: String, _ generation: UInt64
    ) throws(SystemError) -> OwnedDescriptor {
        do throws(SystemError) {
            return try openUnnamedFile(in: folder)
        } catch {
            guard error.code == EOPNOTSUPP || error.code == EISDIR || error.code == EINVAL else {
                throw error
            }
            // A file system without O_TMPFILE: the name lives for two system calls.
            let path = "\(folder)/sluice-\(String(generation, radix: 16))"
            let file = try openFile(path, flags: O_RDWR | O_CREAT | O_EXCL)
            try removeFile(path)
            return file
        }
    }

    /// Makes an object the current one of its key; a former one goes when its holders let go.
    ///
    /// Throws when the file cannot be renamed; the object can be read and filled then as before.
    ///
    /// Nothing happens for objects that are not storable, discarded, or published already.
    package func publish(_ object: StoredObject) throws(SystemError) {
        guard !isClosed.load(ordering: .relaxed) else { return }
        try core.publish(object)
    }

    /// Notes that no fill works on the object now: it is committed at the next occasion.
    package func finish(_ object: StoredObject) {
        core.channel.noteFinished(object)
    }

    /// Takes a key's object out of the store; holders of it go on.
    ///
    /// May block on the disk.
    package func remove(_ key: ObjectKey) {
        guard !isClosed.load(ordering: .relaxed) else { return }
        _ = core.remove(key)
    }

    /// Asks for room for `bytes` more; eviction runs on the store thread.
    ///
    /// - Returns: false when it is known that nothing can be freed. True is no promise: it holds
    ///   nothing back.
    package func reserve(_ bytes: Int64) -> Bool {
        guard bytes <= core.ledger.budget else { return false }
        if core.ledger.used + bytes <= core.ledger.budget { return true }
        let wasStuck = core.ledger.isStuck
        core.channel.askEviction(bytes: bytes)
        return !wasStuck
    }
}
