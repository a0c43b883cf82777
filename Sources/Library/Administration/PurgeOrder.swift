// The subject of a purge, in memory and as a record: an accepted order is carried out even if only
// the next run of the daemon can do so.
package import DurableState
package import Model
import Numbers
package import Posix
package import Store
import Synchronization

/// One purge order.
package struct PurgeOrder: Equatable, Sendable {
    package enum Subject: Hashable, Sendable {
        /// Key texts of one URL; also removes pinned objects.
        case texts(Set<String>)
        /// Numbers of titles; also removes pinned ones, but not what pins of other titles name.
        case titles(Set<UInt64>)
        /// A host, or one of its origins; spares pinned objects.
        case host(PurgeHost)
        /// One URL and all below it, by what it may be stored under; spares pinned objects.
        case prefixes(Set<PurgePrefix>)
        case unusedSince(WallTime)
        /// Removed objects whose files the disk refused to delete; also pinned ones, since their
        /// purge had removed them.
        case objects(Set<ObjectKey>)
    }

    package let subject: Subject
    /// Objects stored later are not affected.
    package let given: WallTime

    /// True if the purge is done but for files that the disk refused to delete.
    var isDone: Bool { if case .objects = subject { true } else { false } }

    /// The objects whose files the disk refused to delete; none if the purge is not done.
    var removed: Set<ObjectKey> { if case .objects(let keys) = subject { keys } else { [] } }

    init(_ subject: Subject, given: WallTime = .now()) {
        self.subject = subject
        self.given = given
    }
}

// MARK: Records

extension PurgeOrder {
    /// Returns the order as a record with a number among the others.
    package func record(_ number: Int) -> PurgeRecord {
        let (kind, items): (PurgeRecord.Kind, [String]) =
            switch subject {
            case .texts(let texts): (.url, texts.sorted())
            case .titles(let numbers): (.title, numbers.sorted().map { String($0) })
            case .host(let host): (.host, [host.text])
            case .prefixes(let prefixes): (.prefix, prefixes.map(\.text).sorted())
            case .unusedSince(let time): (.unusedSince, [String(time.nanoseconds)])
            case .objects(let keys): (.object, keys.map(\.hex).sorted())
            }
        return PurgeRecord(
            number: Int64(number), given: max(0, given.nanoseconds), kind: kind, items: items)
    }

    /// Nil if the record has no valid subject.
    init?(_ record: PurgeRecord) {
        switch record.kind {
        case .url: subject = .texts(Set(record.items))
        case .title:
            subject = .titles(
                Set(record.items.compactMap { ExternalNumber.integer($0, in: 0...UInt64.max) }))
        case .host:
            guard let host = record.items.first.flatMap({ PurgeHost($0) }) else { return nil }
            subject = .host(host)
        case .prefix:
            let prefixes = Set(record.items.compactMap { PurgePrefix($0) })
            guard !prefixes.isEmpty else { return nil }
            subject = .prefixes(prefixes)
        case .unusedSince:
            guard
                let time = record.items.first.flatMap({
                    ExternalNumber.integer($0, in: Int64.min...Int64.max)
                })
            else { return nil }
            subject = .unusedSince(WallTime(nanoseconds: time))
        case .object: subject = .objects(Set(record.items.compactMap { ObjectKey(hex: $0) }))
        }
        given = WallTime(nanoseconds: record.given)
    }
}

/// The pending purge orders; every method blocks on the disk.
///
/// Thread-safe. While it is in use, nothing else may write these records.
final class PurgeOrders: Sendable {
    package let database: StateDatabase
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

    package func all() -> [PurgeOrder] {
        database.records(PurgeRecord.self).compactMap { PurgeOrder($0) }
    }

    /// Saves orders; each in place of an earlier one of the same subject, so that a purge that fails
    /// and is repeated takes one record.
    package func add(_ orders: [PurgeOrder]) throws(StateFault) {
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
    package func replaceAll(
        byObjects keys: [ObjectKey], given: WallTime = .now(),
        except waiting: Set<PurgeOrder.Subject> = []
    ) throws(StateFault) {
        try saved.withLock { saved throws(StateFault) in
            saved = Saved()
            try replaceRecords(byObjects: keys, given: given, except: waiting)
        }
    }

    private func replaceRecords(
        byObjects keys: [ObjectKey], given: WallTime, except waiting: Set<PurgeOrder.Subject>
    ) throws(StateFault) {
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
