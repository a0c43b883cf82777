/// What the store thread tells the index and the retention policy.
import Logging
import Posix
import Retention
import Synchronization

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
        var gathered: [ObjectKey: Use] = [:]
        core.table.withEachShard { shard in
            gathered.merge(shard.uses, uniquingKeysWith: Use.merge)
            shard.uses.removeAll(keepingCapacity: true)
        }
        for (key, use) in gathered.sorted(by: { $0.value.time < $1.value.time })
        where use.bytes > 0 {
            policy.touch(key.name, now: use.time.retentionTime, bytesRead: use.bytes)
        }
        uses.merge(gathered, uniquingKeysWith: Use.merge)
    }

    /// Writes what was gathered; what cannot be written is kept for the next time.
    func flushIndex() {
        absorb(core.channel.takeIndexMail())
        gatherUses()
        guard !rows.isEmpty || !uses.isEmpty else { return }
        do {
            try core.index.apply(rows: rows, uses: uses)
            rows.removeAll(keepingCapacity: true)
            uses.removeAll(keepingCapacity: true)
            indexIsFailing = false
        } catch {
            core.counters.indexFailures.add(1, ordering: .relaxed)
            if !indexIsFailing {
                core.log.error("cannot write the index", metadata: ["error": "\(error)"])
            }
            indexIsFailing = true
        }
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
