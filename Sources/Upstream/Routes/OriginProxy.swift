import URISyntax

/// A fault in the text of a proxy or a parent; contains nothing of it, since it may have a password.
package struct RouteFault: Error, Hashable, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}

/// A proxy between the daemon and origins.
package struct OriginProxy: Hashable, Sendable {
    package enum Kind: String, Sendable, CaseIterable {
        /// HTTP; `https` origins through CONNECT (RFC 9110 section 9.3.6).
        case http
        /// The same with TLS to the proxy.
        case https
        /// SOCKS 5 (RFC 1928), with names looked up by the daemon.
        case socks5
        /// SOCKS 5, with names looked up by the proxy.
        case socks5h

        var isHTTP: Bool { self == .http || self == .https }
    }

    package let kind: Kind
    /// In ASCII; an IPv6 address without brackets.
    package let host: String
    package let port: UInt16
    /// Name and password as the proxy expects them; never shown.
    let user: String?
    let password: String?

    package var hasCredentials: Bool { user != nil }

    /// Parses `SCHEME://[USER[:PASSWORD]@]HOST:PORT`; reserved characters in user and password are
    /// percent-encoded.
    package init(_ text: String) throws(RouteFault) {
        guard let mark = text.firstRange(of: "://"),
            let kind = Kind(rawValue: text[..<mark.lowerBound].lowercased())
        else {
            throw RouteFault(
                "its scheme is http, https, socks5 or socks5h, as in socks5h://HOST:PORT")
        }
        self.kind = kind
        guard let url = try? AbsoluteURL("http://" + text[mark.upperBound...]) else {
            throw RouteFault("it is written \(kind.rawValue)://[USER:PASSWORD@]HOST:PORT")
        }
        guard let port = url.explicitPort, port > 0 else {
            throw RouteFault("it needs a port, as in \(kind.rawValue)://HOST:PORT")
        }
        guard url.path.isEmpty || url.path == "/", url.query == nil else {
            throw RouteFault("it has neither path nor query")
        }
        host = url.asciiHost
        self.port = port
        guard let userinfo = url.userinfo else {
            (user, password) = (nil, nil)
            return
        }
        let parts = userinfo.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let user = try Self.credential(parts[0], "user")
        guard !user.isEmpty, !user.utf8.contains(0x3A) else {
            throw RouteFault("its user has 1 to 255 bytes and no colon")
        }
        self.user = user
        password = parts.count > 1 ? try Self.credential(parts[1], "password") : ""
    }

    /// Decodes user or password; RFC 1929 limits each to 255 bytes.
    private static func credential(_ text: Substring, _ name: String) throws(RouteFault) -> String {
        let bytes = PercentCoding.decode(Array(text.utf8)[...])
        guard bytes.count <= 255, bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw RouteFault("its \(name) has at most 255 bytes, none of them a control character")
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The proxy in libcurl's form (CURLOPT_PROXY(3)), without credentials.
    var address: String {
        let name = host.utf8.contains(0x3A) ? "[\(host)]" : host
        return "\(kind.rawValue)://\(name):\(port)"
    }
}

extension OriginProxy: CustomStringConvertible {
    /// For display: tells that there are credentials, but not which.
    package var description: String { address + (hasCredentials ? " (with credentials)" : "") }
}
