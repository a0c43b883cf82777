// Marks the packets of connections to origins by the lane of their transfer.
//
// The marks are on requests and acknowledgements; a router that copies the mark of a connection to
// its other direction (connection tracking) applies them to the responses too.
import Glibc

extension Lane {
    /// The differentiated services code point of the lane, 0...63 (RFC 2474 section 3).
    var codePoint: UInt8 {
        switch self {
        // AF31, multimedia streaming (RFC 4594 section 4.6).
        case .express, .playback: 26
        case .prefetch: 0
        // LE, lower effort (RFC 8622).
        case .background: 1
        }
    }
}

extension UpstreamClient {
    /// Marks the connection of a transfer; a connection that transfers share keeps the default.
    ///
    /// Two system calls, if the setting is on and libcurl tells the port of the connection.
    func mark(_ transfer: Transfer) {
        guard configuration.marksPackets, let connection = transfer.connection,
            connection.localPort != 0
        else { return }
        let isShared = versions.isMultiplexing(connection.origin)
        sockets.mark(
            localPort: connection.localPort, codePoint: isShared ? 0 : transfer.lane.codePoint)
    }
}

extension KnownSockets {
    /// Sets the code point of the packets that a connection sends (ip(7), ipv6(7)).
    ///
    /// A socket that takes no mark stays as it is: the mark is only advice.
    fileprivate mutating func mark(localPort: UInt16, codePoint: UInt8) {
        guard let number = descriptor(localPort: localPort) else { return }
        var trafficClass = CInt(codePoint) << 2
        let size = socklen_t(MemoryLayout<CInt>.size)
        // A socket of the other family refuses.
        if setsockopt(number, CInt(IPPROTO_IP), IP_TOS, &trafficClass, size) != 0 {
            setsockopt(number, CInt(IPPROTO_IPV6), IPV6_TCLASS, &trafficClass, size)
        }
    }
}
