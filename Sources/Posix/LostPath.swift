// Whether packets of a TCP connection still arrive.
import CLinux

/// What waits for its acknowledgement on a connection.
package struct Retransmissions: Sendable, Hashable {
    /// How often the oldest packet was sent again.
    package var count: Int
    /// The time since the peer acknowledged anything.
    package var silence: Interval
}

/// Reads what waits for its acknowledgement on a connection (getsockopt(2), TCP_INFO); never blocks.
///
/// - Returns: nil for what is no TCP connection over a single path: one over several looks after its
///   paths itself.
package func retransmissions(of number: CInt) -> Retransmissions? {
    var silence: UInt32 = 0
    let count = clinux_retransmissions(number, &silence)
    return count < 0
        ? nil : Retransmissions(count: Int(count), silence: .milliseconds(Int64(silence)))
}
