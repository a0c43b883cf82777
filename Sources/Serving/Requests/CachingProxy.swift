// The requests of one server loop: access control, routing and dispatch.
import Ahead
import Console
import HLS
package import HTTP
package import HTTPServer
import Logging
import Lookahead
import Model
import Numbers
import Posix
import Reactor
import Routing
import Store
import TimeShifting
import URISyntax

/// Answers the requests of one loop.
package final class CachingProxy: RequestHandler {
    let core: ProxyCore
    private let pages: OwnPages
    // Values, read and changed by calls that do not re-enter.
    @exclusivity(unchecked) private var recent = RecentResources()
    /// The last accepted `Host`, byte for byte.
    @exclusivity(unchecked) private var ownHost: ArraySlice<UInt8>?
    /// The last forwarded fields, with the `User-Agent` that they were made from: one player always
    /// sends the same.
    @exclusivity(unchecked) private var forwarded: (agent: ArraySlice<UInt8>?, fields: Fields)?
    /// Counts a client that left before there was a response; made once, since most do not leave.
    private let noteEnd: (ResponseOutcome) -> Void

    package init(core: ProxyCore, status: StatusSource) {
        self.core = core
        pages = OwnPages(core: core, status: status)
        noteEnd = { [counters = core.counters] in counters.noteLeft($0) }
    }

    package func handle(_ request: RequestHead, body: RequestBody?, exchange: Exchange) {
        core.counters.add(.requests)
        core.counters.add(request.version < .http2 ? .http1Requests : .http2Requests)
        if core.events.isRecording { exchange.record = AccessRecord(core, exchange) }
        if let hit = exchange.repeated?.finding as? RepeatedHit, hit.answer(exchange) { return }
        exchange.onFinish = noteEnd
        if let failure = hostFault(request, exchange) { return refuse(failure, exchange) }
        if core.addresses.isLooped(request) {
            return refuse(
                ProxyFailure(.client, .loopDetected, "the request came from this daemon"), exchange)
        }
        if request.method == .trace || request.method == .connect {
            return refuse(
                ProxyFailure(
                    .client, .notImplemented,
                    "this daemon does not support the method \(request.method)"),
                exchange)
        }
        let page = ForeignPage(of: request, core)
        // A target was remembered only after its token or signature was verified; entries are not
        // remembered if there is a token, since it may be outside the target. The version is read
        // before all that is kept under it is checked.
        let rules = core.keys.version
        if methodFault(request) == nil, let resource = recent.resource(for: request, keys: rules) {
            if let failure = page?.fault(at: resource.url) { return refuse(failure, exchange) }
            return start(resource, by: rules, for: page, exchange)
        }
        let route = core.links.router.route(request)
        if let page, let failure = pageFault(page, route) { return refuse(failure, exchange) }
        switch route {
        case .mount(let mount, let url):
            handle(mount, url, hasBody: body != nil, for: page, exchange)
        case .forChild(let role, let url):
            handle(role, url, for: page, exchange)
        // Of the server as a whole (RFC 9110 section 9.3.7).
        case _ where request.method == .options && request.target == "*":
            answerAsLastHop(exchange)
        case .own(let path):
            // Own pages are not open to other sites: OPTIONS of one is no preflight.
            if request.method != .options {
                if pages.answersFile(path, exchange) { return }
                if let failure = accessFault(OwnPage.access(to: path), request) {
                    return refuse(failure, exchange)
                }
            }
            pages.handle(path, exchange)
        case _ where request.method == .options:
            answerPreflight(exchange)
        case .refused(let status, let reason):
            refuse(ProxyFailure(.client, status, reason), exchange)
        case .entry(let entry):
            handle(entry, by: rules, for: page, exchange)
        case .rewritten(let link):
            handle(link, by: rules, for: page, exchange)
        }
    }

    /// Answers a preflight.
    ///
    /// - Parameters:
    ///   - exchange: the request.
    ///   - mayBeRemembered: false if the origin decides instead once the policy has changed.
    func answerPreflight(_ exchange: Exchange, mayBeRemembered: Bool = true) {
        var head = CrossOrigin.preflight(exchange.request, settings: core.settings)
        if !mayBeRemembered { head.fields.set(.accessControlMaxAge, "0") }
        core.respond(exchange, own: head, body: .none)
    }

    func refuse(_ failure: ProxyFailure, _ exchange: Exchange) {
        exchange.accessRecord?.note(failure, nil)
        core.counters.add(failure.fault == .us ? .ownErrors : .clientErrors)
        core.log.info(
            "request refused",
            metadata: ["status": "\(failure.status.rawValue)", "reason": "\(failure.message)"])
        let (head, body) = AnswerHead.failure(
            failure, request: exchange.request, settings: core.settings)
        exchange.respond(head, body: .bytes(body))
    }

    /// Returns why a page of another site may not request a route; nil if it may.
    private func pageFault(_ page: ForeignPage, _ route: Route) -> ProxyFailure? {
        switch route {
        case .own, .refused: nil
        case .mount(_, let url), .forChild(_, let url): page.fault(at: url)
        case .entry(let entry): page.fault(at: entry.url)
        // An unreadable link is refused later; one in a long list is checked once it is found.
        case .rewritten(let link):
            if case .target(let target)? = try? core.links.lookUp(link) {
                page.fault(
                    at: (try? moved(target.url, by: link, of: target.session)) ?? target.url)
            } else {
                nil
            }
        }
    }

    // MARK: Access control

    /// Returns the failure for an unknown Host, which means that a page pointed a name at this
    /// address; only HTTP/1.0 clients on this machine may omit Host.
    private func hostFault(_ request: RequestHead, _ exchange: Exchange) -> ProxyFailure? {
        let field = request.fields.valueBytes(.host)
        // Nearly every request has the same Host; a host in the target itself would take
        // precedence.
        if let field, field == ownHost, request.target.utf8.first == 0x2F { return nil }
        if let host = request.host {
            if core.addresses.contains(host: host) {
                if request.target.utf8.first == 0x2F, let field { ownHost = field }
                return nil
            }
        } else if request.version < .http11, exchange.peer?.isLoopback ?? false {
            return nil
        }
        return ProxyFailure(
            .client, .misdirectedRequest,
            "this daemon is not known by the host name or address of that URL (Host); if it should "
                + "be, start it with --host-name and that name or address")
    }

    /// Returns the failure for a request without the access token; nil if it is permitted, or the
    /// daemon has no token.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - given: a token from the path of an entry.
    ///   - takesCookie: whether the session of the console, begun with the token, permits it too.
    /// - Returns: nil if the request has the token, or none is needed.
    func tokenFault(
        _ request: RequestHead, given: String?, takesCookie: Bool = true
    ) -> ProxyFailure? {
        guard let token = core.settings.token else { return nil }
        // The URL may have an argument of that name besides ours.
        let offered =
            [given, credentials(request)].compactMap { $0 }
            + AccessToken.offered(by: request).map { $0.value() }
        if offered.prefix(AccessToken.mostOffered).contains(where: { Signer.isEqual($0, token) }) {
            return nil
        }
        if takesCookie, let session = core.consoleSession,
            ForeignPage.isOwnPage(request, core.settings),
            session.isOpen(
                request.fields, host: OwnOrigin.host(request, core.settings), now: .now())
        {
            return nil
        }
        return ProxyFailure(
            .client, .unauthorized,
            offered.isEmpty
                ? "this daemon needs its access token: ?token=..., Authorization: Bearer ..., or "
                    + "the password of Authorization: Basic ..."
                : "the access token of this request is not that of this daemon (its setting token)"
        )
    }

    /// Returns the failure for a request that may not have an own page; otherwise nil.
    private func accessFault(_ access: OwnPage.Access, _ request: RequestHead) -> ProxyFailure? {
        switch access {
        case .everybody: nil
        case .token: tokenFault(request, given: nil)
        case .session: tokenFault(request, given: nil, takesCookie: request.method != .post)
        }
    }

    /// Returns what the credentials of a request offer as the token.
    ///
    /// Browsers add Basic credentials that their user has typed once to requests of other sites'
    /// pages too, frames included, which therefore cannot use them.
    private func credentials(_ request: RequestHead) -> String? {
        guard let field = request.fields.first(.authorization),
            !AccessToken.isBasic(field)
                || !ForeignPage.isForeignReading(request, core.settings)
        else { return nil }
        return AccessToken.offered(by: field)
    }

    func methodFault(_ request: RequestHead) -> ProxyFailure? {
        if request.method == .get || request.method == .head { return nil }
        return ProxyFailure(
            .client, .methodNotAllowed, "only GET, HEAD and OPTIONS work on this URL")
    }

    // MARK: Targets

    private func handle(
        _ entry: Entry, by rules: UInt64, for page: ForeignPage?, _ exchange: Exchange
    ) {
        let request = exchange.request
        let asked = entry
        var entry = AccessToken.stripped(asked, of: core.settings.token)
        // A client that percent-encodes a whole entry puts the token into the URL.
        let given = entry == asked ? entry.token : core.settings.token
        if let failure = tokenFault(request, given: given) ?? methodFault(request) {
            return refuse(failure, exchange)
        }
        entry.url = entry.url.withoutDirectives
        if let failure = sealFault(entry) { return refuse(failure, exchange) }
        let session = core.sessions.session(for: entry)
        let name = entry.url.nameExtension
        let role: ResourceRole? = name == "m3u8" || name == "m3u" ? .playlist : nil
        let directives =
            request.targetContains(Self.directivePrefix)
            ? request.queryItems.filter { $0.rawName.hasPrefix("_HLS_") } : []
        let target = PlaybackTarget(url: entry.url, role: role, directives: directives)
        let resource = open(target, session, by: rules, for: page, exchange)
        if let resource, core.settings.token == nil { recent.remember(resource, for: request) }
    }

    /// Returns the failure for an entry whose headers its links could not carry.
    private func sealFault(_ entry: Entry) -> ProxyFailure? {
        guard core.sessions.sealer != nil, !entry.headers.isEmpty else { return nil }
        let session = SessionTable.unkept(for: entry)
        return SessionSealer.fault(of: session.fields).map {
            ProxyFailure(.client, .badRequest, $0)
        }
    }

    private static let directivePrefix = Array("_HLS_".utf8)

    private func handle(
        _ link: RewrittenLink, by rules: UInt64, for page: ForeignPage?, _ exchange: Exchange
    ) {
        if let failure = methodFault(exchange.request) { return refuse(failure, exchange) }
        do throws(ProxyFailure) {
            switch try core.links.lookUp(link) {
            case .target(let target): try open(link, target, by: rules, for: page, exchange)
            case .inLongList(let list): find(link, in: list, by: rules, exchange)
            }
        } catch {
            refuse(error, exchange)
        }
    }

    /// Finds the target of a link in a long list, on another thread.
    private func find(
        _ link: RewrittenLink, in list: StoredObject, by rules: UInt64, _ exchange: Exchange
    ) {
        core.texts.make(
            .target(link.handle, link.place), of: list, for: exchange,
            { [core] in
                Result { () throws(ProxyFailure) in try core.links.target(of: link) }
            },
            orElse: { refuse(.textsWait, exchange) },
            { [self] found in
                do throws(ProxyFailure) {
                    let found = try found.get()
                    let page = ForeignPage(of: exchange.request, core)
                    try open(link, found, by: rules, for: page, exchange)
                } catch {
                    refuse(error, exchange)
                }
            })
    }

    private func open(
        _ link: RewrittenLink, _ found: LinkTarget, by rules: UInt64, for page: ForeignPage?,
        _ exchange: Exchange
    ) throws(ProxyFailure) {
        let url = try moved(found.url, by: link, of: found.session)
        if let failure = page?.fault(at: url) { throw failure }
        let session = found.opened ?? core.sessions.session(found.session)
        if let text = link.cookies { core.cookies?.adopt(text, of: session.id) }
        let target = PlaybackTarget(
            url: url, role: link.role, directives: link.directives, epoch: found.epoch,
            isLink: true)
        let resource = open(target, session, by: rules, for: page, exchange)
        // The keys that the link was checked with may have changed while its list was read.
        if let resource, found.isSteady, core.keys.version == rules {
            recent.remember(resource, for: exchange.request)
        }
    }

    /// Returns the URL of a link, changed by the parameters of a cloned pathway.
    ///
    /// A host handle is valid only in the session that it was made for. Throws a refusal of a host
    /// that this daemon did not name, and of parameters that do not form a URL.
    private func moved(
        _ url: AbsoluteURL, by link: RewrittenLink, of session: SessionID
    ) throws(ProxyFailure) -> AbsoluteURL {
        guard let move = link.pathway else { return url }
        var root: AbsoluteURL?
        if let host = move.host {
            let named = try core.links.handle(host[...], for: .pathwayHost, in: link)
            guard named.session == session else {
                throw ProxyFailure(
                    .client, .forbidden,
                    "the pathway's host was named to another session; reload the playlist")
            }
            root = try core.links.namedURL(of: named)
        }
        guard let url = move.applied(to: url, root: root) else {
            throw ProxyFailure(.client, .badRequest, "the pathway's parameters make no URL")
        }
        return url
    }

    /// Starts the exchange for a playback URL.
    ///
    /// `rules` is the version of the key rules, read before the URL was checked.
    ///
    /// - Returns: the resource; nil if the request was refused, or if the next request for the same
    ///   target may lead to another resource.
    private func open(
        _ target: PlaybackTarget, _ session: Session, by rules: UInt64, for page: ForeignPage?,
        _ exchange: Exchange
    ) -> Resource? {
        guard !core.addresses.contains(target.url) else {
            refuse(
                ProxyFailure(.client, .loopDetected, "the URL leads back to this daemon"), exchange)
            return nil
        }
        if SegmentPlaceholder.isUsed(as: target.url) {
            answerGap(exchange)
            return nil
        }
        let directives = core.timeShift.translated(target.directives, for: target.url, session)
        var target = target
        target.directives = directives
        let resource = core.names.resource(
            for: target, session: session, exchange.request,
            forwarded: forwardedFields(exchange.request),
            isOver: core.timeShiftThread.isOver(session))
        guard let resource else {
            refuse(
                ProxyFailure(
                    .client, .badRequest,
                    "the URL is not usable with its delivery directives (_HLS_...); reload the "
                        + "playlist without them"), exchange)
            return nil
        }
        start(resource, by: rules, for: page, exchange)
        // Whether the origin may be asked for a recording changes with its state.
        return resource.isSteady && session.shift.recording == nil ? resource : nil
    }

    /// Answers for a segment that is not stored with an empty body.
    ///
    /// Players that support EXT-X-GAP do not request it; of the others, GStreamer gives up on a 404
    /// and VLC repeats the request forever, while all of them continue after an empty segment.
    private func answerGap(_ exchange: Exchange) {
        var fields = Fields()
        let fragments = [".m4s", ".mp4", ".m4v", ".m4a", ".cmfv", ".cmfa"]
        let isFragment = fragments.contains { exchange.request.path.hasSuffix($0) }
        fields.append(.contentType, isFragment ? "video/iso.segment" : "video/mp2t")
        fields.append(.cacheControl, "no-store")
        var status = CacheStatus(cache: "sluice", hit: true)
        status.detail = "gap"
        status.append(to: &fields)
        CrossOrigin.append(to: &fields, for: exchange.request, settings: core.settings)
        core.respond(exchange, own: ResponseHead(status: .ok, fields: fields), body: .bytes([]))
    }

    /// Starts the exchange for a resource whose URL the page, if it is one, may request.
    ///
    /// - Parameters:
    ///   - resource: the resource.
    ///   - rules: the version of the key rules, read before the resource was made by them.
    ///   - page: the page of another site that asks, if one does; without private hosts its
    ///     transfers are those of players.
    ///   - exchange: the request.
    func start(
        _ resource: Resource, by rules: UInt64, for page: ForeignPage?, _ exchange: Exchange
    ) {
        exchange.accessRecord?.note(requested: resource)
        notePlayback(exchange)
        OriginExchange(
            core: core, exchange: exchange, resource: resource, rules: rules,
            isForPage: page != nil && core.settings.reachesPrivate
        ).start()
    }

    /// Counts and records what a player reports of its playback (CMCD).
    private func notePlayback(_ exchange: Exchange) {
        guard let hints = PlayerHints.sent(in: exchange.request) else { return }
        // Each report is counted.
        exchange.repeated?.mayHaveFinding = false
        if hints.hasStalled { core.counters.add(.playerStalls) }
        if hints.isStarving { core.counters.add(.playerStartupRequests) }
        exchange.accessRecord?.note(hints)
    }

    private func forwardedFields(_ request: RequestHead) -> Fields {
        // A proxy in front adds to CDN-Loop.
        guard !request.fields.contains(.cdnLoop) else { return core.names.forwardedFields(request) }
        let agent = request.fields.valueBytes(.userAgent)
        if let forwarded, forwarded.agent == agent { return forwarded.fields }
        let fields = core.names.forwardedFields(request)
        forwarded = (agent, fields)
        return fields
    }
}

extension ProxyCore {
    /// Sends a response of the daemon itself, and counts it.
    func respond(_ exchange: Exchange, own head: ResponseHead, body: ResponseBody) {
        counters.add(.own)
        exchange.respond(head, body: body)
    }
}

extension Counters {
    /// Counts a request that ended without a response; those with one are counted by their outcome.
    func noteLeft(_ outcome: ResponseOutcome) {
        if outcome.status == nil { add(.left) }
    }
}
