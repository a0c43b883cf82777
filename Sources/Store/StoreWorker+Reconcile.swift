// Comparing index and folder after a start, some files at a time, while the store is in use.
//
// After a clean stop the names are compared with the rows; after an unclean one every header is
// read as well, and what does not prove itself is deleted. On the way retention learns what there
// is; until it knows all, nothing is evicted by its order.
import Glibc
import Logging
import Posix
import Reactor
import Retention
import Synchronization

/// An object that an earlier run kept.
struct Found {
    let name: UInt128
    let facts: Retained
}

/// How far the comparison has come.
struct Comparison {
    /// The first byte of the keys whose files are being compared; 256 when all are.
    var byte = -1
    var files: ArraySlice<FolderEntry> = []
    var rows: [ObjectKey: KeptRow] = [:]
    /// What retention is going to be told, in the order of use.
    var found: [Found] = []
    /// Objects that the index did not know as they are.
    var adopted: [Found] = []
    var report = StartReport()
}

extension StoreWorker {
    /// Files that are compared at once.
    private static let step = 200

    /// Begins the comparison.
    func startComparing(leftovers: Int, isRebuilt: Bool, on loop: EventLoop) {
        comparison?.report.wasClosedCleanly = core.folder.wasClean
        comparison?.report.isIndexRebuilt = isRebuilt
        comparison?.report.orphans = leftovers
        comparison?.found.reserveCapacity(core.usage.objectCount)
        reloadPins()
        compareMore(loop)
    }

    private func compareMore(_ loop: EventLoop) {
        guard compare(Self.step) else { return }
        loop.schedule(after: .zero) { [unowned self] loop in compareMore(loop) }
    }

    /// Compares at once what is still to be compared; blocks for as long as that takes.
    func compareToTheEnd() {
        while compare(.max) {}
    }

    /// - Returns: false when all is done.
    private func compare(_ count: Int) -> Bool {
        guard comparison != nil else { return false }
        if comparison?.files.isEmpty == true, !nextFolder() {
            finishComparing()
            return false
        }
        let name = core.folder.objectsFolder(of: UInt8(comparison?.byte ?? 0)).suffix(2)
        for _ in 0..<min(count, comparison?.files.count ?? 0) {
            guard let entry = comparison?.files.popFirst() else { break }
            compare(entry, in: String(name))
        }
        return true
    }

    /// Goes on to the keys with the next first byte; false after the last one.
    private func nextFolder() -> Bool {
        for row in comparison?.rows.values ?? [:].values { drop(row) }
        comparison?.rows = [:]
        let byte = (comparison?.byte ?? 255) + 1
        if byte > 0 {
            core.table.withEachShard { shard in
                shard.settledThrough = byte - 1
                shard.settled = shard.settled?.filter { $0.firstByte >= byte }
            }
        }
        comparison?.byte = byte
        guard byte < 256 else { return false }
        flushIndex(isTick: true)
        do {
            let rows = try core.index.keptRows(startingWith: UInt8(byte))
            comparison?.rows = Dictionary(rows.map { ($0.key, $0) }) { $1 }
            comparison?.files = try listFolder(core.folder.objectsFolder(of: UInt8(byte)))[...]
        } catch {
            if (error as? SystemError)?.code != ENOENT {
                // What cannot be listed is not gone.
                comparison?.rows = [:]
                core.log.error("cannot compare index and folder", metadata: ["error": "\(error)"])
            }
        }
        return true
    }

    private func compare(_ entry: FolderEntry, in folder: String) {
        guard !entry.isFolder, let key = ObjectKey(hex: folder + entry.name) else {
            if !entry.isFolder {
                try? removeFile("\(core.folder.objectsFolder)/\(folder)/\(entry.name)")
                comparison?.report.orphans += 1
            }
            return
        }
        let row = comparison?.rows.removeValue(forKey: key)
        if row?.isComplete != true || !core.folder.wasClean {
            let isThere = core.table.withName(of: key) {
                guard core.table.withShard(of: key, { $0.isUnsettled(key) }) else { return true }
                // Loading settles it: a file without a row is adopted, a damaged one is deleted.
                return core.load(key) != nil
            }
            guard isThere else { return }
        }
        guard let row else { return }
        comparison?.report.kept += 1
        comparison?.found.append(Found(name: key.name, facts: row.facts))
    }

    /// Forgets an object whose file is gone.
    private func drop(_ row: KeptRow) {
        core.table.withName(of: row.key) {
            guard core.table.withShard(of: row.key, { $0.isUnsettled(row.key) }) else { return }
            core.noteRemoval(of: row.key)
            core.usage.release(row.facts.bytes)
            core.counters.droppedRows.add(1, ordering: .relaxed)
        }
    }

    private func finishComparing() {
        core.table.withEachShard { $0.settled = nil }
        flushIndex()
        guard var done = comparison else { return }
        comparison = nil
        done.found += done.adopted
        done.found.sort { $0.facts.lastUsed > $1.facts.lastUsed }
        for found in done.found { policy.restore(found.name, found.facts) }
        // Of those that have a row too, the sizes are other ones.
        for found in done.adopted { policy.insert(found.name, found.facts) }
        done.report.adopted = core.counters.adoptedObjects.load(ordering: .relaxed)
        done.report.dropped = core.counters.droppedRows.load(ordering: .relaxed)
        done.report.damaged = core.counters.damagedObjects.load(ordering: .relaxed)
        done.report.isDone = true
        let report = done.report
        core.counters.start.withLock { $0 = report }
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
        if report.kept > 10_000 { giveBackFreeMemory() }
    }
}
