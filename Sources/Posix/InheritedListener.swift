// Listening sockets that a service manager opened and keeps (sd_listen_fds(3)).
// CLinux declares SOCK_STREAM too: files built beside ones that import it need it to find the name.
import CLinux
import Glibc

/// A listening TCP socket that the service manager opened; it outlives this process.
package struct InheritedListener: Sendable {
    package let socket: SharedDescriptor
    package let address: SocketAddress
    /// The service manager's name for it (systemd.socket(5), FileDescriptorName=); may be empty.
    package let name: String

    /// Checks a descriptor and takes ownership of it.
    ///
    /// - Throws: `SystemError`: EINVAL if it is not a listening stream socket, EAFNOSUPPORT if it
    ///   does not listen on an IP address.
    package init(
        taking descriptor: consuming OwnedDescriptor, name: String
    ) throws(SystemError) {
        let number = descriptor.number
        guard try Self.option(SO_ACCEPTCONN, of: number) == 1,
            try Self.option(SO_TYPE, of: number) == CInt(SOCK_STREAM.rawValue)
        else { throw SystemError("getsockopt", code: EINVAL, subject: "descriptor \(number)") }
        address = try localAddress(of: number)
        let flags = try check("fcntl") { fcntl(number, F_GETFL) }
        _ = try check("fcntl") { fcntl(number, F_SETFL, flags | O_NONBLOCK) }
        _ = try check("fcntl") { fcntl(number, F_SETFD, FD_CLOEXEC) }
        // Accepted sockets inherit it; responses are sent whole, so Nagle's algorithm only delays
        // their ends.
        try setOption(number, CInt(IPPROTO_TCP), TCP_NODELAY, 1)
        socket = SharedDescriptor(descriptor)
        self.name = name
    }

    private static func option(_ name: CInt, of number: CInt) throws(SystemError) -> CInt {
        var value: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        _ = try check("getsockopt", "descriptor \(number)") {
            getsockopt(number, SOL_SOCKET, name, &value, &length)
        }
        return value
    }
}
