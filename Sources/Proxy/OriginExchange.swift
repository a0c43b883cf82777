/// One request for an origin's resource, from lookup to answer. The file to open for "why was this
/// a miss?": `start` looks up and decides, `hear` takes the flights' reply, `serve` answers.
import CachePolicy
import HLS
import HTTP
import HTTPServer
import Logging
import Posix
import Reactor
import Store
import Upstream
import URISyntax

/// Conducts one exchange. Bound to its server loop.
final class OriginExchange {
    let core: ProxyCore
    let exchange: Exchange
    let resource: Resource
    let range: ByteRangeSpec.Request
    private(set) var wish: FetchID?
    /// What is stored and may serve if the origin does not work.
    private var fallback: StoredObject?
    private var staleReason: Freshness.StaleReason?
    private var isPartlyStored = false
    /// Kept alive by the wish's reply and the exchange's callbacks.
    var request: RequestHead { exchange.request }

    init(core: ProxyCore, exchange: Exchange, resource: Resource) {
        self.core = core
        self.exchange = exchange
        self.resource = resource
        range = ByteRangeSpec.parse(exchange.request.fields)
    }

    // MARK: Look up and decide

    /// Answers from the store if that may be, else asks the flights.
    func start() {
        guard let object = core.store.lookup(resource.key), let facts = ObjectFacts.of(object) else {
            return fetchMissing()
        }
        if facts.head.isPlaylist || resource.role == .json { return startText(object, facts) }
        // A playlist's place that holds something else, or half a decoded body, cannot be used.
        if resource.role == .playlist || (resource.decodesContent && !object.isComplete && object.total == nil) {
            return fetchMissing()
        }
        decide(object, facts, playlist: nil)
    }

    private func startText(_ object: StoredObject, _ facts: ObjectFacts) {
        guard object.isComplete else { return fetchMissing() }
        switch prepare(object, facts) {
        case .success(let prepared): decide(object, facts, playlist: prepared)
        case .failure(let failure):
            // It was readable once, or it would not be kept: the limits have changed, or what its
            // parent list said is forgotten. A newer one takes its place, if there is one.
            if resource.policy == .offline { return fail(failure) }
            fetchMissing()
        }
    }

    private func question(_ facts: ObjectFacts, _ playlist: PreparedPlaylist?) -> Freshness.Question {
        Freshness.Question(
            policy: resource.policy, head: facts.head, playlist: playlist?.facts,
            requestFields: request.fields, now: exchange.loop.wallNow, isShared: core.isShared)
    }

    /// The question of what may be used as it is. Playlists say themselves how long they hold;
    /// steering manifests and asset lists do not, and change by the minute: HTTP decides.
    private func freshnessQuestion(_ facts: ObjectFacts, _ playlist: PreparedPlaylist?) -> Freshness.Question {
        var question = question(facts, playlist)
        if resource.role == .json, question.policy == .media { question.policy = .rfc }
        return question
    }

    private func decide(_ object: StoredObject, _ facts: ObjectFacts, playlist: PreparedPlaylist?) {
        switch Freshness.decide(freshnessQuestion(facts, playlist)) {
        case .fresh(let ttl):
            serve(object, facts, playlist: playlist, as: .init(disposition: .hit, ttl: ttl))
        case .stale(let reason):
            fallback = object
            staleReason = reason
            fetch(
                FetchRequest(
                    resource: resource, wanted: .whole, object: object, revalidates: true,
                    delivery: playlist == nil ? .head : .completion,
                    lane: playlist == nil ? .playback : .express))
        }
    }

    private func fetchMissing() {
        guard resource.policy != .offline else {
            return fail(
                ProxyFailure(
                    .us, .gatewayTimeout,
                    "\(resource.url.redacted) is not stored, and the policy offline forbids to fetch it"))
        }
        let wanted = wantedOfMissing
        var lane = Lane.playback
        if case .span(let start, let end) = wanted { lane = Reader.lane(resource, from: start, to: end) }
        fetch(
            FetchRequest(
                resource: resource, wanted: wanted,
                delivery: isText ? .completion : .head, lane: lane))
    }

    /// Whether the place says that the body is read and rewritten here, so that it must be whole.
    private var isText: Bool { resource.role == .playlist || resource.role == .json }

    /// What to ask an origin for when nothing is stored. Text is always asked for whole.
    private var wantedOfMissing: Wanted {
        // A part of what may turn out to be a playlist could not be told from media.
        guard !isText, !(resource.role == nil && resource.decodesContent) else { return .whole }
        if request.method == .head { return .span(start: 0, end: 2) }
        guard case .ranges(let specs) = range, specs.count == 1, Preconditions.useRange(
            request.fields, validators: Validators()) || !request.fields.contains(.ifRange)
        else { return .whole }
        switch specs[0] {
        case .bounded(let first, let last): return .span(start: first, end: last == .max ? nil : last + 1)
        case .from(0): return .whole
        case .from(let first): return .span(start: first, end: nil)
        case .suffix(let length): return length > 0 ? .suffix(length) : .whole
        }
    }

