// The hosts and URLs of this daemon itself, and the detection of request loops.
package import HTTP
package import Posix
import Synchronization
package import URISyntax

/// The names and addresses of this run of the daemon.
///
/// Any thread may use it.
package final class OwnAddresses: Sendable {
    private struct Known {
        var hosts: Set<String> = []
        var authorities: Set<String> = []
        /// The bytes of the numeric hosts, of IPv4-mapped addresses those of IPv4.
        var addresses: Set<[UInt8]> = []
        /// The ports of the authorities: few URLs have one of them, and the others need no text
        /// comparison.
        var ports: [UInt16] = []
    }

    private let known = Mutex(Known())
    /// Names, besides loopback ones, that a `Host` field may carry; lower case, without port.
    private let hostNames: Set<String>
    /// The value that identifies this run in CDN-Loop fields of requests to origins.
    let loopMark: String

    package init(hostNames: Set<String>) {
        self.hostNames = hostNames
        loopMark = "sluice-" + String(UInt64.random(in: .min ... .max), radix: 36)
    }

    /// Sets the addresses that the daemon listens on; until then no `Host` is accepted.
    package func listen(on addresses: [SocketAddress]) {
        var hosts = Set(hostNames.map { Self.withoutRootDot($0[...]) })
        hosts.formUnion(["localhost", "127.0.0.1", "[::1]"])
        for address in addresses {
            hosts.insert(address.bytes.count == 16 ? "[\(address.host)]" : address.host)
        }
        var authorities: Set<String> = []
        for address in addresses {
            for host in hosts { authorities.insert("\(host):\(address.port)") }
        }
        let numbers = hosts.compactMap { SocketAddress(host: $0, port: 0).map(Self.bytes(of:)) }
        let ports = addresses.map(\.port)
        known.withLock {
            $0 = Known(
                hosts: hosts, authorities: authorities, addresses: Set(numbers), ports: ports)
        }
    }

    /// True if a Host value is a name of this daemon.
    ///
    /// Any other name may have been pointed at this address by an attacker (DNS rebinding). Any
    /// port is accepted, since a tunnel or another proxy may be in front, and these names cannot
    /// be rebound.
    package func contains(host: String) -> Bool {
        let host = ASCII.lowercased(host)
        var name = host[...]
        if let colon = host.lastIndex(of: ":"), !host[colon...].contains("]") {
            name = host[..<colon]
        }
        let own = Self.withoutRootDot(name)
        return known.withLock { $0.hosts.contains(own) }
    }

    private static func bytes(of address: SocketAddress) -> [UInt8] {
        address.ipv4Bytes ?? address.bytes
    }

    /// True if a URL leads back to this daemon, in whatever form it has the address.
    package func contains(_ url: AbsoluteURL) -> Bool {
        guard known.withLock({ $0.ports.contains(url.port) }) else { return false }
        let host = Self.host(of: url)
        if known.withLock({ $0.authorities.contains("\(host):\(url.port)") }) { return true }
        guard let address = SocketAddress(spelled: host, port: url.port) else { return false }
        let bytes = Self.bytes(of: address)
        return known.withLock { $0.addresses.contains(bytes) }
    }

    /// True if a URL has a name of this daemon, on whatever port: one of the daemon, of a proxy in
    /// front, or of another server.
    package func containsHost(of url: AbsoluteURL) -> Bool {
        let host = Self.host(of: url)
        return known.withLock { $0.hosts.contains(host) }
    }

    private static func host(of url: AbsoluteURL) -> String {
        url.hasIPv6Host && !url.asciiHost.hasPrefix("[")
            ? "[\(url.asciiHost)]" : withoutRootDot(url.asciiHost[...])
    }

    /// Returns a name without the dot of the DNS root (RFC 3986 section 3.2.2), which changes
    /// nothing of its meaning.
    private static func withoutRootDot(_ name: Substring) -> String {
        String(name.hasSuffix(".") ? name.dropLast() : name)
    }

    /// Returns the CDN-Loop field of a request to an origin (RFC 8586): the field of the player's
    /// request, if any, with `loopMark` appended.
    package func cdnLoop(after request: RequestHead) -> String {
        let before = request.fields.combined(.cdnLoop).map { $0 + ", " } ?? ""
        return before + loopMark
    }

    /// True if a request was sent by this run of the daemon and came back through others.
    package func isLooped(_ request: RequestHead) -> Bool {
        request.fields.combined(.cdnLoop)?.contains(loopMark) ?? false
    }

    /// True if `Via` has this run's pseudonym (RFC 9110 section 7.6.3), which requests to parents
    /// carry as well: some caches in between know only one of the two fields.
    package func isNamed(inViaOf request: RequestHead) -> Bool {
        request.fields.combined(.via)?.contains(loopMark) ?? false
    }
}
