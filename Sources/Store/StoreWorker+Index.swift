import Logging
import Posix
import Retention
import Synchronization

/// Updates of the index and the retention policy.
extension StoreWorker {
    /// Applies changes that other threads recorded.
    func absorb(_ mail: StoreMail) {
        // In the order of creation, which retention relies on.
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

    /// Loads the pins, and finds the objects of pinned titles in the index.
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
        // Objects that are not in the index yet.
        for case .put(let row) in rows.values { notePin(of: row) }
    }

    // MARK: Index

    /// Collects the uses that lookups and reads left in the shards.
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

    private func noteForIndex(_ use: Use, of key: ObjectKey, former: UInt32?) {
        if uses.count >= Self.heldUses, !use.isNews, uses[key] == nil, let former {
            // A different moment for each object, so that writes are spread over time.
            let shift = UInt32(truncatingIfNeeded: key.name) % Self.coarseness
            let step = { (time: UInt32) in (time &+ shift) / Self.coarseness }
            guard step(former) != step(use.time.retentionTime) else { return }
        }
        uses[key] = uses[key].map { Use.merge($0, use) } ?? use
    }

    /// Writes the gathered changes; those that fail are kept for the next time.
    ///
    /// With `isTick`, uses of unchanged rows wait until `useInterval` has passed.
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
            openIndexAgain(after: error)
        }
    }

    /// Opens an index that SQLite can only read again, for the next attempt.
    private func openIndexAgain(after error: any Error) {
        do {
            guard try core.index.openAgain(after: error) else { return }
            core.log.notice("the index was opened for reading only, and is opened again")
        } catch {
            core.log.error("cannot open the index again", metadata: ["error": "\(error)"])
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

    /// Returns the row of an object including changes not written yet; nil if it is deleted.
    ///
    /// The caller holds the key's name lock.
    func latest(_ row: IndexRow) -> IndexRow? {
        switch core.channel.pendingRow(of: row.key) ?? rows[row.key] {
        case .put(let newer), .adopt(let newer): newer
        case .delete: nil
        case nil: row
        }
    }

    /// Returns the row of the key that begins with these 16 bytes.
    func row(ofName name: UInt128) -> IndexRow? {
        if let row = try? core.index.row(ofName: name) { return row }
        // While the index rejects writes, rows are only here.
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
    /// Seconds since 1970, the time unit of retention.
    var retentionTime: UInt32 { UInt32(clamping: seconds) }
}
