// What pages of other sites may request and read without consent.
//
// A page may play public streams through the daemon; it must not use the daemon to reach a network
// that it cannot reach itself. Decision 18 gives the reasons.
import HTTP
import Model
import URISyntax

/// A page of another site for which a browser sends a request.
struct ForeignPage {
    /// Held instead of its settings, whose copy would cost more than the rest of a classification.
    private let core: ProxyCore

    /// Classifies a request; nil unless such a page sends it and must not reach each URL.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - core: its settings name the origins that have consent.
    init?(of request: RequestHead, _ core: ProxyCore) {
        // Without access to private networks, and without passwords and header fields of mounts,
        // every URL is public; most requests end here.
        guard core.settings.reachesPrivate || core.keys.mountUsers.areGiven,
            Self.isSender(of: request, core.settings)
        else { return nil }
        self.core = core
    }

    /// True if a browser sends a request for a page of another site that has no consent.
    ///
    /// - Parameters:
    ///   - request: browsers send the page's origin in cross-origin reads, and its relation to the
    ///     target in all requests over TLS or to this machine (Fetch standard, Fetch Metadata).
    ///   - settings: they name the origins that have consent; a copy takes longer than all else here,
    ///     and most requests need none.
    /// - Returns: false for players, for the daemon's own pages, for pages of this machine and of
    ///   origins named with `--cors-origin`, and for links that a user follows.
    static func isSender(
        of request: RequestHead, _ settings: @autoclosure () -> ProxySettings
    ) -> Bool {
        if let origin = request.fields.first(.origin) {
            return isForeign(origin, request, settings())
        }
        return relation(of: request) == "cross-site"
            && request.fields.first("Sec-Fetch-Mode") != "navigate"
    }

    /// Returns the failure for a request to a URL; nil if the page may send it.
    func fault(at url: AbsoluteURL) -> ProxyFailure? {
        if url.hasStandIn { return .hiddenMount }
        return core.settings.mayBePrivate(url.asciiHost) ? .hiddenFromPages : nil
    }

    /// True if a request that changes something is sent for a page of another origin.
    ///
    /// Browsers send `Origin` with each POST; a request without it and `Sec-Fetch-Site` does not
    /// come from one.
    static func isForeignChange(_ request: RequestHead, _ settings: ProxySettings) -> Bool {
        let relation = relation(of: request)
        if relation == "cross-site" { return true }
        guard let origin = request.fields.first(.origin) else { return relation == "same-site" }
        return !isOwn(origin, request, settings)
    }

    /// True if a request for data of the daemon itself, or with a password that the browser keeps,
    /// is sent for a page of another site, which could not read the response; false for a link that
    /// a person follows.
    ///
    /// Neither commands nor curl send `Origin` or `Sec-Fetch-Site`.
    static func isForeignReading(_ request: RequestHead, _ settings: ProxySettings) -> Bool {
        if isSender(of: request, settings) { return true }
        // A frame navigates too.
        return !request.fields.contains(.origin) && relation(of: request) == "cross-site"
            && request.fields.first("Sec-Fetch-Dest") != "document"
    }

    /// True if a request that changes something at a mount's origin is sent for a page of another
    /// site that has no consent.
    ///
    /// The browser's word that the page is the mount's own comes first: a proxy in front may have
    /// replaced the host that the page was loaded from.
    static func isForeignChangeUnderMount(
        _ request: RequestHead, _ settings: ProxySettings
    ) -> Bool {
        if request.method.isSafe { return false }
        let relation = relation(of: request)
        if relation == "same-origin" { return false }
        guard let origin = request.fields.first(.origin) else {
            return relation == "cross-site" || relation == "same-site"
        }
        return isForeign(origin, request, settings)
    }

    /// True if a browser sends this for one of the daemon's pages, or because its user typed the
    /// address.
    ///
    /// Cookies do not prove that: browsers send them to every port of a host, for pages on any of
    /// them.
    static func isOwnPage(_ request: RequestHead, _ settings: ProxySettings) -> Bool {
        if let relation = relation(of: request), !["same-origin", "none"].contains(relation) {
            return false
        }
        return request.fields.first(.origin).map { isOwn($0, request, settings) } ?? true
    }

    /// The field that a change must have: a page of another site can send it only after a
    /// preflight, which is refused (Fetch standard, CORS-safelisted request headers).
    static let proof: FieldName = "Sluice-Request"

    /// True if a 401 may make a browser show its dialog for a password.
    ///
    /// False for pages of other sites, and for scripts of the console, which has a form for the
    /// token.
    static func mayAskForPassword(_ request: RequestHead, _ settings: ProxySettings) -> Bool {
        !request.fields.contains(proof) && request.fields.first("Sec-Fetch-Dest") != "empty"
            && !request.fields.all(.accept).contains("text/event-stream")
            && !isForeignReading(request, settings)
    }

    /// True if a change has something that a page of another site cannot send without a preflight:
    /// the field above, credentials in a header other than Basic, which browsers may add to any
    /// form, or a method or content type that forms cannot have.
    static func isProved(_ request: RequestHead) -> Bool {
        if request.method != .post { return true }
        if request.fields.contains(proof) { return true }
        if let credentials = request.fields.first(.authorization),
            !AccessToken.isBasic(credentials)
        {
            return true
        }
        guard let type = request.fields.first(.contentType) else { return false }
        let essence = type.prefix { $0 != ";" }.filter { $0 != " " }.lowercased()
        return essence == "application/json"
    }

    private static func relation(of request: RequestHead) -> String? {
        request.fields.first("Sec-Fetch-Site")
    }

    /// True for the origin of the daemon's own pages.
    ///
    /// Either scheme, and the host that was asked or forwarded: a proxy in front may encrypt without
    /// saying so, and state the host without its port.
    private static func isOwn(
        _ origin: String, _ request: RequestHead, _ settings: ProxySettings
    ) -> Bool {
        [OwnOrigin.host(request, settings), request.host].contains { host in
            guard let host else { return false }
            return origin == "http://\(host)" || origin == "https://\(host)"
        }
    }

    private static func isForeign(
        _ origin: String, _ request: RequestHead, _ settings: ProxySettings
    ) -> Bool {
        if isOwn(origin, request, settings) || settings.credentialedOrigins.contains(origin) {
            return false
        }
        // Servers on this machine are trusted as its user's own.
        guard let host = (try? AbsoluteURL("\(origin)/"))?.asciiHost else { return true }
        return !["localhost", "127.0.0.1", "::1", "[::1]"].contains(host)
            && !host.hasSuffix(".localhost")
    }
}
