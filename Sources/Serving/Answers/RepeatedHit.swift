// Hits that repeat with an identical request head: the result of the first is kept, and later ones
// check only what may have changed since.
import CachePolicy
import HTTP
import HTTPServer
import Model
import Posix
import Reactor
import Store

/// The response to a hit, for repetition.
///
/// The response depends on the bytes of the head, the rules of keys and policies, the stored
/// response, its served form and the time. The head is the same for every repetition; `answer`
/// checks the others, and leaves the request to normal processing if one has changed.
///
/// Bound to its server loop.
final class RepeatedHit {
    /// The content after the head.
    enum Content {
        case none
        case text([UInt8])
        /// A stretch of the object's body.
        case part(start: Int64, end: Int64)
    }

    private let core: ProxyCore
    private let resource: Resource
    private let rules: UInt64
    private let facts: ObjectFacts
    private let playlist: PreparedPlaylist?
    private let content: Content
    private let makeHead: (WallTime, OriginExchange.Serving) -> ResponseHead
    /// The head for the current second: nothing in it changes faster.
    @exclusivity(unchecked) private var head: ResponseHead?
    @exclusivity(unchecked) private var second: Int64 = 0

    /// - Parameters:
    ///   - answered: the exchange whose response is kept.
    ///   - facts: the facts of the stored response.
    ///   - playlist: its rewritten form, if it is a playlist.
    ///   - content: the content after the head.
    ///   - makeHead: makes the head for a time.
    init(
        _ answered: OriginExchange, _ facts: ObjectFacts, playlist: PreparedPlaylist?,
        content: Content,
        makeHead: @escaping (WallTime, OriginExchange.Serving) -> ResponseHead
    ) {
        core = answered.core
        resource = answered.resource
        rules = answered.core.keys.version
        self.facts = facts
        self.playlist = playlist
        self.content = content
        self.makeHead = makeHead
    }

    /// Answers a request with the same head.
    ///
    /// - Returns: false, with nothing done, if something has changed.
    func answer(_ exchange: Exchange) -> Bool {
        guard core.keys.version == rules, let object = core.store.peek(resource.key),
            object.attachment === facts, object.isComplete
        else { return false }
        let repeated = OriginExchange(core: core, exchange: exchange, resource: resource)
        guard case .fresh(let ttl)? = repeated.freshnessAgain(object, facts, playlist) else {
            return false
        }
        let how = OriginExchange.Serving(disposition: .hit, ttl: ttl)
        repeated.count(.hit)
        let head = head(exchange.loop.wallNow, how)
        switch content {
        case .none:
            core.store.noteRead(object, bytes: 0)
            exchange.respond(head, body: .none)
        case .text(let bytes):
            core.store.noteRead(object, bytes: max(1, object.total ?? 1))
            repeated.deliver(bytes, head, how)
        case .part(let start, let end):
            repeated.deliver(object, head, from: start, to: end, how)
        }
        return true
    }

    private func head(_ now: WallTime, _ how: OriginExchange.Serving) -> ResponseHead {
        if let head, second == now.seconds { return head }
        var made = makeHead(now, how)
        // A head that cannot be written is rejected where it is sent.
        try? made.writeFields()
        head = made
        second = now.seconds
        return made
    }
}

extension OriginExchange {
    /// Keeps the response to a hit with the request head, if that may repeat.
    func keepForRepetition(
        _ facts: ObjectFacts, _ how: Serving, playlist: PreparedPlaylist? = nil,
        content: RepeatedHit.Content,
        makeHead: @escaping (WallTime, OriginExchange.Serving) -> ResponseHead
    ) {
        // Only for the resource of the request itself: HTTP's rules choose among variants, and a
        // substitute may have to yield to the original.
        guard let repeated = exchange.repeated, case .hit = how.disposition, how.status == nil,
            resource === asked, resource.kind == nil, !core.logsAnswers
        else { return }
        repeated.finding = RepeatedHit(
            self, facts, playlist: playlist, content: content, makeHead: makeHead)
    }
}

extension OriginExchange {
    /// Returns a body with a stretch of an object.
    ///
    /// A short one in memory is returned as bytes, which costs less than a reader and is sent in
    /// one piece with the head.
    func body(of object: StoredObject, from start: Int64, to end: Int64?) -> ResponseBody {
        let isComplete = object.isComplete
        let pace = isComplete ? core.pace(of: resource) : nil
        if pace == nil, let end, end > start, request.method == .get,
            let bytes = object.shortBytes(start..<end)
        {
            core.counters.record(firstByte: Monotonic.now() - exchange.receivedAt)
            core.store.noteRead(object, bytes: end - start)
            return .bytes(bytes)
        }
        let reader = Reader(
            object, of: resource, range: (start, end), core: core, exchange: exchange)
        reader.budget = spent
        if !isComplete, exchange.record != nil { exchange.note { reader.budget?.trace } }
        reader.endsWithFill = end == nil && resource.isGrowing
        let length = end.map { $0 - start }
        guard let pace else { return .source(reader, length: length) }
        return .source(PacedSource(reader, rate: pace, on: exchange.loop), length: length)
    }
}
