// The order in which connections without a request are closed for new ones; pure.
import Posix

/// What a connection without a request in progress waits for.
enum Idleness: Int32 {
    /// The request after one that was answered.
    case served
    /// Its first request, or the end of its TLS handshake before it.
    case unused
}

/// The connections of one loop that have no request in progress, in the order in which they give
/// way to new ones.
///
/// Those that wait for another request come first, the longest idle before the others: their
/// clients have their responses, and open a new connection for the next request (RFC 9112 section
/// 9.3.1). Connections before their first request come last, and none of them before `grace`: if
/// they gave way at once, a crowd of new clients would keep each other from finishing a handshake.
///
/// Two lists in one array, each a ring that begins and ends at a node of its own, so that each call
/// takes constant time and allocates nothing once the array is long enough.
struct IdleOrder<Key> {
    /// The place of a connection; valid until it is removed.
    struct Place {
        fileprivate let index: Int32
    }

    private struct Node {
        /// Nil for the two beginnings and for free nodes.
        var key: Key?
        var since: Monotonic
        var before: Int32
        /// The next in its ring, or the next free node.
        var after: Int32
    }

    private var nodes: [Node]
    /// The first free node; nil for none.
    private var free: Int32?

    /// How long a connection before its first request is left alone.
    static var grace: Interval { ConnectionState.lastWord }

    init() {
        let start = Monotonic(nanoseconds: 0)
        nodes = [Idleness.served, .unused].map {
            Node(key: nil, since: start, before: $0.rawValue, after: $0.rawValue)
        }
    }

    /// Adds a connection that has begun to wait.
    ///
    /// - Parameters:
    ///   - key: the connection.
    ///   - idleness: what it waits for.
    ///   - now: the current time, which must not be before that of an earlier call.
    /// - Returns: its place, by which it is removed.
    mutating func append(_ key: Key, as idleness: Idleness, now: Monotonic) -> Place {
        let ring = idleness.rawValue
        let last = nodes[Int(ring)].before
        let node = Node(key: key, since: now, before: last, after: ring)
        let index: Int32
        if let reused = free {
            let next = nodes[Int(reused)].after
            // A free node that is its own successor is the last one.
            free = next == reused ? nil : next
            nodes[Int(reused)] = node
            index = reused
        } else {
            index = Int32(truncatingIfNeeded: nodes.count)
            nodes.append(node)
        }
        nodes[Int(last)].after = index
        nodes[Int(ring)].before = index
        return Place(index: index)
    }

    /// Removes a connection that has got a request, or is closed.
    mutating func remove(_ place: Place) {
        let index = place.index
        let (before, after) = (nodes[Int(index)].before, nodes[Int(index)].after)
        nodes[Int(before)].after = after
        nodes[Int(after)].before = before
        nodes[Int(index)].key = nil
        nodes[Int(index)].after = free ?? index
        free = index
    }

    /// Returns the connection that gives way first; nil if there is none.
    func first(now: Monotonic) -> Key? {
        if let served = nodes[Int(oldest(.served))].key { return served }
        let unused = nodes[Int(oldest(.unused))]
        return now - unused.since >= Self.grace ? unused.key : nil
    }

    /// The node that has been in a ring longest; the ring's beginning if it is empty.
    private func oldest(_ idleness: Idleness) -> Int32 { nodes[Int(idleness.rawValue)].after }
}
