// The subject of a purge, in memory and as a record: an accepted order is carried out even if only
// the next run of the daemon can do so.
import CachePolicy
package import DurableState
import Numbers
package import Posix
package import Store

/// One purge order.
package struct PurgeOrder: Equatable, Sendable {
    package enum Subject: Equatable, Sendable {
        /// Key texts of one URL; also removes pinned objects.
        case texts(Set<String>)
        /// Numbers of titles; also removes pinned ones.
        case titles(Set<UInt64>)
        /// A host, or one of its origins; spares pinned objects.
        case host(PurgeHost)
        case unusedSince(WallTime)
    }

    package let subject: Subject
    /// Objects stored later are not affected.
    package let given: WallTime

    init(_ subject: Subject, given: WallTime = .now()) {
        self.subject = subject
        self.given = given
    }

    /// True if an object is to be removed; `isPinned` is called only if that matters.
    package func fits(_ entry: StoreEntry, isPinned: (StoreEntry) -> Bool) -> Bool {
        switch subject {
        case .texts(let texts): texts.contains(CacheKey.url(ofText: entry.url))
        case .titles(let numbers): numbers.contains(entry.title)
        case .host(let host): host.matches(entry.url) && !isPinned(entry)
        case .unusedSince(let time): entry.lastUsed < time && !isPinned(entry)
        }
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

    /// Saves an order; in place of an earlier one of the same subject, so that a purge that fails
    /// and is repeated takes one record.
    package func add(_ order: PurgeOrder) throws(StateFault) {
        let records = database.records(PurgeRecord.self)
        if let same = records.first(where: { PurgeOrder($0)?.subject == order.subject }) {
            if same.given < order.given.nanoseconds {
                try database.keep([order.record(Int(same.number))])
            }
            return
        }
        let last = records.map(\.number).max() ?? -1
        try database.keep([order.record(Int(last) + 1)])
    }

    /// If this fails, the next run carries out the orders again.
    package func removeAll() {
        try? database.keep(
            database.records(PurgeRecord.self).map {
                StateChange(removing: PurgeRecord.self, key: $0.key)
            })
    }
}
