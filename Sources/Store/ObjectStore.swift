// Objects on disk, found by key.
//
// The files describe themselves: a lookup opens a file and verifies its header; the index only
// serves order, listing and counts. A header claims bytes only after they were written, and bytes
// found after a power cut are compared with checksums, so neither a power cut nor a killed process
// makes an object claim bytes that it does not have.
package import DurableState
import Glibc
package import Logging
import Numbers
package import Posix
import Reactor
import Retention
import Synchronization

/// An open store.
///
/// All methods may be called on any thread.
package final class ObjectStore: Sendable {
    let core: StoreCore
    /// The state database: everything stored besides objects.
    package var state: StateDatabase { core.state }
    private let thread: LoopThread
    private let syncer: Syncer
    private let checker: PosixThread?
    private let isClosed = Atomic<Bool>(false)
    private let diskReserve: DiskReserve
    /// True once the room for a stop was given back.
    private let hasSpentReserve = Atomic<Bool>(false)

    // MARK: Opening and closing

    /// Inspects a folder that exists, without changing it or taking its lock; blocks on the disk.
    ///
    /// - Throws: the reason why a store could not be opened there.
    package static func judge(_ folder: String) throws(StoreError) {
        try StoreFolder.judge(folder)
    }

    /// Opens or creates the store of a folder; blocks on the disk, for a short time that does not
    /// depend on the number of objects.
    ///
    /// A damaged index is set aside and rebuilt from the objects, in the background.
    package init(
        folder path: String, configuration: StoreConfiguration, log: Logger
    ) throws(StoreError) {
        let folder = try StoreFolder(
            path, as: configuration.holder, waiting: configuration.lockWait)
        // Write the format durably first; otherwise a power cut could leave an index in an unmarked
        // folder.
        if folder.isNew {
            do throws(SystemError) {
                try folder.furnish()
            } catch {
                throw .unusable(folder: path, error)
            }
        }
        let reserve = DiskReserve(folder: path)
        diskReserve = reserve
        let opened: Opened
        do throws(StoreError) {
            opened = try Self.open(folder, log)
        } catch {
            let shortage = reserve.shortage
            guard reserve.spend() else { throw error }
            log.warning(
                "\(shortage): the store opens with the room that it keeps for that; make room",
                metadata: ["folder": "\(path)", "reason": "\(error)"])
            opened = try Self.open(folder, log)
        }
        let index = opened.index
        let channel = StoreChannel(configuration: configuration)
        core = StoreCore(
            folder: folder, index: index, state: opened.state, channel: channel, log: log)
        let core = core
        reserve.fill()
        channel.connect(room: core)
        let threads: Threads
        do throws(StoreError) {
            try Self.charge(core)
            core.cleaner.resume()
            threads = try Self.startThreads(core, opened)
        } catch {
            // What was started must not run on with the folder's lock.
            core.cleaner.stop()
            channel.disconnect()
            opened.state.close()
            try? index.close()
            folder.unlock()
            throw error
        }
        (thread, syncer, checker) = (threads.store, threads.syncer, threads.checker)
    }

    /// Charges the disk usage with the objects of the index.
    private static func charge(_ core: StoreCore) throws(StoreError) {
        do {
            let totals = try core.index.totals()
            core.usage.charge(totals.bytes)
            core.usage.resetCeiling()
            core.usage.countObjects(totals.objects)
        } catch {
            throw .index(folder: core.folder.path, reason: "\(error)")
        }
    }

    /// The threads of an open store.
    private struct Threads {
        let store: LoopThread
        let syncer: Syncer
        let checker: PosixThread?
    }

    /// Starts all threads of a store, or none.
    ///
    /// - Parameters:
    ///   - core: the store.
    ///   - opened: what was found when its folder was opened.
    /// - Returns: the threads; jobs can be sent to the store's.
    /// - Throws: the reason why one of them could not start, after the others have ended.
    private static func startThreads(
        _ core: StoreCore, _ opened: Opened
    ) throws(StoreError) -> Threads {
        let (leftovers, isRebuilt) = (opened.leftovers, opened.isRebuilt)
        var begunSyncer: Syncer?
        var begunStore: LoopThread?
        do throws(SystemError) {
            let isConnected = try ThreadSemaphore()
            let syncer = try Syncer(folder: core.folder)
            begunSyncer = syncer
            let store = try LoopThread(name: "store") { loop in
                let worker = StoreWorker(core: core, syncer: syncer)
                core.channel.connect(LoopBound(worker, to: loop))
                isConnected.signal()
                worker.startComparing(leftovers: leftovers, isRebuilt: isRebuilt, on: loop)
            }
            begunStore = store
            // Only until the thread has started; from here on jobs can be sent to it.
            _ = isConnected.wait(atMost: .seconds(60 as Int64))
            let checker = core.folder.wasClean ? nil : try core.startIndexCheck()
            return Threads(store: store, syncer: syncer, checker: checker)
        } catch {
            core.isEnding = true
            begunStore?.stopAndJoin()
            begunSyncer?.stop()
            throw .unusable(folder: core.folder.path, error)
        }
    }

    /// The databases of a folder that is ready for changes.
    private struct Opened {
        let index: ObjectIndex
        let state: StateDatabase
        /// Unpublished files of earlier runs, deleted by now.
        let leftovers: Int
        /// True if the index was damaged and is filled anew.
        let isRebuilt: Bool
    }

    private static func open(_ folder: StoreFolder, _ log: Logger) throws(StoreError) -> Opened {
        let (index, isRebuilt) = try openIndex(folder, log)
        var opened: StateDatabase?
        do throws(StoreError) {
            let state = try openState(folder, log)
            opened = state
            let leftovers = try begin(folder, index, state, log)
            return Opened(index: index, state: state, leftovers: leftovers, isRebuilt: isRebuilt)
        } catch {
            opened?.close()
            try? index.close()
            throw error
        }
    }

    private static func openState(
        _ folder: StoreFolder, _ log: Logger
    ) throws(StoreError) -> StateDatabase {
        do throws(StateFault) {
            // A new folder has its format already, which is written first.
            return try StateDatabase(
                folder: folder.path, isExpected: !folder.isNew && folder.hasThisFormat, log: log)
        } catch {
            switch error {
            case .isNewer: throw .newerState(folder: folder.path)
            case .unusable(let reason), .noRoom(let reason):
                throw .state(folder: folder.path, reason: reason)
            }
        }
    }

    /// Prepares the folder for changes and imports the state of former versions into the database.
    ///
    /// The order matters: once the folder has this format, no older program looks for state in its
    /// old place.
    private static func begin(
        _ folder: StoreFolder, _ index: ObjectIndex, _ state: StateDatabase, _ log: Logger
    ) throws(StoreError) -> Int {
        let leftovers: Int
        do throws(SystemError) {
            // Media may have been left out when the folder was brought here.
            if !folder.isNew, !folder.hasThisFormat { try folder.noteLosses() }
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
            if folder.lacksIndex { try folder.noteLosses() }
            let isMade = try folder.makeIndexFile()
            let index = try ObjectIndex(path: folder.indexPath)
            // A start needs them: their damage must not prevent it.
            _ = try index.totals()
            return (index, isMade && !folder.isNew)
        } catch let error as SystemError {
            throw .unusable(folder: folder.path, error)
        } catch IndexFault.isNewer {
            throw .newerIndex(folder: folder.path)
        } catch {
            // A full or read-only disk is no reason to discard a sound index.
            guard ObjectIndex.isDamage(error) else {
                throw .index(folder: folder.path, reason: "\(error)")
            }
            log.warning("the index is damaged and is rebuilt", metadata: ["error": "\(error)"])
        }
        do {
            try folder.noteLosses()
            let aside = try folder.setIndexAside(at: .now())
            log.notice("the damaged index was set aside", metadata: ["path": "\(aside)"])
            _ = try folder.makeIndexFile()
            return (try ObjectIndex(path: folder.indexPath), true)
        } catch {
            throw .index(folder: folder.path, reason: "\(error)")
        }
    }

    /// Ends listings, and clears that wait until index and folder are compared: a stop must not wait
    /// for them.
    package func endWaits() { core.isEnding = true }

    /// Commits and syncs open objects, writes the index, ends the store thread and unlocks the
    /// folder; blocks, for about `closeTimeout` at most.
    ///
    /// Must be called before the store is released. Objects can still be read and filled
    /// afterwards, but nothing is found or stored any more.
    package func close() {
        guard !isClosed.exchange(true, ordering: .acquiringAndReleasing) else { return }
        endWaits()
        let deadline = Monotonic.now() + core.configuration.closeTimeout
        if let checker {
            core.index.interrupt()
            checker.join()
        }
        core.cleaner.stop()
        let isFinished = Atomic<Bool>(false)
        onStoreThread { worker, _ in
            isFinished.store(worker.finishAll(by: deadline), ordering: .releasing)
        }
        thread.stopAndJoin()
        syncer.stop()
        core.channel.disconnect()
        core.state.close()
        do {
            try core.index.close()
            // The next start looks for damage after a stop that is not clean.
            let isDamaged = core.counters.isIndexDamaged.load(ordering: .relaxed)
            let mayHideDamage = isDamaged || core.undeleted.hasDoubtful
            if isFinished.load(ordering: .acquiring), !mayHideDamage, !core.folder.isLost {
                try core.folder.markClean()
            }
        } catch {
            core.log.error("cannot close the store cleanly", metadata: ["error": "\(error)"])
        }
        if hasSpentReserve.load(ordering: .relaxed), !core.folder.isLost {
            diskReserve.refillAfterStop()
        }
        core.folder.unlock()
    }

    /// Makes room on a full disk for what a stop saves until `close`; blocks on the disk.
    package func makeRoomForStop() {
        guard !core.folder.isLost else { return }
        let shortage = diskReserve.shortage
        guard diskReserve.spendForStop() else { return }
        hasSpentReserve.store(true, ordering: .relaxed)
        core.log.warning(
            "\(shortage): state is saved with the room that is kept for a stop; make room",
            metadata: ["folder": "\(core.folder.path)"])
    }

    /// Has `tell` called on the store's thread whenever objects may have been lost: with the index,
    /// with files that are missing at a start or after a migration, with damaged objects, which are
    /// deleted, or with the cache folder.
    ///
    /// What is lost is known once `statistics` say that the index is reconciled. Until
    /// `forgetLosses` is called, the next run tells it again.
    package func followLosses(_ tell: @escaping @Sendable () -> Void) {
        onStoreThread { worker, _ in worker.followLosses(tell) }
    }

    /// Grows with each loss that is noted for the next run.
    package var notedLosses: Int { core.folder.notedLosses }

    /// Notes that it is known which objects were lost, unless more were meanwhile; blocks on the
    /// disk.
    ///
    /// - Parameter noted: `notedLosses` before the look for what was lost.
    /// - Throws: `SystemError` when the note cannot be deleted, or made again.
    package func forgetLosses(noted: Int) throws(SystemError) {
        // Another folder may be at its path.
        guard !core.folder.isLost else { return }
        try core.folder.forgetLosses(noted: noted)
    }

    /// Commits everything and writes it to the index; blocks.
    ///
    /// - Returns: false if that took longer than `limit` or did not succeed; it then continues in
    ///   the background.
    package func flush(within limit: Interval) throws(SystemError) -> Bool {
        let deadline = Monotonic.now() + limit
        let isFinished = Atomic<Bool>(false)
        let isOver = try onStoreThread(waitingAtMost: limit) { worker, _ in
            isFinished.store(worker.finishAll(by: deadline), ordering: .releasing)
        }
        return isOver && isFinished.load(ordering: .acquiring)
    }

    /// Commits what is finished and syncs it now instead of within `syncInterval`; does not wait
    /// for it.
    ///
    /// For data that is reported to a user as stored, such as a complete download.
    ///
    /// - Parameter done: called on the store's thread after the sync; what that failed for is
    ///   removed, and counts as lost, even if the disk refuses to delete its file. With false if
    ///   the disk refused a header, which is tried again each second, or the sync of a name, which
    ///   the next sync repeats: until then a kill or a power cut loses that object. Not called if
    ///   the store is closed first.
    package func makeCertain(_ done: @escaping @Sendable (_ isCertain: Bool) -> Void = { _ in }) {
        onStoreThread { worker, loop in worker.makeCertain(loop, done) }
    }

    /// Brings the index up to date with everything that has arrived by now; blocks, for at most
    /// `limit`.
    ///
    /// For listings: unlike `flush(within:)` it does not wait for a sync.
    package func catchUp(within limit: Interval) {
        _ = try? onStoreThread(waitingAtMost: limit) { worker, loop in worker.catchUp(loop) }
    }

    // MARK: The store thread

    /// Work for the store thread.
    typealias Job = @Sendable (StoreWorker, EventLoop) -> Void

    /// Runs a job on the store thread; drops it if the store is closed.
    func onStoreThread(_ job: @escaping Job) { core.channel.worker?.enqueue(job) }

    /// Runs a job on the store thread and waits for its end; blocks.
    ///
    /// - Returns: false if `limit` passed first, or if the store is closed.
    func onStoreThread(
        waitingAtMost limit: Interval, _ job: @escaping Job
    ) throws(SystemError) -> Bool {
        let isOver = try ThreadSemaphore()
        guard let worker = core.channel.worker else { return false }
        worker.enqueue { worker, loop in
            job(worker, loop)
            isOver.signal()
        }
        return isOver.wait(atMost: limit)
    }

    // MARK: Objects

    /// The bytes that objects may take.
    package var budget: Int64 { core.usage.budget }

    /// Returns the current object of a key, complete or not, and records a use; nil if none is
    /// stored.
    ///
    /// Takes microseconds: from memory, or by opening the file and reading its header.
    package func lookup(_ key: ObjectKey) -> StoredObject? {
        guard let object = peek(key) else { return nil }
        // A structure object is always read whole; reads of media are reported by `noteRead`.
        noteRead(object, bytes: object.kind == .structure ? max(1, object.total ?? 1) : 0)
        return object
    }

    /// Returns the same as `lookup` without recording a use: for look-ahead and listings.
    package func peek(_ key: ObjectKey) -> StoredObject? {
        guard !isClosed.load(ordering: .relaxed) else { return nil }
        return core.find(key)
    }

    /// Returns the current object of a key if it is in memory; opens no file.
    package func peekOpen(_ key: ObjectKey) -> StoredObject? {
        guard !isClosed.load(ordering: .relaxed) else { return nil }
        return core.table.look(key)
    }

    /// Records that a player read bytes of an object, so that retention knows what is watched.
    ///
    /// With 0 bytes it records only that the object was requested.
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

    /// Creates an object with no bytes; lookups find it once it is published.
    ///
    /// An object that is not storable, that exceeds the budget, or that the disk cannot take at the
    /// moment (full, failing, gone, out of descriptors) is created without a name and is not
    /// storable. Throws if even that fails.
    package func create(_ description: ObjectDescription) throws(SystemError) -> StoredObject {
        var description = description
        if isClosed.load(ordering: .relaxed) { description.isStorable = false }
        return try core.create(description)
    }

    /// Makes an object the current one of its key; a former one is freed when its holders release
    /// it.
    ///
    /// Does nothing for objects that are not storable, discarded, or published already. Throws if
    /// the file cannot be renamed; the object can then still be read and filled.
    ///
    /// An object that has left the name to a former one becomes the current one with its last byte,
    /// unless the former one was removed before.
    package func publish(_ object: StoredObject) throws(SystemError) {
        guard !isClosed.load(ordering: .relaxed) else { return }
        if object.former != nil {
            object.isDueWhenWhole.store(true, ordering: .relaxed)
            // Looked up only now: the last byte may have come before the store was told.
            guard object.isComplete else { return }
        }
        try core.publish(object)
    }

    /// Removes the name of an object: it is not stored from now on, no lookup finds it, and what its
    /// readers have read can be freed with `punch`.
    ///
    /// Blocks on the disk.
    package func forgetName(of object: StoredObject) {
        _ = core.forgetName(of: object)
    }

    /// Stores a body that is known as a whole, in place of its key's present object; blocks on the
    /// disk.
    ///
    /// - Parameters:
    ///   - body: the body.
    ///   - description: its description, with its length as `total`.
    /// - Returns: the object.
    /// - Throws: `SystemError` if there is no room for it; the present object stays then.
    @discardableResult
    package func store(
        _ body: [UInt8], as description: ObjectDescription
    ) throws(SystemError) -> StoredObject {
        let object = try create(description)
        guard object.isStorable else {
            throw SystemError("create", code: ENOSPC, subject: "the store has no room")
        }
        var writer = FillWriter(object, from: 0, to: Int64(body.count))
        let failure: SystemError? = body.withUnsafeBytes { bytes in
            do throws(SystemError) {
                try writer.append(bytes)
                return nil
            } catch {
                return error
            }
        }
        writer.end(failure: failure)
        if let failure { throw failure }
        try publish(object)
        finish(object)
        return object
    }

    /// Records that no fill works on the object; it is committed with the next batch.
    package func finish(_ object: StoredObject) {
        core.channel.noteFinished(object)
    }

    /// Removes a key's object from the store; holders can still read it.
    ///
    /// May block on the disk.
    package func remove(_ key: ObjectKey) {
        guard !isClosed.load(ordering: .relaxed) else { return }
        _ = core.remove(key)
    }

    /// Removes an object from the store, unless another one has taken its place; holders can still
    /// read it.
    ///
    /// May block on the disk.
    package func remove(_ object: StoredObject) {
        guard !isClosed.load(ordering: .relaxed) else { return }
        _ = core.remove(object.key, only: object)
    }

    /// Requests room for `bytes` more; eviction runs on the store thread.
    ///
    /// - Returns: false if it is known that nothing can be freed. True is no promise: nothing is
    ///   reserved.
    package func reserve(_ bytes: Int64) -> Bool {
        guard bytes <= core.usage.budget else { return false }
        if core.usage.used.addingSaturated(bytes) <= core.usage.budget { return true }
        let wasStuck = core.usage.isStuck
        core.channel.askEviction(bytes: bytes)
        return !wasStuck
    }
}
