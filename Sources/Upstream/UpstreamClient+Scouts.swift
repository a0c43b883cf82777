import HTTP
import Posix
import Reactor
import URISyntax

/// The first connection to an HTTPS origin, which shows whether others need one each.
///
/// Only the handshake tells whether an origin supports HTTP/2 (RFC 7301). Before that, libcurl
/// opens a connection for each transfer of a burst or, if told to wait, runs those to an HTTP/1.1
/// origin one after the other. Therefore one transfer goes first, and the others follow when its
/// connection is established.
extension UpstreamClient {
    /// A transfer that goes first, and those that wait for it.
    struct Scouting {
        let scout: UInt64
        /// True if the scout only connects: its connection is free for another transfer afterwards.
        let isEarly: Bool
        var following: [Transfer] = []
    }

    /// How long transfers wait for an origin's first connection; a handshake takes two or three
    /// round trips.
    private static let patience = Interval.milliseconds(500)

    /// Returns whether a transfer must wait for the first connection to its origin.
    ///
    /// It is then sent automatically once that is established, has failed, or has taken too long.
    func followsScout(_ transfer: Transfer) -> Bool {
        let origin = transfer.origin
        let isEarly = transfer.request.connectsOnly
        let isUnknown = origin.scheme == .https && !spokenVersions.contains(origin)
        guard isUnknown || isEarly || !scoutings.isEmpty, !transfer.hasFollowed,
            !transfer.request.usesFreshConnection
        else { return false }
        if let scouting = scoutings[origin] {
            if scouting.isEarly {
                // Playlists and probes of origins have little time. To an HTTP/1.1 origin, an early
                // connection serves one transfer.
                guard transfer.lane != .express, isUnknown || scouting.following.isEmpty else {
                    return false
                }
            } else if !isUnknown {
                return false
            }
            transfer.hasFollowed = true
            scoutings[origin]?.following.append(transfer)
            return true
        }
        guard isUnknown || isEarly else { return false }
        let id = transfer.id
        scoutings[origin] = Scouting(scout: id, isEarly: isEarly)
        loop.schedule(after: Self.patience) { [weak self] _ in
            self?.endScouting(of: origin, by: id)
        }
        return false
    }

    /// Releases the transfers that wait for a scout, if any.
    func endScouting(by transfer: Transfer) {
        if scoutings.isEmpty { return }
        endScouting(of: transfer.origin, by: transfer.id)
    }

    private func endScouting(of origin: Origin, by id: UInt64) {
        guard scoutings[origin]?.scout == id,
            let following = scoutings.removeValue(forKey: origin)?.following, !following.isEmpty
        else { return }
        // Possibly inside libcurl, which accepts no transfer then.
        followers += following
        scheduleRoundEnd()
    }

    /// Sends the transfers that need not wait any more.
    func sendFollowers() {
        let going = followers
        followers = []
        for transfer in going where transfer.state == .running { send(transfer) }
    }

    /// Records whether an origin uses HTTP/2.
    func noteVersion(of origin: Origin, isMultiplexing: Bool) {
        if spokenVersions.count >= 1024 {
            spokenVersions.removeAll()
            multiplexingOrigins.removeAll()
        }
        spokenVersions.insert(origin)
        if isMultiplexing {
            multiplexingOrigins.insert(origin)
        } else {
            multiplexingOrigins.remove(origin)
        }
    }

    /// Returns whether another transfer uses the connection at this moment: then it is HTTP/2,
    /// because libcurl does not pipeline requests on HTTP/1.1.
    func isShared(_ transfer: Transfer, localPort: UInt16) -> Bool {
        let origin = transfer.origin
        let connection = Connection(origin: origin, localPort: localPort)
        if let former = transfer.connection { leave(former) }
        transfer.connection = connection
        users[connection, default: 0] += 1
        if !abandoned.isEmpty { forgetAbandoned(connection) }
        // With TCP Fast Open libcurl may not know the port.
        guard origin.scheme == .https, localPort != 0, users[connection] ?? 0 > 1 else {
            return false
        }
        noteVersion(of: origin, isMultiplexing: true)
        return true
    }

    /// Removes a user of a connection.
    func leave(_ connection: Connection) {
        let left = (users[connection] ?? 1) - 1
        users[connection] = left == 0 ? nil : left
    }

    /// Hashable types of this module that serve as keys of tables.
    package static var hashedTypes: [Any.Type] { [Connection.self] }

    /// A connection as far as libcurl identifies it.
    struct Connection: Hashable {
        let origin: Origin
        let localPort: UInt16

        /// The port distinguishes nearly all, and hashing a number costs less than a name.
        func hash(into hasher: inout Hasher) { hasher.combine(localPort) }
    }
}
