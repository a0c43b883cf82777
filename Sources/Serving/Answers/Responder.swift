// What the responses of the data plane have in common: how they were obtained, what is counted of
// them, and failures.
import Ahead
import CachePolicy
import Console
import HLS
import HTTP
import HTTPServer
import Logging
import Model
import Posix
import Reactor
import Store
import URISyntax

/// How a response was obtained.
struct Provenance {
    var disposition: Disposition
    /// The remaining freshness lifetime in seconds; nil if it is not stated.
    var ttl: Int64?
    /// The origin's status; nil if it was not contacted.
    var status: HTTPStatus?
    /// Why the request was sent to the origin, which failed; nil if the origin was not asked, or
    /// answered.
    var failed: CacheStatus.ForwardReason?

    /// The member of `Cache-Status`.
    var cacheStatus: CacheStatus {
        disposition.cacheStatus(ttl: ttl, status: status, failed: failed)
    }
}

/// Sends one response, counts it and records it for the access log.
///
/// Bound to the loop of its exchange.
struct Responder {
    let core: ProxyCore
    let exchange: Exchange
    let resource: Resource
    /// The version of the key rules, read before `resource` was made by them.
    let rules: UInt64
    /// The budget of the request; nil until an origin is contacted.
    var budget: OriginBudget?
    /// True if `resource` is the one that the request names, not one that took its place.
    var isAsked = true
    /// True for a page of another site.
    var isForPage = false

    /// The request head; kept alive by the callbacks of the exchange.
    var request: RequestHead { exchange.request }

    /// Makes the heads of responses sent now.
    var heads: AnswerHead {
        AnswerHead(request: request, resource: resource, core: core, now: exchange.loop.wallNow)
    }

    // MARK: Counts

    func count(_ disposition: Disposition) {
        exchange.accessRecord?.note(disposition, resource)
        switch disposition {
        case .hit: core.counters.add(.hits)
        case .partial: core.counters.add(.partials)
        case .miss, .refreshed, .live(isCollapsed: false): core.counters.add(.misses)
        case .joinedLive: core.counters.add(.liveJoined)
        case .collapsed, .bypass(_, over: _, isCollapsed: true), .live(isCollapsed: true):
            core.counters.add(.collapsed)
        case .revalidated: core.counters.add(.revalidated)
        case .staleOnError, .staleWhileRevalidate: core.counters.add(.stale)
        case .offline:
            core.counters.add(.hits)
            core.counters.add(.offlineLists)
        case .bypass: core.counters.add(.bypassed)
        }
        if core.logsAnswers {
            core.log.debug(
                "answered",
                metadata: ["url": "\(resource.url.redacted)", "cache": "\(disposition.name)"])
        }
    }

    /// Counts the bytes of a response once it is sent.
    func countBytes(_ how: Provenance) {
        let isHit = if case .hit = how.disposition { true } else { false }
        let player = core.lookahead.isOn ? (resource, exchange) : nil
        exchange.onFinish = { [core, isForPage] outcome in
            if outcome.ending == .aborted, let player {
                core.lookahead.left(player.0, player.1, isForPage: isForPage)
            }
            core.counters.add(.bytesToPlayers, outcome.bodyBytes)
            if isHit { core.counters.add(.bytesFromStore, outcome.bodyBytes) }
        }
    }

    // MARK: Bodies

    /// Sends a text.
    func deliver(_ text: [UInt8], _ head: ResponseHead, _ how: Provenance) {
        countBytes(how)
        exchange.respond(head, body: .bytes(text))
    }

    /// Sends a stretch of an object.
    func deliver(
        _ object: StoredObject, _ head: ResponseHead, from start: Int64, to end: Int64?,
        _ how: Provenance
    ) {
        exchange.accessRecord?.note(object, from: start)
        countBytes(how)
        // The reader is created first, so that an ahead fetch for it does not end before it is
        // registered.
        let body = body(of: object, from: start, to: end)
        core.lookahead.read(resource, from: start, exchange, isForPage: isForPage)
        exchange.respond(head, body: body)
    }

    /// Returns a body with a stretch of an object.
    ///
    /// A short one in memory is returned as bytes, which costs less than a reader and is sent in
    /// one piece with the head.
    private func body(of object: StoredObject, from start: Int64, to end: Int64?) -> ResponseBody {
        let isComplete = object.isComplete
        let pace = isComplete ? core.pace(of: resource) : nil
        if pace == nil, let end, end > start, request.method == .get,
            let bytes = object.shortBytes(start..<end)
        {
            core.counters.record(firstByte: Monotonic.now() - exchange.receivedAt)
            core.store.noteRead(object, bytes: end - start)
            return .bytes(bytes)
        }
        let reader = reader(of: object, (start, end))
        if !isComplete { showBudget(of: reader) }
        reader.endsWithFill = end == nil && resource.isGrowing
        let length = end.map { $0 - start }
        guard let pace else { return .source(reader, length: length) }
        return .source(PacedSource(reader, rate: pace, on: exchange.loop), length: length)
    }

    /// Returns a reader of a stretch of an object, which draws on the budget of the request.
    func reader(of object: StoredObject, _ range: (start: Int64, end: Int64?)) -> Reader {
        let reader = Reader(object, of: resource, range: range, core: core, exchange: exchange)
        reader.budget = budget
        reader.isForPage = isForPage
        return reader
    }

