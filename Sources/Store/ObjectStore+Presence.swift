// Presence of stored resources, for hundreds of keys at a time; offline playlists are made from it.
import GRDB
import Glibc
import Posix
import Synchronization

/// How much of a resource is stored.
package enum Presence: Sendable, Equatable {
    case absent
    /// Unknown: the index does not tell, and its file cannot be opened at the moment.
    case unreadable
    /// Some bytes of it.
    case part(SpanSet)
    /// All of it; `total` is its length in bytes, nil if the index does not know it.
    case whole(total: Int64?)
}

extension ObjectStore {
    /// A number that changes whenever stored bytes are lost: removed, evicted, replaced or damaged.
    ///
    /// While it stays the same, what was stored completely is still stored completely.
    package var losses: Int {
        core.counters.removals.load(ordering: .acquiring)
            &+ core.counters.damagedExtents.load(ordering: .acquiring)
    }

    /// A number that changes after each purge and each clear, once the index has no rows of what
    /// was removed.
    package var orderedRemovals: Int {
        core.counters.orderedRemovals.load(ordering: .acquiring)
    }

    /// Grows with every batch of changed rows in the index, uses of objects excepted.
    package var rowBatches: Int { core.counters.rowBatches.load(ordering: .acquiring) }

    /// Returns how much of some resources is stored, in the order of `keys`; does not count as a
    /// use.
    ///
    /// Looks at open objects first, then at the index; opens files only for objects stored in part,
    /// and while the folder is still being compared with the index after an unclean stop. Blocks on
    /// the disk: about 10 µs per key.
    package func presence(of keys: [ObjectKey]) -> [Presence] {
        var found = [Presence?](repeating: nil, count: keys.count)
        var unknown: [Int] = []
        for (index, key) in keys.enumerated() {
            found[index] = openPresence(of: key)
            if found[index] == nil { unknown.append(index) }
        }
        let rows = indexed("look for objects", nil) {
            try core.index.completeness(of: unknown.map { keys[$0] })
        }
        // If the index fails or is being rebuilt, a missing row does not prove absence.
        let knowsAll = rows != nil && core.counters.isReconciled.load(ordering: .acquiring)
        let none = [ObjectIndex.Completeness?](repeating: nil, count: unknown.count)
        for (index, row) in zip(unknown, rows ?? none) {
            switch row {
            case (isComplete: true, let total)?: found[index] = .whole(total: total)
            case nil where knowsAll: found[index] = .absent
            default: found[index] = filePresence(of: keys[index])
            }
        }
        return found.map { $0 ?? .absent }
    }

    private func filePresence(of key: ObjectKey) -> Presence {
        if let object = peek(key) { return Self.presence(object) }
        return isUnreadable(key) ? .unreadable : .absent
    }

    /// True if an object that `peek` does not find may be stored: its file cannot be opened at the
    /// moment.
    ///
    /// A failing disk says nothing about absence, for which `peek` alone would be taken. Blocks on
    /// the disk.
    package func isUnreadable(_ key: ObjectKey) -> Bool {
        guard !core.undeleted.contains(key) else { return false }
        return core.folder.isLost || access(core.folder.objectPath(key), F_OK) == 0
            || errno != ENOENT
    }

    /// Returns what is left of the objects that the pins of some titles name; those that cannot be
    /// read at the moment count as left.
    ///
    /// Costs as much as `presence(of:)` of all these keys.
    package func pinnedRests(of titles: Set<UInt64>) -> [UInt64: PinnedRest] {
        var rests: [UInt64: PinnedRest] = [:]
        for pin in pins() where titles.contains(pin.title) {
            let held = presence(of: pin.keys).count { $0 != .absent }
            rests[pin.title, default: PinnedRest()].add(held: held, of: pin.keys.count)
        }
        return rests
    }

    /// Returns what is known without the disk: from open objects and rows not written yet.
    private func openPresence(of key: ObjectKey) -> Presence? {
        let open = core.table.look(key)
        if let open { return open.isDiscarded ? .absent : Self.presence(open) }
        switch core.channel.pendingRow(of: key) {
        case .put(let row)?, .adopt(let row)?:
            return row.isComplete ? .whole(total: row.total) : nil
        case .delete?: return .absent
        case nil: return nil
        }
    }

    private static func presence(_ object: StoredObject) -> Presence {
        object.isComplete ? .whole(total: object.total) : .part(object.spans)
    }
}

/// What is left of the objects that the pins of a title name.
package struct PinnedRest: Sendable, Equatable {
    package private(set) var held = 0
    package private(set) var all = 0

    package var isWhole: Bool { held == all }

    mutating func add(held: Int, of all: Int) {
        self.held += held
        self.all += all
    }
}

extension ObjectIndex {
    /// Whether an object is complete, and its length in bytes if it is known.
    typealias Completeness = (isComplete: Bool, total: Int64?)

    /// Returns whether objects are complete, in the order of `keys`; nil for keys without a row.
    func completeness(of keys: [ObjectKey]) throws -> [Completeness?] {
        try pool.read { db in
            let statement = try db.cachedStatement(
                sql: "SELECT complete, total FROM objects WHERE key = ?")
            return try keys.map { key in
                guard let row = try Row.fetchOne(statement, arguments: [key.hex]),
                    let isComplete = Bool.fromDatabaseValue(row[0])
                else { return nil }
                return (isComplete, Int64.fromDatabaseValue(row[1]))
            }
        }
    }
}
