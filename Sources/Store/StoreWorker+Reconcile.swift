/// Comparing index and folder after a start, a folder at a time, while the store is in use already.
import Glibc
import Logging
import Posix
import Reactor
import Synchronization

extension StoreWorker {
    /// Compares the objects whose key starts with `byte` and goes on with the next ones.
    func reconcile(from byte: UInt8, on loop: EventLoop) {
        flushIndex()
        do {
            try reconcile(byte)
        } catch {
            core.log.error("cannot compare index and folder", metadata: ["error": "\(error)"])
        }
        if byte == .max {
            finishReconciling(loop)
        } else {
            // A pause, so that commits and eviction are not held up.
            loop.schedule(after: .zero) { [unowned self] loop in reconcile(from: byte + 1, on: loop)
            }
        }
    }

    /// Compares at once what is still to be compared; blocks for as long as that takes.
    func reconcileNow() throws {
        guard !core.counters.isReconciled.load(ordering: .acquiring) else { return }
        for byte in UInt8.min...UInt8.max { try reconcile(byte) }
    }

    private func finishReconciling(_ loop: EventLoop) {
        core.table.withEachShard { $0.settled = nil }
        flushIndex()
        evict(wanted: 0)
        var statistics = StoreStatistics()
        core.counters.fill(&statistics)
        core.counters.isReconciled.store(true, ordering: .releasing)
        core.log.info(
            "index and folder agree",
            metadata: [
                "objects": "\(core.ledger.objectCount)", "bytes": "\(core.ledger.used)",
                "adopted": "\(statistics.adoptedObjects)", "dropped": "\(statistics.droppedRows)",
                "damaged": "\(statistics.damagedObjects)",
            ])
    }

    private func reconcile(_ byte: UInt8) throws {
        var rows: [ObjectKey: IndexRow] = [:]
        for row in try core.index.rows(startingWith: byte) { rows[row.key] = row }
        let digits = String(byte, radix: 16)
        let name = digits.count == 1 ? "0" + digits : digits
        for entry in try files(in: "\(core.folder.objectsFolder)/\(name)") {
            guard let key = ObjectKey(hex: name + entry.name) else {
                try removeFile("\(core.folder.objectsFolder)/\(name)/\(entry.name)")
                continue
            }
            let row = rows.removeValue(forKey: key)
            if row?.isComplete != true { verify(key) }
        }
        for row in rows.values { dropRow(row) }
    }

    private func files(in path: String) throws(SystemError) -> [FolderEntry] {
        do throws(SystemError) {
            return try listFolder(path).filter { !$0.isFolder }
        } catch {
            guard error.code == ENOENT else { throw error }
            return []
        }
    }

    /// Compares a file that has no row, or whose row may be behind its header.
    private func verify(_ key: ObjectKey) {
        let object = core.table.withShard(of: key) { shard in
            // Loading settles it: a file without a row is adopted, a damaged one is deleted.
            shard.isUnsettled(key) ? core.load(key, &shard) : nil
        }
        _ = consume object
    }

    /// Forgets an object whose file is gone.
    private func dropRow(_ row: IndexRow) {
        core.table.withShard(of: row.key) { shard in
            guard shard.isUnsettled(row.key) else { return }
            core.noteRemoval(of: row.key, &shard)
            core.ledger.release(row.bytes)
            core.counters.droppedRows.add(1, ordering: .relaxed)
        }
    }
}
