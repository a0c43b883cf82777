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
