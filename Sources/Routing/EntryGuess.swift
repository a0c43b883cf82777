// Guesses the intended entry of a path that matches nothing.
import HTTP
import Numbers
package import URISyntax

/// Finds the origin's URL in a path that is nearly an entry.
package enum EntryGuess {
    /// Returns the URL that a path was probably meant to play; nil if there is no sign of one.
    ///
    /// `//http://host/x`, `/http:/host/x`, `/http%3A%2F%2Fhost/x` and `/cdn.example.com/x.m3u8`
    /// contain one.
    ///
    /// - Parameter path: as received, without its query, which may contain secrets.
    /// - Returns: a URL with a host and without user information.
    package static func url(in path: String) -> AbsoluteURL? {
        guard path.utf8.count <= 2_000 else { return nil }
        var text = String(path.drop { $0 == "/" })
        let lower = ASCII.lowercased(text)
        if lower.hasPrefix("http%3a") || lower.hasPrefix("https%3a") {
            text = PercentCoding.decode(text[...])
        }
        for scheme in ["https:", "http:"] where ASCII.lowercased(text).hasPrefix(scheme) {
            let rest = text.dropFirst(scheme.utf8.count).drop { $0 == "/" }
            return checked("\(scheme)//\(rest)")
        }
        guard isHost(text.prefix { $0 != "/" }) else { return nil }
        return checked("https://\(text)")
    }

    private static func checked(_ text: String) -> AbsoluteURL? {
        // Other characters would have to be escaped in the response.
        let isPlain = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"<>\"'&".utf8.contains($0) }
        guard isPlain, let url = try? AbsoluteURL(text), isHost(Substring(url.asciiHost)) else {
            return nil
        }
        return url.text.contains("@") ? nil : url
    }

    /// True if a text is a name with a top-level domain, an address or `localhost`, with or without
    /// a port.
    private static func isHost(_ text: Substring) -> Bool {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard let name = parts.first, parts.count <= 2 else { return false }
        if parts.count == 2, ExternalNumber.integer(parts[1], in: 0...65_535) == nil {
            return false
        }
        if name == "localhost" { return true }
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        guard labels.count >= 2, let last = labels.last else { return false }
        let isName = labels.allSatisfy { label in
            !label.isEmpty && label.utf8.allSatisfy { ASCII.isAlphanumeric($0) || $0 == 0x2D }
        }
        guard isName else { return false }
        if labels.count == 4, labels.allSatisfy({ ExternalNumber.integer($0, in: 0...255) != nil })
        {
            return true
        }
        // A file such as favicon.ico is not a host: file names end a path, hosts begin it.
        return last.utf8.count >= 2 && !last.utf8.contains(where: ASCII.isDigit)
    }
}
