// Non-blocking stream sockets: listen, accept, read, write, sendfile.
import CLinux
import Glibc

/// Opens a listening socket, non-blocking, with SO_REUSEADDR and, on request, SO_REUSEPORT.
///
/// Peers of a multipath socket may use several paths, if the kernel lets them.
///
/// - Throws: `SystemError` with EADDRINUSE when the port is taken.
package func listen(
    on address: SocketAddress, sharingPort: Bool, isMultipath: Bool = false, backlog: CInt = 4096
) throws(SystemError) -> OwnedDescriptor {
    try openListener(
        address, sharing: sharingPort ? .always : .never, isMultipath, backlog: backlog)
}

/// Opens the first of several listening sockets of one port; the others follow with
/// `listen(on:sharingPort:isMultipath:)`.
///
/// SO_REUSEPORT lets any two programs of one user share a port unnoticed. So the first socket is
/// bound without it, which fails if any other socket listens on the port, and sharing is allowed
/// only afterwards.
///
/// - Throws: `SystemError` with EADDRINUSE if the port is taken, shared or not.
package func listenFirst(
    on address: SocketAddress, isMultipath: Bool = false, backlog: CInt = 4096
) throws(SystemError) -> OwnedDescriptor {
    try openListener(address, sharing: .afterBind, isMultipath, backlog: backlog)
}

private enum PortSharing {
    case never, afterBind, always
}

private func openListener(
    _ address: SocketAddress, sharing: PortSharing, _ isMultipath: Bool, backlog: CInt
) throws(SystemError) -> OwnedDescriptor {
    let subject = address.description
    let kind = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue)
    let number = try check("socket", subject) {
        openStream(
            family: address.family, kind: kind | CInt(SOCK_CLOEXEC.rawValue),
            isMultipath: isMultipath)
    }
    let owned = OwnedDescriptor(taking: number)
    try setOption(number, SOL_SOCKET, SO_REUSEADDR, 1)
    if sharing == .always { try setOption(number, SOL_SOCKET, SO_REUSEPORT, 1) }
    if address.family == AF_INET6 { try setOption(number, CInt(IPPROTO_IPV6), IPV6_V6ONLY, 1) }
    _ = try check("bind", subject) {
        address.withRaw { bind(number, $0.assumingMemoryBound(to: sockaddr.self), $1) }
    }
    if sharing == .afterBind { try setOption(number, SOL_SOCKET, SO_REUSEPORT, 1) }
    _ = try check("listen", subject) { Glibc.listen(number, backlog) }
    return owned
}

/// True if this machine has a route to an address; nothing is sent.
///
/// A datagram socket is connected to it (connect(2)), for which the kernel looks the route up.
///
/// - Parameter peer: the address, with any port.
/// - Returns: false also where no socket can be had.
package func hasRoute(to peer: SocketAddress) -> Bool {
    let kind = CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
    let number = socket(peer.family, kind, 0)
    guard number >= 0 else { return false }
    let owned = OwnedDescriptor(taking: number)
    return peer.withRaw {
        connect(owned.number, $0.assumingMemoryBound(to: sockaddr.self), $1)
    } == 0
}

/// Sets an integer socket option (setsockopt(2)).
package func setOption(
    _ number: CInt, _ level: CInt, _ name: CInt, _ value: CInt
) throws(SystemError) {
    var value = value
    _ = try check("setsockopt") {
        setsockopt(number, level, name, &value, socklen_t(MemoryLayout<CInt>.size))
    }
}

/// Returns the local address of a socket (getsockname(2)).
package func localAddress(of number: CInt) throws(SystemError) -> SocketAddress {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return try withUnsafeMutablePointer(to: &storage) { (pointer) throws(SystemError) in
        try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { (raw) throws(SystemError) in
            _ = try check("getsockname") { getsockname(number, raw, &length) }
            guard let address = SocketAddress(raw) else {
                throw SystemError("getsockname", code: EAFNOSUPPORT)
            }
            return address
        }
    }
}

/// One accepted connection.
package struct AcceptedSocket: ~Copyable {
    package let descriptor: OwnedDescriptor
    package let peer: SocketAddress?

    /// Returns the descriptor and ends this value.
    package consuming func takeDescriptor() -> OwnedDescriptor { descriptor }
}

