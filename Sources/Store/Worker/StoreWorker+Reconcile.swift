// Compares index and folder after a start, in small steps, while the store is in use.
//
// After a clean stop only names are compared with rows; after an unclean stop every header is read
// too, and files that fail verification are deleted. Retention is filled on the way; until it is
// complete, nothing is evicted in its order.
import Glibc
import Logging
import Posix
import Reactor
import Retention
import Synchronization

/// An object that an earlier run stored.
struct Found {
    let name: UInt128
    let facts: Retained
}

/// The progress of the comparison; owned by the store thread's loop.
final class Comparison {
    /// The first byte of the keys whose files are being compared; -1 before the first, 256 after
    /// the last.
    var byte = -1
    var files: ArraySlice<FolderEntry> = []
    var rows: [ObjectKey: KeptRow] = [:]
    /// The objects to give to retention, in the order of use, at the end.
    var found: [Found] = []
    /// Objects whose row was missing or wrong.
    var adopted: [Found] = []
    /// The names of objects that were removed meanwhile, as far as nothing has replaced them.
    var removed: Set<UInt128> = []
    var report = StartReport()
    /// True while it waits for the disk, or for the cache folder to be back.
    var isHeldUp = false
    /// How often the files of a first byte could not be listed.
    var failures = 0
    /// When it began.
    let since = Monotonic.now()
}

extension StoreWorker {
    /// The number of files compared per loop turn.
    private static let step = 200
    /// The duration of one turn, beyond the listing of a folder: files that are read from a disk take
    /// milliseconds each.
    private static let turn = Interval.milliseconds(5)
    /// Objects that need room do not wait for a comparison that has taken longer than this.
    private static let patience = Interval.seconds(1 as Int64)
    /// When a comparison that is held up goes on.
    private static let retryInterval = Interval.seconds(1 as Int64)
    /// After so many failed listings, the files of a folder that cannot be listed are left out: on
    /// a broken disk that may be all.
    private static let mostFailures = 10
    /// How long losses are gathered before they are told.
    private static let lossPause = Interval.seconds(1 as Int64)

    /// Starts the comparison.
    func startComparing(leftovers: Int, isRebuilt: Bool, on loop: EventLoop) {
        comparison?.report.wasClosedCleanly = core.folder.wasClean
        comparison?.report.isIndexRebuilt = isRebuilt
        comparison?.report.orphans = leftovers
        // The index may be damaged: its count is a hint.
        comparison?.found.reserveCapacity(min(max(core.usage.objectCount, 0), 1 << 20))
        reloadPins()
        if core.counters.isIndexDamaged.load(ordering: .relaxed) {
            // Its damage showed before this thread could be told.
            replaceIndex("damage found by the start", on: loop)
        }
        compareMore(loop)
    }

    private func compareMore(_ loop: EventLoop) {
        comparison?.isHeldUp = false
        guard compareSome(until: .now() + Self.turn) else {
            guard let reason = awaitedDamage else { return }
            awaitedDamage = nil
            return replaceIndex(reason, on: loop)
        }
        let pause = comparisonPause
        if comparison?.isHeldUp == true { lookForFolder(loop) }
        loop.schedule(after: pause) { [unowned self] loop in compareMore(loop) }
    }

    /// When whatever waits for the comparison looks at it again: in the loop's next turn, or later
    /// if it is held up, which may take hours.
    var comparisonPause: Interval { comparison?.isHeldUp == true ? Self.retryInterval : .zero }

    /// True if the comparison is under way, and takes too long for objects that need room to wait
    /// for it.
    func isComparisonLong(at now: Monotonic) -> Bool {
        comparison.map { now - $0.since >= Self.patience } ?? false
    }

    /// Runs `body` once index and folder are compared and a rebuilt index is filled, immediately if
    /// they are.
    ///
    /// The store thread does its other work meanwhile: reading a full cache takes from minutes to
    /// hours. `body` is dropped if the store is closed before.
    func whenIndexIsComplete(on loop: EventLoop, _ body: @escaping (EventLoop) -> Void) {
        guard comparison != nil || refilling != nil else { return body(loop) }
        loop.schedule(after: comparisonPause) { [unowned self] loop in
            whenIndexIsComplete(on: loop, body)
        }
    }

    /// Compares up to `step` files, or until `end`.
    ///
    /// - Returns: false when the comparison is done.
    private func compareSome(until end: Monotonic) -> Bool {
        guard let comparison else { return false }
        if comparison.files.isEmpty, !nextFolder(comparison) {
            finish(comparison)
            return false
        }
        guard !comparison.isHeldUp else { return true }
        let name = String(core.folder.objectsFolder(of: UInt8(comparison.byte)).suffix(2))
        for _ in 0..<Self.step {
            guard let entry = comparison.files.popFirst() else { break }
            compare(entry, in: name, comparison)
            if comparison.isHeldUp || .now() >= end { break }
        }
        return true
    }

    /// Moves to the keys with the next first byte; returns false after the last one.
    private func nextFolder(_ comparison: Comparison) -> Bool {
        for row in comparison.rows.values { drop(row) }
        comparison.rows = [:]
        let byte = comparison.byte + 1
        if byte > 0 {
            core.table.withEachShard { shard in
                shard.reconciledThrough = byte - 1
                shard.reconciled = shard.reconciled?.filter { $0.firstByte >= byte }
            }
        }
        comparison.byte = byte
        guard byte < 256 else { return false }
        flushIndex(isTick: true)
        do {
            let rows = try core.index.keptRows(startingWith: UInt8(byte))
            comparison.rows = Dictionary(rows.map { ($0.key, $0) }) { $1 }
            let files = try core.folder.entries(of: core.folder.objectsFolder(of: UInt8(byte)))
            comparison.files = files[...]
        } catch {
            if ObjectIndex.isCorruption(error) {
                // These files are compared once the index has been rebuilt.
                core.noteIndexFailure(error)
            } else {
                // Files that cannot be listed must not count as missing.
                comparison.rows = [:]
                holdUp(comparison, after: error)
            }
        }
        return true
    }

