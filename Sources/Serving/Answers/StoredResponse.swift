// The response with the content of a stored object, or of one that is arriving: `AnswerFacts.part`
// applies ranges and conditions, `BodyFacts.plan` decides what comes before the head, this type
// acts.
import CachePolicy
import Endless
import HTTP
import HTTPServer
import Model
import Posix
import Reactor
import Store
import URISyntax

/// One response with an object's content, whole or in part.
///
/// Bound to the loop of its exchange.
struct StoredResponse {
    /// Why nothing was sent.
    enum Lack {
        case refused(Refusal)
        /// The first byte is missing and must be fetched, with what follows it up to `stop`; nil
        /// for the end of the body.
        case firstByte(of: StoredObject, start: Int64, stop: Int64?)
    }

    /// The stretch of an object to send, and its status.
    private struct Stretch {
        let status: HTTPStatus
        var start: Int64 = 0
        let end: Int64?
        var contentRange: String?
        /// The requested range, if only its bytes show whether it is satisfiable and where it ends.
        var awaited: ResolvedRange?
        /// The length of the body, if it was known when the range was resolved.
        var total: Int64?
    }

    private let responder: Responder
    private var object: StoredObject
    private var facts: ObjectFacts
    private let range: ByteRangeSpec.Request
    private var how: Provenance
    /// The window that is kept of the body, if that may have no end.
    var endless: EndlessBody?
    /// Fields of the response that were not stored.
    var onlyHere = Fields()
    /// True if the origin may be asked once more, for the requested range.
    var mayAskAgain = false
    /// True once the byte that shows whether the range is satisfiable was waited for.
    private var hasAwaited = false
    /// True once the byte that shows whether the body reaches the end of the range was waited for.
    private var hasAwaitedLast = false
    private let onLack: (Lack) -> Void

    private var core: ProxyCore { responder.core }
    private var exchange: Exchange { responder.exchange }
    private var resource: Resource { responder.resource }
    private var request: RequestHead { responder.request }

    /// - Parameters:
    ///   - responder: sends the response.
    ///   - object: the object, and its facts.
    ///   - range: the requested range.
    ///   - how: how the object was obtained.
    ///   - onLack: called if nothing can be sent yet.
    init(
        _ responder: Responder, _ object: (StoredObject, ObjectFacts),
        range: ByteRangeSpec.Request, _ how: Provenance, onLack: @escaping (Lack) -> Void
    ) {
        self.responder = responder
        (self.object, facts) = object
        self.range = range
        self.how = how
        self.onLack = onLack
    }

    /// Sends the response, possibly after this returns.
    func send() {
        let total = object.total
        if let endless, endless.generation == object.generation, endless.stage != .file {
            return sendEndless(endless)
        }
        var answer = AnswerFacts(
            resource: resource, fields: request.fields, method: request.method, range: range,
            stored: facts, total: total)
        if total == nil { answer.storedEnd = object.spans.contiguousEnd(from: 0) }
        switch answer.part {
        case .notModified: sendNotModified()
        case .preconditionFailed:
            responder.fail(
                ProxyFailure(
                    .client, .preconditionFailed,
                    "the precondition of the request does not hold for \(resource.url.redacted)"),
                how)
        case .rangeNotSatisfiable: refuseRange(total)
        case .part(let range) where isRefused(range): refuseRange(total)
        case .whole: send(Stretch(status: facts.head.status, end: total))
        case .part(let range):
            send(
                Stretch(
                    status: .partialContent, start: range.first, end: range.last + 1,
                    contentRange: ContentRange(range, total: total).description,
                    awaited: range, total: total))
        case .open(let first):
            let range = ResolvedRange(first: first, last: Wanted.openEnd)
            send(
                Stretch(
                    status: .partialContent, start: first, end: total,
                    contentRange: ContentRange(range, total: nil).description))
        case .parts(let ranges):
            send(
                Multipart(
                    ranges, total: total ?? 0,
                    contentType: facts.head.fields.first(.contentType)))
        }
    }

    /// True if the origin has just said that a growing resource has no such bytes yet.
    private func isRefused(_ range: ResolvedRange) -> Bool {
        guard let growth = resource.live.growth, object.total == nil else { return false }
        return object.refuses(range.first, listedEnd: growth.end, now: exchange.loop.now)
    }

