import Ahead
import CachePolicy
import HTTP
import HTTPServer
import Logging
import Model
import Reactor
import Store
import URISyntax

/// Answers of one exchange: from a stored object, whole or in part, or a failure.
extension OriginExchange {
    /// How an answer came about.
    struct Serving {
        var disposition: Disposition
        var ttl: Int64?
        var status: HTTPStatus?
    }

    func fail(_ failure: ProxyFailure) {
        (exchange.record as? AccessRecord)?.note(failure, resource)
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
        // What a client asks for wrongly is answered, and is nothing that its operator has to mend.
        if failure.fault == .client {
            core.log.info("request refused", metadata: facts)
        } else {
            core.logFailure(facts, subject: subject(of: failure), on: exchange.loop)
        }
        let (head, body) = AnswerHead.failure(failure, request: request, settings: core.settings)
        exchange.respond(head, body: .bytes(body))
    }

    /// What a failure is about: all that an origin does not answer is one matter.
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
            let drawn = drawn.flatMap { $0.generation == object.generation ? $0.list : nil }
            core.lookahead.list(resource, object, drawn, exchange)
            return servePlaylist(playlist, of: object, facts, how)
        }
        serveMedia(object, facts, how)
    }

    func count(_ disposition: Disposition) {
        (exchange.record as? AccessRecord)?.note(disposition, resource)
        switch disposition {
        case .hit: core.counters.add(.hits)
        case .partial: core.counters.add(.partials)
        case .miss, .refreshed: core.counters.add(.misses)
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
        let builder = AnswerHead(
            request: request, resource: resource, core: core, now: exchange.loop.wallNow)
        switch outcomeOfConditions(facts) {
        case .proceed: break
        case .notModified:
            count(how.disposition)
            keepForRepetition(facts, how, content: .none) { now, how in
                builder.at(now).head(facts, .notModified, how)
            }
            return exchange.respond(builder.head(facts, .notModified, how), body: .none)
        case .failed:
            return fail(
                ProxyFailure(.client, .preconditionFailed, "the precondition does not hold"))
        }
        let part =
            facts.head.status == .ok && request.method == .get && request.fields.contains(.range)
                && Preconditions.useRange(request.fields, validators: facts.validators)
            ? chosenRange(total: object.total, facts) : .whole
        guard case .unsatisfiable = part else {
            return send(object, facts, part, builder, how)
        }
        fail(
            ProxyFailure(
                .client, .rangeNotSatisfiable,
                "the range lies beyond the end of \(resource.url.redacted)",
                total: object.total))
    }

    /// What the client's conditions come to.
    private func outcomeOfConditions(_ facts: ObjectFacts) -> Preconditions.Outcome {
        guard Preconditions.stand(in: request.fields) else { return .proceed }
        guard resource.kind != nil else {
            return Preconditions.evaluate(
                request.fields, method: request.method, validators: facts.validators)
        }
        // Conditions are for what would be a success without them (RFC 9110 section 13.2.1).
        guard facts.head.status == .ok else { return .proceed }
        // Tags that are no tags are still equal where their bytes are.
        if let given = request.fields.valueBytes(.ifNoneMatch),
            let own = facts.head.fields.valueBytes(.etag), given == own
        {
            return .notModified
        }
        // Those two are for origins, which were asked already (RFC 9111 section 4.3.2).
        var conditions = request.fields
        conditions.remove(.ifMatch)
        conditions.remove(.ifUnmodifiedSince)
        return Preconditions.evaluate(
            conditions, method: request.method, validators: facts.validators)
    }

    private enum ChosenRange {
        case whole
        case part(ResolvedRange)
        /// From this byte to an end that is not known yet (RFC 8673).
        case open(Int64)
        case parts(Multipart)
        case unsatisfiable
    }

    /// The one range that is answered as 206.
    ///
    /// Several ranges of a playback URL are answered with the whole, which RFC 9110 section 14.2
    /// allows, as is a range of a body whose length is not known yet.
    private func chosenRange(total: Int64?, _ facts: ObjectFacts) -> ChosenRange {
        guard case .ranges(let specs) = range else { return .whole }
        if specs.count > 1 {
            guard resource.kind != nil, let total else { return .whole }
            let ranges = Multipart.combined(specs, total: total)
            guard let first = ranges.first else { return .unsatisfiable }
            if ranges.count == 1 { return .part(first) }
            let type = facts.head.fields.first(.contentType)
            return .parts(Multipart(ranges, total: total, contentType: type))
        }
        guard let total else {
            if resource.isGrowing, let first = openStart(specs[0]) { return .open(first) }
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
        let isWhole = if case .whole = part { true } else { false }
        let status = isWhole ? facts.head.status : HTTPStatus.partialContent
        var contentRange: String?
        if case .part(let range) = part {
            start = range.first
            end = range.last + 1
            contentRange = ContentRange(range, total: object.total).description
        }
        if case .open(let first) = part {
            start = first
            contentRange =
                ContentRange(
                    ResolvedRange(first: first, last: Wanted.openEnd), total: nil
                ).description
        }
        if case .parts(let multipart) = part {
            return send(object, facts, multipart, builder, how)
        }
        if case .hit = how.disposition, !isPresent(object, start, end) {
            how.disposition = .partial
        }
        if isForbidden(how) { return }
        if how.status == nil || asksForTypeFirst, request.method != .head {
            asksForTypeFirst = false
            if fetchFirstHole(of: object, start, end) { return }
        }
        if case .part(let range) = part, waits(for: range, of: object, how) { return }
        count(how.disposition)
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

    /// Waits for the first byte of a range of a body whose length nobody knows: only with that byte,
    /// or with the end of the body, is it known whether the range can be satisfied.
    ///
    /// - Returns: true where the answer comes later.
    private func waits(
        for range: ResolvedRange, of object: StoredObject, _ how: Serving
    ) -> Bool {
        guard object.total == nil, request.method == .get, waitingReader == nil,
            case .hole = object.state(at: range.first)
        else { return false }
        let reader = Reader(
            object, of: resource, range: (range.first, range.first + 1), core: core,
            exchange: exchange)
        waitingReader = reader
        exchange.onCancel = { [weak self] in self?.waitingReader?.cancel() }
        reader.wake = { [self] _ in firstByteCame(range.first, how) }
        return true
    }

    private func firstByteCame(_ first: Int64, _ how: Serving) {
        guard let reader = waitingReader else { return }
        exchange.onCancel = nil
        let object = reader.object
        let isThere = if case .hole = object.state(at: first) { false } else { true }
        // The answer's own reader first, so that what it wants does not end meanwhile.
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
        (exchange.record as? AccessRecord)?.note(object, from: start)
        countBytes(how)
        // The reader first: what was fetched ahead for it must not end before it is known.
        let body = body(of: object, from: start, to: end)
        core.lookahead.read(resource, from: start, exchange)
        exchange.respond(head, body: body)
    }

    /// Where a range starts that goes to the end of a resource which is still growing.
    private func openStart(_ spec: ByteRangeSpec) -> Int64? {
        switch spec {
        case .from(let first): first
        case .bounded(let first, let last) where last >= Wanted.openEnd: first
        default: nil
        }
    }

    /// Fails where a part is missing that nobody may be asked for.
    private func isForbidden(_ how: Serving) -> Bool {
        guard case .partial = how.disposition, how.status == nil else { return false }
        return failPartOfMissing()
    }

    /// Counts the bytes of an answer once it is out.
    func countBytes(_ how: Serving) {
        let isHit = if case .hit = how.disposition { true } else { false }
        let told = core.lookahead.isOn ? (resource, exchange) : nil
        exchange.onFinish = { [core] outcome in
            if outcome.ending == .aborted, let told { core.lookahead.left(told.0, told.1) }
            core.counters.add(.bytesToPlayers, outcome.bodyBytes)
            if isHit { core.counters.add(.bytesFromStore, outcome.bodyBytes) }
        }
    }

    /// Sends several ranges; holes in them are filled as they are come to.
    private func send(
        _ object: StoredObject, _ facts: ObjectFacts, _ multipart: Multipart,
        _ builder: AnswerHead, _ how: Serving
    ) {
        var how = how
        if how.disposition == .hit,
            !multipart.ranges.allSatisfy({ isPresent(object, $0.first, $0.last + 1) })
        {
            how.disposition = .partial
        }
        if isForbidden(how) { return }
        count(how.disposition)
        (exchange.record as? AccessRecord)?.note(object, from: multipart.ranges[0].first)
        var head = builder.head(facts, .partialContent, how)
        head.fields.set(.contentType, multipart.contentType)
        head.fields.append(contentsOf: onlyHere)
        // Each part may be a hole, to be asked for by itself.
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
