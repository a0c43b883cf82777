import Glibc
import Numbers
import Posix
import Reactor
import Synchronization

/// Purges, the removal of a title, and clears.
extension ObjectStore {
    /// Removes the matching objects of a title, and of some others; holders can still read them.
    ///
    /// That is done on the store thread, in steps between which it does its other work.
    ///
    /// - Parameters:
    ///   - title: the title.
    ///   - keys: objects of other titles.
    ///   - step: the most objects that are looked at in one step.
    ///   - fits: called for each of these objects, on the store thread.
    ///   - done: called on the store thread with what was removed.
    package func removeAll(
        ofTitle title: UInt64, and keys: [ObjectKey], step: Int = 1_000,
        where fits: @escaping @Sendable (StoreEntry) -> Bool,
        _ done: @escaping @Sendable (Removal) -> Void = { _ in }
    ) {
        let removal = TitleRemoval(
            title: title, keys: keys[...], step: step, fits: fits, done: done)
        onStoreThread { worker, loop in
            worker.whenIndexIsComplete(on: loop) { [unowned worker] loop in
                worker.catchUp(loop)
                self.goOn(with: removal, worker)
            }
        }
    }

    private func goOn(with removal: TitleRemoval, _ worker: StoreWorker) {
        var removal = removal
        let rows: [StoreEntry]? = indexed("list a title", nil) { try removal.next(core.index) }
        for row in rows ?? []
        where removal.fits(core.withLatestUse(row)) && core.remove(row.key) {
            removal.removed.objects += 1
            removal.removed.bytes = removal.removed.bytes.addingSaturated(row.bytes)
        }
        guard rows == nil || removal.isOver else {
            let rest = removal
            return onStoreThread { worker, _ in self.goOn(with: rest, worker) }
        }
        worker.flushIndex()
        // Removed objects must not reappear after a power cut.
        worker.sync.syncAll(by: .now() + .seconds(5 as Int64))
        removal.done(removal.removed)
    }

    /// Makes lookups ignore and delete matching stored objects, for a purge that is not finished;
    /// nil ends that.
    ///
    /// Those that are in use, or being opened, are found until they are closed, which may be after
    /// their last holder has released them: the purge itself removes them.
    package func hide(_ fits: (@Sendable (StoreEntry) -> Bool)?) {
        let hidden = fits.map { HiddenObjects(fits: $0) }
        core.hidden.withLock { $0 = hidden }
        guard hidden != nil else { return }
        // What was used a moment ago is not to be taken for unused: the index gets uses late.
        onStoreThread { worker, _ in worker.flushIndex() }
        // A lookup compares what it opens: idle objects must not be found open.
        core.table.closeIdle()
    }

    /// True if the disk refused to delete files of removed objects: a later run would find them.
    package var hasUndeleted: Bool { core.undeleted.hasRemoved }
    /// The keys of these objects.
    package var undeletedKeys: [ObjectKey] { core.undeleted.all }

    /// Counts objects that an earlier run removed among these, as far as their files cannot be
    /// opened; blocks on the disk.
    package func noteUnopened(_ keys: [ObjectKey]) {
        for key in keys { core.noteUnopened(key) }
    }

    /// Removes the matching objects in small steps, so that other work continues; blocks until
    /// done.
    ///
    /// Must not be called on the store thread.
    ///
    /// What the index knows of `keys` and `titles` is removed first, without waiting for the
    /// comparison of index and folder.
    ///
    /// - Parameters:
    ///   - keys: keys of matching objects.
    ///   - titles: titles of matching objects.
    ///   - readsAll: false if no others match, so that the rest of the index is not read.
    ///   - fits: called for each object.
    ///   - goesOn: called now and then with what was removed so far; returning false stops the
    ///     purge, and the remaining objects stay.
    /// - Returns: what was removed.
    /// - Throws: errors of SQLite, or a lack of descriptors.
    package func purge(
        keys: [ObjectKey] = [], titles: [UInt64] = [], readsAll: Bool = true,
        where fits: (StoreEntry) -> Bool, goesOn: (Removal) -> Bool
    ) throws -> Removal {
        // Also of one that is stopped or fails, which has removed something.
        defer { core.counters.orderedRemovals.add(1, ordering: .releasing) }
        var removal = Removal()
        // While the index is incomplete, it may fail, too; what is left is removed below.
        let isNamedGone = try? removeNamed(
            keys: keys, titles: titles, adding: &removal, where: fits, goesOn: goesOn)
        var mustGoOn = isNamedGone != false
        while mustGoOn {
            let rebuilds = core.counters.indexRebuilds.load(ordering: .acquiring)
            let isWhole = try removeIndexed(
                keys: keys, titles: titles, readsAll: readsAll, adding: &removal, where: fits,
                goesOn: goesOn)
            // A new index that replaces a damaged one has not all rows at first: once more, then.
            let isRebuilt = core.counters.indexRebuilds.load(ordering: .acquiring) != rebuilds
            mustGoOn = isWhole && isRebuilt
        }
        // Purged objects must not reappear after a power cut.
        _ = try onStoreThread(waitingAtMost: .seconds(10 as Int64)) { worker, _ in
            worker.flushIndex()
            worker.sync.syncAll(by: .now() + .seconds(5 as Int64))
        }
        return removal
    }

