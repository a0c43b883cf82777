// The receiving side of TCP connections: what the kernel measures of it, and its window.
import CLinux
import Glibc

/// What the kernel measured of the receiving side of a connection (tcp(7), TCP_INFO).
package struct Receiving: Sendable, Hashable {
    /// The smoothed round trip as the receiver sees it, in seconds, the queue of the line included;
    /// nil before the first sample.
    package var roundTrip: Double?
    /// Bytes received since the connection was opened.
    package var bytes: UInt64
    /// Packets that arrived out of order since then.
    package var outOfOrder: UInt32
}

/// Reads the measurements of a connection (getsockopt(2)); never blocks.
///
/// - Returns: nil for a descriptor that is no TCP connection, and with a kernel that does not
///   measure this.
package func receiving(of number: CInt) -> Receiving? {
    var found = clinux_receiving()
    guard clinux_receiving(number, &found) == 0 else { return nil }
    return Receiving(
        roundTrip: found.round_trip > 0 ? Double(found.round_trip) / 1e6 : nil,
        bytes: found.bytes, outOfOrder: found.out_of_order)
}

/// Bounds the receive window of a connection (tcp(7), TCP_WINDOW_CLAMP); never blocks.
///
/// The kernel uses no less than about 1,152 bytes. What was granted to the sender before remains
/// granted. The kernel may raise the bound by itself when it enlarges the receive buffer.
///
/// - Parameters:
///   - number: the connection's descriptor.
///   - bytes: the bound; nil leaves the window to the kernel again.
/// - Returns: false if the socket has no such bound, as one that uses several paths.
package func boundReceiveWindow(of number: CInt, to bytes: Int?) -> Bool {
    var value = CInt(clamping: bytes ?? 1 << 30)
    let size = socklen_t(MemoryLayout<CInt>.size)
    return setsockopt(number, CInt(IPPROTO_TCP), TCP_WINDOW_CLAMP, &value, size) == 0
}
