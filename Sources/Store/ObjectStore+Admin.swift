package import DurableState
import Glibc
import Logging
import Numbers
import Posix
import Reactor
import Synchronization

/// Statistics, listings, removal, pins, and the long URLs kept in the index.
extension ObjectStore {
    /// The folder's path; files that others put there are left alone.
    package var folderPath: String { core.folder.path }

    /// Returns the current statistics.
    package func statistics() -> StoreStatistics {
        var statistics = core.counters.statistics
        statistics.objects = core.usage.objectCount
        statistics.bytes = core.usage.used
        statistics.budgetBytes = core.usage.budget
        statistics.openObjects = core.table.count
        statistics.deletion = core.cleaner.left
        statistics.isStoringSuspended = core.channel.isStoringSuspended
        statistics.isOutOfRoom = core.isOutOfRoom
        return statistics
    }

    /// Returns the disk space in use and available; asks the file system (statvfs(3)).
    package func space() -> StoreSpace {
        StoreSpace(
            used: core.usage.used, budget: core.usage.budget,
            minFree: core.usage.minFree, free: freeBytes(at: core.folder.path),
            objects: core.usage.objectCount, pinnedTitles: core.pins.count)
    }

    /// Changes the limits of the disk usage; what exceeds them is evicted.
    ///
    /// - Parameters:
    ///   - budget: bytes that objects may take; at least 0.
    ///   - minFree: bytes that must stay free on the file system.
    package func limit(budget: Int64, minFree: Int64) {
        core.usage.budget = budget
        core.usage.minFree = minFree
        core.allowance.withLock { $0 = StoreCore.Allowance() }
        onStoreThread { worker, loop in worker.followLimits(loop) }
    }

    // MARK: Listing

    /// Returns the most recently used objects, newest first, all if `limit` is negative; blocks on
    /// the disk.
    package func entries(limit: Int) -> [StoreEntry] {
        indexed("list objects", []) { try core.index.newest(limit: limit) }
    }

    /// Returns the objects that were first fetched for a title; blocks on the disk.
    package func rows(ofTitle title: UInt64) -> [StoreEntry] {
        indexed("list a title", []) { try core.index.rows(ofTitle: title) }
    }

    /// Returns the index's entries for some keys, in the order of `keys`; blocks on the disk.
    package func entries(of keys: [ObjectKey]) -> [StoreEntry?] {
        indexed("find objects", [StoreEntry?](repeating: nil, count: keys.count)) {
            try core.index.rows(of: keys)
        }
    }

    // MARK: Removal

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

    // MARK: Pins

    /// Pins a title, so that it is never evicted; blocks until the pin is on the disk.
    ///
    /// `url` is its entry, for listings; `keys` are objects that belong to it although they were
    /// first fetched for another title.
    package func pin(title: UInt64, url: String, keys: [ObjectKey]) throws(StateFault) {
        let pin = Pin(title: title, url: url, since: .now(), keys: keys)
        let unnamed = try core.pins.add(pin)
        onStoreThread { worker, loop in
            worker.followPin(of: title, unnamed: unnamed)
            worker.scheduleTick(loop)
        }
    }

    /// Unpins a title and makes other changes of the state in the same commit; blocks until that is
    /// on the disk.
    ///
    /// - Returns: false if it was not pinned; the other changes are made anyway.
    @discardableResult
    package func unpin(
        title: UInt64, with others: [StateChange] = []
    ) throws(StateFault) -> Bool {
        guard let unnamed = try core.pins.remove(title, with: others) else { return false }
        onStoreThread { worker, loop in
            worker.followPin(of: title, unnamed: unnamed)
            worker.scheduleTick(loop)
        }
        return true
    }

    /// The pinned titles, in the order of pinning.
    package func pins() -> [Pin] { core.pins.all }

    /// The pin of a title; nil if it is not pinned.
    package func pin(of title: UInt64) -> Pin? { core.pins.pin(of: title) }

    /// True if an object is never evicted, since a pinned title has it.
    package func isPinned(_ object: StoredObject) -> Bool {
        core.pins.holds(object.key, ofTitle: object.title)
    }

    /// Returns true if a pinned title has an object, or a pin names it; for any thread.
    ///
    /// Does not hold the store, so that the store can hold it.
    package var isPinnedNow: @Sendable (_ key: ObjectKey, _ title: UInt64) -> Bool {
        { [pins = core.pins] key, title in pins.holds(key, ofTitle: title) }
    }

    /// Returns how many pins name an object; for any thread.
    ///
    /// Does not hold the store, so that the store can hold it.
    package var namingsNow: @Sendable (_ key: ObjectKey) -> Int {
        { [pins = core.pins] key in pins.count(naming: key) }
    }

    // MARK: Long URLs

    /// False while the index rejects long URLs or is far behind, so that only memory has their
    /// short names, and while others would displace those in use: links should then do without.
    package var takesLongURLs: Bool { takesLongURLs(at: .now()) }

    func takesLongURLs(at now: @autoclosure () -> WallTime) -> Bool {
        let crowded = WallTime(nanoseconds: core.longURLsCrowdedUntil.load(ordering: .relaxed))
        if crowded.nanoseconds != .min {
            // A longer time was noted before the clock was set back: the next step notes it anew.
            let left = crowded - now()
            guard left <= .zero || left > core.configuration.longURLUse else { return false }
        }
        return core.unsavedLongURLs.withLock { $0.hasRoom }
    }

    /// Changes when long URLs are deleted, and some time after they were saved: what was written
    /// with their short names before may lead nowhere, now or soon, and must be written anew, which
    /// saves them again.
    package var longURLVersion: UInt64 { core.longURLVersion.load(ordering: .acquiring) }

    /// Saves a URL under a short ID; `savedURL` finds it immediately, the disk has it a moment
    /// later.
    package func saveLongURL(id: [UInt8], url: String) {
        guard core.unsavedLongURLs.withLock({ $0.add(url, id: id) }) else { return }
        onStoreThread { worker, loop in worker.saveLongURLs(loop) }
    }

    /// Returns the URL saved under a short ID; nil if none is known.
    ///
    /// May block on the disk for one SQLite read.
    package func savedURL(id: [UInt8]) throws(UnreadableIndex) -> String? {
        if let url = core.unsavedLongURLs.withLock({ $0.urls[id] }) { return url }
        do {
            return try core.index.longURL(id: id)
        } catch {
            note(error, to: "find a URL")
            throw UnreadableIndex()
        }
    }

    // MARK: Access to the index

    /// Runs an index operation; counts and logs an error and returns `fallback` instead.
    func indexed<Value>(
        _ what: String, _ fallback: Value, _ body: () throws -> Value
    ) -> Value {
        do {
            return try body()
        } catch {
            note(error, to: what)
            return fallback
        }
    }

    private func note(_ error: any Error, to what: String) {
        core.noteIndexFailure(error)
        core.log.error("the index failed", metadata: ["to": "\(what)", "error": "\(error)"])
    }
}

/// The index cannot be read now: what it holds is not known.
package struct UnreadableIndex: Error, Sendable {}

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
