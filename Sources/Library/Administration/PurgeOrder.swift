// The subject of a purge, in memory and as a record: an accepted order is carried out even if only
// the next run of the daemon can do so.
package import DurableState
package import Model
import Numbers
package import Posix
package import Store

/// One purge order.
package struct PurgeOrder: Equatable, Sendable {
    package enum Subject: Hashable, Sendable {
        /// Key texts of one URL; also removes pinned objects.
        case texts(Set<String>)
        /// Numbers of titles; also removes pinned ones, but not what pins of other titles name.
        case titles(Set<UInt64>)
        /// A host, or one of its origins; spares pinned objects.
        case host(PurgeHost)
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
struct PurgeOrders: Sendable {
    package let database: StateDatabase

    package func all() -> [PurgeOrder] {
        database.records(PurgeRecord.self).compactMap { PurgeOrder($0) }
    }

    /// Saves orders; each in place of an earlier one of the same subject, so that a purge that fails
    /// and is repeated takes one record.
    package func add(_ orders: [PurgeOrder]) throws(StateFault) {
        let records = database.records(PurgeRecord.self)
        var next = Int(records.map(\.number).max() ?? -1) + 1
        var known: [PurgeOrder.Subject: (number: Int, given: WallTime)] = [:]
        for record in records {
            guard let order = PurgeOrder(record) else { continue }
            known[order.subject] = (Int(record.number), order.given)
        }
        var changed: [Int: PurgeOrder] = [:]
        for order in orders {
            let same = known[order.subject]
            if let same, same.given >= order.given { continue }
            let number = same?.number ?? next
            if same == nil { next += 1 }
            known[order.subject] = (number, order.given)
            changed[number] = order
        }
        guard !changed.isEmpty else { return }
        try database.keep(changed.sorted { $0.key < $1.key }.map { $1.record($0) })
    }

    /// The most objects in one record, which stays far below the length that is read again.
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