    /// Removes what matches once the index has all rows; parameters like those of `purge`.
    ///
    /// - Returns: false if it was stopped.
    private func removeIndexed(
        keys: [ObjectKey], titles: [UInt64], readsAll: Bool, adding removal: inout Removal,
        where fits: (StoreEntry) -> Bool, goesOn: (Removal) -> Bool
    ) throws -> Bool {
        // What the index rejects is nowhere else, and would be found again.
        guard let unwritten = try awaitIndex(while: { goesOn(removal) }),
            remove(unwritten, adding: &removal, where: fits, goesOn: goesOn)
        else { return false }
        guard readsAll else {
            return try removeNamed(
                keys: keys, titles: titles, adding: &removal, where: fits, goesOn: goesOn)
        }
        for byte in UInt8.min...UInt8.max {
            let rows = try reading { try core.index.rows(startingWith: byte) }
            guard remove(rows, adding: &removal, where: fits, goesOn: goesOn) else { return false }
        }
        return true
    }

    /// Waits until the index has the rows of all objects; blocks.
    ///
    /// - Parameter goesOn: called now and then; false ends the wait, or a stop would wait for the
    ///   comparison of a full cache.
    /// - Returns: the rows that the index rejects; nil if `goesOn` has ended the wait.
    /// - Throws: ECANCELED if the store is closed meanwhile, or a lack of descriptors.
    private func awaitIndex(while goesOn: () -> Bool) throws(SystemError) -> [StoreEntry]? {
        let isReady = try ThreadSemaphore()
        let unwritten = Mutex<[StoreEntry]>([])
        onStoreThread { worker, loop in
            worker.whenIndexIsComplete(on: loop) { [unowned worker] loop in
                worker.catchUp(loop)
                unwritten.withLock { $0 = worker.index.unwritten }
                isReady.signal()
            }
        }
        while !isReady.wait(atMost: Self.waitStep) {
            guard goesOn() else { return nil }
            guard core.channel.worker != nil else { throw SystemError("purge", code: ECANCELED) }
        }
        return unwritten.withLock { $0 }
    }

    /// Removes what the index knows of some keys and titles, and what matches of it; blocks on the
    /// disk.
    ///
    /// - Parameters:
    ///   - keys: keys of objects.
    ///   - titles: titles of objects.
    ///   - removal: what is removed is added to it.
    ///   - fits: called for each of these objects.
    ///   - goesOn: called now and then with `removal`; returning false stops.
    /// - Returns: false if it was stopped.
    /// - Throws: errors of SQLite.
    package func removeNamed(
        keys: [ObjectKey], titles: [UInt64], adding removal: inout Removal,
        where fits: (StoreEntry) -> Bool, goesOn: (Removal) -> Bool
    ) throws -> Bool {
        for part in stride(from: 0, to: keys.count, by: Self.purgeStep) {
            let some = Array(keys[part...].prefix(Self.purgeStep))
            let rows = try reading { try core.index.rows(of: some).compactMap { $0 } }
            guard remove(rows, adding: &removal, where: fits, goesOn: goesOn) else { return false }
        }
        for title in titles {
            var last: ObjectKey?
            repeat {
                let rows = try reading {
                    try core.index.rows(ofTitle: title, after: last, limit: Self.purgeStep)
                }
                last = rows.last?.key
                guard remove(rows, adding: &removal, where: fits, goesOn: goesOn) else {
                    return false
                }
            } while last != nil
        }
        return true
    }