/// Accepts one connection, non-blocking; nil if none is waiting (accept4(2)).
///
/// - Throws: `SystemError`; after EMFILE and ENFILE the caller must back off.
package func accept(from listener: CInt) throws(SystemError) -> AcceptedSocket? {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let accepted: (CInt, SocketAddress?) = withUnsafeMutablePointer(to: &storage) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
            while true {
                let number = clinux_accept(listener, raw, &length)
                // Skip a connection that was aborted in the queue (accept(2)).
                if number < 0, errno == EINTR || errno == ECONNABORTED { continue }
                return (number, number < 0 ? nil : SocketAddress(raw))
            }
        }
    }
    if accepted.0 >= 0 {
        return AcceptedSocket(descriptor: OwnedDescriptor(taking: accepted.0), peer: accepted.1)
    }
    if errno == EAGAIN || errno == EWOULDBLOCK { return nil }
    throw SystemError("accept4", code: errno)
}

/// Reads the bytes that have arrived (recv(2)); never blocks.
///
/// A connection reset counts as an end.
package func receive(
    from number: CInt, into buffer: UnsafeMutableRawBufferPointer
) -> ReadOutcome {
    while true {
        let count = recv(number, buffer.baseAddress, buffer.count, 0)
        if count > 0 { return .bytes(count) }
        if count == 0 { return .end }
        if errno == EINTR { continue }
        if errno == EAGAIN || errno == EWOULDBLOCK { return .wouldBlock }
        return .end
    }
}

/// Writes as many bytes as fit (send(2), MSG_NOSIGNAL); never blocks.
///
/// `more` announces that further bytes follow immediately, so that the kernel may join them.
package func send(_ bytes: UnsafeRawBufferPointer, to number: CInt, more: Bool = false)
    -> WriteOutcome
{
    let flags = CInt(MSG_NOSIGNAL) | (more ? CInt(MSG_MORE) : 0)
    while true {
        let count = Glibc.send(number, bytes.baseAddress, bytes.count, flags)
        if count >= 0 { return .bytes(count) }
        if errno == EINTR { continue }
        if errno == EAGAIN || errno == EWOULDBLOCK { return .wouldBlock }
        return .closed
    }
}

/// The outcome of one sendfile(2).
package enum SendFileOutcome: Equatable, Sendable {
    case bytes(Int)
    case wouldBlock
    /// The peer is gone.
    case closed
    /// The file ended early or could not be read: a local fault, not the peer's.
    case fileFailed(errno: CInt)

    /// Attributes the error of a failed sendfile(2) to the socket or to the file.
    ///
    /// An ICMP message, or an interface that goes down, leaves its error on the socket, and the
    /// next call returns it (ip(7), tcp(7)).
    package init(errno code: CInt) {
        switch code {
        case EAGAIN: self = .wouldBlock
        case EPIPE, ECONNRESET, ECONNABORTED, ECONNREFUSED, ENOTCONN, ETIMEDOUT, EHOSTUNREACH,
            EHOSTDOWN, ENETUNREACH, ENETDOWN, EPROTO:
            self = .closed
        default: self = .fileFailed(errno: code)
        }
    }
}

/// Sends a range of a file without copying it through this process (sendfile(2)).
///
/// Blocks only on the disk, if the range is not in the page cache.
package func sendFile(
    _ file: CInt, offset: Int64, count: Int, to number: CInt
) -> SendFileOutcome {
    var position = off_t(offset)
    while true {
        let sent = sendfile(number, file, &position, count)
        if sent > 0 { return .bytes(sent) }
        if sent == 0 { return .fileFailed(errno: 0) }
        if errno != EINTR { return SendFileOutcome(errno: errno) }
    }
}

/// Returns the number of sent bytes that the peer has not acknowledged, the end of the stream
/// counting as one (SIOCOUTQ, tcp(7)); 0 if the kernel does not report it.
package func unacknowledgedBytes(of number: CInt) -> Int {
    let outQueue = UInt(0x5411)  // SIOCOUTQ, which is not in Swift's Glibc module
    var count: CInt = 0
    return ioctl(number, outQueue, &count) == 0 ? Int(count) : 0
}

/// Shuts down the sending side (shutdown(2)), so that the peer reads an end after the queued bytes.
package func shutdownWrites(_ number: CInt) {
    _ = shutdown(number, CInt(SHUT_WR))
}

/// Makes the next close send a reset, so that the peer sees a truncated body instead of a clean
/// end.
package func resetOnClose(_ number: CInt) {
    _ = clinux_reset_on_close(number)
}
