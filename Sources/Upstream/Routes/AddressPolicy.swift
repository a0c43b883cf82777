// The peers that the daemon may connect to: no address of the local machine or network, in whatever
// form it is written, unless that is allowed.
package import Posix

/// Decides on real socket addresses, after name lookup.
///
/// `AddressClass` has the table of addresses and its sources.
package struct AddressPolicy: Sendable, Hashable {
    /// Permits loopback, private, link-local and shared addresses.
    ///
    /// Cloud metadata and host services, multicast and the unspecified address stay refused.
    package var allowsPrivate: Bool
    /// Hosts in ASCII, as in `AbsoluteURL.asciiHost`, that may have any address but those of
    /// metadata and host services, multicast and the unspecified one.
    package var allowedHosts: Set<String>

    package init(allowsPrivate: Bool = false, allowedHosts: Set<String> = []) {
        self.allowsPrivate = allowsPrivate
        self.allowedHosts = Set(allowedHosts.map { $0.lowercased() })
    }

    /// True if a connection to `address` may be used for `host`.
    ///
    /// A metadata service is permitted only if its literal address was allowed: whoever controls a
    /// name controls its addresses.
    package func permits(_ address: SocketAddress, host: String) -> Bool {
        let isNamed = allowedHosts.contains(host.lowercased())
        return switch AddressClass(of: address) {
        case .global: true
        case .local: allowsPrivate || isNamed
        case .never: isNamed && (host == address.host || host == "[\(address.host)]")
        }
    }

    /// True if a proxy may be asked for `host`, whose address only the proxy will know.
    ///
    /// Rejects hosts that are private by their spelling: addresses in any form that resolvers
    /// accept, and names outside the public name space. The addresses of a public name are up to
    /// the proxy.
    package func permitsByName(_ host: String) -> Bool {
        var name = host.lowercased()
        if name.hasSuffix(".") { name.removeLast() }
        if let address = SocketAddress(spelled: name, port: 0) {
            return permits(address, host: name)
        }
        let labels = name.split(separator: ".").map(String.init)
        if Self.metadataNames.contains(name) { return false }
        let isPrivate = labels.count < 2 || Self.privateSuffixes.contains { name.hasSuffix($0) }
        return !isPrivate || allowsPrivate || allowedHosts.contains(name)
    }

    /// Returns what permits a refused address or private name, for the message to the client.
    static func advice(afterRefusing address: String, of host: String) -> String {
        let name = host.lowercased()
        if metadataNames.contains(name.hasSuffix(".") ? String(name.dropLast()) : name) {
            return "no setting permits this name"
        }
        guard let found = SocketAddress(host: address, port: 0),
            case .never = AddressClass(of: found)
        else { return "allow it with --allow-private or --allow-host" }
        return "addresses of metadata and host services stay refused with --allow-private; "
            + "--allow-host \(address) allows URLs with this one"
    }

    /// True if a host is an address, not a name.
    ///
    /// Parses the host only if it ends in a digit or contains a colon.
    static func isAddress(_ host: String) -> Bool {
        guard let last = host.utf8.last, last <= 0x39 || host.utf8.contains(0x3A) else {
            return false
        }
        return SocketAddress(host: host, port: 0) != nil
    }

    /// Special-use names (RFC 6761, 6762, 8375, ICANN's internal), and names that home routers use.
    private static let privateSuffixes = [
        ".localhost", ".local", ".internal", ".home.arpa", ".localdomain", ".lan", ".home", ".corp",
        ".intranet", ".private",
    ]

    /// Names of metadata services in clouds.
    private static let metadataNames: Set<String> = [
        "metadata", "metadata.google.internal", "metadata.goog", "instance-data",
        "instance-data.ec2.internal",
    ]
}
