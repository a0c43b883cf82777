// Hosts and web origins in settings, read into the form that requests have them in.
import URISyntax

/// Reads what settings say of hosts.
enum GivenHost {
    /// Returns the host of a setting as `AbsoluteURL.asciiHost` has it.
    ///
    /// - Parameters:
    ///   - text: a name, an IPv4 address, or an IPv6 address with or without brackets.
    ///   - mayHavePort: accepts a port after the host, which is then ignored.
    /// - Returns: nil if it is no host, or has more than that.
    static func ascii(_ text: String, mayHavePort: Bool = false) -> String? {
        guard let url = AbsoluteURL(authority: text),
            mayHavePort || !text.utf8.contains(0x3A) || url.hasIPv6Host && url.explicitPort == nil
        else { return nil }
        return url.asciiHost
    }

    /// Returns the host of a setting as a `Host` field has it, without a port; nil as `ascii`.
    static func field(_ text: String) -> String? {
        ascii(text).map { $0.contains(":") ? "[\($0)]" : $0 }
    }

    /// Returns a web origin as browsers write it in `Origin` (Fetch standard, section 3.1): lower
    /// case, without a default port.
    ///
    /// - Parameter text: `scheme://host[:port]` of any scheme; a slash after it is ignored.
    /// - Returns: nil if it is no origin, and for `null`, which any site can give a page by a
    ///   sandboxed frame.
    static func webOrigin(_ text: String) -> String? {
        if let url = try? AbsoluteURL(text) {
            guard url.pathAndQuery == "/", url.userinfo == nil, !text.contains("#") else {
                return nil
            }
            return url.origin.description
        }
        // Of an application or a browser's extension.
        let parts = text.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !["http", "https"].contains(parts[0].lowercased()),
            let letter = parts[0].utf8.first, ASCII.isLetter(letter),
            parts[0].utf8.allSatisfy({ ASCII.isAlphanumeric($0) || "+-.".utf8.contains($0) })
        else { return nil }
        let host = parts[1].hasSuffix("/") ? parts[1].dropLast() : parts[1]
        guard ascii(String(host), mayHavePort: true) != nil else { return nil }
        return ASCII.lowercased("\(parts[0])://\(host)")
    }
}
