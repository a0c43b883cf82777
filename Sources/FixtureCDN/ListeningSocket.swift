import Glibc

/// A listening socket that outlives the processes using it, like that of a service manager.
package final class ListeningSocket: Sendable {
    package let descriptor: Int32
    package let port: UInt16

    /// Listens on a free port of an IPv4 address.
    ///
    /// Throws `CDNError`.
    package init(on address: String = "127.0.0.1") throws {
        (descriptor, port) = try Sockets.listen(address: address, port: 0)
    }

    deinit { close(descriptor) }
}
