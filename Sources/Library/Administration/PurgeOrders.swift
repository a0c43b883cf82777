// The purge orders that are not carried out yet, in the state database.
import DurableState
import Posix
import Store
import Synchronization

/// The pending purge orders; every method blocks on the disk.
///
/// Thread-safe. While it is in use, nothing else may write these records.
final class PurgeOrders: Sendable {
    private let database: StateDatabase
    /// What is saved: read once for many orders, each of which is compared with all before it.
    private let saved = Mutex(Saved())

    /// The number and time of each subject that has a record.
    private struct Saved {
        var isRead = false
        private(set) var known: [PurgeOrder.Subject: (number: Int, given: WallTime)] = [:]
        private(set) var next = 0

        init() {}

        init(_ records: [PurgeRecord]) {
            isRead = true
            next = Int(records.map(\.number).max() ?? -1) + 1
            for record in records {
                guard let order = PurgeOrder(record) else { continue }
                known[order.subject] = (Int(record.number), order.given)
            }
        }

        mutating func note(_ changed: [Int: PurgeOrder]) {
            for (number, order) in changed {
                known[order.subject] = (number, order.given)
                next = max(next, number + 1)
            }
        }
    }

    init(database: StateDatabase) { self.database = database }

    func all() -> [PurgeOrder] {
        database.records(PurgeRecord.self).compactMap { PurgeOrder($0) }
    }

    /// Saves orders; each in place of an earlier one of the same subject, so that a purge that fails
    /// and is repeated takes one record.
    func add(_ orders: [PurgeOrder]) throws(StateFault) {
        try saved.withLock { saved throws(StateFault) in
            if !saved.isRead { saved = Saved(database.records(PurgeRecord.self)) }
            let changed = Self.changes(of: saved.known, from: saved.next, by: orders)
            guard !changed.isEmpty else { return }
            do throws(StateFault) {
                try database.keep(changed.sorted { $0.key < $1.key }.map { $1.record($0) })
            } catch {
                // The disk may not have been readable either.
                saved.isRead = false
                throw error
            }
            saved.note(changed)
        }
    }

    /// Returns the orders to be saved, by the number of their record.
    private static func changes(
        of known: [PurgeOrder.Subject: (number: Int, given: WallTime)], from first: Int,
        by orders: [PurgeOrder]
    ) -> [Int: PurgeOrder] {
        var next = first
        var added: [PurgeOrder.Subject: (number: Int, given: WallTime)] = [:]
        var changed: [Int: PurgeOrder] = [:]
        for order in orders {
            let same = added[order.subject] ?? known[order.subject]
            if let same, same.given >= order.given { continue }
            let number = same?.number ?? next
            if same == nil { next += 1 }
            added[order.subject] = (number, order.given)
            changed[number] = order
        }
        return changed
    }

    /// The most objects in one record, so that it stays far below the longest record that can be
    /// read.
    private static let mostObjects = 10_000

    /// Replaces the orders that are carried out by the removed objects whose files are left.
    ///
    /// - Parameters:
    ///   - keys: these objects.
    ///   - given: the time of their removal.
    ///   - waiting: the subjects of orders that are not carried out yet.
    /// - Throws: errors of the disk or SQLite; the next run carries out the orders again then.
    func replaceAll(
        byObjects keys: [ObjectKey], given: WallTime = .now(),
        except waiting: Set<PurgeOrder.Subject> = []
    ) throws(StateFault) {
        // Under the lock, since `add` reads the records that are left.
        try saved.withLock { saved throws(StateFault) in
            saved = Saved()
            let former = database.records(PurgeRecord.self)
            let first = Int(former.map(\.number).max() ?? -1) + 1
            let starts = stride(from: 0, to: keys.count, by: Self.mostObjects)
            let records = starts.enumerated().map { count, start in
                let part = keys[start...].prefix(Self.mostObjects)
                return PurgeOrder(.objects(Set(part)), given: given).record(first + count)
            }
            let done = former.filter { record in
                PurgeOrder(record).map { !waiting.contains($0.subject) } ?? true
            }
            let removals = done.map { StateChange(removing: PurgeRecord.self, key: $0.key) }
            try database.keep(removals + records.map { StateChange($0) })
        }
    }
}
