// Whether packets of a TCP connection still arrive.
import CLinux

/// Returns how often the kernel has sent the oldest packet again that the peer of a connection has not
/// acknowledged (getsockopt(2), TCP_INFO); never blocks.
///
/// It waits at least 0.2 s before the first time, and twice as long before each further one (RFC 6298).
///
/// - Returns: 0 if everything is acknowledged; nil for what is no TCP connection over a single path: one
///   over several looks after its paths itself.
package func retransmissions(of number: CInt) -> Int? {
    let count = clinux_retransmissions(number)
    return count < 0 ? nil : Int(count)
}
