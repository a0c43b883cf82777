// Pages of other sites: what they may ask for, and read, without anybody's consent.
//
// A page may play public streams through the daemon; it may not use the daemon to reach a network that
// it cannot reach itself. Decision 18 gives the reasons.
import HTTP
import Model
import URISyntax

/// The page of another site that a browser sends a request for.
struct ForeignPage {
    private let settings: ProxySettings

    /// Looks at a request; nil for players, for pages of ours, of this machine and of origins that
    /// were named with `--cors-origin`, and for links that a person follows.
    ///
    /// - Parameters:
    ///   - request: browsers name the page's origin in reads across origins, and its relation to us
    ///     in all requests (Fetch standard, Fetch Metadata).
    ///   - settings: which origins have consent.
    init?(of request: RequestHead, _ settings: ProxySettings) {
        // Without a way to private networks there is nothing to protect: hardly a request gets further.
        guard settings.reachesPrivate else { return nil }
        if let origin = request.fields.first(.origin) {
            guard Self.isForeign(origin, request, settings) else { return nil }
        } else {
            guard Self.relation(of: request) == "cross-site",
                request.fields.first("Sec-Fetch-Mode") != "navigate"
            else { return nil }
        }
        self.settings = settings
    }

    /// What a request for a URL is told; nil where the page may ask for it.
    func fault(at url: AbsoluteURL) -> ProxyFailure? {
        guard settings.mayBePrivate(url.asciiHost) else { return nil }
        var failure = ProxyFailure(
            .client, .forbidden,
            "pages of other sites may not reach what --allow-private or --allow-host opens; "
                + "allow this one with --cors-origin")
        failure.isHiddenFromPages = true
        return failure
    }

    /// Whether a request that changes something is sent for a page of another origin.
    ///
    /// A request without `Origin` and `Sec-Fetch-Site` is no browser's.
    static func isForeignChange(_ request: RequestHead) -> Bool {
        let relation = relation(of: request)
        if relation == "cross-site" { return true }
        guard let origin = request.fields.first(.origin) else { return relation == "same-site" }
        return !isOwn(origin, request)
    }

    /// Whether a browser sends this for a page of ours, or because its user typed the address.
    ///
    /// Cookies do not tell: browsers send them to every port of a host, for pages on any of them.
    static func isOwnPage(_ request: RequestHead) -> Bool {
        if let relation = relation(of: request), !["same-origin", "none"].contains(relation) {
            return false
        }
        return request.fields.first(.origin).map { isOwn($0, request) } ?? true
    }

    /// The field that a change has to have: a page of another site can send it only after asking, and is
    /// not allowed to (Fetch standard, CORS-safelisted request headers).
    static let proof: FieldName = "Sluice-Request"

    /// Whether a change carries what no page of another site can send unasked: the field above,
    /// credentials in a header, or a method or type of content that forms do not have.
    static func isProved(_ request: RequestHead) -> Bool {
        if request.method != .post { return true }
        if request.fields.contains(proof) || request.fields.contains(.authorization) { return true }
        guard let type = request.fields.first(.contentType) else { return false }
        let essence = type.prefix { $0 != ";" }.filter { $0 != " " }.lowercased()
        return essence == "application/json"
    }

    private static func relation(of request: RequestHead) -> String? {
        request.fields.first("Sec-Fetch-Site")
    }

    private static func isOwn(_ origin: String, _ request: RequestHead) -> Bool {
        guard let host = request.host else { return false }
        return origin == "http://\(host)" || origin == "https://\(host)"
    }

    private static func isForeign(
        _ origin: String, _ request: RequestHead, _ settings: ProxySettings
    ) -> Bool {
        if isOwn(origin, request) || settings.credentialedOrigins.contains(origin) { return false }
        // What this machine serves is its user's own.
        guard let host = (try? AbsoluteURL("\(origin)/"))?.asciiHost else { return true }
        return !["localhost", "127.0.0.1", "::1", "[::1]"].contains(host)
            && !host.hasSuffix(".localhost")
    }
}
