import HTTP
import Model
import Numbers
import Posix
import Retention
import Store
import Synchronization

/// The disk usage of the store, by kind and by host.
extension StoreAdministration {
    /// The most hosts that are listed; the others are summed up.
    private static let mostHosts = 50

    func diskUse() -> AdministrationAnswer {
        let use = lastUse.value(at: .now()) ?? measuredUse()
        let space = store.space()
        return .value(
            .ok,
            .object([
                .init("budget_bytes", .number(allowance?.budgetBytes ?? space.budget)),
                .init("used_bytes", .number(space.used)),
                .init("objects", .number(use.objects)),
                .init("pinned_bytes", .number(use.pinnedBytes)),
                .init("pinned_titles", .number(Int64(space.pinnedTitles))),
                .init("reserved_bytes", .number(use.reservedBytes)),
                .init("free_bytes", .optional(space.free)),
                .init("min_free_bytes", .number(allowance?.minFreeBytes ?? space.minFree)),
                .init("kinds", .list(use.kinds)),
                .init("hosts", .list(use.hosts)),
            ]))
    }

    /// Walks through the whole index: some seconds for a million objects.
    private func measuredUse() -> DiskUse {
        let start = Monotonic.now()
        let pins = store.pins()
        let titles = Set(pins.map(\.title))
        let keys = Set(pins.flatMap(\.keys))
        var kinds: [RetentionKind: DiskShare] = [:]
        var hosts: [Substring: DiskShare] = [:]
        var all = DiskShare()
        var pinned = DiskShare()
        store.forEachEntry { row in
            all.add(row.bytes)
            kinds[row.kind, default: DiskShare()].add(row.bytes)
            let host = PurgeHost.authority(inURL: row.url) ?? "?"
            hosts[host, default: DiskShare()].add(row.bytes)
            if titles.contains(row.title) || keys.contains(row.key) { pinned.add(row.bytes) }
        }
        let made = DiskUse(
            objects: Int64(all.objects), pinnedBytes: pinned.bytes,
            reservedBytes: max(0, store.space().used.subtractingSaturated(all.bytes)),
            kinds: Self.list(kinds.map { (Self.name(of: $0.key), $0.value) }),
            hosts: Self.list(hosts.map { (String($0.key), $0.value) }))
        lastUse.keep(made, from: start, to: .now())
        return made
    }

    private static func name(of kind: RetentionKind) -> String {
        switch kind {
        case .structure: "playlists, keys, init"
        case .media: "media"
        case .live: "live media"
        case .other: "other"
        }
    }

    private static func list(_ shares: [(name: String, share: DiskShare)]) -> [JSONValue] {
        let sorted = shares.sorted { ($1.share.bytes, $0.name) < ($0.share.bytes, $1.name) }
        var shown = Array(sorted.prefix(mostHosts))
        if sorted.count > mostHosts {
            let rest = sorted[mostHosts...].reduce(into: DiskShare()) { sum, next in
                sum.bytes += next.share.bytes
                sum.objects += next.share.objects
            }
            shown.append(("\(sorted.count - mostHosts) others", rest))
        }
        return shown.map { name, share in
            .object([
                .init("name", .text(name)),
                .init("objects", .number(Int64(share.objects))),
                .init("bytes", .number(share.bytes)),
            ])
        }
    }
}

/// What the objects in the index take.
struct DiskUse: Sendable {
    let objects: Int64
    let pinnedBytes: Int64
    /// What is used beyond the objects.
    let reservedBytes: Int64
    let kinds: [JSONValue]
    let hosts: [JSONValue]
}

/// The disk usage that was measured last, until something changes much of what is stored.
///
/// Can be used from any thread.
final class KnownDiskUse: Sendable {
    private let last = Mutex(CostlyResult<DiskUse>())

    func value(at now: Monotonic) -> DiskUse? { last.withLock { $0.value(at: now) } }

    func keep(_ use: DiskUse, from start: Monotonic, to end: Monotonic) {
        last.withLock { $0.keep(use, from: start, to: end) }
    }

    func forget() { last.withLock { $0.forget(at: .now()) } }
}

/// A number of objects and their bytes.
private struct DiskShare {
    var objects = 0
    var bytes: Int64 = 0

    mutating func add(_ more: Int64) {
        objects += 1
        bytes = bytes.addingSaturated(more)
    }
}
