import ArgumentParser
import HLS
import HTTP
import Model
import Routing
import URISyntax

/// An origin's URL as it is given on the command line, with headers behind it as in Kodi, and beside it.
struct GivenURL {
    let url: AbsoluteURL
    /// The URL as it can stand in a request line: without a fragment, which clients keep to
    /// themselves (RFC 9110 section 7.1).
    var text: String { url.text }
    /// Those behind the URL last.
    let headers: [(name: String, value: String)]
    /// The length of the time-shift window in seconds that a daemon's URL had; nil for none.
    private(set) var window: Int?
    /// The limit of variants that a daemon's URL had.
    private(set) var limit = VariantLimit.none

    /// - Parameters:
    ///   - text: a URL, or `URL|Name=value&Name=value` with percent-encoded values.
    ///   - fields: further headers.
    /// - Throws: `ValidationError` for what is no URL or no header.
    init(_ text: String, fields: [(name: String, value: String)] = []) throws {
        let split = PlayerHeaders.split(Array(text.utf8))
        if let fault = split.flatMap({ PlayerHeaders.fault(of: $0.headers) }) {
            throw ValidationError(fault)
        }
        for field in fields {
            guard let fault = Entry.Header(name: field.name, value: field.value).fault else {
                continue
            }
            throw ValidationError("the header \(field.name) \(fault)")
        }
        headers = fields + (split?.headers ?? []).map { (name: $0.name, value: $0.value) }
        let encoded = Self.encoded(split.map { String(decoding: $0.url, as: UTF8.self) } ?? text)
        do throws(URIError) {
            url = try Self.withASCIIHost(AbsoluteURL(encoded))
        } catch {
            // User information and queries may hold secrets.
            let shown = encoded.prefix { $0 != "?" }.split(separator: "@").last ?? ""
            let hint = text.contains("://") || !text.contains(".") ? "" : "; try https://\(shown)"
            throw ValidationError("the URL '\(shown)' is not usable: \(error)\(hint)")
        }
    }

    /// Returns the origin's URL in one of a daemon: in an entry of any form, or in a link.
    ///
    /// Its headers are those of the entry, and those that were given here, which win; its access
    /// token is dropped.
    ///
    /// - Parameters:
    ///   - base: the base URL of the daemon that is meant, without a slash at its end.
    ///   - basePath: the base path that URLs of daemons on this machine may have; "" or "/x".
    /// - Returns: nil for URLs of hosts other than this machine and that of `base`: such a path
    ///   there may be a proxy that is meant.
    /// - Throws: `ValidationError` if what is behind the daemon's address is no URL, or a link of
    ///   which only the daemon has the URL, or its mount's user information.
    func behindDaemon(at base: String? = nil, basePath: String = "") throws -> GivenURL? {
        guard let rest = rest(at: base, basePath: basePath) else { return nil }
        // Kept as it is written.
        if rest.hasPrefix("http://") || rest.hasPrefix("https://") {
            return try GivenURL(String(rest), fields: headers)
        }
        switch Router(mounts: []).route(RequestHead(method: .get, target: "/\(rest)")) {
        case .entry(let entry):
            let given = Set(headers.map { ASCII.lowercased($0.name) })
            let others = entry.headers.filter { !given.contains(ASCII.lowercased($0.name)) }
                .map { (name: $0.name, value: $0.value) }
            var found = try GivenURL(entry.url.text, fields: others + headers)
            found.window = entry.window
            found.limit = entry.limit
            return found
        case .rewritten(let link):
            switch link.unchecked?.target {
            case .name, .list:
                throw ValidationError(
                    "the link is a short form, and only its daemon knows what it stands for: give the origin's URL"
                )
            case .url, .packed, nil: break
            }
            guard let url = link.uncheckedURL else { return nil }
            guard !url.hasStandIn else {
                throw ValidationError(
                    "the link is of a mount with user information or header fields, which only its daemon has: give the path of the mount there"
                )
            }
            return try GivenURL(url.text, fields: headers)
        default: return nil
        }
    }

    /// Returns what is behind the slash after a daemon's base URL; nil for a URL of no daemon.
    private func rest(at base: String?, basePath: String) -> Substring? {
        if let base, text.hasPrefix(base + "/") { return text.dropFirst(base.count + 1) }
        let names = ["127.0.0.1", "localhost", "[::1]"]
        let behind = text.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        guard behind.count == 4, behind[0] == "http:" || behind[0] == "https:",
            names.contains(where: { behind[2] == $0 || behind[2].hasPrefix($0 + ":") })
        else { return nil }
        guard !basePath.isEmpty, "/\(behind[3])".hasPrefix("\(basePath)/") else { return behind[3] }
        return behind[3].dropFirst(basePath.count)
    }

    /// The headers as lines of a request.
    var lines: [String] { headers.map { "\($0.name): \($0.value)" } }

    /// The entry URL of a daemon.
    ///
    /// - Parameters:
    ///   - base: the daemon's, without a slash at its end.
    ///   - arguments: names and values of what the session sees, such as `dvr` and `2h`.
    ///   - token: the daemon's access token.
    /// - Returns: the form with everything in the query.
    func entry(
        at base: String, _ arguments: [(name: String, value: String)] = [], token: String? = nil
    ) -> String {
        var all = [("url", text)] + headers.map { ("h_\($0.name)", $0.value) }
        all += arguments.map { ($0.name, $0.value) }
        if let token { all.append(("token", token)) }
        return "\(base)/proxy?\(daemonQuery(all))"
    }

    /// Returns the URL with a host that every client sends as it is: many encode the bytes of a host
    /// beyond ASCII, which not all servers read.
    private static func withASCIIHost(_ url: AbsoluteURL) throws(URIError) -> AbsoluteURL {
        let host = url.hostRange
        guard url.bytes[host].contains(where: { $0 >= 0x80 || $0 == UInt8(ascii: "%") }) else {
            return url
        }
        var bytes = url.bytes
        bytes.replaceSubrange(host, with: url.asciiHost.utf8)
        return try AbsoluteURL(bytes: bytes)
    }

    /// Blanks and what else no URL holds are percent-encoded behind the authority; escapes stay as they
    /// are.
    private static func encoded(_ text: String) -> String {
        guard let start = text.firstRange(of: "://")?.upperBound,
            let path = text[start...].firstIndex(where: { "/?#".contains($0) })
        else { return text }
        var bytes = Array(text[..<path].utf8)
        for byte in text[path...].utf8 {
            // Not URI characters (RFC 3986 appendix A); brackets are common in queries and do work.
            if byte <= 0x20 || byte >= 0x7F || "\"<>\\^`{|}".utf8.contains(byte) {
                PercentCoding.append(byte, to: &bytes)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension RewrittenLink {
    /// The origin's URL in a link, without checking signatures; nil where only the daemon knows it.
    var uncheckedURL: AbsoluteURL? {
        switch unchecked?.target {
        case .url(let url): url
        case .packed(let packed): LongURL.url(of: packed)
        case .name, .list, nil: nil
        }
    }
}
