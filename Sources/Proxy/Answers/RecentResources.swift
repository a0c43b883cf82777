/// What was asked for lately on one loop: players ask for one URL again and again.
import HTTP

/// Request targets and the resources that they led to.
///
/// Reading a target, making its session and hashing its key cost more than all the rest of a small
/// hit; the same target from the same kind of player leads to the same resource every time.
struct RecentResources {
    /// The most targets that are known; one more, and all are forgotten.
    private static let most = 512

    private var table: [String: Resource] = [:]
    /// The version of the key rules that the resources' keys were made by.
    private var version: UInt64 = 0

    /// The resource of a request; nil for one that has to be read.
    mutating func resource(for request: RequestHead, keys current: UInt64) -> Resource? {
        if version != current {
            table.removeAll(keepingCapacity: true)
            version = current
        }
        guard let known = table[request.target], Self.isPlain(request),
            known.forwardedFields.valueBytes(.userAgent) == request.fields.valueBytes(.userAgent)
        else { return nil }
        return known
    }

    /// Notes where a request led.
    mutating func remember(_ resource: Resource, for request: RequestHead) {
        guard Self.isPlain(request) else { return }
        if table.count >= Self.most { table.removeAll(keepingCapacity: true) }
        table[request.target] = resource
    }

    /// Whether nothing but target and User-Agent decides what goes to the origin.
    private static func isPlain(_ request: RequestHead) -> Bool {
        !request.fields.contains("CDN-Loop")
    }
}
