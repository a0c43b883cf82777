// What goes wrong at the CDN and on the way to it, and how often.

/// What happens to one request or connection.
enum OriginFault: String, CaseIterable {
    case refused, blackHole, slowConnect
    case serverError, busy, notFound, redirected
    case cut, reset, stalled, slow, lateHead, noHead, garbage
    case wholeForRange, otherRange, noLength, closesAfter
    case versionChanges

    /// Those that end before a head.
    static let ofConnections: [OriginFault] = [.refused, .blackHole, .slowConnect]
    static let ofRequests: [OriginFault] = allCases.filter { !ofConnections.contains($0) }
}

/// How things are at the CDN at the moment.
struct Weather {
    /// The share of connections and of requests to which something happens, in per cent.
    var connectionFaults = 0
    var requestFaults = 0
    /// Which things happen; a run that has few kinds of them finds what a mixture hides.
    var kinds: Set<OriginFault> = Set(OriginFault.allCases)
    /// True while no connection can be made and those that are open are dead.
    var isOutage = false
    var latency: ClosedRange<Int64> = 5 * World.millisecond...40 * World.millisecond
    /// Bytes a second of one connection.
    var rate = 4_000_000

    static let calm = Weather()

    mutating func pick(_ random: inout Seeded, _ among: [OriginFault], _ percent: Int)
        -> OriginFault?
    {
        let possible = among.filter { kinds.contains($0) }
        guard !possible.isEmpty, random.chance(percent) else { return nil }
        return random.pick(possible)
    }
}