    private func refuseRange(_ total: Int64?) {
        responder.fail(
            ProxyFailure(
                .client, .rangeNotSatisfiable,
                "the range lies beyond the end of \(resource.url.redacted)", total: total), how)
    }

    private func sendNotModified() {
        responder.count(how.disposition)
        responder.keepForRepetition(object, facts, how, content: .none) { [facts] heads, how in
            heads.head(facts, .notModified, how)
        }
        exchange.respond(responder.heads.head(facts, .notModified, how), body: .none)
    }

    // MARK: One stretch

    private func send(_ stretch: Stretch) {
        var how = how
        let (start, end, status) = (stretch.start, stretch.end, stretch.status)
        var body = bodyFacts(from: start, to: end, isPresent: isPresent(start, end))
        body.isHead = request.method == .head
        body.mayAskAgain = mayAskAgain
        body.isRange = stretch.awaited != nil
        body.hasAwaited = hasAwaited
        if !body.isHead, case .hole(let hole) = object.state(at: start) { body.hole = hole }
        if let range = stretch.awaited, mayAwaitLast(of: range),
            case .hole(let hole) = object.state(at: range.last)
        {
            body.lastHole = hole
        }
        // The body may have ended since, before the range.
        guard stretch.awaited == nil || object.total == stretch.total else { return send() }
        switch body.plan {
        case .refuse(let refusal): return onLack(.refused(refusal))
        case .fetchFirst(let stop):
            return onLack(.firstByte(of: object, start: start, stop: stop))
        case .awaitFirst: return awaitFirst(start)
        case .awaitLast: return awaitLast(from: start, to: end ?? start + 1)
        case .send(let disposition): how.disposition = disposition
        }
        responder.count(how.disposition)
        let contentRange = stretch.contentRange
        var head = responder.heads.head(facts, status, how, contentRange: contentRange)
        if let end, exchange.repeated != nil {
            responder.keepForRepetition(
                object, facts, how, content: .part(start: start, end: end)
            ) { [facts] heads, how in
                heads.head(facts, status, how, contentRange: contentRange)
            }
        }
        head.fields.append(contentsOf: onlyHere)
        responder.deliver(object, head, from: start, to: end, how)
    }

    private func bodyFacts(from start: Int64, to end: Int64?, isPresent: Bool) -> BodyFacts {
        var facts = BodyFacts(
            disposition: how.disposition, policy: resource.policy,
            origin: isPresent ? .up : core.origins.state(of: resource),
            isAwaited: !isPresent && resource.mayAwaitReturn(from: start)
                && core.origins.isAwaited(resource, now: exchange.loop.now),
            wasAsked: how.status != nil, start: start, end: end, total: object.total,
            isPresent: isPresent, joinDistance: core.settings.joinDistance)
        if !isPresent { facts.firstHole = object.firstHole(from: start) }
        return facts
    }

    private func isPresent(_ start: Int64, _ end: Int64?) -> Bool {
        if object.isComplete { return true }
        guard let end else { return false }
        return end <= start || object.spans.contains(start..<end)
    }

    /// Waits for the first byte of a range of a body of unknown length: only that byte or the end
    /// of the body shows whether the range is satisfiable.
    private func awaitFirst(_ first: Int64) {
        let reader = Reader(
            object, of: resource, range: (first, first + 1), core: core, exchange: exchange)
        reader.isForPage = responder.isForPage
        exchange.onCancel = { [weak reader] in reader?.cancel() }
        // The reader forgets this as soon as it calls it or is cancelled.
        reader.wake = { _ in firstByteCame(first, reader) }
    }

    private func firstByteCame(_ first: Int64, _ reader: Reader) {
        exchange.onCancel = nil
        let object = reader.object
        let isThere = if case .hole = object.state(at: first) { false } else { true }
        // Cancelled only after the response's own reader exists, so that its flight does not end in
        // between.
        defer { reader.cancel() }
        guard exchange.isAlive else { return }
        guard isThere || reader.isAtEnd, let facts = ObjectFacts.of(object) else {
            return responder.fail(
                ProxyFailure(
                    .origin, .badGateway,
                    "\(resource.url.redacted): the origin broke off the body before the range",
                    originStatus: how.status))
        }
        var response = self
        (response.object, response.facts) = (object, facts)
        response.mayAskAgain = false
        response.hasAwaited = true
        response.send()
    }

