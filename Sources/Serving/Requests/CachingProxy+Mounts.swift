// Requests under a mount: the store serves some, the others are passed through.
import CachePolicy
import Console
import HLS
import HTTP
import HTTPServer
import Model
import Numbers
import Routing
import URISyntax

extension CachingProxy {
    /// Answers a request under a mount for a URL at its origin.
    func handle(
        _ mount: Mount, _ target: AbsoluteURL, hasBody: Bool, for page: ForeignPage?,
        _ exchange: Exchange
    ) {
        let request = exchange.request
        let failure = tokenFault(request, given: nil)
        if Self.isPreflightOfRead(request), failure != nil || target.isNamedAsPlaylist {
            return answerPreflight(exchange)
        }
        if let failure { return refuse(failure, exchange) }
        guard !core.addresses.contains(target) else {
            return refuse(
                ProxyFailure(.client, .loopDetected, "the mount leads back to this daemon"),
                exchange)
        }
        if ForeignPage.isForeignChangeUnderMount(request, core.settings) {
            return refuse(.changeByPage, exchange)
        }
        let url = AccessToken.stripped(target, of: core.settings.token)
        let rules = core.keys.version
        let policy = core.keys.policy(of: url, in: KeyPlace(isMounted: true))
        guard mayStoreAnswer(request.method, hasBody: hasBody) else {
            guard policy != .offline else {
                if Self.isPreflightOfRead(request) {
                    return answerPreflight(exchange, mayBeRemembered: false)
                }
                return refuse(Self.unsent(request.method, to: url), exchange)
            }
            return passThrough(mount, url, exchange)
        }
        let isPlaylist = url.isNamedAsPlaylist
        let directives = QueryItem.items(of: url.query ?? "").filter {
            isPlaylist && $0.rawName.hasPrefix("_HLS_")
        }
        let live = LiveTerms(directives: DeliveryDirectives(directives))
        let named = live.directives == nil ? url : url.withoutDirectives
        let session = core.sessions.session(for: Entry(url: named))
        let kind = isPlaylist ? nil : core.settings.mountKind
        let mountUser = core.keys.mountUsers.user(of: url)
        var key = core.keys.cacheKey(
            of: named, session: session, role: nil, isMounted: true, as: mountUser)
        key.skip = live.directives?.skip
        if let kind { key.audience = .mount(kind) }
        var forwarded = fieldsForStore(request, kind)
        mountUser?.removeReplaced(from: &forwarded)
        let resource = Resource(
            .init(
                url: url, cacheKey: key, session: session, policy: policy,
                forwardedFields: forwarded, isMounted: true, kind: kind,
                mount: mount, live: live, mountUser: mountUser))
        start(resource, by: rules, for: page, exchange)
    }

    /// True if the store may serve the request; a GET with a body requests something that its URL
    /// alone does not identify.
    private func mayStoreAnswer(_ method: HTTPMethod, hasBody: Bool) -> Bool {
        method == .head || (method == .get && !hasBody)
    }

    /// The failure of a request that only the origin could answer, which the policy forbids to
    /// contact.
    private static func unsent(_ method: HTTPMethod, to url: AbsoluteURL) -> ProxyFailure {
        ProxyFailure(
            .us, .gatewayTimeout,
            "the policy offline forbids to send this \(method) to the origin of \(url.redacted)")
    }

    /// True for a preflight about reads.
    ///
    /// That of a playlist is answered here, since the playlist has Sluice's own CORS fields. Any
    /// other is for the origin, whose fields the response has and which gets the page's header
    /// fields; but browsers send no credentials with a preflight, and without the token, or under
    /// the policy offline, nothing reaches an origin.
    private static func isPreflightOfRead(_ request: RequestHead) -> Bool {
        guard request.method == .options, request.fields.contains(.origin),
            let asked = request.fields.first("Access-Control-Request-Method")
        else { return false }
        return asked == "GET" || asked == "HEAD"
    }

