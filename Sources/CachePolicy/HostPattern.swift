// Patterns of hosts in settings, and the texts of an origin that they are matched with.
import Posix
package import URISyntax

/// The texts of an origin that patterns of hosts are matched with.
///
/// A host, and host and port; of an IPv6 address, which has many spellings, the canonical one
/// (RFC 5952), without brackets, in brackets, and with the port.
package struct OriginNames {
    private let names: [ArraySlice<UInt8>]

    package init(_ origin: Origin) {
        let texts: [String]
        if origin.host.utf8.contains(0x3A) {
            let host = Self.canonical(origin.host)
            texts = [host, "[\(host)]", "[\(host)]:\(origin.port)"]
        } else {
            texts = [origin.host, "\(origin.host):\(origin.port)"]
        }
        names = texts.map { Array($0.utf8)[...] }
    }

    /// True if a pattern matches any of the texts.
    package func match(_ pattern: KeyGlob) -> Bool { names.contains { pattern.matches($0) } }

    /// Returns the canonical spelling of an IPv6 address without brackets; other hosts unchanged.
    package static func canonical(_ host: String) -> String {
        guard host.utf8.contains(0x3A) else { return host }
        return SocketAddress(host: host, port: 0)?.host ?? host
    }
}

extension KeyGlob {
    /// Makes the pattern of a setting, in the spelling of `OriginNames`.
    ///
    /// - Parameter text: a host as people write it, with a port or without, or a pattern of one in
    ///   which a label of another script has no wildcard; nil if it is neither.
    package init?(host text: String) {
        let isWild = text.utf8.contains(0x2A) || text.utf8.contains(0x3F)
        guard let name = isWild ? Self.wild(text) : Self.exact(text) else { return nil }
        self.init(name)
    }

    private static func exact(_ text: String) -> String? {
        guard let url = AbsoluteURL(authority: text) else { return nil }
        let host = OriginNames.canonical(url.asciiHost)
        guard let port = url.explicitPort else { return host }
        return host.utf8.contains(0x3A) ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    private static func wild(_ text: String) -> String? {
        guard !text.contains("/"), !text.contains(" ") else { return nil }
        var labels: [String] = []
        for label in text.lowercased().split(separator: ".", omittingEmptySubsequences: false) {
            let isASCII = label.utf8.allSatisfy { $0 < 0x80 }
            if isASCII {
                labels.append(String(label))
            } else if !label.contains("*"), !label.contains("?"), let name = exact(String(label)) {
                labels.append(name)
            } else {
                return nil
            }
        }
        return labels.joined(separator: ".")
    }
}
