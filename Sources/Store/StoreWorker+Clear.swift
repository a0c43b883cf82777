import Glibc
import Logging
import Numbers
import Posix
import Reactor
import Retention
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
    /// - Parameter sparesPinned: whether pinned objects stay.
    /// - Returns: what was removed.
    /// - Throws: errors of the file system or SQLite; nothing is removed then.
    func clear(sparingPinned sparesPinned: Bool) throws -> Removal {
        flushIndex()
        // A new folder of objects takes files before the former ones are deleted.
        evictor.makeRoom(files: StoreFolder.filesOfAside + FileFloor.least)
        let (count, size) = try core.index.totals()
        let aside = try core.folder.makeAside(objects: count, bytes: size)
        do {
            let cleared = try core.table.withAllNames { () throws -> Cleared in
                try setAside(into: aside, sparesPinned)
            }
            try? syncFolder(core.folder.path)
            beginAnew(with: cleared.kept)
            core.cleaner.add(
                ClearedFolder(
                    path: aside.path, objects: cleared.removal.objects, bytes: cleared.bytesLeft))
            return cleared.removal
        } catch {
            // The folder holds only second links.
            core.cleaner.add(ClearedFolder(path: aside.path, objects: 0, bytes: 0))
            throw error
        }
    }

    private struct Cleared: Sendable {
        var removal = Removal()
        /// The bytes that stay charged until the files are deleted; open objects release their own.
        var bytesLeft: Int64 = 0
        var kept: [IndexRow] = []
    }

    /// Sets objects aside; the caller holds all name locks.
    private func setAside(into aside: ClearedFolder, _ sparesPinned: Bool) throws -> Cleared {
        flushIndex()
        // Rows that the index rejects would reappear with its next batch.
        guard index.rows.isEmpty else { throw SystemError("write the index", code: EIO) }
        var cleared = Cleared()
        cleared.kept = sparesPinned ? try pinnedRows() : []
        let names = Set(cleared.kept.map(\.key.name))
        for row in cleared.kept {
            try linkFile(
                core.folder.objectPath(row.key), as: core.folder.path(of: row.key, in: aside))
        }
        // The second links must be durable before the first ones are moved away.
        if !names.isEmpty { try core.folder.syncEverything(for: .clearing) }
        let totals = try core.index.totals()
        try exchangeFiles(core.folder.objectsFolder, aside.path)
        var open: [StoredObject] = []
        core.table.withEachShard { open += $0.removeAll(but: names) }
        for object in open { object.state.withLock { $0.becomeRemoved() } }
        let known = (try? core.index.rows(of: open.map(\.key))) ?? []
        let size = totals.bytes - cleared.kept.map(\.bytes).saturatedSum()
        cleared.removal.objects = totals.objects - cleared.kept.count
        cleared.removal.bytes = size
        cleared.bytesLeft = size - known.map { $0?.bytes ?? 0 }.saturatedSum()
        core.usage.countObjects(cleared.kept.count - core.usage.objectCount)
        core.counters.removals.add(1, ordering: .releasing)
        do {
            try core.index.setAside(butFor: cleared.kept.map(\.key))
        } catch {
            // The index has rows without files; the next start finds and drops them.
            core.noteIndexFailure(error)
            core.log.error("cannot clear the index", metadata: ["error": "\(error)"])
        }
        return cleared
    }

    /// Returns the rows of pinned objects whose files exist.
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

    /// Restarts retention with only the kept objects.
    private func beginAnew(with kept: [IndexRow]) {
        evictor.startAnew(with: kept)
        reloadPins()
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

extension ObjectStore {
    /// Removes all objects, or all except those of pinned titles; blocks for some milliseconds, and
    /// with pins also until index and folder are compared.
    ///
    /// The objects are gone in one step; their files are deleted in the background, if necessary in
    /// the next run. Holders can still read their objects. Must not be called on the store thread.
    package func clear(sparingPinned: Bool) throws -> Removal {
        let box = ClearBox()
        let semaphore = try ThreadSemaphore()
        core.channel.worker?.enqueue { worker, loop in
            // The comparison is not to be ended for nothing.
            guard box.isAwaited else { return }
            worker.whenReadyToClear(sparingPinned: sparingPinned, on: loop) {
                [unowned worker] loop in
                guard box.begin() else { return }
                worker.catchUp(loop)
                let result = Result { try worker.clear(sparingPinned: sparingPinned) }
                box.finish(result)
                semaphore.signal()
            }
        }
        let deadline = Monotonic.now() + .seconds(600 as Int64)
        while !semaphore.wait(atMost: Self.waitStep) {
            // One that has begun is waited for, since its outcome is not known before.
            if core.isEnding || Monotonic.now() >= deadline, box.giveUp() {
                throw SystemError("clear", code: ETIMEDOUT)
            }
        }
        guard let result = box.outcome else { throw SystemError("clear", code: ETIMEDOUT) }
        return try result.get()
    }

    /// The cleared objects that are not deleted yet.
    package var deletion: Deletion { core.cleaner.left }
}

/// Carries a result from the store thread to the thread that waits for it.
private final class ClearBox: Sendable {
    private enum State {
        case waiting, begun, givenUp
        case done(Result<Removal, any Error>)
    }

    private let state = Mutex(State.waiting)

    /// False once the clear has begun, or nobody waits for it any more.
    var isAwaited: Bool {
        state.withLock { state in
            guard case .waiting = state else { return false }
            return true
        }
    }

    /// Returns false if nobody waits for the clear any more.
    func begin() -> Bool { leaveWaiting(for: .begun) }

    /// Returns false if the clear has begun.
    func giveUp() -> Bool { leaveWaiting(for: .givenUp) }

    func finish(_ result: Result<Removal, any Error>) {
        state.withLock { $0 = .done(result) }
    }

    var outcome: Result<Removal, any Error>? {
        state.withLock { state in
            guard case .done(let result) = state else { return nil }
            return result
        }
    }

    private func leaveWaiting(for next: State) -> Bool {
        state.withLock { state in
            guard case .waiting = state else { return false }
            state = next
            return true
        }
    }
}
