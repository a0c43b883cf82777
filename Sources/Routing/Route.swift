// The meanings of request targets: what `Router` returns.
package import HLS
package import HTTP
package import URISyntax

/// A URL that a user typed or a page contains: the start of a session.
package struct Entry: Hashable, Sendable {
    package var url: AbsoluteURL
    /// `h_<Name>=<value>` arguments: request headers of the session.
    package var headers: [Header] = []
    /// The access token given as an argument, if any.
    package var token: String?
    /// The window length of a live stream in seconds; nil for the origin's.
    package var window: Int?
    /// The highest variants that the session is offered.
    package var limit: VariantLimit

    /// One header of a session.
    package struct Header: Hashable, Sendable {
        package let name: String
        package let value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    package init(
        url: AbsoluteURL, headers: [Header] = [], token: String? = nil, window: Int? = nil,
        limit: VariantLimit = .none
    ) {
        self.url = url
        self.headers = headers
        self.token = token
        self.window = window
        self.limit = limit
    }
}

/// A URL out of a rewritten playlist.
package struct RewrittenLink: Sendable {
    package let role: ResourceRole
    /// The text of the handle in the path.
    package let handle: Substring
    /// The path after the handle.
    package let fileName: Substring
    /// The text of the handle in the query of a link into a live list.
    package let origin: Substring?
    /// The `_HLS_` query items, raw.
    package let directives: [QueryItem]
    /// The changes by a cloned pathway; nil for an unchanged link.
    package let pathway: PathwayMove?
    /// The text of the sealed session before the link; nil for a link without one.
    package internal(set) var sealed: Substring?
    /// The text of the sealed cookies in the query; nil for a link without them.
    package let cookies: Substring?

    /// The name of the query argument with the sealed cookies of the session.
    package static let cookieArgument = "c"

    /// The handle of the origin URL, without checking signatures.
    ///
    /// For a link into a live list that lost its query, the handle of the list; nil if it is
    /// malformed.
    package var unchecked: Handle? {
        guard let path = try? Handle(text: handle.utf8) else { return nil }
        guard case .list = path.target, let origin else { return path }
        return (try? Handle(text: origin.utf8)).flatMap { $0.session == path.session ? $0 : nil }
    }

    /// The place in a live list that the link leads to; nil for a file name that is not a place.
    package var place: LivePlace? { LivePlace(fileName: fileName, role: role) }

    /// True if the file name is the one that a link to a URL has, perhaps with another ending, or
    /// is absent.
    ///
    /// A player that resolves a relative URL in a file against the link to it asks for the same
    /// handle under another name. Only the names of links to whole files follow from the URL alone.
    package func mayName(_ url: AbsoluteURL) -> Bool {
        guard role == .media, !fileName.isEmpty else { return true }
        var name: [UInt8] = []
        role.appendSafeFileName(for: url, hasMap: false, to: &name)
        let stem = name[..<(name.lastIndex(of: 0x2E) ?? name.endIndex)]
        guard fileName.utf8.starts(with: stem) else { return false }
        // Players append to a link what they would to the origin's URL.
        guard let next = fileName.utf8.dropFirst(stem.count).first else { return true }
        return !ASCII.isAlphanumeric(next) && next != 0x2D && next != 0x5F
    }

    /// The use that the handle in the query must be signed for.
    package var originUse: HandleUse {
        var path = Array(handle.utf8)
        path.append(0x2F)
        place?.append(to: &path)
        return .origin(role, path: path)
    }
}

/// The result of routing.
package enum Route: Sendable {
    case entry(Entry)
    case rewritten(RewrittenLink)
    case mount(Mount, AbsoluteURL)
    /// What another cache asks for of us as its parent.
    case forChild(ResourceRole, AbsoluteURL)
    /// One of the daemon's own pages; the path as it came.
    case own(path: String)
    /// None of the daemon's forms: the reason, for the client.
    case refused(HTTPStatus, String)
}
