import Endless
import HLS
package import Posix
import Synchronization

/// The report of `why` on live lists: the relation of the last reading to the one before, the epoch
/// of a name and its start.
extension LiveMemory {
    /// Returns the `live` member of a report; JSON null for a resource that no live list concerns.
    package func report(on resource: Resource, now: WallTime) -> JSONValue {
        let ago = { (time: WallTime) in
            JSONValue.number(max(0, now.seconds - time.seconds))
        }
        if resource.role == .playlist || resource.role.isOpen,
            let list = list(resource.listKey)
        {
            return .object([
                .init("reading", .text(relation(of: resource.listKey)?.rawValue ?? "restored")),
                .init("epoch", .number(Int64(list.epoch.number))),
                .init("first", .number(Int64(list.start))),
                .init("last", .number(Int64(list.end - 1))),
                .init("read-ago", ago(list.received.wall)),
                .init("given-again", .number(Int64(epochs(in: resource.listKey).count))),
            ])
        }
        guard let since = since(resource.nameKey) else { return .null }
        let terms = terms(of: resource.nameKey)
        return .object([
            .init("epoch", .number(Int64(resource.epoch.number))),
            .init("current", .number(Int64(epoch(of: resource.nameKey).number))),
            .init("named-ago", ago(since.wall)),
            .init("announced", .truth(terms?.longestHold != nil)),
            .init("grows", .truth(terms?.growth?.stage == .growing)),
        ])
    }
}

extension EndlessBody {
    /// Returns the `endless` member of a report; its `kept` is in bytes.
    package func report(now: Monotonic) -> JSONValue {
        .object([
            .init("stage", .text(stage.rawValue)), .init("format", .text(format.rawValue)),
            .init("seconds", .number((now - begunAt).nanoseconds / 1_000_000_000)),
            .init("viewers", .number(Int64(viewers))), .init("kept", .number(keptBytes)),
        ])
    }
}
