import HTTP
import Model
import Numbers
import Retention
import Store

/// The disk usage of the store, by kind and by host.
extension StoreAdministration {
    /// The most hosts that are listed; the others are summed up.
    private static let mostHosts = 50

    func diskUse() -> AdministrationAnswer {
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
        let space = store.space()
        return .value(
            .ok,
            .object([
                .init("budget_bytes", .number(allowance?.budgetBytes ?? space.budget)),
                .init("used_bytes", .number(space.used)),
                .init("objects", .number(Int64(all.objects))),
                .init("pinned_bytes", .number(pinned.bytes)),
                .init("pinned_titles", .number(Int64(space.pinnedTitles))),
                .init(
                    "reserved_bytes", .number(max(0, space.used.subtractingSaturated(all.bytes)))),
                .init("free_bytes", .optional(space.free)),
                .init("min_free_bytes", .number(allowance?.minFreeBytes ?? space.minFree)),
                .init("kinds", .list(Self.list(kinds.map { (Self.name(of: $0.key), $0.value) }))),
                .init("hosts", .list(Self.list(hosts.map { (String($0.key), $0.value) }))),
            ]))
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

/// A number of objects and their bytes.
private struct DiskShare {
    var objects = 0
    var bytes: Int64 = 0

    mutating func add(_ more: Int64) {
        objects += 1
        bytes = bytes.addingSaturated(more)
    }
}
