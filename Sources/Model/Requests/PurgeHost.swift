import Numbers
import URISyntax

/// What a purge by host selects: the objects of one host, from all its origins or from one.
package struct PurgeHost: Hashable, Sendable {
    /// The scheme, if a web origin was given.
    private let scheme: Scheme?
    /// The host as stored URLs have it: in ASCII, an IPv6 address in brackets.
    package let name: String
    /// The port; nil for all.
    private let port: UInt16?

    /// Reads `host`, `host:port` or a web origin such as `http://host:port`, as `sluice origins`
    /// prints them; nil if a text is none of these.
    package init?(_ text: String) {
        // Hosts are compared whole: a pattern would match nothing.
        guard !text.contains("*") else { return nil }
        let isOrigin = text.contains("://")
        guard let url = isOrigin ? try? AbsoluteURL(text) : AbsoluteURL(authority: text),
            url.pathAndQuery == "/", url.userinfo == nil, !text.contains("#")
        else { return nil }
        name = url.hasIPv6Host ? "[\(url.asciiHost)]" : url.asciiHost
        scheme = isOrigin ? url.scheme : nil
        port = isOrigin ? url.port : url.explicitPort
    }

    /// The text from which `init` makes the same value.
    package var text: String {
        (scheme.map { $0.name + "://" } ?? "") + name + (port.map { ":\($0)" } ?? "")
    }

    /// True if a stored URL, which is normalised, is of this host.
    package func matches(_ url: String) -> Bool {
        guard let authority = Self.authority(inURL: url), Self.name(inURL: url) == name[...] else {
            return false
        }
        let own: Scheme = url.hasPrefix(Scheme.http.name + ":") ? .http : .https
        guard scheme == nil || own == scheme else { return false }
        guard let port else { return true }
        let digits = authority.dropFirst(name.count + 1)
        return digits.isEmpty
            ? port == own.defaultPort : ExternalNumber.integer(digits, in: 0...UInt16.max) == port
    }

    /// Returns the host of a stored URL, which is normalised, as `name` has it; nil for other
    /// texts.
    package static func name(inURL url: String) -> Substring? {
        guard let authority = authority(inURL: url) else { return nil }
        guard authority.first == "[" else { return authority.prefix { $0 != ":" } }
        return authority.firstIndex(of: "]").map { authority[...$0] }
    }

    /// Returns host and explicit port of a stored URL; nil for other texts.
    package static func authority(inURL url: String) -> Substring? {
        guard let start = url.firstRange(of: "://") else { return nil }
        return url[start.upperBound...].prefix { $0 != "/" && $0 != " " }
    }
}
