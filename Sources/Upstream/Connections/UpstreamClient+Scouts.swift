import Posix
import Reactor
import URISyntax

/// Has transfers wait for the first connection to their origin, as `FirstConnections` decides.
extension UpstreamClient {
    /// How long transfers wait for an origin's first connection; a handshake takes two or three
    /// round trips.
    private static let patience = Interval.milliseconds(500)

    /// Returns whether a transfer must wait for the first connection to its origin.
    ///
    /// It is then sent automatically once that is established, has failed, or has taken too long.
    func followsScout(_ transfer: Transfer) -> Bool {
        let origin = transfer.origin
        let isEarly = transfer.request.connectsOnly
        let isUnknown = origin.scheme == .https && !versions.isKnown(origin)
        guard isUnknown || isEarly || !firstConnections.isEmpty, !transfer.hasFollowed,
            !transfer.request.usesFreshConnection
        else { return false }
        let id = transfer.id
        let turn = firstConnections.turn(
            of: id, in: transfer.lane, to: origin, isUnknown: isUnknown, isEarly: isEarly)
        switch turn {
        case .goes: return false
        case .goesFirst:
            loop.schedule(after: Self.patience) { [weak self] _ in
                self?.endScouting(of: origin, by: id)
            }
            return false
        case .waits:
            transfer.hasFollowed = true
            return true
        }
    }

    /// Releases the transfers that wait for a scout, if any.
    func endScouting(by transfer: Transfer) {
        if firstConnections.isEmpty { return }
        endScouting(of: transfer.origin, by: transfer.id)
    }

    private func endScouting(of origin: Origin, by id: UInt64) {
        // Possibly inside libcurl, which accepts no transfer then.
        if firstConnections.end(of: origin, by: id) { scheduleRoundEnd() }
    }

    /// Sends the transfers that need not wait any more.
    func sendFollowers() {
        for id in firstConnections.takeReleased() {
            if let transfer = live[id], transfer.state == .running { send(transfer) }
        }
    }
}
