import URISyntax

/// The first connection to an HTTPS origin, which shows whether others need one each: pure.
///
/// Only the handshake tells whether an origin supports HTTP/2 (RFC 7301). Before that, libcurl
/// opens a connection for each transfer of a burst or, if told to wait, runs those to an HTTP/1.1
/// origin one after the other. Therefore one transfer goes first, and the others follow when its
/// connection is established.
struct FirstConnections {
    /// What a transfer does that is about to be sent.
    enum Turn: Equatable {
        case goes
        /// It goes, and others wait for its connection.
        case goesFirst
        /// It is among those released once the first connection is established, has failed, or has
        /// taken too long.
        case waits
    }

    /// A transfer that goes first, and those that wait for it.
    private struct Scouting {
        let scout: UInt64
        /// True if the scout only connects: its connection is free for another transfer afterwards.
        let isEarly: Bool
        var following: [UInt64] = []
    }

    private var scoutings: [Origin: Scouting] = [:]
    /// Transfers that waited and need not any more.
    private var released: [UInt64] = []

    /// True if no origin has a scout.
    var isEmpty: Bool { scoutings.isEmpty }

    var hasReleased: Bool { !released.isEmpty }

    func hasScout(to origin: Origin) -> Bool { scoutings[origin] != nil }

    /// Decides the turn of a transfer that has not waited yet.
    ///
    /// - Parameters:
    ///   - id: the transfer.
    ///   - lane: its lane.
    ///   - origin: its origin.
    ///   - isUnknown: true if only a handshake can tell the HTTP version of the origin.
    ///   - isEarly: true if the transfer only connects.
    /// - Returns: the turn.
    mutating func turn(
        of id: UInt64, in lane: Lane, to origin: Origin, isUnknown: Bool, isEarly: Bool
    ) -> Turn {
        if let scouting = scoutings[origin] {
            if scouting.isEarly {
                // Playlists and probes of origins have little time. To an HTTP/1.1 origin, an early
                // connection serves one transfer.
                guard lane != .express, isUnknown || scouting.following.isEmpty else {
                    return .goes
                }
            } else if !isUnknown {
                return .goes
            }
            scoutings[origin]?.following.append(id)
            return .waits
        }
        guard isUnknown || isEarly else { return .goes }
        scoutings[origin] = Scouting(scout: id, isEarly: isEarly)
        return .goesFirst
    }

    /// Releases the transfers that wait for a scout; ignores a transfer that is none.
    ///
    /// - Returns: true if there were any.
    mutating func end(of origin: Origin, by id: UInt64) -> Bool {
        guard scoutings[origin]?.scout == id,
            let following = scoutings.removeValue(forKey: origin)?.following, !following.isEmpty
        else { return false }
        released += following
        return true
    }

    /// Returns the transfers released since the last call.
    mutating func takeReleased() -> [UInt64] {
        defer { released = [] }
        return released
    }
}
