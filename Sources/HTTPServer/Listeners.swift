// Opens the listening sockets of one address, one for each loop.
import Glibc
import Posix

/// One loop's listening socket.
struct Listener: Sendable {
    let socket: SharedDescriptor
    /// Whether its connections speak TLS.
    let isSecure: Bool
    /// Whether the socket outlives this server: what waits in its queue is then the next one's.
    var isInherited = false
}

/// The sockets of one address.
struct OpenListeners {
    let address: SocketAddress
    let listeners: [SharedDescriptor]
}

/// Opens `count` sockets that share one port among themselves, but with nobody who came before.
///
/// - Throws: `SystemError` with EADDRINUSE where the port is taken.
func openListeners(on address: SocketAddress, count: Int) throws(SystemError) -> OpenListeners {
    let first = try listenFirst(on: address)
    // Accepted sockets inherit it; answers go out whole, so waiting only delays their ends.
    try setOption(first.number, CInt(IPPROTO_TCP), TCP_NODELAY, 1)
    let bound = try localAddress(of: first.number)
    var listeners = [SharedDescriptor(first)]
    while listeners.count < count {
        let next = try listen(on: bound, sharingPort: true)
        try setOption(next.number, CInt(IPPROTO_TCP), TCP_NODELAY, 1)
        listeners.append(SharedDescriptor(next))
    }
    return OpenListeners(address: bound, listeners: listeners)
}
