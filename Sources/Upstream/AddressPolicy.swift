// Which peers the daemon may connect to: no address of the local machine or network, in whatever
// form it is written, unless that is allowed.
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
}
