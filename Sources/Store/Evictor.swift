import Glibc
import Logging
import Numbers
import Posix
import Retention
import Synchronization

/// The stored objects in the order in which they are evicted, and their deletion.
///
/// The retention policy selects the victims among objects that are neither held nor pinned. Owned
/// by the store thread's loop.
final class Evictor {
    private let core: StoreCore
    private let index: IndexWriter
    var policy: any RetentionPolicy
    private var pinnedTitles: Set<UInt64> = []
    private var pinnedNames: Set<UInt128> = []
    /// True if the disk refused to delete the last victim.
    private var isRefused = false

    init(core: StoreCore, index: IndexWriter) {
        self.core = core
        self.index = index
        policy = core.configuration.makePolicy(core.usage.budget)
    }

    // MARK: Objects

    func insert(_ row: IndexRow) {
        policy.insert(row.key.name, Retained(row))
        notePin(of: row)
    }

    func remove(_ key: ObjectKey) {
        policy.remove(key.name)
        pinnedNames.remove(key.name)
    }

    /// Restarts with only these objects; the pins are loaded by `reloadPins`.
    func startAnew(with kept: [IndexRow] = []) {
        policy = core.configuration.makePolicy(core.usage.budget)
        for row in kept { policy.insert(row.key.name, Retained(row)) }
    }

    /// Marks an object of a pinned title as pinned.
    func notePin(of row: IndexRow) {
        if pinnedTitles.contains(row.title) { pinnedNames.insert(row.key.name) }
    }

    /// Loads the pins, and finds the objects of pinned titles in the index.
    func reloadPins() {
        let pins = core.pins.all
        pinnedTitles = Set(pins.map(\.title)).subtracting([0])
        pinnedNames = []
        for pin in pins {
            pinnedNames.formUnion(pin.keys.map(\.name))
            for row in (try? core.index.rows(ofTitle: pin.title)) ?? [] where pin.title != 0 {
                pinnedNames.insert(row.key.name)
            }
        }
        // Objects that are not in the index yet.
        for case .put(let row) in index.rows.values { notePin(of: row) }
    }

    /// The bytes of pinned objects; reads the index.
    var pinnedBytes: Int64 {
        pinnedNames.reduce(0) { $0.addingSaturated(index.row(ofName: $1)?.bytes ?? 0) }
    }

    // MARK: Eviction

    /// Evicts objects until `end` or until nothing is short.
    ///
    /// - Parameters:
    ///   - end: when to stop.
    ///   - wanted: the room to make, in bytes beyond current usage.
    /// - Returns: the bytes freed; nil if nothing can be freed.
    func evict(until end: Monotonic, wanted: Int64) -> Int64? {
        var freed: Int64 = 0
        repeat {
            guard isShort(wanted) else { return freed }
            guard let victim = nextVictim() else { return freed == 0 ? nil : freed }
            // Without a row, the object is gone already.
            guard let row = index.row(ofName: victim) else { continue }
            guard let bytes = evict(row) else {
                if isRefused { return nil }
                continue
            }
            freed = freed.addingSaturated(bytes)
        } while .now() < end
        return freed
    }

    /// True if objects exceed the budget, or if the disk lacks bytes of the required free space, or
    /// files.
    func isShort(_ wanted: Int64) -> Bool {
        let usage = core.usage
        if usage.used.addingSaturated(wanted) > usage.budget - usage.headroom
            || usage.wantedFiles > 0
        {
            return true
        }
        guard let free = freeRoom(at: core.folder.path) else { return false }
        // Caps the setting, so that the sum cannot overflow.
        return min(usage.minFree, 1 << 60) + wanted > free.bytes || FileFloor.isShort(free.files)
    }

    /// Evicts objects, as far as possible, until this many files can be created.
    func makeRoom(files wanted: Int64) {
        let isMissing = { [core] in
            freeRoom(at: core.folder.path)?.files.map { $0 < wanted } ?? false
        }
        for _ in 0..<2 * wanted {
            guard isMissing(), let victim = nextVictim() else { return }
            guard let row = index.row(ofName: victim) else { continue }
            if evict(row) == nil, isRefused { return }
        }
    }

    /// Removes the next victim from the order of eviction and returns it; nil if all is held or pinned.
    private func nextVictim() -> UInt128? {
        policy.nextVictim(now: WallTime.now().retentionTime) { name in
            pinnedNames.contains(name) || core.table.withShard(of: name) { !$0.isIdle(name) }
        }
    }

    /// Adapts to a changed budget.
    func followBudget() { policy.capacity = core.usage.budget }

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
            guard !isBusy, let latest = index.latest(row) else { return nil }
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
        core.usage.noteFileFreed()
        core.counters.evictions.add(1, ordering: .relaxed)
        core.counters.evictedBytes.add(bytes, ordering: .relaxed)
        return bytes
    }
}

extension Retained {
    init(_ row: IndexRow) {
        self.init(
            bytes: row.bytes, title: row.title, kind: row.kind, isRead: row.isRead,
            lastUsed: (row.lastUsed ?? .now()).retentionTime)
    }
}

extension WallTime {
    /// Seconds since 1970, the time unit of retention.
    var retentionTime: UInt32 { UInt32(clamping: seconds) }
}
