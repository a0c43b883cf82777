import HTTP
import Model

/// Live streams that are one endless body.
extension FlightMachine {
    /// Handles the head of a new connection to a live stream.
    ///
    /// An error is worth another attempt: an origin that counts an account's connections may
    /// refuse one until it has noticed the end of the former one.
    mutating func receivedMore(
        _ head: ResponseFacts, _ fill: FillFacts, _ attempt: Attempt
    ) -> [Action] {
        if head.status.rawValue >= 400 { return comeBackLater(head, attempt) }
        guard head.status == .ok, head.contentLength == nil else {
            return refuseOrigin("a live stream was followed by something else", head.status)
        }
        return [.begin(Placement(start: fill.offset, isProvenRest: true))]
    }
}
