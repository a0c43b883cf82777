// Looks at the connections of this process from outside the client.
import Glibc
import Posix

/// Returns the address of a socket's peer (getpeername(2)); nil for what is not connected.
func peerAddress(of socket: CInt) -> SocketAddress? {
    var storage = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &storage) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { name in
            getpeername(socket, name, &size) == 0 ? SocketAddress(name) : nil
        }
    }
}

private func connections(to port: UInt16) -> [CInt] {
    (CInt(3)..<1_024).filter { peerAddress(of: $0)?.port == port }
}

/// Returns an integer option of each connection of this process to a port (getsockopt(2)).
func optionsOfConnections(to port: UInt16, _ level: CInt, _ option: CInt) -> [CInt] {
    connections(to: port).map { number in
        var value: CInt = -1
        var size = socklen_t(MemoryLayout<CInt>.size)
        getsockopt(number, level, option, &value, &size)
        return value
    }
}

/// Sets an integer option of each connection of this process to a port (setsockopt(2)).
func setOptionOfConnections(to port: UInt16, _ level: CInt, _ option: CInt, _ value: CInt) {
    for number in connections(to: port) { try? setOption(number, level, option, value) }
}
