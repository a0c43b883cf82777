// Which hosts and URLs lead to this daemon, and how a request of ours that comes back is known.
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
        /// Of the authorities: hardly a URL has one of them, and no text need be made of the others.
        var ports: [UInt16] = []
    }

    private let known = Mutex(Known())
    /// Names, besides loopback ones, that a `Host` field may carry; lower case, without port.
    private let hostNames: Set<String>
    /// Names this run in requests to origins.
    let loopMark: String

    package init(hostNames: Set<String>) {
        self.hostNames = hostNames
        loopMark = "sluice-" + String(UInt64.random(in: .min ... .max), radix: 36)
    }

    /// Tells the addresses that the daemon listens on; until then no `Host` is ours.
    package func listen(on addresses: [SocketAddress]) {
        var hosts = hostNames.union(["localhost", "127.0.0.1", "[::1]"])
        for address in addresses {
            hosts.insert(address.bytes.count == 16 ? "[\(address.host)]" : address.host)
        }
        var authorities: Set<String> = []
        for address in addresses {
            for host in hosts { authorities.insert("\(host):\(address.port)") }
        }
        let ports = addresses.map(\.port)
        known.withLock { $0 = Known(hosts: hosts, authorities: authorities, ports: ports) }
    }

    /// Whether a Host value is one that this daemon is known by.
    ///
    /// Others mean that a name was bent to our address by somebody else (DNS rebinding). Any port
    /// counts, since a tunnel or another proxy may stand before us, and nobody can bend these names.
    package func contains(host: String) -> Bool {
        let host = ASCII.lowercased(host)
        var name = host[...]
        if let colon = host.lastIndex(of: ":"), !host[colon...].contains("]") {
            name = host[..<colon]
        }
        return known.withLock { $0.hosts.contains(String(name)) }
    }

    /// Whether a URL leads back to this daemon.
    package func contains(_ url: AbsoluteURL) -> Bool {
        guard known.withLock({ $0.ports.contains(url.port) }) else { return false }
        let host =
            url.hasIPv6Host && !url.asciiHost.hasPrefix("[") ? "[\(url.asciiHost)]" : url.asciiHost
        return known.withLock { $0.authorities.contains("\(host):\(url.port)") }
    }

    /// The CDN-Loop field of a request to an origin (RFC 8586): that of the player's request, if
    /// it is a proxy itself, and us.
    package func cdnLoop(after request: RequestHead) -> String {
        let before = request.fields.combined(.cdnLoop).map { $0 + ", " } ?? ""
        return before + loopMark
    }

    /// Whether a request is one of our own that came back to us over others.
    package func isLooped(_ request: RequestHead) -> Bool {
        request.fields.combined(.cdnLoop)?.contains(loopMark) ?? false
    }
}
