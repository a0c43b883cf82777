// Stream sockets that may use several network paths at once (MPTCP, RFC 8684).
// CLinux declares SOCK_STREAM too: files built beside ones that import it need it to find the name.
import CLinux
import Glibc

/// When stream sockets use Multipath TCP.
package enum MultipathUse: String, CaseIterable, Sendable {
    /// Never.
    case off
    /// Where the kernel has it and another path is possible at all.
    case auto
    /// Always.
    case on

    /// Whether a listening socket offers it.
    ///
    /// Connections of peers without it are accepted as plain TCP sockets, so that the offer costs
    /// them nothing.
    package var listens: Bool { self != .off }

    /// Whether a connection to a peer asks for it.
    ///
    /// There is one path to loopback, and a socket that asked for several remains the slower kind
    /// after the peer has refused.
    package func connects(to peer: SocketAddress) -> Bool {
        switch self {
        case .off: false
        case .auto: !peer.isLoopback
        case .on: true
        }
    }
}

/// Opens a stream socket (socket(2)), for several paths if wanted and if the kernel has them.
///
/// - Parameters:
///   - family: AF_INET or AF_INET6.
///   - kind: SOCK_STREAM and flags.
///   - isMultipath: whether several paths are wanted.
/// - Returns: the descriptor; -1 with errno set where no socket can be had.
package func openStream(family: CInt, kind: CInt, isMultipath: Bool) -> CInt {
    if isMultipath {
        let number = socket(family, kind, CInt(IPPROTO_MPTCP))
        if number >= 0 { return number }
    }
    return socket(family, kind, CInt(IPPROTO_TCP))
}

/// Whether this kernel opens sockets for several paths: it may be built without them, or have them
/// switched off (net.mptcp.enabled).
package func hasMultipath() -> Bool {
    let kind = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
    let number = socket(AF_INET, kind, CInt(IPPROTO_MPTCP))
    guard number >= 0 else { return false }
    close(number)
    return true
}
