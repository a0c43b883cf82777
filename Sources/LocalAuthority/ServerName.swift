// The names that a server certificate is valid for: DNS names and IP addresses.
import HostNames
package import Posix

/// A name that clients may connect to (RFC 5280, section 4.2.1.6; RFC 9525).
package enum ServerName: Hashable, Sendable, CustomStringConvertible {
    /// A DNS name in lower-case ASCII; its first label may be `*`.
    case host(String)
    /// The 4 or 16 bytes of an IP address.
    case address([UInt8])

    /// The reason why a text is not a valid name for a certificate.
    package enum Fault: Error, Equatable, CustomStringConvertible {
        case empty
        case notAName(String)
        case numericName(String)
        case scopedAddress(String)
        case badWildcard(String)

        package var description: String {
            switch self {
            case .empty: "a name is empty"
            case .notAName(let text):
                "'\(text)' is neither a host name nor an IP address (no scheme, port or path)"
            case .numericName(let text): "'\(text)' looks like an IPv4 address and is none"
            case .scopedAddress(let text):
                "'\(text)' has a zone, which no certificate can hold; use another address of the machine"
            case .badWildcard(let text):
                "'\(text)': a wildcard is a whole first label with two labels after it, such as *.home.arpa"
            }
        }
    }

    /// Parses a host name, `*.` and a host name, or an IP address with or without brackets.
    package init(_ text: String) throws(Fault) {
        guard !text.isEmpty else { throw .empty }
        let shown = Self.printable(text)
        // A C string ends at a zero byte, so inet_pton(3) would parse only a part.
        guard !text.utf8.contains(0) else { throw .notAName(shown) }
        if let address = SocketAddress(host: text, port: 0) {
            self = .address(address.bytes)
            return
        }
        if text.contains("%"), text.contains(":") { throw .scopedAddress(shown) }
        let isWildcard = text.hasPrefix("*.")
        guard isWildcard || !text.contains("*") else { throw .badWildcard(shown) }
        guard let name = Self.asciiName(isWildcard ? String(text.dropFirst(2)) : text) else {
            throw text.contains("*") ? .badWildcard(shown) : .notAName(shown)
        }
        let labels = name.split(separator: ".")
        // As in browsers, a name whose last label is a number is an IPv4 address (URL Standard,
        // 3.5).
        if let last = labels.last, last.allSatisfy(\.isNumber) { throw .numericName(shown) }
        guard isWildcard else {
            self = .host(name)
            return
        }
        guard labels.count >= 2, name.utf8.count <= 251 else { throw .badWildcard(shown) }
        self = .host("*." + name)
    }

    /// Creates the name of an address.
    package init(_ address: SocketAddress) { self = .address(address.bytes) }

    package var description: String {
        switch self {
        case .host(let name): name
        case .address(let bytes): SocketAddress(bytes: bytes, port: 0).host
        }
    }

    /// Returns the ASCII form of a host name without the trailing dot; nil if it is invalid.
    private static func asciiName(_ text: String) -> String? {
        let name = text.hasSuffix(".") ? String(text.dropLast()) : text
        guard
            let ascii = name.utf8.allSatisfy({ $0 < 0x80 })
                ? name.lowercased() : InternationalName.ascii(name)
        else { return nil }
        guard 1...253 ~= ascii.utf8.count else { return nil }
        let labels = ascii.split(separator: ".", omittingEmptySubsequences: false)
        return labels.allSatisfy(isLabel) ? ascii : nil
    }

    /// True for a label of letters, digits, inner hyphens, and the underscores that occur in
    /// practice.
    private static func isLabel(_ label: Substring) -> Bool {
        1...63 ~= label.utf8.count && label.first != "-" && label.last != "-"
            && label.utf8.allSatisfy { byte in
                switch byte {
                case 0x61...0x7A, 0x30...0x39, 0x2D, 0x5F: true
                default: false
                }
            }
    }

    /// Returns a shortened text that is safe to print on a terminal.
    static func printable(_ text: String, limit: Int = 80) -> String {
        let shown = text.unicodeScalars.prefix(limit).map { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: "?"
            default: String(scalar)
            }
        }
        return shown.joined() + (text.unicodeScalars.count > limit ? "..." : "")
    }
}

/// The names of one certificate, each once, in order.
package struct ServerNames: Equatable, Sendable {
    /// Far more than a machine needs; clients limit the size of certificates.
    package static let limit = 100

    package let list: [ServerName]

    /// The reason why a list of names is not valid for a certificate.
    package enum Fault: Error, Equatable, CustomStringConvertible {
        case none
        case tooMany(Int)
        case name(ServerName.Fault)

        package var description: String {
            switch self {
            case .none: "a server certificate needs at least one name"
            case .tooMany(let count):
                "a server certificate has at most \(ServerNames.limit) names, not \(count)"
            case .name(let fault): "\(fault)"
            }
        }
    }

    package init(_ texts: [String]) throws(Fault) {
        var names: [ServerName] = []
        for text in texts {
            do throws(ServerName.Fault) {
                names.append(try ServerName(text))
            } catch {
                throw .name(error)
            }
        }
        let list = Self.unique(names)
        guard !list.isEmpty else { throw .none }
        guard list.count <= Self.limit else { throw .tooMany(list.count) }
        self.list = list
    }

    /// Creates the names that a machine is reached by: its host name, alone and with `.local` (RFC
    /// 6762), loopback, and its addresses.
    ///
    /// Omits link-local IPv6 addresses, because their URLs need a zone, and names beyond the limit.
    package init(hostName: String, addresses: [SocketAddress]) {
        var names: [ServerName] = []
        if let name = try? ServerName(hostName) { names.append(name) }
        let first = hostName.split(separator: ".").first.map(String.init) ?? ""
        if first != "localhost", let name = try? ServerName(first + ".local") {
            names.append(name)
        }
        names += [.host("localhost"), .address([127, 0, 0, 1])]
        names.append(.address([UInt8](repeating: 0, count: 15) + [1]))
        names += addresses.filter { !Self.isLinkLocal($0.bytes) }.map { ServerName($0) }
        list = Array(Self.unique(names).prefix(Self.limit))
    }

    /// True if an address is in fe80::/10.
    private static func isLinkLocal(_ bytes: [UInt8]) -> Bool {
        bytes.count == 16 && bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80
    }

    private static func unique(_ names: [ServerName]) -> [ServerName] {
        var seen: Set<ServerName> = []
        return names.filter { seen.insert($0).inserted }
    }
}
