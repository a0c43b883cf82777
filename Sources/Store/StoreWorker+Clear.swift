import Glibc
import Logging
import Posix
import Reactor
import Retention
import Synchronization

/// Clearing: everything is set aside at once, whatever there is of it, and deleted in the background.
extension StoreWorker {
    /// Sets all objects aside, or all but those of pinned titles; holders of them go on.
    ///
    /// - Parameter sparesPinned: whether pinned objects stay.
    /// - Returns: what is gone for everybody from now on.
    /// - Throws: what the disk or SQLite says; then nothing is gone.
    func clear(sparingPinned sparesPinned: Bool) throws -> Removal {
        if comparison != nil {
            // What is pinned must be known; of the rest nothing is left to be compared.
            if sparesPinned, !core.pins.all.isEmpty { compareToTheEnd() } else { endComparing() }
        }
        flushIndex()
        let (count, size) = try core.index.totals()
        let aside = try core.folder.makeAside(objects: count, bytes: size)
        do {
            let cleared = try core.table.withAllNames { () throws -> Cleared in
                try setAside(into: aside, sparesPinned)
            }
            try? syncFolder(core.folder.path)
            beginAnew(with: cleared.kept)
            core.cleaner.add(
                AsideFolder(
                    path: aside.path, objects: cleared.removal.objects, bytes: cleared.bytesLeft))
            return cleared.removal
        } catch {
            // It holds second names at most.
            core.cleaner.add(AsideFolder(path: aside.path, objects: 0, bytes: 0))
            throw error
        }
    }

    private struct Cleared: Sendable {
        var removal = Removal()
        /// What is counted until the files are deleted; open objects give their own back.
        var bytesLeft: Int64 = 0
        var kept: [IndexRow] = []
    }

    /// All names are locked.
    private func setAside(into aside: AsideFolder, _ sparesPinned: Bool) throws -> Cleared {
        flushIndex()
        // Rows that the index refuses would come back with its next batch.
        guard rows.isEmpty else { throw SystemError("write the index", code: EIO) }
        var cleared = Cleared()
        cleared.kept = sparesPinned ? try pinnedRows() : []
        let names = Set(cleared.kept.map(\.key.name))
        for row in cleared.kept {
            try linkFile(
                core.folder.objectPath(row.key), as: core.folder.path(of: row.key, in: aside))
        }
        // What stays must be on the disk under its second name before the first one goes.
        if !names.isEmpty { try core.folder.syncEverything() }
        let totals = try core.index.totals()
        try exchangeFiles(core.folder.objectsFolder, aside.path)
        var open: [StoredObject] = []
        core.table.withEachShard { open += $0.removeAll(but: names) }
        for object in open { object.state.withLock { $0.place = .unlinked } }
        let known = (try? core.index.rows(of: open.map(\.key))) ?? []
        let size = totals.bytes - cleared.kept.reduce(0) { $0 + $1.bytes }
        cleared.removal.objects = totals.objects - cleared.kept.count
        cleared.removal.bytes = size
        cleared.bytesLeft = size - known.reduce(0) { $0 + ($1?.bytes ?? 0) }
        core.usage.countObjects(cleared.kept.count - core.usage.objectCount)
        core.counters.removals.add(1, ordering: .releasing)
        do {
            try core.index.setAside(butFor: cleared.kept.map(\.key))
        } catch {
            // Rows without files: the next start finds and drops them.
            core.counters.indexFailures.add(1, ordering: .relaxed)
            core.log.error("cannot clear the index", metadata: ["error": "\(error)"])
        }
        return cleared
    }

    /// The rows of pinned objects whose files are there.
    private func pinnedRows() throws -> [IndexRow] {
        var found: [ObjectKey: IndexRow] = [:]
        for pin in core.pins.all {
            var rows = try core.index.rows(of: pin.keys).compactMap { $0 }
            if pin.title != 0 { rows += try core.index.rows(ofTitle: pin.title) }
            for row in rows { found[row.key] = row }
        }
        return found.values.filter { access(core.folder.objectPath($0.key), F_OK) == 0 }
            .sorted { ($0.lastUsed ?? $0.created) < ($1.lastUsed ?? $1.created) }
    }

    /// Retention knows nothing but what was kept.
    private func beginAnew(with kept: [IndexRow]) {
        policy = core.configuration.makePolicy(core.usage.budget)
        for row in kept { policy.insert(row.key.name, Retained(row)) }
        reloadPins()
    }

    /// Ends the comparison of index and folder, of which nothing is left.
    private func endComparing() {
        comparison = nil
        core.table.withEachShard { $0.settled = nil }
        core.counters.isReconciled.store(true, ordering: .releasing)
    }
}

extension ObjectStore {
    /// Removes all objects, or all but those of pinned titles, for everybody at once, and has their
    /// files deleted in the background, in the next run if need be; blocks for some milliseconds.
    ///
    /// Not to be called on the store thread. Holders of objects go on.
    package func clear(sparingPinned: Bool) throws -> Removal {
        let box = ClearBox()
        let latch = try Latch()
        core.channel.worker?.enqueue { worker, loop in
            worker.catchUp(loop)
            let result = Result { try worker.clear(sparingPinned: sparingPinned) }
            box.outcome.withLock { $0 = result }
            latch.open()
        }
        _ = latch.wait(atMost: .seconds(600 as Int64))
        guard let result = box.outcome.withLock({ $0 }) else {
            throw SystemError("clear", code: ETIMEDOUT)
        }
        return try result.get()
    }

    /// What clears have set aside and is not deleted yet.
    package var deletion: Deletion { core.cleaner.left }
}

/// Carries an outcome from the store thread to the one that waits for it.
private final class ClearBox: Sendable {
    let outcome = Mutex<Result<Removal, any Error>?>(nil)
}
