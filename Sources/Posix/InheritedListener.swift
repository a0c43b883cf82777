// Listening sockets that a service manager opened and keeps (sd_listen_fds(3)).
import Glibc

/// A listening TCP socket that whoever started this process opened; it outlives the process.
package struct InheritedListener: Sendable {
    package let socket: SharedDescriptor
    package let address: SocketAddress
    /// What the service manager calls it (systemd.socket(5), FileDescriptorName=); may be empty.
    package let name: String

    /// Checks a descriptor and takes it over.
    ///
    /// - Throws: `SystemError`: EINVAL for what is no listening stream socket, EAFNOSUPPORT for one
    ///   that does not listen on an IP address.
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
        // Accepted sockets inherit it; answers go out whole, so waiting only delays their ends.
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