    /// Has the files of this first byte listed again later, unless that failed too often.
    private func holdUp(_ comparison: Comparison, after error: any Error) {
        // While the cache folder is away, there is nothing to go on with.
        let isInPlace = core.folder.isInPlace
        if !isInPlace || comparison.failures < Self.mostFailures {
            if isInPlace { comparison.failures += 1 }
            comparison.byte -= 1
            comparison.isHeldUp = true
            return
        }
        core.log.error("cannot compare index and folder", metadata: ["error": "\(error)"])
    }

    private func compare(_ entry: FolderEntry, in folder: String, _ comparison: Comparison) {
        guard !entry.isFolder, let key = ObjectKey(hex: folder + entry.name) else {
            if !entry.isFolder {
                try? removeFile("\(core.folder.objectsFolder)/\(folder)/\(entry.name)")
                comparison.report.orphans += 1
            }
            return
        }
        let row = comparison.rows.removeValue(forKey: key)
        if row?.isComplete != true || !core.folder.wasClean {
            let isThere = core.table.withName(of: key) {
                guard core.table.isUnreconciled(key) else { return true }
                // `load` updates the records: a file without a row is adopted, a damaged one is
                // deleted.
                return core.load(key) != nil
            }
            guard isThere else {
                // While the cache folder is away, no file is found.
                if !core.folder.isInPlace {
                    comparison.files.append(entry)
                    comparison.rows[key] = row
                    comparison.isHeldUp = true
                }
                return
            }
        }
        guard let row else { return }
        comparison.report.kept += 1
        comparison.found.append(Found(name: key.name, facts: row.facts))
    }

    /// Drops the row of an object whose file is missing.
    private func drop(_ row: KeptRow) {
        let isNew = core.table.withName(of: row.key) { () -> Bool in
            guard core.table.isUnreconciled(row.key) else { return false }
            // With the first row, since a kill may come before the last. If the disk refuses, only
            // this run knows it.
            let isNew = !hasDroppedRows && core.folder.noteLossesUnsynced()
            core.noteRemoval(of: row.key, releasing: row.facts.bytes)
            core.counters.note { $0.droppedRows += 1 }
            return isNew
        }
        // Outside the lock, and before this thread writes the index.
        if isNew { try? syncFolder(core.folder.path) }
    }

    private var hasDroppedRows: Bool { core.counters.statistics.droppedRows > 0 }

    /// True if objects may have been lost, be it before this run.
    private var mayHaveLosses: Bool {
        hasDroppedRows || core.counters.statistics.damagedObjects > 0
            || core.folder.mayHaveLosses
    }

    /// Has `tell` called when objects may have been lost, immediately if they may be already.
    func followLosses(_ tell: @escaping @Sendable () -> Void) {
        tellLosses = tell
        if comparison == nil, mayHaveLosses { tell() }
    }

    /// Tells a loss that was found after the comparison, together with those of the next second:
    /// whoever is told looks for all that may be lost.
    func tellLossesSoon(_ loop: EventLoop) {
        guard comparison == nil, lossTimer == nil else { return }
        lossTimer = loop.schedule(after: Self.lossPause) { [unowned self] _ in
            lossTimer = nil
            tellLosses?()
        }
    }

    private func finish(_ done: Comparison) {
        core.table.withEachShard { $0.reconciled = nil }
        flushIndex()
        comparison = nil
        core.usage.awaitsComparison = false
        // Restored, they would take room of the budget that nothing frees if they are pinned.
        done.adopted.removeAll { done.removed.contains($0.name) }
        done.found.removeAll { done.removed.contains($0.name) }
        done.found += done.adopted
        done.found.sort { $0.facts.lastUsed > $1.facts.lastUsed }
        for found in done.found { evictor.policy.restore(found.name, found.facts) }
        // Adopted objects with a row were restored with a wrong size.
        for found in done.adopted { evictor.policy.insert(found.name, found.facts) }
        evictor.countPinned()
        let counted = core.counters.statistics
        var report = done.report
        report.adopted = counted.adoptedObjects
        report.dropped = counted.droppedRows
        report.damaged = counted.damagedObjects
        core.counters.note { $0.start = report }
        core.counters.isReconciled.store(true, ordering: .releasing)
        core.log.info(
            "index and folder agree",
            metadata: [
                "objects": "\(core.usage.objectCount)", "bytes": "\(core.usage.used)",
                "clean": "\(report.wasClosedCleanly)", "rebuilt": "\(report.isIndexRebuilt)",
                "kept": "\(report.kept)", "adopted": "\(report.adopted)",
                "dropped": "\(report.dropped)", "damaged": "\(report.damaged)",
                "orphans": "\(report.orphans)",
            ])
        if core.usage.isOverBudget { core.channel.askEviction(bytes: 0) }
        // Before the first player finds out.
        shortages.tellDisk(after: core.usage.evictable)
        if report.kept > 10_000 { giveBackFreeMemory() }
        if mayHaveLosses { tellLosses?() }
    }
}
