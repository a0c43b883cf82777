// The listening sockets of a server, one of each address per loop.
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
    /// One per loop.
    let listeners: [Listener]

    /// Opens sockets that share one port with each other, but with no earlier listener.
    ///
    /// - Throws: `SystemError` with EADDRINUSE where the port is taken.
    init(
        on address: SocketAddress, isSecure: Bool, isMultipath: Bool, loops: Int
    ) throws(SystemError) {
        let first = try listenFirst(on: address, isMultipath: isMultipath)
        // Accepted sockets inherit it; answers go out whole, so waiting only delays their ends.
        try setOption(first.number, CInt(IPPROTO_TCP), TCP_NODELAY, 1)
        let bound = try localAddress(of: first.number)
        var listeners = [Listener(socket: SharedDescriptor(first), isSecure: isSecure)]
        while listeners.count < loops {
            let next = try listen(on: bound, sharingPort: true, isMultipath: isMultipath)
            try setOption(next.number, CInt(IPPROTO_TCP), TCP_NODELAY, 1)
            listeners.append(Listener(socket: SharedDescriptor(next), isSecure: isSecure))
        }
        self.address = bound
        self.listeners = listeners
    }

    /// Takes a socket that listens already, which all loops share.
    init(_ inherited: InheritedListener, isSecure: Bool, loops: Int) {
        address = inherited.address
        let listener = Listener(socket: inherited.socket, isSecure: isSecure, isInherited: true)
        listeners = Array(repeating: listener, count: loops)
    }
}