    /// Removes the matching objects of some rows.
    ///
    /// - Returns: false if `goesOn` stopped it.
    private func remove(
        _ rows: [StoreEntry], adding removal: inout Removal, where fits: (StoreEntry) -> Bool,
        goesOn: (Removal) -> Bool
    ) -> Bool {
        for (index, row) in rows.enumerated() {
            if index.isMultiple(of: 64), !goesOn(removal) { return false }
            // An object that replaced this one meanwhile stays.
            guard fits(core.withLatestUse(row)), core.remove(row.key, created: row.created)
            else { continue }
            removal.objects += 1
            removal.bytes = removal.bytes.addingSaturated(row.bytes)
            if core.undeleted.contains(row.key) { removal.undeleted += 1 }
        }
        return true
    }

    /// How often what waits for the index checks whether it still should.
    static let waitStep = Interval.milliseconds(100)

    /// The most rows of named objects that a purge reads at a time.
    private static let purgeStep = 1_000

    private func reading(_ rows: () throws -> [StoreEntry]) throws -> [StoreEntry] {
        do {
            return try rows()
        } catch {
            core.noteIndexFailure(error)
            throw error
        }
    }

    // MARK: Clearing

    /// Removes all objects, or all except those of pinned titles; blocks for some milliseconds, and
    /// with pins also until index and folder are compared and the disk has written what waits.
    ///
    /// The objects are gone in one step; their files are deleted in the background, if necessary in
    /// the next run. Holders can still read their objects. Must not be called on the store thread.
    package func clear(sparingPinned: Bool) throws -> Removal {
        // Claimed by the thread that runs the clear, or by the one that gives it up.
        let isClaimed = Atomic<Bool>(false)
        let outcome = Mutex<Result<Removal, any Error>?>(nil)
        let semaphore = try ThreadSemaphore()
        onStoreThread { worker, loop in
            // The comparison is not to be ended for nothing.
            guard !isClaimed.load(ordering: .acquiring) else { return }
            worker.whenReadyToClear(sparingPinned: sparingPinned, on: loop) {
                [unowned worker] loop in
                guard !isClaimed.exchange(true, ordering: .acquiringAndReleasing) else { return }
                worker.catchUp(loop)
                let result = Result { try worker.clear(sparingPinned: sparingPinned) }
                outcome.withLock { $0 = result }
                semaphore.signal()
            }
        }
        let deadline = Monotonic.now() + .seconds(600 as Int64)
        while !semaphore.wait(atMost: Self.waitStep) {
            // One that has begun is waited for, since its outcome is not known before.
            if core.isEnding || Monotonic.now() >= deadline,
                !isClaimed.exchange(true, ordering: .acquiringAndReleasing)
            {
                throw SystemError("clear", code: ETIMEDOUT)
            }
        }
        core.counters.orderedRemovals.add(1, ordering: .releasing)
        guard let result = outcome.withLock({ $0 }) else {
            throw SystemError("clear", code: ETIMEDOUT)
        }
        return try result.get()
    }

    /// The cleared objects that are not deleted yet.
    package var deletion: Deletion { core.cleaner.left }
}

/// A removal of a title that is under way.
private struct TitleRemoval: Sendable {
    let title: UInt64
    /// Objects of other titles that are to be looked at.
    var keys: ArraySlice<ObjectKey>
    /// The most objects of a step.
    let step: Int
    let fits: @Sendable (StoreEntry) -> Bool
    let done: @Sendable (Removal) -> Void
    /// The last of the title's objects that was looked at; nil at first.
    var last: ObjectKey?
    var hasSeenTitle = false
    var removed = Removal()

    /// True once all objects have been looked at.
    var isOver: Bool { hasSeenTitle && keys.isEmpty }

    /// Reads the rows of the next step from the index.
    mutating func next(_ index: ObjectIndex) throws -> [StoreEntry] {
        guard hasSeenTitle else {
            let rows = try index.rows(ofTitle: title, after: last, limit: step)
            last = rows.last?.key
            hasSeenTitle = rows.isEmpty
            return rows
        }
        let asked = Array(keys.prefix(step))
        keys = keys.dropFirst(step)
        return try index.rows(of: asked).compactMap { $0 }
    }
}
