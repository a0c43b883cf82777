import Ahead
import CachePolicy
import HTTP
import HTTPServer
import Logging
import Model
import Reactor
import Store
import URISyntax

/// The responses of an exchange: from a stored object, whole or in part, or a failure.
extension OriginExchange {
    /// How a response was obtained.
    struct Serving {
        var disposition: Disposition
        var ttl: Int64?
        var status: HTTPStatus?
    }

    func fail(_ failure: ProxyFailure) {
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
        let (head, body) = AnswerHead.failure(failure, request: request, settings: core.settings)
        exchange.respond(head, body: .bytes(body))
    }

    /// Returns the subject under which failures are grouped in the log: all that fail on the way to
    /// one origin share one.
    private func subject(of failure: ProxyFailure) -> String {
        guard let error = failure.proxyError, failure.originStatus == nil else {
            return failure.message
        }
        return "\(failure.status.rawValue) \(error.rawValue) \(resource.url.origin)"
    }

    func serve(
        _ object: StoredObject, _ facts: ObjectFacts, playlist: PreparedPlaylist?, as how: Serving
    ) {
        if let playlist {
            count(how.disposition)
            core.lookahead.list(resource, object, texts.sketch(of: object), exchange)
            return servePlaylist(playlist, of: object, facts, how)
        }
        serveMedia(object, facts, how)
    }

