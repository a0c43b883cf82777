// The faults of the CDN and of the network to it, and their frequency.

/// A fault of one request or connection.
enum OriginFault: String, CaseIterable {
    case refused, blackHole, slowConnect
    case serverError, busy, notFound, redirected
    case cut, reset, stalled, slow, lateHead, noHead, garbage
    case wholeForRange, otherRange, noLength, closesAfter
    case versionChanges
    /// The body has neither a length nor chunks, and ends with the connection.
    case noFraming

    /// Faults that end a connection before a response head.
    static let ofConnections: [OriginFault] = [.refused, .blackHole, .slowConnect]
    static let ofRequests: [OriginFault] = allCases.filter { !ofConnections.contains($0) }
}

/// The current faults of the CDN.
struct Weather {
    /// The share of connections and of requests with a fault, in per cent.
    var connectionFaults = 0
    var requestFaults = 0
    /// The possible faults; runs with few kinds find failures that a mixture hides.
    var kinds: Set<OriginFault> = Set(OriginFault.allCases)
    /// True while no connection can be established and the open ones are dead.
    var isOutage = false
    var latency: ClosedRange<Int64> = 5 * World.millisecond...40 * World.millisecond
    /// Bytes per second of one connection.
    var rate = 4_000_000

    static let calm = Weather()

    func pick(_ random: inout Seeded, _ among: [OriginFault], _ percent: Int)
        -> OriginFault?
    {
        let possible = among.filter { kinds.contains($0) }
        guard !possible.isEmpty, random.chance(percent) else { return nil }
        return random.pick(possible)
    }
}
