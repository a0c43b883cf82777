import Glibc
import Logging
import Posix
import Reactor
import Retention
import Synchronization

/// Keeping to the budget: what goes is the retention policy's choice, unless somebody holds it or
/// it is pinned.
extension StoreWorker {
    /// How long objects go at once; commits and new objects have their turn in between.
    private static let step = Interval.milliseconds(5)

    /// Frees some of what is asked for, and goes on in the loop's next turn.
    func evictSome(_ loop: EventLoop) {
        guard let wanted = wantedBytes, shortage(wanted) > 0 else { return stopEvicting(false) }
        isEvicting = true
        // The index follows with the next batch; a transaction for each step would cost the most.
        absorb(core.channel.takeIndexMail())
        // What was read a moment ago is not to go.
        gatherUses()
        // In the order of use only once all are known.
        compareToTheEnd()
        let freed = evict(until: .now() + Self.step, wanted: wanted)
        if freed == nil {
            // All that is left is in use or pinned.
            return stopEvicting(true)
        }
        if shortage(wanted) <= 0 { return stopEvicting(false) }
        // Later wishes come as mail, and are looked at after this one.
        loop.schedule(after: .zero) { [unowned self] loop in evictSome(loop) }
    }

    private func stopEvicting(_ isStuck: Bool) {
        core.usage.isStuck = isStuck
        wantedBytes = nil
        isEvicting = false
    }

    /// - Returns: the bytes that came free; nil when nothing can be freed.
    private func evict(until end: Monotonic, wanted: Int64) -> Int64? {
        var freed: Int64 = 0
        repeat {
            guard shortage(wanted) > 0 else { return freed }
            let victim = policy.nextVictim(now: WallTime.now().retentionTime) { name in
                pinnedNames.contains(name) || core.table.withShard(of: name) { !$0.isIdle(name) }
            }
            guard let victim else { return freed == 0 ? nil : freed }
            // Without a row it is gone already.
            guard let row = row(ofName: victim) else { continue }
            guard let bytes = evict(row) else {
                if isRefused { return nil }
                continue
            }
            freed += bytes
        } while .now() < end
        return freed
    }

    /// Bytes over the budget, or short of the free space that must stay.
    private func shortage(_ wanted: Int64) -> Int64 {
        let over = core.usage.used + wanted - (core.usage.budget - core.usage.headroom)
        guard let free = freeBytes(at: core.folder.path) else { return over }
        // As if a figure beyond any disk were just that.
        return max(over, min(core.configuration.minFreeBytes, 1 << 60) + wanted - free)
    }

    /// Deletes one object unless it is in use.
    ///
    /// - Returns: the bytes that came free; nil when the object stays.
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
        // The last reference: closing the file here is what frees the space.
        _ = consume object
        core.counters.evictions.add(1, ordering: .relaxed)
        core.counters.evictedBytes.add(bytes, ordering: .relaxed)
        return bytes
    }
}