    // MARK: Ask and hear

    private func fetch(_ wanted: FetchRequest) {
        let id = FetchID()
        wish = id
        let bound = LoopBound(self, to: exchange.loop)
        exchange.onCancel = { [core] in core.flights.cancel(id) }
        core.flights.fetch(wanted, id: id) { reply in
            bound.enqueue { conductor, _ in conductor.hear(reply) }
        }
    }

    private func hear(_ reply: FetchReply) {
        wish = nil
        exchange.onCancel = nil
        guard exchange.isAlive else { return }
        switch reply {
        case .object(let object, let outcome):
            hear(object, outcome)
        case .notModified(let object):
            guard let facts = ObjectFacts.of(object) else { return fetchMissing() }
            let how = Serving(disposition: .revalidated, status: .notModified)
            guard isRewritten(facts) else { return serve(object, facts, playlist: nil, as: how) }
            switch prepare(object, facts) {
            case .success(let playlist): serve(object, facts, playlist: playlist, as: how)
            case .failure(let failure): fail(failure)
            }
        case .failure(let failure):
            serveStale(instead: failure)
        }
    }

    private func isRewritten(_ facts: ObjectFacts) -> Bool {
        facts.head.isPlaylist || resource.role == .json
    }

    private func hear(_ object: StoredObject, _ outcome: FetchOutcome) {
        guard let facts = ObjectFacts.of(object) else {
            return fail(ProxyFailure(.us, .internalServerError, "a head could not be read back"))
        }
        var disposition = outcome.isCollapsed ? Disposition.collapsed : .miss
        if isPartlyStored { disposition = .partial }
        if let staleReason { disposition = .refreshed(staleReason) }
        if let reason = outcome.notStored { disposition = .bypass(reason) }
        let how = Serving(disposition: disposition, status: outcome.status)
        guard isRewritten(facts) else {
            return serve(object, facts, playlist: nil, as: how)
        }
        switch prepare(object, facts) {
        case .success(let playlist): serve(object, facts, playlist: playlist, as: how)
        case .failure(let failure):
            core.store.remove(resource.key)
            serveStale(instead: failure)
        }
    }

    /// The origin did not work: what is stored may serve, within its bounds.
    private func serveStale(instead failure: ProxyFailure) {
        guard failure.allowsStale, let fallback, let facts = ObjectFacts.of(fallback) else {
            return fail(failure)
        }
        var playlist: PreparedPlaylist?
        if isRewritten(facts) {
            guard case .success(let made) = prepare(fallback, facts) else { return fail(failure) }
            playlist = made
        }
        guard Freshness.mayServeStale(question(facts, playlist)) else { return fail(failure) }
        serve(fallback, facts, playlist: playlist, as: .init(disposition: .staleOnError, ttl: -1))
    }

    // MARK: Answer

    /// How an answer came about.
    struct Serving {
        var disposition: Disposition
        var ttl: Int64?
        var status: HTTPStatus?
    }

    func fail(_ failure: ProxyFailure) {
        switch failure.fault {
        case .client: core.counters.add(.clientErrors)
        case .origin: core.counters.add(.originErrors)
        case .us: core.counters.add(.ownErrors)
        }
        core.log.notice(
            "request failed",
            metadata: [
                "status": "\(failure.status.rawValue)", "fault": "\(failure.fault.rawValue)",
                "reason": "\(failure.message)",
                "origin": "\(failure.originStatus.map { String($0.rawValue) } ?? "-")",
            ])
        let (head, body) = AnswerHead.failure(failure, request: request, settings: core.settings)
        exchange.respond(head, body: .bytes(body))
    }

    private func serve(
        _ object: StoredObject, _ facts: ObjectFacts, playlist: PreparedPlaylist?, as how: Serving
    ) {
        if let playlist {
            count(how.disposition)
            return servePlaylist(playlist, facts, how)
        }
        serveMedia(object, facts, how)
    }

    private func count(_ disposition: Disposition) {
        switch disposition {
        case .hit: core.counters.add(.hits)
        case .partial: core.counters.add(.partials)
        case .miss, .refreshed: core.counters.add(.misses)
        case .collapsed: core.counters.add(.collapsed)
        case .revalidated: core.counters.add(.revalidated)
        case .staleOnError: core.counters.add(.stale)
        case .bypass: core.counters.add(.bypassed)
        }
        core.log.debug(
            "answered", metadata: ["url": "\(resource.url.redacted)", "cache": "\(disposition.name)"])
    }

