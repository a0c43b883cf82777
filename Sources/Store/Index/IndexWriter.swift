import Logging
import Posix
import Retention
import Synchronization

/// The changes that the index does not have yet, and their writing in batches.
///
/// Owned by the store thread's loop.
final class IndexWriter {
    private let core: StoreCore
    // Changed by calls that do not re-enter: a check of exclusivity would cost a hundred instructions
    // for each change of a row.
    @exclusivity(unchecked) private(set) var rows: [ObjectKey: RowChange] = [:]
    /// The keys of `rows` by name; nil until a row is looked up that the index does not have.
    @exclusivity(unchecked) private var keysByName: [UInt128: ObjectKey]?
    /// The uses that the index does not have yet.
    var uses: [ObjectKey: Use] { core.gatheredUses.withLock { $0 } }
    /// True if the shards may hold uses that were not gathered.
    @exclusivity(unchecked) var hasTouches = false
    /// When the oldest use was recorded that the index does not have yet.
    @exclusivity(unchecked) private var usesSince: Monotonic?
    /// When the log last told that the index fails; nil while it does not.
    private var told: Monotonic?
    /// The most changes of a transaction; fewer where the index's log has no room for more.
    private(set) var step = IndexWriter.largestStep

    init(core: StoreCore) {
        self.core = core
    }

    /// True if there is something to write at the next tick.
    var hasWork: Bool { !rows.isEmpty || hasTouches || usesSince != nil }

    /// Records a change of a row.
    func note(_ change: RowChange, of key: ObjectKey) {
        rows[key] = change
        if keysByName != nil { keysByName?[key.name] = key }
    }

    /// Forgets all changes, since the folder was replaced.
    func moveIn() {
        rows = [:]
        core.channel.noteIndexed()
        keysByName = nil
        core.gatheredUses.withLock { $0 = [:] }
        usesSince = nil
    }

    /// Forgets the changes of objects that were cleared, which are all but `kept`.
    func forget(but kept: Set<ObjectKey>) {
        rows = rows.filter { kept.contains($0.key) }
        keysByName = nil
        core.channel.noteIndexed(but: Set(rows.keys))
    }

    // MARK: Uses

    /// Collects the uses that lookups and reads left in the shards, and reports reads to a policy.
    func gatherUses(for policy: inout any RetentionPolicy) {
        guard hasTouches else { return }
        hasTouches = false
        // Locked for all of them, so that other threads find each use here or in its shard.
        let isEmpty = core.gatheredUses.withLock { uses -> Bool in
            var gathered: [(key: ObjectKey, use: Use)] = []
            core.table.withEachShard { shard in
                for (key, use) in shard.uses { gathered.append((key, use)) }
                shard.uses.removeAll(keepingCapacity: true)
            }
            gathered.sort { $0.use.time < $1.use.time }
            for (key, use) in gathered {
                var former: UInt32?
                if use.bytes > 0 {
                    former = policy.touch(key.name, now: use.time.retentionTime)
                }
                Self.note(use, of: key, former: former, in: &uses)
            }
            return uses.isEmpty
        }
        if usesSince == nil, !isEmpty { usesSince = .now() }
    }

    /// The maximum number of uses held for the index; beyond it, only those that the index must
    /// record.
    ///
    /// Retention gets every read immediately, in memory. The index's copy is used only after the
    /// next start, where a precision of a quarter of an hour is enough: writing every read of
    /// 100,000 small objects cost 16 µs each, as much as all other work on them in this process.
    static let heldUses = 4_096
    /// Uses without other changes are written this long after the first of them.
    private static let useInterval = Interval.seconds(5 as Int64)
    /// In seconds; a power of two.
    private static let coarseness: UInt32 = 1_024

    /// Records a use; `former` is the time of the last one that retention knows.
    private static func note(
        _ use: Use, of key: ObjectKey, former: UInt32?, in uses: inout [ObjectKey: Use]
    ) {
        if uses.count >= Self.heldUses, !use.isNews, uses[key] == nil, let former {
            // A different moment for each object, so that writes are spread over time.
            let shift = UInt32(truncatingIfNeeded: key.name) % Self.coarseness
            let step = { (time: UInt32) in (time &+ shift) / Self.coarseness }
            guard step(former) != step(use.time.retentionTime) else { return }
        }
        uses[key] = uses[key].map { Use.merge($0, use) } ?? use
    }

    // MARK: Writing

    /// Writes the recorded changes; those that fail are kept for the next time.
    ///
    /// With `isTick`, uses of unchanged rows wait until `useInterval` has passed.
    func write(isTick: Bool) {
        let isDue = usesSince.map { !isTick || .now() - $0 >= Self.useInterval } ?? false
        let dueUses = isDue ? uses : usesOfRows()
        guard !rows.isEmpty || !dueUses.isEmpty else { return core.channel.noteIndexed() }
        let hasRows = !rows.isEmpty
        // Also after a failure, since a part may be written; afterwards, so that what was read
        // before the count grew may lack the batch, and nothing that was read later does.
        defer { if hasRows { core.counters.rowBatches.add(1, ordering: .releasing) } }
        do {
            try apply(dueUses)
            rows.removeAll(keepingCapacity: true)
            core.channel.noteIndexed()
            keysByName = nil
            removeWritten(dueUses, all: isDue)
            told = nil
            core.counters.note { $0.isIndexBehind = false }
        } catch {
            core.noteIndexFailure(error)
            core.counters.note { $0.isIndexBehind = true }
            if isToBeTold(at: .now()) {
                core.log.error(
                    """
                    cannot write the index, which is tried again: until then listings lack some \
                    objects, and a start reads the whole folder
                    """, metadata: ["error": "\(error)", "changes": "\(rows.count)"])
            }
            core.reopenIndex(after: error)
        }
    }

