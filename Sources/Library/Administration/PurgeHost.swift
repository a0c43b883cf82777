import Numbers
import URISyntax

/// What a purge by host selects: the objects of one host, from all its origins or from one.
package struct PurgeHost: Equatable, Sendable {
    /// The scheme, if a web origin was given.
    private let scheme: Scheme?
    /// The host as stored URLs have it: in ASCII, an IPv6 address in brackets.
    private let host: String
    /// The port; nil for all.
    private let port: UInt16?

    /// Reads `host`, `host:port` or a web origin such as `http://host:port`, as `sluice origins` prints
    /// them; nil if a text is none of these.
    package init?(_ text: String) {
        // Hosts are compared whole: a pattern would match nothing.
        guard !text.contains("*") else { return nil }
        let isOrigin = text.contains("://")
        guard let url = isOrigin ? try? AbsoluteURL(text) : AbsoluteURL(authority: text),
            url.pathAndQuery == "/", url.userinfo == nil, !text.contains("#")
        else { return nil }
        host = url.hasIPv6Host ? "[\(url.asciiHost)]" : url.asciiHost
        scheme = isOrigin ? url.scheme : nil
        port = isOrigin ? url.port : url.explicitPort
    }

    /// The text from which `init` makes the same value.
    package var text: String {
        (scheme.map { $0.name + "://" } ?? "") + host + (port.map { ":\($0)" } ?? "")
    }

    /// True if a stored URL, which is normalised, is of this host.
    package func matches(_ url: String) -> Bool {
        guard let start = url.firstRange(of: "://"),
            let authority = StoreAdministration.authority(of: url), authority.hasPrefix(host)
        else { return false }
        let own: Scheme = url[..<start.lowerBound] == Scheme.http.name ? .http : .https
        guard scheme == nil || own == scheme else { return false }
        let rest = authority.dropFirst(host.count)
        guard rest.isEmpty || rest.first == ":" else { return false }
        guard let port else { return true }
        guard !rest.isEmpty else { return port == own.defaultPort }
        return ExternalNumber.integer(rest.dropFirst(), in: 0...UInt16.max) == port
    }
}
