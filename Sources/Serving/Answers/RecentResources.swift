// Recent requests on one loop: players request the same URL again and again.
import HTTP
import Model
import URISyntax

/// Request targets and the resources that they led to.
///
/// Parsing a target, making its session and hashing its key cost more than the rest of a small hit;
/// the same target from the same kind of player leads to the same resource every time. The first
/// time only a mark is made: most segments are requested once, and keeping their resources would
/// cost memory, and time to free it.
///
/// `RepeatedHit` serves repeated heads that are identical byte for byte; this serves heads that
/// differ, as those of a player that seeks do. Without it such a hit takes 53 per cent more
/// instructions (`new-hit` of `make instructions`).
struct RecentResources {
    private struct Known {
        let target: String
        let resource: Resource
    }

    /// The most targets that are remembered; when exceeded, all are dropped.
    private static let most = 512

    /// By the targets' hashes.
    private var table: [Int: Known] = [:]
    /// Hashes of earlier targets, each at an index derived from the hash.
    private var marks = [UInt32](repeating: 0, count: 2_048)
    /// The version of the key rules that the resources' keys depend on.
    private var version: UInt64 = 0

    /// Returns the resource of a request; nil if its target must be parsed.
    mutating func resource(for request: RequestHead, keys current: UInt64) -> Resource? {
        if version != current {
            table.removeAll(keepingCapacity: true)
            version = current
        }
        guard let known = table[Self.hash(request.target)], known.target == request.target,
            Self.isPlain(request),
            known.resource.forwardedFields.valueBytes(.userAgent)
                == request.fields.valueBytes(.userAgent)
        else { return nil }
        return known.resource
    }

    /// Remembers the resource of a request, if its target has occurred before.
    mutating func remember(_ resource: Resource, for request: RequestHead) {
        let hash = Self.hash(request.target)
        let place = hash & (marks.count - 1)
        let mark = UInt32(truncatingIfNeeded: hash >> 32)
        guard marks[place] == mark else {
            marks[place] = mark
            return
        }
        guard Self.isPlain(request) else { return }
        if table.count >= Self.most { table.removeAll(keepingCapacity: true) }
        table[hash] = Known(target: request.target, resource: resource)
    }

    /// Hashes a target.
    ///
    /// An attacker who finds collisions only causes targets to be parsed, as without this table.
    private static func hash(_ target: String) -> Int {
        let bytes = target.utf8.span
        var hash = UInt64(truncatingIfNeeded: bytes.count)
        var offset = 0
        while offset < bytes.count {
            var word: UInt64 = 0
            if bytes.count >= 8 {
                // The last word overlaps the one before it.
                word = EightBytes.load(bytes, at: min(offset, bytes.count - 8))
            } else {
                for index in bytes.indices { word = word << 8 | UInt64(bytes[index]) }
            }
            let product = (hash ^ word).multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
            hash = product.high ^ product.low
            offset += 8
        }
        return Int(truncatingIfNeeded: hash)
    }

    /// True if only the target and User-Agent determine what is sent to the origin.
    private static func isPlain(_ request: RequestHead) -> Bool {
        !request.fields.contains(.cdnLoop)
    }
}
