import HTTP
import Model
import Posix

/// Live streams that are one endless body.
extension FlightMachine {
    /// Notes that the body has no end, and refuses those that wait for it.
    mutating func becomeEndless() -> [Action] {
        extent = .endless
        return refuseFutile()
    }

    /// Returns the failure of a request that this flight can never serve; nil if it may.
    ///
    /// Such a request must not wait: it would keep the connection after the last viewer has left,
    /// and a film would be fetched at full speed because of it.
    func futility(of waiter: FlightWaiter) -> ProxyFailure? {
        guard waiter.repliesAt == .completion else { return nil }
        if waiter.needsPlaylist, isKnownAsMedia || extent == .endless {
            return wrongContent(Self.noPlaylist)
        }
        guard extent == .endless else { return nil }
        return wrongContent(
            "this is a live stream without an end: it can be played, but not fetched as a whole")
    }

    /// Notes that the transfer of a live stream ends, if it delivered bytes.
    mutating func noteEndOfDelivery(now: Monotonic) {
        guard extent == .endless, let filling, budget.lastProgress >= filling.since else { return }
        deliveredUntil = now
    }

    /// When the time begins in which new attempts are worthwhile.
    ///
    /// For a live stream not before the end of a transfer that delivered: its silence is noticed
    /// after most of a player's patience, and an origin that still counts that connection refuses
    /// the next ones.
    var lastProgress: Monotonic {
        max(budget.lastProgress, deliveredUntil ?? budget.lastProgress)
    }

    /// Handles the head of a new connection to a live stream.
    ///
    /// An error is worth another attempt: an origin that counts an account's connections may
    /// refuse one until it has noticed the end of the former one.
    mutating func receivedMore(
        _ head: ResponseFacts, _ fill: FillFacts, _ attempt: Attempt
    ) -> [Action] {
        if head.status.rawValue >= 400 { return comeBackLater(head, attempt) }
        guard head.status == .ok, head.contentLength == nil else {
            return refuseOrigin(
                "the origin continued a live stream with something else", head.status)
        }
        return [.begin(Placement(start: fill.offset, isProvenRest: true))]
    }
}
