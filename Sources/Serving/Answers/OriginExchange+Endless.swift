// Answers with live streams that are one endless body (decision 36).
import CachePolicy
import Endless
import HTTP
import HTTPServer
import Model
import Posix
import Reactor
import Store

extension OriginExchange {
    /// Sends a live stream from its edge on, or a body that may be one from its first byte on.
    ///
    /// Ranges and conditions are ignored (RFC 9110 sections 13.2.1 and 14.2): its bytes have no
    /// place that could be asked for again.
    func serveEndless(
        _ object: StoredObject, _ facts: ObjectFacts, _ body: EndlessBody, _ how: Serving
    ) {
        let entry = body.entry(now: exchange.loop.now)
        var how = how
        how.disposition = entry == nil ? .live : .joinedLive
        count(how.disposition)
        let builder = AnswerHead(
            request: request, resource: resource, core: core, now: exchange.loop.wallNow)
        let reader = Reader(
            object, of: resource, range: (entry?.offset ?? 0, nil), core: core, exchange: exchange)
        reader.watch(body, from: entry)
        reader.budget = spent
        exchange.accessRecord?.note(object, from: entry?.offset ?? 0)
        if exchange.record != nil { exchange.note { reader.budget?.trace } }
        countBytes(how)
        exchange.respond(builder.endless(facts, how), body: .source(reader, length: nil))
    }
}

extension AnswerHead {
    /// Returns the head of a response with a body that may have no end.
    func endless(_ facts: ObjectFacts, _ how: OriginExchange.Serving) -> ResponseHead {
        var fields = Fields()
        let stored = facts.head.fields
        fields.append(
            .contentType, ContentTypes.media(resource, stated: stored.first(.contentType)))
        fields.append(.cacheControl, "no-store")
        fields.append(.acceptRanges, "none")
        for name in Self.stationFields {
            if let value = stored.first(name) { fields.append(name, value) }
        }
        if let before = stored.combined(.cacheStatus) { fields.append(.cacheStatus, before) }
        how.disposition.cacheStatus(ttl: nil, status: how.status).append(to: &fields)
        fields.append("X-Content-Type-Options", "nosniff")
        CrossOrigin.append(
            to: &fields, for: request, settings: core.settings, isDocument: facts.isDocument)
        return ResponseHead(status: .ok, fields: fields)
    }

    /// What a radio station says of itself; without the distance of titles, which are removed.
    private static let stationFields: [FieldName] = [
        "icy-name", "icy-genre", "icy-description", "icy-url", "icy-br", "icy-sr", "icy-pub",
        "ice-audio-info",
    ]
}

extension Reader {
    /// Reads a body that may have no end.
    ///
    /// - Parameters:
    ///   - body: what is kept of it.
    ///   - entry: where it is entered; nil for its first byte.
    func watch(_ body: EndlessBody, from entry: EdgeEntry?) {
        endless = body
        prefix = entry?.prefix[...] ?? []
        body.viewerEntered()
    }

    /// True if what is kept begins behind the next byte to send.
    var isBehind: Bool { endless?.entry(after: offset, now: loop.now) != nil }

    /// Returns the bytes that precede those of the body; nil if the body is next.
    ///
    /// A reader that has fallen behind goes on at the edge. To end it would make most players stop;
    /// a jump over packets looks to them like a loss on the air, which their demuxers handle.
    func edgeStep(of body: EndlessBody, limit: Int) -> BodyStep? {
        if prefix.isEmpty, let entry = body.entry(after: offset, now: loop.now) {
            core.counters.add(.liveMoved)
            prefix = entry.prefix[...]
            offset = entry.offset
            firstOffset = offset
            reportOffset()
        }
        return prefix.isEmpty ? nil : .bytes(prefix.prefix(limit))
    }

    /// Counts sent bytes that precede those of the body.
    ///
    /// - Returns: true if they were bytes of the body.
    func advances(by count: Int, in body: EndlessBody) -> Bool {
        guard prefix.isEmpty else {
            prefix = prefix.dropFirst(count)
            return false
        }
        // They may have been freed between their offer and their way into the socket.
        if body.isGone(offset) {
            isBroken = true
            return false
        }
        return true
    }
}
