import Posix

/// What transfers over a path are for.
struct PathUse: Hashable, Sendable {
    let address: SocketAddress
    let purpose: QueueWindow.Purpose
}

/// Tells how many connections share the window of each use of a path.
///
/// A response that is about to begin has its share from its request on. If the others took it for
/// the round trip in between, the response would come on top of what they have under way.
struct WindowShares: Sendable {
    typealias Connection = UpstreamClient.Connection

    private struct Request {
        let use: PathUse
        let until: Double
    }

    private var sharers: [PathUse: Set<Connection>] = [:]
    private var requests: [Connection: Request] = [:]

    /// Takes note of a request that is sent.
    ///
    /// - Parameters:
    ///   - connection: the connection it is sent on.
    ///   - use: the use of the response.
    ///   - wait: how long the share is kept free, in seconds.
    ///   - now: seconds of a monotonic clock.
    mutating func note(
        request connection: Connection, for use: PathUse, within wait: Double, at now: Double
    ) {
        requests[connection] = Request(use: use, until: now + wait)
        sharers[use, default: []].insert(connection)
    }

    /// Takes note of the connections on which bodies arrive now, by use.
    mutating func note(bodies: [PathUse: [Connection]], at now: Double) {
        for connection in bodies.values.joined() { requests[connection] = nil }
        requests = requests.filter { $0.value.until >= now }
        sharers = bodies.mapValues(Set.init)
        for (connection, request) in requests {
            sharers[request.use, default: []].insert(connection)
        }
    }

    /// Returns the number of connections that share the window of a use; at least 1.
    func count(of use: PathUse) -> Int { max(1, sharers[use]?.count ?? 0) }
}
