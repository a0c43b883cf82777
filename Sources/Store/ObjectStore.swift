// Objects on disk, found by key.
//
// The files describe themselves: a lookup opens a file and verifies its header, and the index is
// only for order, listing and counts. A header claims bytes only after they were written, and what
// a power cut leaves is compared with checksums, so neither it nor a killed process makes an object
// say more than it has.
package import DurableState
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
    /// What is kept besides objects.
    package var state: StateDatabase { core.state }
    private let thread: LoopThread
    private let syncer: Syncer
    private let checker: PosixThread?
    private let isClosed = Atomic<Bool>(false)
    /// Long URLs on their way into the index.
    let unsavedLongURLs = Mutex<[[UInt8]: String]>([:])

    // MARK: Life

    /// Opens or makes the store of a folder; blocks on the disk, for the same short time however
    /// many objects there are.
    ///
    /// A damaged index is set aside and built anew from the objects, in the background.
    package init(
        folder path: String, configuration: StoreConfiguration, log: Logger
    ) throws(StoreError) {
        let folder = try StoreFolder(path)
        // The format first, and durably: a cut would else leave an index in a folder of nobody's.
        if folder.isNew {
            do throws(SystemError) {
                try folder.furnish()
            } catch {
                throw .unusable(folder: path, error)
            }
        }
        let (index, isRebuilt) = try Self.openIndex(folder, log)
        let state: StateDatabase
        do throws(StoreError) {
            state = try Self.openState(folder, log)
        } catch {
            try? index.close()
            throw error
        }
        let channel = StoreChannel(configuration: configuration)
        let leftovers: Int
        do throws(StoreError) {
            leftovers = try Self.begin(folder, index, state, log)
            core = StoreCore(
                folder: folder, index: index, state: state, channel: channel, log: log)
        } catch {
            state.close()
            try? index.close()
            throw error
        }
        let core = core
        channel.connect(room: core)
        do {
            let totals = try index.totals()
            core.usage.charge(totals.bytes)
            core.usage.countObjects(totals.objects)
        } catch {
            throw .index(folder: path, reason: "\(error)")
        }
        core.cleaner.resume()
        do throws(SystemError) {
            let isConnected = try Latch()
            let syncer = try Syncer(folder: folder)
            self.syncer = syncer
            thread = try LoopThread(name: "store") { loop in
                let worker = StoreWorker(core: core, syncer: syncer)
                core.channel.connect(LoopBound(worker, to: loop))
                isConnected.open()
                worker.startComparing(leftovers: leftovers, isRebuilt: isRebuilt, on: loop)
            }
            // Only for the thread to start: from here on everything can be sent to it.
            _ = isConnected.wait(atMost: .seconds(60 as Int64))
            checker = folder.wasClean ? nil : try IndexCheck.start(core)
        } catch {
            throw .unusable(folder: path, error)
        }
    }

    private static func openState(
        _ folder: StoreFolder, _ log: Logger
    ) throws(StoreError) -> StateDatabase {
        do throws(StateFault) {
            return try StateDatabase(folder: folder.path, log: log)
        } catch {
            switch error {
            case .isNewer: throw .newerState(folder: folder.path)
            case .unusable(let reason), .noRoom(let reason):
                throw .state(folder: folder.path, reason: reason)
            }
        }
    }

    /// Begins to change the folder, and moves the state of former versions into the database.
    ///
    /// In this order: once the folder has this format, no older program looks for state where it was.
    private static func begin(
        _ folder: StoreFolder, _ index: ObjectIndex, _ state: StateDatabase, _ log: Logger
    ) throws(StoreError) -> Int {
        let leftovers: Int
        do throws(SystemError) {
            leftovers = try folder.begin()
        } catch {
            throw .unusable(folder: folder.path, error)
        }
        do {
            let rows = FormerPlace.index(
                read: { try index.formerState() }, remove: { try index.removeFormerState() })
            let files = FormerFiles(folder: folder.path, log: log)
            try state.importFormer([rows] + files.places)
        } catch {
            throw .state(folder: folder.path, reason: "\(error)")
        }
        return leftovers
    }

    private static func openIndex(_ folder: StoreFolder, _ log: Logger) throws(StoreError)
        -> (index: ObjectIndex, isRebuilt: Bool)
    {
        do {
            let isMade = try folder.makeIndexFile()
            return (try ObjectIndex(path: folder.indexPath), isMade && !folder.isNew)
        } catch let error as SystemError {
            throw .unusable(folder: folder.path, error)
        } catch IndexFault.isNewer {
            throw .newerIndex(folder: folder.path)
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
            _ = try folder.makeIndexFile()
            return (try ObjectIndex(path: folder.indexPath), true)
        } catch {
            throw .index(folder: folder.path, reason: "\(error)")
        }
    }

    /// Commits what is open, syncs it, writes the index, ends the store thread and unlocks the
    /// folder; blocks, for about the configured time at most.
    ///
    /// Must be called before the store is let go. Objects can be read and filled afterwards, but
    /// nothing is found or kept any more.
    package func close() {
        guard !isClosed.exchange(true, ordering: .acquiringAndReleasing) else { return }
        let deadline = Monotonic.now() + core.configuration.closeTimeout
        if let checker {
            core.index.interrupt()
            checker.join()
        }
        core.cleaner.stop()
        let finished = Flag()
        core.channel.worker?.enqueue { worker, _ in
            if worker.finishAll(by: deadline) { finished.raise() }
        }
        thread.stopAndJoin()
        syncer.stop()
        core.channel.disconnect()
        core.state.close()
        do {
            try core.index.close()
            if finished.isRaised, !core.folder.isLost { try core.folder.markClean() }
        } catch {
            core.log.error("cannot close the store cleanly", metadata: ["error": "\(error)"])
        }
        core.folder.unlock()
    }

    /// Commits and writes to the index all there is now; blocks.
    ///
    /// - Returns: false when that took longer than `limit` or did not succeed; it goes on in the
    ///   background then.
    package func flush(within limit: Interval) throws(SystemError) -> Bool {
        let latch = try Latch()
        let deadline = Monotonic.now() + limit
        let finished = Flag()
        guard let worker = core.channel.worker else { return false }
        worker.enqueue { worker, _ in
            if worker.finishAll(by: deadline) { finished.raise() }
            latch.open()
        }
        return latch.wait(atMost: limit) && finished.isRaised
    }

    /// Has all that was committed until now synced at once instead of within half a minute; does not
    /// wait for it.
    ///
    /// For what somebody was told is kept: a download that is complete.
    package func makeCertain() {
        core.channel.worker?.enqueue { worker, loop in
            worker.catchUp(loop)
            worker.syncSoon(loop)
        }
    }

    /// Has the index tell of all that has arrived by now; blocks, for at most `limit`.
    ///
    /// For listings: unlike `flush(within:)` it does not wait for the disk.
    package func catchUp(within limit: Interval) {
        guard let worker = core.channel.worker, let latch = try? Latch() else { return }
        worker.enqueue { worker, loop in
            worker.catchUp(loop)
            latch.open()
        }
        _ = latch.wait(atMost: limit)
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
        return core.find(key)
    }

    /// Tells that a player read bytes of an object, so that retention knows what is watched.
    ///
    /// No bytes say only that it was asked for.
    package func noteRead(_ object: StoredObject, bytes: Int64) {
        guard object.newPath != nil || object.isStorable else { return }
        let isFirst = core.table.withShard(of: object.key) { shard in
            let isFirst = shard.uses.isEmpty
            shard.note(
                Use(time: .now(), bytes: bytes, isNews: bytes > 0 && !object.isRead),
                of: object.key)
            return isFirst
        }
        if isFirst { core.channel.noteTouches() }
    }

    /// Makes an object with no bytes.
    ///
    /// It is found by lookups once it is published.
    ///
    /// An object that is not storable, that the budget has no room for, or that the disk cannot
    /// take just now (full, failing, gone, out of descriptors) comes without a name and is not
    /// storable. Throws when even that fails. Waits up to 20 ms for room that eviction is making.
    package func create(_ description: ObjectDescription) throws(SystemError) -> StoredObject {
        var description = description
        if isClosed.load(ordering: .relaxed) { description.isStorable = false }
        return try core.create(description)
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
        guard bytes <= core.usage.budget else { return false }
        if core.usage.used + bytes <= core.usage.budget { return true }
        let wasStuck = core.usage.isStuck
        core.channel.askEviction(bytes: bytes)
        return !wasStuck
    }
}

/// Something that is true once another thread said so.
private final class Flag: Sendable {
    private let raised = Atomic<Bool>(false)

    var isRaised: Bool { raised.load(ordering: .acquiring) }

    func raise() { raised.store(true, ordering: .releasing) }
}