    // MARK: Pass-through

    private func passThrough(_ mount: Mount, _ url: AbsoluteURL, _ exchange: Exchange) {
        var fields = ownedFields(exchange.request)
        // Max-Forwards counts hops for OPTIONS (RFC 9110 section 7.6.2); TRACE is refused.
        if exchange.request.method == .options, let text = fields.first("Max-Forwards"),
            let hops = ExternalNumber.integer(text, in: 0...UInt32.max)
        {
            guard hops > 0 else { return answerAsLastHop(exchange) }
            fields.set("Max-Forwards", String(hops - 1))
        }
        let destination: AbsoluteURL?
        do throws(ProxyFailure) {
            destination = try self.destination(under: mount, exchange)
        } catch {
            return refuse(error, exchange)
        }
        if let destination {
            fields.set(MountDestination.field, destination.withoutUserinfo.text)
        }
        let target = PassthroughTarget(
            mount: mount, url: url, destination: destination, fields: fields)
        Passthrough(core: core, exchange: exchange, target: target).start()
    }

    /// Returns the URL at the origin that a WebDAV request names as its destination; nil for none.
    private func destination(
        under mount: Mount, _ exchange: Exchange
    ) throws(ProxyFailure) -> AbsoluteURL? {
        let request = exchange.request
        let destination = MountDestination(
            mount: mount, request: request,
            own: OwnOrigin(request, isEncrypted: exchange.isEncrypted, core.settings),
            basePath: LinkPrefix.path(of: request, core.settings), router: core.links.router)
        // A URL without a port is that of a proxy in front, which this daemon does not know.
        let found = try destination.url(isOwn: {
            core.addresses.contains($0)
                || ($0.explicitPort == nil && core.addresses.containsHost(of: $0))
        })
        return found.map { AccessToken.stripped($0, of: core.settings.token) }
    }

    func answerAsLastHop(_ exchange: Exchange) {
        var fields = Fields()
        fields.append(.allow, "GET, HEAD, OPTIONS")
        core.respond(
            exchange, own: ResponseHead(status: .noContent, fields: fields), body: .none)
    }

    // MARK: Fields for the origin

    /// Returns the end-to-end fields (RFC 9110 section 7.6.1) without Sluice's own secrets, plus
    /// those that Sluice adds.
    private func ownedFields(_ request: RequestHead) -> Fields {
        var forwarded = endToEndFields(request.fields)
        for name: FieldName in [.host, .expect, .contentLength] { forwarded.remove(name) }
        // The access token must not reach an origin.
        if let token = core.settings.token {
            if AccessToken.isAuthorization(of: request, token) {
                forwarded.remove(.authorization)
            }
            if AccessToken.isNamed(in: forwarded.combined("Referer"), token) {
                forwarded.remove("Referer")
            }
        }
        ConsoleSession.strip(&forwarded)
        Telemetry.strip(&forwarded)
        forwarded.set(.cdnLoop, core.addresses.cdnLoop(after: request))
        forwarded.append(.via, "\(request.version.viaName) sluice")
        return forwarded
    }

    /// Returns `ownedFields` without the fields about ranges and conditions, which the store
    /// answers for, and without codings if the body is read here.
    func fieldsForStore(_ request: RequestHead, _ kind: CacheKind?) -> Fields {
        var forwarded = ownedFields(request)
        for name: FieldName in [
            .range, .ifRange, .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince,
        ] { forwarded.remove(name) }
        if kind == nil { forwarded.remove(.acceptEncoding) }
        return forwarded
    }
}

extension AbsoluteURL {
    /// True if the URL is named like a playlist: under a mount it is parsed and rewritten, beyond
    /// HTTP's rules.
    var isNamedAsPlaylist: Bool {
        let name = ASCII.lowercased(lastPathSegment)
        return name.hasSuffix(".m3u8") || name.hasSuffix(".m3u")
    }
}
