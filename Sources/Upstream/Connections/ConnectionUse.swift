// Which transfers use which connection.
import URISyntax

extension UpstreamClient {
    /// A connection as far as libcurl identifies it.
    struct Connection: Hashable {
        let origin: Origin
        let localPort: UInt16

        /// The port distinguishes nearly all, and hashing a number costs less than a name.
        func hash(into hasher: inout Hasher) { hasher.combine(localPort) }
    }

    /// Hashable types of this module that serve as keys of tables.
    package static var hashedTypes: [Any.Type] { [Connection.self] }

    /// Notes the connection that the request of a transfer is sent on.
    ///
    /// - Returns: true if another transfer uses it at this moment: then it is HTTP/2, because libcurl
    ///   does not pipeline requests on HTTP/1.1.
    func join(_ transfer: Transfer, connectionFrom localPort: UInt16) -> Bool {
        let origin = transfer.origin
        let connection = Connection(origin: origin, localPort: localPort)
        if let former = transfer.connection { users.remove(former) }
        transfer.connection = connection
        let count = users.add(connection)
        if !abandoned.isEmpty { forgetAbandoned(connection) }
        // With TCP Fast Open libcurl may not know the port.
        guard origin.scheme == .https, localPort != 0, count > 1 else { return false }
        versions.note(origin, isMultiplexing: true)
        return true
    }
}