    private func serveMedia(_ object: StoredObject, _ facts: ObjectFacts, _ how: Serving) {
        let builder = AnswerHead(
            request: request, resource: resource, settings: core.settings, now: exchange.loop.wallNow)
        let validators = Validators(
            etag: EntityTag(facts.entityTag), lastModified: facts.lastModified,
            date: facts.head.fields.first(.date).flatMap { HTTPDate.parse($0) }
                ?? facts.head.responseTime.seconds)
        switch Preconditions.evaluate(request.fields, method: request.method, validators: validators) {
        case .proceed: break
        case .notModified:
            count(how.disposition)
            let fields = builder.fields(facts, disposition: how.disposition, ttl: how.ttl, originStatus: how.status)
            return exchange.respond(ResponseHead(status: .notModified, fields: fields), body: .none)
        case .failed:
            return fail(ProxyFailure(.client, .preconditionFailed, "the precondition does not hold"))
        }
        let part = facts.head.status == .ok && Preconditions.useRange(request.fields, validators: validators)
            ? chosenRange(total: object.total) : .whole
        guard case .unsatisfiable = part else {
            return send(object, facts, part, builder, how)
        }
        fail(
            ProxyFailure(
                .client, .rangeNotSatisfiable, "the range lies beyond the end of \(resource.url.redacted)",
                total: object.total))
    }

    private enum ChosenRange {
        case whole
        case part(ResolvedRange)
        case unsatisfiable
    }

    /// The one range that is answered as 206. Several ranges are answered with the whole, which
    /// RFC 9110 section 14.2 allows, as is a range of a body whose length is not known yet.
    private func chosenRange(total: Int64?) -> ChosenRange {
        guard case .ranges(let specs) = range, specs.count == 1 else { return .whole }
        guard let total else {
            guard case .bounded(let first, let last) = specs[0], first > 0 || last < 1 << 20 else {
                return .whole
            }
            return .part(ResolvedRange(first: first, last: last))
        }
        return specs[0].resolve(total: total).map(ChosenRange.part) ?? .unsatisfiable
    }

    private func send(
        _ object: StoredObject, _ facts: ObjectFacts, _ part: ChosenRange, _ builder: AnswerHead,
        _ how: Serving
    ) {
        var how = how
        var start: Int64 = 0
        var end = object.total
        var status = facts.head.status
        var contentRange: String?
        if case .part(let range) = part {
            start = range.first
            end = range.last + 1
            status = .partialContent
            contentRange = ContentRange(range, total: object.total).description
        }
        if how.disposition == .hit, !isPresent(object, start, end) { how.disposition = .partial }
        if how.disposition == .partial, resource.policy == .offline {
            return fail(
                ProxyFailure(.us, .gatewayTimeout, "\(resource.url.redacted) is stored only in part, and the policy is offline"))
        }
        if how.status == nil, request.method != .head, fetchFirstHole(of: object, start, end) { return }
        count(how.disposition)
        var fields = builder.fields(facts, disposition: how.disposition, ttl: how.ttl, originStatus: how.status)
        if let contentRange { fields.append(.contentRange, contentRange) }
        let reader = Reader(object, of: resource, range: (start, end), core: core, exchange: exchange)
        let isHit = how.disposition == .hit
        exchange.onFinish = { [core] outcome in
            core.counters.add(.bytesToPlayers, outcome.bodyBytes)
            if isHit { core.counters.add(.bytesFromStore, outcome.bodyBytes) }
        }
        exchange.respond(
            ResponseHead(status: status, fields: fields),
            body: .source(reader, length: end.map { $0 - start }))
    }

    /// Asks for the first byte before a head is promised, where it is missing and not on its way: an
    /// origin that fails then gives an error, not a broken body, and one that has another
    /// representation by now gives that.
    ///
    /// - Returns: true when the flights were asked; their reply goes on.
    private func fetchFirstHole(of object: StoredObject, _ start: Int64, _ end: Int64?) -> Bool {
        guard end.map({ $0 > start }) ?? true, case .hole(let hole) = object.state(at: start),
            hole.fill == nil || hole.fillDistance > core.settings.joinDistance
        else { return false }
        isPartlyStored = object.presentBytes > 0
        var stop = [end, hole.end].compactMap { $0 }.min()
        if stop == object.total { stop = nil }
        fetch(
            FetchRequest(
                resource: resource, wanted: .span(start: start, end: stop), object: object,
                delivery: .head, lane: Reader.lane(resource, from: start, to: stop)))
        return true
    }

    private func isPresent(_ object: StoredObject, _ start: Int64, _ end: Int64?) -> Bool {
        if object.isComplete { return true }
        guard let end else { return false }
        return end <= start || object.spans.contains(start..<end)
    }
}
