// The receiving side of TCP connections: what the kernel measures of it, and its window.
import CLinux
import Glibc

/// What the kernel measured of the receiving side of a connection (tcp(7), TCP_INFO).
package struct Receiving: Sendable, Hashable {
    /// The smoothed round trip as the receiver sees it, in seconds, the queue of the line included;
    /// nil before the first sample.
    package var roundTrip: Double?
    /// The smoothed round trip of what was sent, the handshake included, in seconds: with little sent,
    /// the delay before this connection filled a queue; nil before the first sample.
    package var sentRoundTrip: Double?
    /// Bytes received since the connection was opened, but those behind a gap that a lost packet left.
    package var bytes: UInt64
    /// Packets with data since then; the kernel counts modulo 2^32.
    package var packets: UInt32
    /// The largest data of a packet, in bytes, as the kernel estimates it.
    package var packetSize: UInt32
    /// Packets that arrived out of order since then.
    package var outOfOrder: UInt32

    /// Returns the bytes that arrived since an earlier measurement; nil if it is not of this connection.
    ///
    /// What came behind a gap is not counted before the gap is filled, and then not as if it had
    /// come at once: no more than the packets since then can have carried.
    package func arrived(since former: Receiving) -> Int64? {
        guard bytes >= former.bytes else { return nil }
        let packets = UInt64(packets &- former.packets)
        return Int64(clamping: min(bytes - former.bytes, packets * UInt64(packetSize)))
    }
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
        sentRoundTrip: found.sent_round_trip > 0 ? Double(found.sent_round_trip) / 1e6 : nil,
        bytes: found.bytes, packets: found.packets, packetSize: found.packet_size,
        outOfOrder: found.out_of_order)
}

/// How long a bound of a receive window holds.
package enum ReceiveBound: Sendable {
    /// There is none, as on a socket that uses several network paths.
    case none
    /// Until it is changed.
    case lasting
    /// Until the kernel enlarges the receive buffer, and the window with it.
    case untilGrowth
}

/// Bounds the receive window of a connection (tcp(7), TCP_WINDOW_CLAMP); never blocks.
///
/// The kernel uses no less than about 1,152 bytes. What was granted to the sender before remains
/// granted. A receive buffer that is large enough for the bound is kept from growing (socket(7),
/// SO_RCVBUF; SO_BUF_LOCK since Linux 5.16), since the kernel would raise the bound with it.
///
/// Where buffers cannot be unlocked, as on sockets of Multipath TCP, the kernel sizes them: one
/// whose size was set never grows again, and would limit the connection for good.
///
/// - Parameters:
///   - number: the connection's descriptor.
///   - bytes: the bound; nil leaves window and buffer to the kernel again.
/// - Returns: how long the bound holds; none for nil.
package func boundReceiveWindow(of number: CInt, to bytes: Int?) -> ReceiveBound {
    let canUnlock = set(number, SOL_SOCKET, SO_BUF_LOCK, 0)
    guard let bytes else {
        set(number, CInt(IPPROTO_TCP), TCP_WINDOW_CLAMP, 1 << 30)
        return .none
    }
    let bound = CInt(clamping: min(bytes, 1 << 29))
    guard set(number, CInt(IPPROTO_TCP), TCP_WINDOW_CLAMP, bound) else { return .none }
    guard canUnlock else { return .untilGrowth }
    // Linux counts what packets occupy, at most twice what they carry unless they are small.
    if receiveBuffer(of: number) < 2 * bound { set(number, SOL_SOCKET, SO_RCVBUF, bound) }
    if receiveBuffer(of: number) >= 2 * bound,
        set(number, SOL_SOCKET, SO_BUF_LOCK, lockOfReceiveBuffer)
    {
        return .lasting
    }
    // SO_RCVBUF has locked it, at the most that it may have.
    set(number, SOL_SOCKET, SO_BUF_LOCK, 0)
    return .untilGrowth
}

/// Returns the bound of the receive window of a connection (tcp(7), TCP_WINDOW_CLAMP) as the kernel
/// has it now; nil if that fails.
///
/// Linux 6.18 replaces it by what the buffer can hold when the first large packet of a connection
/// arrives; one that is set after that holds.
package func receiveBound(of number: CInt) -> Int? {
    option(number, CInt(IPPROTO_TCP), TCP_WINDOW_CLAMP).map { Int($0) }
}

/// True if the kernel still has a bound that was set with `boundReceiveWindow`.
package func keepsReceiveBound(_ bytes: Int, of number: CInt) -> Bool {
    receiveBound(of: number) == max(bytes, leastReceiveBound)
}

/// The least that Linux sets a bound to: half of SOCK_MIN_RCVBUF.
private let leastReceiveBound = 1_152

/// SOCK_RCVBUF_LOCK, which glibc does not define.
private let lockOfReceiveBuffer: CInt = 2

@discardableResult private func set(
    _ number: CInt, _ level: CInt, _ option: CInt, _ value: CInt
) -> Bool {
    (try? setOption(number, level, option, value)) != nil
}

/// Returns the size of the receive buffer in bytes as Linux counts it; 0 if that fails.
private func receiveBuffer(of number: CInt) -> CInt {
    option(number, SOL_SOCKET, SO_RCVBUF) ?? 0
}

private func option(_ number: CInt, _ level: CInt, _ name: CInt) -> CInt? {
    var (value, size) = (CInt(0), socklen_t(MemoryLayout<CInt>.size))
    return getsockopt(number, level, name, &value, &size) == 0 ? value : nil
}
