// Checks, before a kept connection is reused, whether the origin has sent something unrequested on
// it.
//
// Such bytes (an unrequested response, or a 408 before closing) would be taken for the response to
// the next request: the wrong content under the right name (RFC 9112 section 9.3). libcurl 7.88
// only checks whether a connection is closed, and exposes nothing of a connection but its local
// port.
import Glibc
import Posix

/// The sockets that were opened for libcurl.
struct KnownSockets {
    /// Descriptors that were opened; closed ones stay until they are noticed.
    private var opened: Set<CInt> = []
    /// Connections that carried a request, by their local port.
    private var used: [UInt16: CInt] = [:]

    /// The most connections that are remembered; when exceeded, all are looked up anew.
    private static let most = 2048

    mutating func insert(_ number: CInt) { opened.insert(number) }

    /// Returns whether the connection with this local port was used before and has input, including
    /// its end.
    mutating func hasUnexpectedInput(localPort: UInt16) -> Bool {
        if let number = used[localPort], Self.port(of: number) == localPort {
            return Self.hasInput(number)
        }
        look(for: localPort)
        return false
    }

    /// Returns the descriptor of the connection with this local port; nil if it is unknown.
    mutating func descriptor(localPort: UInt16) -> CInt? {
        if let number = used[localPort], Self.port(of: number) == localPort { return number }
        look(for: localPort)
        return used[localPort]
    }

    /// Acknowledges what has arrived on the connection with this local port at once (tcp(7),
    /// TCP_QUICKACK).
    ///
    /// A peer that waits for that before it sends a surplus (Nagle's algorithm, RFC 896) would
    /// otherwise get it with the next request, whose response the surplus would be taken for.
    mutating func acknowledge(localPort: UInt16) {
        guard let number = descriptor(localPort: localPort) else { return }
        var isOn: CInt = 1
        setsockopt(
            number, CInt(IPPROTO_TCP), TCP_QUICKACK, &isOn, socklen_t(MemoryLayout<CInt>.size))
    }

    /// Returns how often the oldest packet on the connection with this local port was sent again; 0
    /// if that is not known.
    mutating func retransmissions(localPort: UInt16) -> Int {
        descriptor(localPort: localPort).flatMap { Posix.retransmissions(of: $0) } ?? 0
    }

    /// Ends the connection with this local port for all who use it (shutdown(2)): libcurl, which
    /// owns the descriptor, closes it when it notices, and it is unknown from now on.
    ///
    /// Connections to different hosts may have one port: then neither is ended.
    ///
    /// - Returns: true if it was ended.
    @discardableResult
    mutating func shutDown(localPort: UInt16) -> Bool {
        let found = opened.filter { Self.port(of: $0) == localPort }
        guard let number = found.first, found.count == 1 else { return false }
        shutdown(number, CInt(SHUT_RDWR))
        used[localPort] = nil
        opened.remove(number)
        return true
    }

    private mutating func look(for localPort: UInt16) {
        if used.count >= Self.most { used.removeAll() }
        used[localPort] = nil
        for number in Array(opened) {
            switch Self.port(of: number) {
            case nil: opened.remove(number)
            case localPort?: used[localPort] = number
            default: break
            }
        }
    }

    private static func port(of number: CInt) -> UInt16? {
        (try? localAddress(of: number))?.port
    }

    private static func hasInput(_ number: CInt) -> Bool {
        var byte: UInt8 = 0
        let flags = CInt(MSG_PEEK) | CInt(MSG_DONTWAIT)
        return recv(number, &byte, 1, flags) >= 0
    }
}
