// A configured origin: a path of the daemon that maps to a URL, as in a classic reverse proxy.
package import URISyntax

/// A mapping from a path to an origin's URL.
package struct Mount: Hashable, Sendable {
    /// Why the text of a mount is invalid.
    package enum Fault: Error, Hashable, Sendable, CustomStringConvertible {
        case noEquals(String)
        case badPath(String)
        case reserved(String)
        /// Clients change the path before they send it.
        case changing(String)
        /// The mount's path, and what is wrong with the URL.
        case badURL(String, String)

        package var description: String {
            switch self {
            case .noEquals(let text):
                "a mount is written PATH=URL, such as /demo/=https://cdn.example.com/vod/, not '\(text)'"
            case .badPath(let path): "the mount path '\(path)' must start and end with a slash"
            case .reserved(let path):
                "the mount path '\(path)' would hide one of the daemon's own: /proxy, /api, /console, /metrics, /http:, /https:, and those of one character; choose another"
            case .changing(let path):
                "no request reaches the mount path '\(path)': clients remove the segments . and .., and end the path at ? and #; write it without them"
            case .badURL(let path, let reason):
                "the mount \(path) leads to no http or https URL: \(reason)"
            }
        }
    }

    /// Starts and ends with "/".
    package let path: String
    /// The URL that `path` maps to; its own path ends with "/".
    ///
    /// It has a stand-in for the mount's user information and header fields: links show players
    /// what follows from it.
    package private(set) var origin: AbsoluteURL
    /// The user information of requests to the origin; nil for none.
    package let userinfo: String?
    /// The header fields that requests to the origin have besides; no name occurs twice.
    package private(set) var headers: [Entry.Header] = []

    /// Parses `PATH=URL`.
    ///
    /// Missing slashes at the end of either side are added.
    package init(_ text: String) throws(Fault) {
        guard let equals = text.firstIndex(of: "=") else { throw .noEquals(text) }
        var path = String(text[..<equals])
        var target = String(text[text.index(after: equals)...])
        guard path.hasPrefix("/") else { throw .badPath(path) }
        if !path.hasSuffix("/") { path += "/" }
        guard !Self.isChangedByClients(path) else { throw .changing(path) }
        guard Router.mayMount(path) else { throw .reserved(path) }
        if !target.hasSuffix("/") { target += "/" }
        do throws(URIError) {
            let given = try AbsoluteURL(target)
            userinfo = given.userinfo
            origin = try given.userinfo == nil ? given : given.withStandIn(forMount: path)
        } catch {
            throw .badURL(path, error.description)
        }
        guard origin.query == nil else { throw .badURL(path, "it has a query") }
        self.path = path
    }

    /// True if clients send another path: they remove dot segments, encoded ones too (RFC 3986
    /// section 5.2.4, WHATWG URL section 4.1), and a query and a fragment are no part of a path.
    private static func isChangedByClients(_ path: String) -> Bool {
        path.utf8.contains { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
            || path.split(separator: "/").contains { segment in
                let decoded = PercentCoding.decode(segment)
                return decoded == "." || decoded == ".."
            }
    }

    /// Adds a header field to the requests to the origin.
    ///
    /// - Throws: why the mount cannot have it.
    package mutating func add(_ header: Entry.Header) throws(MountHeader.Fault) {
        if let reason = MountHeader.reason(against: header, in: self) {
            throw .refused(path: path, reason)
        }
        if !origin.hasStandIn {
            do throws(URIError) {
                origin = try origin.withStandIn(forMount: path)
            } catch {
                throw .refused(path: path, error.description)
            }
        }
        headers.append(header)
    }

    /// What the origin may tell requests of this mount from others by: user information and header
    /// fields; nil without any.
    package var secret: String? {
        guard !headers.isEmpty else { return userinfo }
        // User information contains no line feed.
        return headers.map { "\n\(ASCII.lowercased($0.name)): \($0.value)" }.sorted()
            .reduce(userinfo.map { "\($0)@" } ?? "", +)
    }

    /// Returns the origin's URL for the rest of a path after the mount's, query included.
    package func url(for rest: Substring) throws(URIError) -> AbsoluteURL {
        try AbsoluteURL(bytes: origin.bytes + Array(rest.utf8))
    }
}
