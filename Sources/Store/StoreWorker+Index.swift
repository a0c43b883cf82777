import Logging
import Posix
import Retention
import Synchronization

/// What the store thread tells the index and the retention policy.
extension StoreWorker {
    /// Takes over what other threads noted of objects.
    func absorb(_ mail: StoreMail) {
        // In the order of their making, which is what retention goes by.
        for (key, change) in mail.rows.sorted(by: { $0.value.time < $1.value.time }) {
            rows[key] = change
            tellPolicy(key, change)
        }
        hasTouches = hasTouches || mail.hasTouches
        guard !mail.folders.isEmpty else { return }
        unsyncedFolders.formUnion(mail.folders)
        if unsyncedSince == nil { unsyncedSince = .now() }
    }

    private func tellPolicy(_ key: ObjectKey, _ change: RowChange) {
        switch change {
        case .put(let row):
            policy.insert(key.name, Retained(row))
            notePin(of: row)
        case .adopt(let row):
            if comparison == nil {
                policy.insert(key.name, Retained(row))
            } else {
                comparison?.adopted.append(Found(name: key.name, facts: Retained(row)))
            }
            notePin(of: row)
        case .delete:
            policy.remove(key.name)
            pinnedNames.remove(key.name)
        }
    }

    // MARK: Pins

    private func notePin(of row: IndexRow) {
        if pinnedTitles.contains(row.title) { pinnedNames.insert(row.key.name) }
    }

    /// Takes over the pins; objects of a title are found by the index.
    func reloadPins() {
        flushIndex()
        let pins = core.pins.all
        pinnedTitles = Set(pins.map(\.title)).subtracting([0])
        pinnedNames = []
        for pin in pins {
            pinnedNames.formUnion(pin.keys.map(\.name))
            for row in (try? core.index.rows(ofTitle: pin.title)) ?? [] where pin.title != 0 {
                pinnedNames.insert(row.key.name)
            }
        }
        // What is not in the index yet.
        for case .put(let row) in rows.values { notePin(of: row) }
    }

    // MARK: Index

    /// Takes the recency that reads left in the shards.
    func gatherUses() {
        guard hasTouches else { return }
        hasTouches = false
        var gathered: [(key: ObjectKey, use: Use)] = []
        core.table.withEachShard { shard in
            for (key, use) in shard.uses { gathered.append((key, use)) }
            shard.uses.removeAll(keepingCapacity: true)
        }
        gathered.sort { $0.use.time < $1.use.time }
        for (key, use) in gathered {
            var former: UInt32?
            if use.bytes > 0 {
                former = policy.touch(
                    key.name, now: use.time.retentionTime, bytesRead: use.bytes)
            }
            noteForIndex(use, of: key, former: former)
        }
        if usesSince == nil, !uses.isEmpty { usesSince = .now() }
    }

    /// So many uses are held for the index; of more, those only that it must hear of.
    ///
    /// Retention has all of them at once, in memory. In the index they count after the next start,
    /// and there a quarter of an hour is near enough: telling it of every read of 100,000 small
    /// objects cost 16 us each, as much as all other work on them in this process.
    static let heldUses = 4_096
    /// The other uses are written so long after the first of them.
    private static let useInterval = Interval.seconds(5 as Int64)
    /// In seconds; a power of two.
    private static let coarseness: UInt32 = 1_024

    private func noteForIndex(_ use: Use, of key: ObjectKey, former: UInt32?) {
        if uses.count >= Self.heldUses, !use.isNews, uses[key] == nil, let former {
            // At another moment for each object, so that they do not all come together.
            let shift = UInt32(truncatingIfNeeded: key.name) % Self.coarseness
            let step = { (time: UInt32) in (time &+ shift) / Self.coarseness }
            guard step(former) != step(use.time.retentionTime) else { return }
        }
        uses[key] = uses[key].map { Use.merge($0, use) } ?? use
    }

    /// Writes what was gathered; what cannot be written is kept for the next time.
    ///
    /// `isTick` leaves uses that nothing else is to be written with for a while longer.
    func flushIndex(isTick: Bool = false) {
        absorb(core.channel.takeIndexMail())
        gatherUses()
        let isDue = usesSince.map { !isTick || .now() - $0 >= Self.useInterval } ?? false
        let told = isDue ? uses : usesOfRows()
        guard !rows.isEmpty || !told.isEmpty else { return }
        do {
            try core.index.apply(rows: rows, uses: told)
            rows.removeAll(keepingCapacity: true)
            noteTold(told, all: isDue)
            indexIsFailing = false
        } catch {
            core.counters.indexFailures.add(1, ordering: .relaxed)
            if !indexIsFailing {
                core.log.error("cannot write the index", metadata: ["error": "\(error)"])
            }
            indexIsFailing = true
        }
    }

    private func usesOfRows() -> [ObjectKey: Use] {
        guard !uses.isEmpty else { return [:] }
        var found: [ObjectKey: Use] = [:]
        for key in rows.keys { found[key] = uses[key] }
        return found
    }

    private func noteTold(_ told: [ObjectKey: Use], all: Bool) {
        if all {
            uses.removeAll(keepingCapacity: uses.count <= Self.heldUses)
        } else {
            for key in told.keys { uses[key] = nil }
        }
        if uses.isEmpty { usesSince = nil }
    }

    /// The row of an object as it will be once everything is written; nil if it has none.
    ///
    /// The name of the key is locked.
    func latest(_ row: IndexRow) -> IndexRow? {
        switch core.channel.pendingRow(of: row.key) ?? rows[row.key] {
        case .put(let newer), .adopt(let newer): newer
        case .delete: nil
        case nil: row
        }
    }

    /// The row that the first half of a key stands for.
    func row(ofName name: UInt128) -> IndexRow? {
        if let row = try? core.index.row(ofName: name) { return row }
        // With an index that takes no rows, they are here.
        for case (let key, .put(let row)) in rows where key.name == name { return row }
        return nil
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
    /// Seconds since 1970, as retention counts them.
    var retentionTime: UInt32 { UInt32(clamping: seconds) }
}
