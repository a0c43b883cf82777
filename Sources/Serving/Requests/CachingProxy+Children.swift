// Requests of child caches, which get the origin's bytes unchanged, playlists too.
import CachePolicy
import HLS
import HTTP
import HTTPServer
import Model
import Posix
import Routing
import URISyntax

extension CachingProxy {
    /// Answers what another cache asks for, by HTTP's own caching rules.
    ///
    /// The child rewrites playlists, keeps cookies and follows redirects. A browser cannot be made
    /// to show this as a page of the daemon: browsers send no `CDN-Loop` by themselves.
    func handle(
        _ role: ResourceRole, _ url: AbsoluteURL, for page: ForeignPage?, _ exchange: Exchange
    ) {
        let request = exchange.request
        if let failure = childFault(request, url) { return refuse(failure, exchange) }
        let session = core.sessions.session(for: Entry(url: url))
        let kind = core.settings.mountKind
        let rules = core.keys.version
        var key = core.names.keys.cacheKey(of: url, session: session, role: nil, isMounted: true)
        key.audience = .children(kind)
        var live = LiveTerms.none
        // Held by the origin until there is something to say; that takes no slot.
        let directives = QueryItem.items(of: url.query ?? "").filter { $0.rawName == "_HLS_msn" }
        if role == .part || !directives.isEmpty {
            live.longestHold = LivePosition.longestHold(.seconds(Self.usualTarget))
        }
        // Whether a list is live is not known here: HTTP's rules decide how long it holds.
        var policy = core.keys.policy(of: url, in: KeyPlace(isMounted: true))
        if policy == .media { policy = .rfc }
        let resource = Resource(
            .init(
                url: url, cacheKey: key, session: session,
                role: role == .playlist || role == .json ? nil : role, policy: policy,
                forwardedFields: fieldsForStore(request, kind), isMounted: true, kind: kind,
                isVerbatim: true, live: live))
        start(resource, by: rules, for: page, exchange)
    }

    /// The target duration, in seconds, of a list that nobody has read here.
    private static let usualTarget: Int64 = 10

    private func childFault(_ request: RequestHead, _ url: AbsoluteURL) -> ProxyFailure? {
        if core.addresses.isNamed(inViaOf: request) {
            return ProxyFailure(.client, .loopDetected, "the request came from this daemon")
        }
        if let failure = tokenFault(
            request,
            given: request.fields.first(.proxyAuthorization).flatMap(AccessToken.password))
            ?? methodFault(request)
        {
            return failure
        }
        guard request.fields.contains(.cdnLoop) else {
            return ProxyFailure(
                .client, .badRequest,
                "this form is for caches that name this daemon with --parent; players open /https://host/..."
            )
        }
        guard !core.addresses.contains(url) else {
            return ProxyFailure(.client, .loopDetected, "the URL leads back to this daemon")
        }
        return nil
    }
}
