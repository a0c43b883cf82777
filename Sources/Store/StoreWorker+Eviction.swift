import Glibc
import Logging
import Posix
import Reactor
import Retention
import Synchronization

/// Eviction down to the budget: the retention policy selects the victims among objects that are
/// neither held nor pinned.
extension StoreWorker {
    /// The duration of one eviction step; commits and new objects get their turn in between.
    private static let step = Interval.milliseconds(5)

    /// Frees some of the requested bytes, and continues in the loop's next turn.
    func evictSome(_ loop: EventLoop) {
        guard let wanted = wantedBytes, shortage(wanted) > 0 else { return stopEvicting(false) }
        isEvicting = true
        // The index is updated with the next batch; one transaction per step would dominate the
        // cost.
        absorb(core.channel.takeIndexMail())
        // Recently read objects must not be evicted.
        gatherUses()
        // The order of use is complete only after the comparison.
        compareToTheEnd()
        let freed = evict(until: .now() + Self.step, wanted: wanted)
        if freed == nil {
            // Everything left is in use or pinned.
            return stopEvicting(true)
        }
        if shortage(wanted) <= 0 { return stopEvicting(false) }
        // Requests that arrive meanwhile come as mail and are handled after this one.
        loop.schedule(after: .zero) { [unowned self] loop in evictSome(loop) }
    }

    private func stopEvicting(_ isStuck: Bool) {
        core.usage.isStuck = isStuck
        wantedBytes = nil
        isEvicting = false
    }

    /// Evicts objects until `end` or until nothing is short.
    ///
    /// - Returns: the bytes freed; nil if nothing can be freed.
    private func evict(until end: Monotonic, wanted: Int64) -> Int64? {
        var freed: Int64 = 0
        repeat {
            guard shortage(wanted) > 0 else { return freed }
            let victim = policy.nextVictim(now: WallTime.now().retentionTime) { name in
                pinnedNames.contains(name) || core.table.withShard(of: name) { !$0.isIdle(name) }
            }
            guard let victim else { return freed == 0 ? nil : freed }
            // Without a row, the object is gone already.
            guard let row = row(ofName: victim) else { continue }
            guard let bytes = evict(row) else {
                if isRefused { return nil }
                continue
            }
            freed += bytes
        } while .now() < end
        return freed
    }

    /// Returns the bytes that exceed the budget or are missing from the required free space.
    private func shortage(_ wanted: Int64) -> Int64 {
        let over = core.usage.used + wanted - (core.usage.budget - core.usage.headroom)
        guard let free = freeBytes(at: core.folder.path) else { return over }
        // Caps the setting, so that the sum cannot overflow.
        return max(over, min(core.configuration.minFreeBytes, 1 << 60) + wanted - free)
    }

    /// Deletes one object unless it is in use.
    ///
    /// - Returns: the bytes freed; nil if the object stays.
    private func evict(_ row: IndexRow) -> Int64? {
        let key = row.key
        isRefused = false
        let outcome = core.table.withName(of: key) { () -> (StoredObject?, Int64)? in
            let (isBusy, open) = core.table.withShard(of: key) { shard in
                shard.isIdle(key.name) ? (false, shard.remove(key.name)) : (true, nil)
            }
            guard !isBusy, let latest = latest(row) else { return nil }
            do throws(SystemError) {
                try removeFile(core.folder.objectPath(key))
            } catch {
                core.log.error("cannot evict an object", metadata: ["error": "\(error)"])
                isRefused = true
                return nil
            }
            core.noteRemoval(of: key)
            guard let open else {
                core.usage.release(latest.bytes)
                return (nil, latest.bytes)
            }
            return open.state.withLock { state in
                state.place = .unlinked
                return (open, state.charge)
            }
        }
        guard let (object, bytes) = outcome else {
            policy.insert(key.name, Retained(row))
            return nil
        }
        // This is the last reference: closing the file frees the space.
        _ = consume object
        core.counters.evictions.add(1, ordering: .relaxed)
        core.counters.evictedBytes.add(bytes, ordering: .relaxed)
        return bytes
    }
}
