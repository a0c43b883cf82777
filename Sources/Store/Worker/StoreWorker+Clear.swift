import Glibc
import Logging
import Numbers
import Posix
import Reactor
import Synchronization

/// Clearing: sets everything aside in one step, however much it is; deletion runs in the
/// background.
extension StoreWorker {
    /// Runs `body`, which clears, once that is possible; the store thread does its other work
    /// meanwhile.
    func whenReadyToClear(
        sparingPinned sparesPinned: Bool, on loop: EventLoop,
        _ body: @escaping (EventLoop) -> Void
    ) {
        // The pinned objects must be known; otherwise the comparison is not needed any more.
        if comparison != nil, !sparesPinned || core.pins.all.isEmpty {
            endComparing()
            replaceDamagedIndex(on: loop)
        }
        // The totals of an index that is being rebuilt lack some.
        whenIndexIsComplete(on: loop, body)
    }

    /// Sets all objects aside, or all except those of pinned titles; holders can still read them.
    ///
    /// Every lookup of an object that is not open waits for a name lock. So what takes long is done
    /// before all of them are held, or after: links of pinned objects, waits for the disk, and the
    /// index.
    ///
    /// - Parameter sparesPinned: whether pinned objects stay.
    /// - Returns: what was removed.
    /// - Throws: errors of the file system or SQLite; nothing is removed then.
    func clear(sparingPinned sparesPinned: Bool) throws -> Removal {
        flushIndex()
        try writeIndex()
        // A new folder of objects takes files before the former ones are deleted.
        evictor.makeRoom(files: StoreFolder.filesOfAside + FileFloor.least)
        let totals = try core.index.totals()
        let aside = try core.folder.makeAside(objects: totals.objects, bytes: totals.bytes)
        var spared = SparedObjects(core: core, aside: aside, includesPinned: sparesPinned)
        let gone: Exchanged
        do {
            try linkPinned(&spared)
            gone = try core.table.withAllNames { () throws -> Exchanged in
                try exchange(with: aside, sparing: &spared)
            }
        } catch {
            // The folder holds only second links.
            core.cleaner.add(ClearedFolder(path: aside.path, objects: 0, bytes: 0))
            throw error
        }
        let kept = spared.rows
        let (removal, bytesLeft) = forgetCleared(gone.open, but: kept, of: totals)
        syncExchange(spared.unsynced)
        // Retention begins anew with only the kept objects.
        evictor.startAnew(with: kept)
        reloadPins()
        core.cleaner.add(
            ClearedFolder(path: gone.path, objects: removal.objects, bytes: bytesLeft))
        return removal
    }

    /// Links the pinned objects, and waits until the links are on the disk.
    private func linkPinned(_ spared: inout SparedObjects) throws {
        try spared.followPins()
        guard !spared.unsynced.isEmpty else { return }
        // The second links must be durable before the first ones are moved away.
        try syncLinks(core.folder)
        spared.noteSynced()
        // With much unwritten data that took minutes, and players continued.
        try follow(&spared)
        try spared.sync()
        try writeIndex()
    }

    /// Follows the changes that other threads made since the index was last written.
    private func follow(_ spared: inout SparedObjects) throws {
        absorb(core.channel.takeIndexMail())
        try spared.followPins()
        try spared.follow(index.rows)
    }

    private func writeIndex() throws {
        index.write(isTick: false)
        // Rows that the index rejects would reappear with its next batch.
        guard index.rows.isEmpty else { throw SystemError("write the index", code: EIO) }
    }

    /// The path of the former folder of objects, and the cleared objects that were open.
    private typealias Exchanged = (path: String, open: [StoredObject])

    /// Exchanges the folder of objects with the one set aside; the caller holds all name locks.
    ///
    /// - Returns: what was cleared.
    /// - Throws: errors of the file system or SQLite; nothing was exchanged then.
    private func exchange(
        with aside: ClearedFolder, sparing spared: inout SparedObjects
    ) throws -> Exchanged {
        // The last changes; what was published only now need not be durable yet.
        try follow(&spared)
        let path = try exchangeFiles(core.folder.objectsFolder, aside.path)
        var open: [StoredObject] = []
        core.table.withEachShard { open += $0.removeAll { !spared.contains($0) } }
        for object in open { object.state.withLock { $0.becomeRemoved() } }
        core.undeleted.removeAll { !spared.contains($0) }
        core.usage.countObjects(spared.count - core.usage.objectCount)
        core.counters.removals.add(1, ordering: .releasing)
        return (path, open)
    }

    /// Sets the rows of cleared objects aside.
    ///
    /// What other threads have stored since the exchange is still in the mail, and must stay there.
    ///
    /// - Parameters:
    ///   - open: the cleared objects that were open.
    ///   - kept: the rows of the others that stay.
    ///   - former: the totals, unless the index has later ones.
    /// - Returns: what was cleared, and the bytes of it that stay charged until the files are
    ///   deleted; open objects release their own.
    private func forgetCleared(
        _ open: [StoredObject], but kept: [StoreEntry], of former: (objects: Int, bytes: Int64)
    ) -> (removal: Removal, bytesLeft: Int64) {
        index.write(isTick: false)
        let totals = (try? core.index.totals()) ?? former
        let known = (try? core.index.rows(of: open.map(\.key))) ?? []
        let size = totals.bytes.subtractingSaturated(kept.map(\.bytes).saturatedSum())
        var removal = Removal()
        removal.objects = totals.objects - kept.count
        removal.bytes = size
        let openBytes = known.map { $0?.bytes ?? 0 }.saturatedSum()
        do {
            try core.index.setAside(butFor: kept.map(\.key))
        } catch {
            // The index has rows without files; the next start finds and drops them.
            core.noteIndexFailure(error)
            core.log.error("cannot clear the index", metadata: ["error": "\(error)"])
        }
        // Rows that the index rejected would reappear with its next batch.
        if !index.rows.isEmpty { index.forget(but: Set(kept.map(\.key))) }
        return (removal, size.subtractingSaturated(openBytes))
    }

    /// Waits until the last links, and then the exchange, are on the disk.
    ///
    /// - Parameter changed: first bytes of the keys whose links were made or removed last.
    private func syncExchange(_ changed: Set<UInt8>) {
        for byte in changed { try? syncFolder(core.folder.objectsFolder(of: byte)) }
        if !changed.isEmpty { try? syncFolder(core.folder.objectsFolder) }
        try? syncFolder(core.folder.path)
    }

    /// Ends the comparison of index and folder; there is nothing left to compare.
    private func endComparing() {
        comparison = nil
        core.usage.awaitsComparison = false
        core.table.withEachShard { $0.reconciled = nil }
        core.counters.isReconciled.store(true, ordering: .releasing)
    }

    /// Replaces an index whose damage was found during the comparison: it cannot be cleared, and
    /// must not be replaced after the clear.
    private func replaceDamagedIndex(on loop: EventLoop) {
        let reason = awaitedDamage ?? "damage found during the comparison"
        awaitedDamage = nil
        guard core.counters.isIndexDamaged.load(ordering: .relaxed) else { return }
        replaceIndex(reason, on: loop)
    }
}