    func count(_ disposition: Disposition) {
        exchange.accessRecord?.note(disposition, resource)
        switch disposition {
        case .hit: core.counters.add(.hits)
        case .partial: core.counters.add(.partials)
        case .miss, .refreshed, .live: core.counters.add(.misses)
        case .joinedLive: core.counters.add(.liveJoined)
        case .collapsed: core.counters.add(.collapsed)
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

    private func serveMedia(_ object: StoredObject, _ facts: ObjectFacts, _ how: Serving) {
        if let endless, endless.generation == object.generation, endless.stage != .file {
            return serveEndless(object, facts, endless, how)
        }
        let builder = AnswerHead(
            request: request, resource: resource, core: core, now: exchange.loop.wallNow)
        let answer = AnswerFacts(
            resource: resource, fields: request.fields, method: request.method, range: range,
            stored: facts, total: object.total)
        switch answer.part {
        case .notModified:
            count(how.disposition)
            keepForRepetition(facts, how, content: .none) { now, how in
                builder.at(now).head(facts, .notModified, how)
            }
            exchange.respond(builder.head(facts, .notModified, how), body: .none)
        case .preconditionFailed:
            fail(ProxyFailure(.client, .preconditionFailed, "the precondition does not hold"))
        case .rangeNotSatisfiable:
            fail(
                ProxyFailure(
                    .client, .rangeNotSatisfiable,
                    "the range lies beyond the end of \(resource.url.redacted)",
                    total: object.total))
        case .whole:
            send(object, facts, Stretch(status: facts.head.status, end: object.total), builder, how)
        case .part(let range):
            let stretch = Stretch(
                status: .partialContent, start: range.first, end: range.last + 1,
                contentRange: ContentRange(range, total: object.total).description, awaited: range)
            send(object, facts, stretch, builder, how)
        case .open(let first):
            let range = ResolvedRange(first: first, last: Wanted.openEnd)
            let stretch = Stretch(
                status: .partialContent, start: first, end: object.total,
                contentRange: ContentRange(range, total: nil).description)
            send(object, facts, stretch, builder, how)
        case .parts(let ranges):
            let multipart = Multipart(
                ranges, total: object.total ?? 0, contentType: facts.head.fields.first(.contentType)
            )
            send(object, facts, multipart, builder, how)
        }
    }

    /// The stretch of an object to send, and its status.
    private struct Stretch {
        let status: HTTPStatus
        var start: Int64 = 0
        let end: Int64?
        var contentRange: String?
        /// The requested range, if only its first byte shows whether it is satisfiable.
        var awaited: ResolvedRange?
    }

    private func bodyFacts(
        _ how: Serving, total: Int64?, from start: Int64, to end: Int64?, isPresent: Bool
    ) -> BodyFacts {
        BodyFacts(
            disposition: how.disposition, policy: resource.policy,
            origin: isPresent ? .up : core.health.state(of: resource.url.origin),
            wasAsked: how.status != nil, start: start, end: end, total: total,
            isPresent: isPresent, joinDistance: core.settings.joinDistance)
    }

    private func send(
        _ object: StoredObject, _ facts: ObjectFacts, _ stretch: Stretch, _ builder: AnswerHead,
        _ how: Serving
    ) {
        var how = how
        let (start, end, status) = (stretch.start, stretch.end, stretch.status)
        var body = bodyFacts(
            how, total: object.total, from: start, to: end,
            isPresent: isPresent(object, start, end))
        body.isHead = request.method == .head
        body.learnsTypeFirst = progress.learnsTypeFirst
        body.isRange = stretch.awaited != nil
        body.hasAwaited = waitingReader != nil
        if !body.isHead, case .hole(let hole) = object.state(at: start) { body.hole = hole }
        let plan = body.plan
        if !body.isHead { progress.learnsTypeFirst = false }
        switch plan {
        case .refuse(let refusal): return refuse(refusal)
        case .fetchFirst(let stop): return fetchFirst(of: object, start, stop)
        case .awaitFirst: return awaitFirst(start, of: object, how)
        case .send(let disposition): how.disposition = disposition
        }
        count(how.disposition)
        let contentRange = stretch.contentRange
        var head = builder.head(facts, status, how, contentRange: contentRange)
        if let end, exchange.repeated != nil {
            keepForRepetition(facts, how, content: .part(start: start, end: end)) {
                [contentRange] now, how in
                builder.at(now).head(facts, status, how, contentRange: contentRange)
            }
        }
        head.fields.append(contentsOf: onlyHere)
        deliver(object, head, from: start, to: end, how)
    }

    /// Waits for the first byte of a range of a body of unknown length: only that byte or the end
    /// of the body shows whether the range is satisfiable.
    private func awaitFirst(_ first: Int64, of object: StoredObject, _ how: Serving) {
        let reader = Reader(
            object, of: resource, range: (first, first + 1), core: core, exchange: exchange)
        waitingReader = reader
        exchange.onCancel = { [weak self] in self?.waitingReader?.cancel() }
        reader.wake = { [self] _ in firstByteCame(first, how) }
    }

    private func firstByteCame(_ first: Int64, _ how: Serving) {
        guard let reader = waitingReader else { return }
        exchange.onCancel = nil
        let object = reader.object
        let isThere = if case .hole = object.state(at: first) { false } else { true }
        // Cancelled only after the response's own reader exists, so that its flight does not end in
        // between.
        defer { reader.cancel() }
        guard exchange.isAlive else { return }
        guard isThere || reader.isAtEnd, let facts = ObjectFacts.of(object) else {
            return fail(
                ProxyFailure(
                    .origin, .badGateway,
                    "\(resource.url.redacted): the body broke off before the range",
                    originStatus: how.status))
        }
        serveMedia(object, facts, how)
    }

    /// Sends a stretch of an object.
    func deliver(
        _ object: StoredObject, _ head: ResponseHead, from start: Int64, to end: Int64?,
        _ how: Serving
    ) {
        exchange.accessRecord?.note(object, from: start)
        countBytes(how)
        // The reader is created first, so that an ahead fetch for it does not end before it is
        // registered.
        let body = body(of: object, from: start, to: end)
        core.lookahead.read(resource, from: start, exchange)
        exchange.respond(head, body: body)
    }

    /// Counts the bytes of a response once it is sent.
    func countBytes(_ how: Serving) {
        let isHit = if case .hit = how.disposition { true } else { false }
        let player = core.lookahead.isOn ? (resource, exchange) : nil
        exchange.onFinish = { [core] outcome in
            if outcome.ending == .aborted, let player { core.lookahead.left(player.0, player.1) }
            core.counters.add(.bytesToPlayers, outcome.bodyBytes)
            if isHit { core.counters.add(.bytesFromStore, outcome.bodyBytes) }
        }
    }

    /// Sends several ranges; holes are filled when the reader gets there.
    private func send(
        _ object: StoredObject, _ facts: ObjectFacts, _ multipart: Multipart,
        _ builder: AnswerHead, _ how: Serving
    ) {
        var how = how
        let isPresent = multipart.ranges.allSatisfy {
            self.isPresent(object, $0.first, $0.last + 1)
        }
        let body = bodyFacts(
            how, total: object.total, from: 0, to: object.total, isPresent: isPresent)
        switch body.plan {
        case .refuse(let refusal): return refuse(refusal)
        case .send(let disposition): how.disposition = disposition
        case .fetchFirst, .awaitFirst: break
        }
        count(how.disposition)
        exchange.accessRecord?.note(object, from: multipart.ranges[0].first)
        var head = builder.head(facts, .partialContent, how)
        head.fields.set(.contentType, multipart.contentType)
        head.fields.append(contentsOf: onlyHere)
        // Each part may be a hole that needs a request.
        budget.with { $0.allow(requests: multipart.ranges.count) }
        let source = MultipartSource(multipart) { [resource, core, exchange, budget] range in
            let reader = Reader(
                object, of: resource, range: (range.first, range.last + 1), core: core,
                exchange: exchange)
            reader.budget = budget
            return reader
        }
        countBytes(how)
        exchange.respond(head, body: .source(source, length: multipart.length))
    }

    /// Fetches the first byte and what follows it, up to the end of the hole.
    private func fetchFirst(of object: StoredObject, _ start: Int64, _ stop: Int64?) {
        progress.isPartlyStored = object.presentBytes > 0
        // If this fails, the stored part is no answer: it would lead here again.
        progress.fallback = nil
        fetch(
            FetchRequest(
                resource: resource, wanted: .span(start: start, end: stop), object: object,
                delivery: .head, lane: Reader.lane(resource, from: start, to: stop)))
    }

    private func isPresent(_ object: StoredObject, _ start: Int64, _ end: Int64?) -> Bool {
        if object.isComplete { return true }
        guard let end else { return false }
        return end <= start || object.spans.contains(start..<end)
    }
}
