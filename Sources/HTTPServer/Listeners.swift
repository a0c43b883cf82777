// Opens the listening sockets of one address, one per loop.
import Glibc
import Posix

/// One loop's listening socket.
struct Listener: Sendable {
    let socket: SharedDescriptor
    /// True if its connections use TLS.
    let isSecure: Bool
    /// True if the socket outlives this server: queued connections are left to the next process.
    var isInherited = false
}

/// The listening sockets of one address.
struct OpenListeners {
    let address: SocketAddress
    let listeners: [SharedDescriptor]
}

/// Opens `count` sockets that share one port with each other, but with no earlier listener.
///
/// - Throws: `SystemError` with EADDRINUSE where the port is taken.
func openListeners(
    on address: SocketAddress, isMultipath: Bool, count: Int
) throws(SystemError) -> OpenListeners {
    let first = try listenFirst(on: address, isMultipath: isMultipath)
    // Accepted sockets inherit it; answers go out whole, so waiting only delays their ends.
    try setOption(first.number, CInt(IPPROTO_TCP), TCP_NODELAY, 1)
    let bound = try localAddress(of: first.number)
    var listeners = [SharedDescriptor(first)]
    while listeners.count < count {
        let next = try listen(on: bound, sharingPort: true, isMultipath: isMultipath)
        try setOption(next.number, CInt(IPPROTO_TCP), TCP_NODELAY, 1)
        listeners.append(SharedDescriptor(next))
    }
    return OpenListeners(address: bound, listeners: listeners)
}
