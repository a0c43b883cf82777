/// Keeping to the budget: the object used longest ago goes first, unless somebody holds it.
import Glibc
import Logging
import Posix
import Synchronization

extension StoreWorker {
    private static let batch = 64

    /// Frees what is needed to hold `wanted` bytes more; the index must be up to date.
    func evict(wanted: Int64) {
        var missing = shortage(wanted)
        guard missing > 0 else {
            core.ledger.isStuck = false
            return
        }
        var freed: Int64 = 0
        var last: IndexRow?
        do {
            while missing > 0 {
                let candidates = try core.index.oldest(after: last, limit: Self.batch)
                guard !candidates.isEmpty else { break }
                for row in candidates where missing > 0 {
                    guard let bytes = evict(row) else { continue }
                    missing -= bytes
                    freed += bytes
                }
                last = candidates.last
            }
        } catch {
            core.counters.indexFailures.add(1, ordering: .relaxed)
            core.log.error("cannot read the index to evict", metadata: ["error": "\(error)"])
        }
        flushIndex()
        core.ledger.isStuck = freed == 0
    }

    /// Bytes over the budget, or short of the free space that must stay.
    private func shortage(_ wanted: Int64) -> Int64 {
        let over = core.ledger.used + wanted - core.ledger.budget
        guard let free = freeBytes(at: core.folder.path) else { return over }
        return max(over, core.configuration.minFreeBytes - free)
    }

    /// Deletes one object unless it is in use.
    ///
    /// - Returns: the bytes that came free; nil when the object stays.
    private func evict(_ row: IndexRow) -> Int64? {
        let outcome = core.table.withShard(of: row.key) { shard -> (StoredObject?, Int64)? in
            if shard.contains(row.key) {
                guard shard.isIdle(row.key), let object = core.unlink(row.key, &shard) else {
                    return nil
                }
                return (object, object.state.withLock { $0.charge })
            }
            // Removed meanwhile, it is out of the books already.
            guard let latest = latest(row) else { return nil }
            do throws(SystemError) {
                try removeFile(core.folder.objectPath(row.key))
            } catch {
                core.log.error("cannot evict an object", metadata: ["error": "\(error)"])
                return nil
            }
            core.noteRemoval(of: row.key, &shard)
            core.ledger.release(latest.bytes)
            return (nil, latest.bytes)
        }
        guard let (object, bytes) = outcome else { return nil }
        // The last reference: closing the file here is what frees the space.
        _ = consume object
        core.counters.evictions.add(1, ordering: .relaxed)
        core.counters.evictedBytes.add(bytes, ordering: .relaxed)
        return bytes
    }
}