    /// Records what a reader asks of origins, if the request is recorded.
    func showBudget(of reader: Reader) {
        if exchange.record != nil { exchange.note { reader.budget?.trace } }
    }

    /// Keeps the response to a hit with the request head, if that may repeat.
    ///
    /// - Parameters:
    ///   - object: the stored response.
    ///   - facts: its facts.
    ///   - how: how the response was obtained.
    ///   - playlist: its rewritten form, if it is a playlist.
    ///   - content: the content after the head.
    ///   - makeHead: makes the head of a repetition.
    func keepForRepetition(
        _ object: StoredObject, _ facts: ObjectFacts, _ how: Provenance,
        playlist: PreparedPlaylist? = nil, content: RepeatedHit.Content,
        makeHead: @escaping (AnswerHead, Provenance) -> ResponseHead
    ) {
        // Only for the resource of the request itself: HTTP's rules choose among variants, and a
        // substitute may have to yield to the original.
        guard let repeated = exchange.repeated, repeated.mayHaveFinding,
            case .hit = how.disposition, how.status == nil, isAsked, !resource.followsHTTP,
            !core.logsAnswers, isAllowedByItsBytes,
            playlist == nil || !core.linksCarryCookies(resource),
            !isOnLoan(object, facts, isText: playlist != nil)
        else { return }
        var held: KeptPlaylist?
        if let playlist, case .text(let bytes) = content, bytes.count > RepeatedHit.shortText {
            // A kept response outlives the stored one: nothing tells when its head was last seen.
            repeated.finding = nil
            held = core.repeatedTexts.admit(
                PreparedPlaylist(bytes: bytes, facts: playlist.facts, form: playlist.form))
            guard held != nil else { return }
        }
        repeated.finding = RepeatedHit(
            core, resource, rules: rules, facts, playlist: playlist, held: held, content: content,
            isForPage: isForPage, makeHead: makeHead)
    }

    /// True if a playlist or key is another viewer's, which this one gets only while the origin is
    /// away.
    private func isOnLoan(_ object: StoredObject, _ facts: ObjectFacts, isText: Bool) -> Bool {
        guard isText || resource.role == .key, resource.policy != .offline else { return false }
        // This very response made the text known to the session.
        return resource.belongsToAnotherViewer(
            object, facts, of: core.sessions, keys: core.keys,
            mountKind: core.settings.mountKind,
            isOfForeignPage: ForeignPage.isSender(of: request, core.settings), isKnown: true,
            mayGetOwnCopy: true)
    }

    /// True if a repetition of the same request bytes always has the same access: false if a
    /// console session, which ends, or the client's address gave it.
    private var isAllowedByItsBytes: Bool {
        if request.host == nil { return false }
        guard let session = core.consoleSession, request.fields.contains(.cookie) else {
            return true
        }
        let host = OwnOrigin.host(request, core.settings)
        return !session.isOpen(request.fields, host: host, now: exchange.loop.wallNow)
    }

    // MARK: Failures

    /// Answers with an error.
    ///
    /// - Parameters:
    ///   - failure: why, and whose fault it is.
    ///   - how: how the object was obtained, if the request is for a part that it does not have.
    func fail(_ failure: ProxyFailure, _ how: Provenance? = nil) {
        if failure.status == .noContent { notePassed() } else { note(failure) }
        var (head, body) = AnswerHead.failure(failure, request: request, settings: core.settings)
        how?.cacheStatus.append(to: &head.fields)
        // Only a mount passes the client's credentials on to its origin (RFC 9110 section 11.6.1);
        // in playback, a browser would ask for a password of this daemon.
        if resource.isMounted, failure.fault == .origin, let challenge = failure.challenge {
            head.fields.append(.wwwAuthenticate, challenge)
        }
        exchange.respond(head, body: .bytes(body))
    }

    /// Notes and counts that a response without content is passed on.
    ///
    /// That includes a 204, which the origin meant: nobody has to act.
    func notePassed() {
        exchange.accessRecord?.notePassed()
        core.counters.add(.bypassed)
    }

    private func note(_ failure: ProxyFailure) {
        exchange.accessRecord?.note(failure, resource)
        switch failure.fault {
        case .client: core.counters.add(.clientErrors)
        case .origin: core.counters.add(.originErrors)
        case .us: core.counters.add(.ownErrors)
        }
        var facts: Logger.Metadata = [
            "status": "\(failure.status.rawValue)", "fault": "\(failure.fault.rawValue)",
            "reason": "\(failure.message)",
        ]
        if let status = failure.originStatus { facts["origin-status"] = "\(status.rawValue)" }
        // A client error is answered, but needs no action by the operator.
        if failure.fault == .client {
            core.log.info("request refused", metadata: facts)
        } else {
            core.logFailure(facts, subject: subject(of: failure), on: exchange.loop)
        }
    }

    /// Returns the subject under which failures are grouped in the log: all that fail on the way to
    /// one origin share one.
    private func subject(of failure: ProxyFailure) -> String {
        guard let error = failure.proxyError, failure.originStatus == nil else {
            return failure.message
        }
        return "\(failure.status.rawValue) \(error.rawValue) \(resource.url.origin)"
    }
}

extension OriginBudget {
    /// Makes the budget of a request, whose record names the transfers that draw on it.
    convenience init(tracedOn exchange: Exchange) {
        self.init(now: exchange.loop.now)
        if exchange.record != nil { exchange.note { self.trace } }
    }
}