    /// True for a range of a body of unknown length whose last byte may be waited for, and was not.
    ///
    /// That of a body that grows by parts may come much later.
    private func mayAwaitLast(of range: ResolvedRange) -> Bool {
        object.total == nil && !hasAwaitedLast && !resource.isGrowing
            && BodyFacts.patience(forLength: range.length) != nil
    }

    /// Waits for the last byte of a range of a body of unknown length: a head that states more than
    /// the body has would be wrong (RFC 9110 section 14.4).
    ///
    /// If the transfer breaks or is too slow, the response breaks where the bytes end.
    private func awaitLast(from start: Int64, to end: Int64) {
        // Keeps the bytes of the range that have arrived: of a body that is not stored, bytes that
        // no reader needs are freed.
        let holder = responder.reader(of: object, (start, end))
        let reader = responder.reader(of: object, (end - 1, end))
        let loop = exchange.loop
        let patience = BodyFacts.patience(forLength: end - start) ?? .zero
        let timer = loop.schedule(after: patience) { _ in lastByteCame(reader, holder) }
        exchange.onCancel = { [weak holder, weak reader] in
            loop.cancel(timer)
            holder?.cancel()
            reader?.cancel()
        }
        reader.wake = { _ in
            loop.cancel(timer)
            lastByteCame(reader, holder)
        }
    }

    private func lastByteCame(_ reader: Reader, _ holder: Reader) {
        exchange.onCancel = nil
        // As for the first byte.
        defer {
            holder.cancel()
            reader.cancel()
        }
        guard exchange.isAlive else { return }
        var response = self
        response.hasAwaitedLast = true
        // These bytes were not stored when they were asked for.
        if response.how.disposition == .hit { response.how.disposition = .collapsed }
        response.send()
    }

    // MARK: Several stretches

    /// Sends several ranges; holes are filled when the reader gets there.
    private func send(_ multipart: Multipart) {
        var how = how
        let isPresent = multipart.ranges.allSatisfy { self.isPresent($0.first, $0.last + 1) }
        switch bodyFacts(from: 0, to: object.total, isPresent: isPresent).plan {
        case .refuse(let refusal): return onLack(.refused(refusal))
        case .send(let disposition): how.disposition = disposition
        case .fetchFirst, .awaitFirst, .awaitLast: break
        }
        responder.count(how.disposition)
        exchange.accessRecord?.note(object, from: multipart.ranges[0].first)
        var head = responder.heads.head(facts, .partialContent, how)
        head.fields.set(.contentType, multipart.contentType)
        head.fields.append(contentsOf: onlyHere)
        var responder = responder
        let budget = responder.budget ?? OriginBudget(tracedOn: exchange)
        // Each part may be a hole that needs a request.
        budget.with { $0.allow(requests: multipart.ranges.count) }
        responder.budget = budget
        let source = MultipartSource(multipart) { [object, responder] range in
            responder.reader(of: object, (range.first, range.last + 1))
        }
        responder.countBytes(how)
        exchange.respond(head, body: .source(source, length: multipart.length))
    }

    // MARK: Without end

    /// Sends a live stream from its edge on, or a body that may be one from its first byte on
    /// (decision 36).
    ///
    /// Ranges and conditions are ignored (RFC 9110 sections 13.2.1 and 14.2): its bytes have no
    /// place that could be asked for again.
    private func sendEndless(_ body: EndlessBody) {
        let entry = body.entry(now: exchange.loop.now)
        var how = how
        how.disposition =
            entry == nil ? .live(isCollapsed: how.disposition.isCollapsed) : .joinedLive
        responder.count(how.disposition)
        let start = entry?.offset ?? 0
        let reader = responder.reader(of: object, (start, nil))
        reader.watch(body, from: entry)
        exchange.accessRecord?.note(object, from: start)
        responder.showBudget(of: reader)
        responder.countBytes(how)
        exchange.respond(
            responder.heads.endless(facts, how), body: .source(reader, length: nil))
    }
}
