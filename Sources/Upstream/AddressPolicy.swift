// Which peers the daemon may connect to: no address of the local machine or network, in whatever
// form it is written, unless that is allowed.
import Glibc
package import Posix

/// Decides on real socket addresses, after name lookup.
///
/// `AddressClass` has the table of addresses and its sources.
package struct AddressPolicy: Sendable, Hashable {
    /// Lets loopback, private, link-local and shared addresses through.
    ///
    /// Cloud metadata and host services, multicast and the unspecified address stay refused.
    package var allowsPrivate: Bool
    /// Hosts in ASCII, as `AbsoluteURL.asciiHost` gives them, that may have any address but those of
    /// metadata and host services, multicast and the unspecified one.
    package var allowedHosts: Set<String>

    package init(allowsPrivate: Bool = false, allowedHosts: Set<String> = []) {
        self.allowsPrivate = allowsPrivate
        self.allowedHosts = Set(allowedHosts.map { $0.lowercased() })
    }

    /// Whether a connection to `address` may be used for `host`.
    ///
    /// A metadata service is reached only where its very address was allowed: what a name stands for
    /// is up to whoever answers for the name.
    package func permits(_ address: SocketAddress, host: String) -> Bool {
        let isNamed = allowedHosts.contains(host.lowercased())
        return switch AddressClass(of: address) {
        case .global: true
        case .local: allowsPrivate || isNamed
        case .never: isNamed && (host == address.host || host == "[\(address.host)]")
        }
    }

    /// Whether a proxy may be asked for `host`, whose address only the proxy will know.
    ///
    /// Refuses what shows by its spelling that it is private: addresses in any form that resolvers take,
    /// and names that are not of the public name space. What a public name stands for is up to the proxy.
    package func permitsByName(_ host: String) -> Bool {
        var name = host.lowercased()
        if name.hasSuffix(".") { name.removeLast() }
        if let address = Self.spelledAddress(name) { return permits(address, host: name) }
        let labels = name.split(separator: ".").map(String.init)
        if Self.metadataNames.contains(name) { return false }
        let isPrivate = labels.count < 2 || Self.privateSuffixes.contains { name.hasSuffix($0) }
        return !isPrivate || allowsPrivate || allowedHosts.contains(name)
    }

    /// Whether a host is an address and no name.
    static func isAddress(_ host: String) -> Bool { SocketAddress(host: host, port: 0) != nil }

    /// The address that a host is written as: dotted, or in the forms of inet_aton(3), such as `127.1`.
    private static func spelledAddress(_ name: String) -> SocketAddress? {
        if let address = SocketAddress(host: name, port: 0) { return address }
        var number = in_addr()
        guard inet_aton(name, &number) != 0 else { return nil }
        return SocketAddress(bytes: withUnsafeBytes(of: number) { Array($0) }, port: 0)
    }

    /// Special-use names (RFC 6761, 6762, 8375, ICANN's internal) and what home routers use.
    private static let privateSuffixes = [
        ".localhost", ".local", ".internal", ".home.arpa", ".localdomain", ".lan", ".home", ".corp",
        ".intranet", ".private",
    ]

    /// Names by which cloud machines know their metadata services.
    private static let metadataNames: Set<String> = [
        "metadata", "metadata.google.internal", "metadata.goog", "instance-data",
        "instance-data.ec2.internal",
    ]
}