    /// Counts an index that cannot be read.
    func noteUnreadable(_ error: any Error) {
        core.noteIndexFailure(error)
        guard isToBeTold(at: .now()) else { return }
        core.log.error("cannot read the index", metadata: ["error": "\(error)"])
    }

    /// True if the log is to tell that the index fails: at first, and each minute.
    func isToBeTold(at now: Monotonic) -> Bool {
        guard told.map({ now - $0 >= Self.tellingInterval }) ?? true else { return false }
        told = now
        return true
    }

    private static let tellingInterval = Interval.seconds(60 as Int64)

    /// More changes are written in several transactions.
    static let largestStep = 8_192
    /// Smaller transactions are not tried: this takes less room than a log of 256 KiB has.
    static let leastStep = 8

    /// Writes all rows, and some uses; what is written is forgotten if the rest fails.
    private func apply(_ due: [ObjectKey: Use]) throws {
        if rows.count + due.count <= step {
            do {
                try core.index.apply(rows: rows, uses: due)
                return noteWritten()
            } catch {
                guard makeRoom(after: error, for: rows.count + due.count) else { throw error }
            }
        }
        // Deletions first, since they make room in the database.
        let others = rows.keys.filter { !isDeletion($0) } + due.keys.filter { rows[$0] == nil }
        var left = (rows.keys.filter(isDeletion) + others)[...]
        while !left.isEmpty {
            let part = left.prefix(step)
            var changes: [ObjectKey: RowChange] = [:]
            var used: [ObjectKey: Use] = [:]
            for key in part { (changes[key], used[key]) = (rows[key], due[key]) }
            do {
                try core.index.apply(rows: changes, uses: used)
            } catch {
                guard makeRoom(after: error, for: part.count) else { throw error }
                continue
            }
            noteWritten()
            for key in part { rows[key] = nil }
            core.gatheredUses.withLock { uses in
                for key in part { uses[key] = nil }
            }
            left = left.dropFirst(part.count)
        }
    }

    private func isDeletion(_ key: ObjectKey) -> Bool {
        if case .delete? = rows[key] { true } else { false }
    }

    private func noteWritten() { step = min(Self.largestStep, step * 2) }

    /// Empties the index's log after a transaction that failed for want of room, and makes the next
    /// ones smaller.
    ///
    /// SQLite empties the log after a transaction, and only once it has 4 MB: a log that cannot grow
    /// so far would stay as it is.
    ///
    /// - Returns: true if a smaller transaction is to be tried at once.
    private func makeRoom(after error: any Error, for count: Int) -> Bool {
        guard ObjectIndex.isLackOfRoom(error) else { return false }
        try? core.index.emptyLog()
        guard step > Self.leastStep else { return false }
        step = max(Self.leastStep, min(step, count) / 2)
        return true
    }

    private func usesOfRows() -> [ObjectKey: Use] {
        core.gatheredUses.withLock { uses -> [ObjectKey: Use] in
            guard !uses.isEmpty else { return [:] }
            var found: [ObjectKey: Use] = [:]
            for key in rows.keys { found[key] = uses[key] }
            return found
        }
    }

    private func removeWritten(_ written: [ObjectKey: Use], all: Bool) {
        let isEmpty = core.gatheredUses.withLock { uses -> Bool in
            if all {
                uses.removeAll(keepingCapacity: uses.count <= Self.heldUses)
            } else {
                for key in written.keys { uses[key] = nil }
            }
            return uses.isEmpty
        }
        if isEmpty { usesSince = nil }
    }

    // MARK: Rows

    /// The rows of objects that the index does not have yet.
    var unwritten: [StoreEntry] { rows.values.compactMap(\.row) }

    /// Returns the row of an object including changes not written yet; nil if it is deleted.
    ///
    /// The caller holds the key's name lock.
    func latest(_ row: StoreEntry) -> StoreEntry? {
        if let change = core.channel.pendingRow(of: row.key) ?? rows[row.key] {
            change.row
        } else {
            row
        }
    }

    /// Returns the row of the key that begins with these 16 bytes; throws an error of the index.
    func row(ofName name: UInt128) throws -> StoreEntry? {
        if let row = try core.index.row(ofName: name) { return row }
        // While the index rejects writes, rows are only here, and there may be very many.
        guard !rows.isEmpty else { return nil }
        let keys =
            keysByName ?? Dictionary(rows.keys.map { ($0.name, $0) }, uniquingKeysWith: { $1 })
        keysByName = keys
        return keys[name].flatMap { rows[$0]?.row }
    }
}
