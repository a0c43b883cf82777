import Posix

/// What transfers over a path are for.
struct PathUse: Hashable, Sendable {
    let address: SocketAddress
    let purpose: YieldPurpose
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
    /// The uses with bodies at the last note, and those of them that had some at the one before.
    private var arriving: Set<PathUse> = []
    private var goingOn: Set<PathUse> = []
    private var notedAt = 0.0
    private var sinceLastNote = 0.0

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
        goingOn = arriving.intersection(bodies.keys)
        arriving = Set(bodies.keys)
        sinceLastNote = now - notedAt
        notedAt = now
        for connection in bodies.values.joined() { requests[connection] = nil }
        requests = requests.filter { $0.value.until >= now }
        sharers = bodies.mapValues(Set.init)
        for (connection, request) in requests {
            sharers[request.use, default: []].insert(connection)
        }
    }

    /// Returns the time from the last note of bodies but one to the last, in seconds; nil for a use
    /// that had none at the former.
    func pause(of use: PathUse) -> Double? { goingOn.contains(use) ? sinceLastNote : nil }

    /// Returns the number of connections that share the window of a use; at least 1.
    func count(of use: PathUse) -> Int { max(1, sharers[use]?.count ?? 0) }
}
