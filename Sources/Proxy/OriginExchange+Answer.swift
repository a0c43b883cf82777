/// Answers of one exchange: from a stored object, whole or in part, or a failure.
import CachePolicy
import HLS
import HTTP
import HTTPServer
import Logging
import Posix
import Reactor
import Store
import URISyntax

extension OriginExchange {
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

    func serve(
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
            "answered",
            metadata: ["url": "\(resource.url.redacted)", "cache": "\(disposition.name)"])
    }

    private func serveMedia(_ object: StoredObject, _ facts: ObjectFacts, _ how: Serving) {
        let builder = AnswerHead(
            request: request, resource: resource, settings: core.settings,
            now: exchange.loop.wallNow)
        let validators = Validators(
            etag: EntityTag(facts.entityTag), lastModified: facts.lastModified,
            date: facts.head.fields.first(.date).flatMap { HTTPDate.parse($0) }
                ?? facts.head.responseTime.seconds)
        switch Preconditions.evaluate(
            request.fields, method: request.method, validators: validators)
        {
        case .proceed: break
        case .notModified:
            count(how.disposition)
            let fields = builder.fields(
                facts, disposition: how.disposition, ttl: how.ttl, originStatus: how.status)
            return exchange.respond(ResponseHead(status: .notModified, fields: fields), body: .none)
        case .failed:
            return fail(
                ProxyFailure(.client, .preconditionFailed, "the precondition does not hold"))
        }
        let part =
            facts.head.status == .ok
                && Preconditions.useRange(request.fields, validators: validators)
            ? chosenRange(total: object.total) : .whole
        guard case .unsatisfiable = part else {
            return send(object, facts, part, builder, how)
        }
        fail(
            ProxyFailure(
                .client, .rangeNotSatisfiable,
                "the range lies beyond the end of \(resource.url.redacted)",
                total: object.total))
    }

    private enum ChosenRange {
        case whole
        case part(ResolvedRange)
        case unsatisfiable
    }

    /// The one range that is answered as 206.
    ///
    /// Several ranges are answered with the whole, which RFC 9110 section 14.2 allows, as is a
    /// range of a body whose length is not known yet.
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
                ProxyFailure(
                    .us, .gatewayTimeout,
                    "\(resource.url.redacted) is stored only in part, and the policy is offline"))
        }
        if how.status == nil, request.method != .head, fetchFirstHole(of: object, start, end) {
            return
        }
        count(how.disposition)
        var fields = builder.fields(
            facts, disposition: how.disposition, ttl: how.ttl, originStatus: how.status)
        if let contentRange { fields.append(.contentRange, contentRange) }
        let reader = Reader(
            object, of: resource, range: (start, end), core: core, exchange: exchange)
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
