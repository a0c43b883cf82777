/// The schemes that the daemon fetches.
package enum Scheme: UInt8, Hashable, Sendable {
    case http
    case https

    /// The port of a URL of this scheme without an explicit port.
    package var defaultPort: UInt16 { self == .http ? 80 : 443 }

    /// The scheme's name in lower case.
    package var name: String { self == .http ? "http" : "https" }
}

/// An origin, to which connections, cookies and trust are bound: scheme, host and port (RFC 6454,
/// 4).
package struct Origin: Hashable, Sendable {
    package let scheme: Scheme
    /// The host in ASCII lower case; an IPv6 address without brackets.
    package let host: String
    /// The effective port.
    package let port: UInt16

    package init(scheme: Scheme, host: String, port: UInt16) {
        self.scheme = scheme
        self.host = host
        self.port = port
    }
}

extension Origin: CustomStringConvertible {
    /// The serialised origin (RFC 6454, 6.2): the default port is left out.
    package var description: String { scheme.name + "://" + authority }

    /// `host` or `host:port` as in a `Host` field, an IPv6 address in brackets.
    package var authority: String {
        let name = host.utf8.contains(0x3A) ? "[" + host + "]" : host
        return port == scheme.defaultPort ? name : name + ":" + String(port)
    }
}
