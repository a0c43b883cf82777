// Hits that repeat with an identical request head: the result of the first is kept, and later ones
// check only what may have changed since.
import Ahead
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

    /// Shorter texts are not counted: the number of repeated heads bounds them.
    static let shortText = 16 << 10

    private let core: ProxyCore
    private let resource: Resource
    private let rules: UInt64
    private let facts: ObjectFacts
    private let playlist: PreparedPlaylist?
    /// What counts a long text against the budget of repeated ones.
    private let held: KeptPlaylist?
    private let content: Content
    private let isForPage: Bool
    private let makeHead: (AnswerHead, Provenance) -> ResponseHead
    /// The head for the current second: nothing in it changes faster.
    @exclusivity(unchecked) private var head: ResponseHead?
    @exclusivity(unchecked) private var second: Int64 = 0
    /// When a repetition was last reported to look-ahead.
    @exclusivity(unchecked) private var reportedAt = Monotonic(nanoseconds: 0)

    /// How often repetitions of a list are reported: look-ahead drops lists that are not used.
    private static let reportPause = Interval.seconds(60 as Int64)

    /// - Parameters:
    ///   - core: what all exchanges share.
    ///   - resource: the resource that was requested.
    ///   - rules: the version of the key rules, read before the resource was made by them.
    ///   - facts: the facts of the stored response.
    ///   - playlist: its rewritten form, if it is a playlist.
    ///   - held: what counts the text against a budget, if it is long.
    ///   - content: the content after the head.
    ///   - isForPage: whether a page of another site asks, which may have the response.
    ///   - makeHead: makes the head of a repetition.
    init(
        _ core: ProxyCore, _ resource: Resource, rules: UInt64, _ facts: ObjectFacts,
        playlist: PreparedPlaylist?, held: KeptPlaylist?, content: Content, isForPage: Bool,
        makeHead: @escaping (AnswerHead, Provenance) -> ResponseHead
    ) {
        self.core = core
        self.resource = resource
        self.rules = rules
        self.facts = facts
        self.playlist = playlist
        self.held = held
        self.content = content
        self.isForPage = isForPage
        self.makeHead = makeHead
    }

    /// Answers a request with the same head.
    ///
    /// - Returns: false, with nothing done, if something has changed.
    func answer(_ exchange: Exchange) -> Bool {
        guard core.keys.version == rules, let object = core.store.peek(resource.key),
            object.attachment === facts, object.isComplete,
            case .fresh(let ttl)? = freshness(of: object, for: exchange)
        else { return false }
        let how = Provenance(disposition: .hit, ttl: ttl)
        let responder = Responder(
            core: core, exchange: exchange, resource: resource, rules: rules, isForPage: isForPage)
        responder.count(.hit)
        let head: ResponseHead
        if let made = self.head, second == exchange.loop.wallNow.seconds {
            head = made
        } else {
            head = makeHead(by: responder.heads, how)
            report(object, exchange)
        }
        switch content {
        case .none:
            core.store.noteRead(object, bytes: 0)
            exchange.respond(head, body: .none)
        case .text(let bytes):
            core.store.noteRead(object, bytes: max(1, object.total ?? 1))
            responder.deliver(bytes, head, how)
        case .part(let start, let end):
            responder.deliver(object, head, from: start, to: end, how)
        }
        return true
    }

    /// Reports a list to look-ahead now and then.
    private func report(_ object: StoredObject, _ exchange: Exchange) {
        let now = exchange.loop.now
        guard playlist != nil, now - reportedAt >= Self.reportPause else { return }
        reportedAt = now
        core.lookahead.list(resource, object, nil, exchange, isForPage: isForPage)
    }

    /// Returns how fresh the response is now; nil if it would be served in another form.
    private func freshness(of object: StoredObject, for exchange: Exchange) -> Freshness? {
        if let playlist {
            let now = exchange.loop.now
            let text = ServableText(
                resource: resource, object: object, facts: facts, cut: nil, isForPage: isForPage)
            guard playlist.names == core.store.longURLVersion,
                !core.linksCarryCookies(resource), !takesOfflineForm(playlist),
                !needsOriginConfirmation(playlist, now: now),
                !core.isShiftLong(resource), core.form(of: text, now: now) == playlist.form
            else { return nil }
        }
        return resource.freshness(
            facts, playlist?.facts, core.circumstances(of: exchange),
            isOfFormerEpoch: core.live.isOfFormerEpoch(facts, resource),
            isNameGivenAway: core.live.isNameReused(resource),
            isLiveSession: core.isOfLiveStream(resource),
            isPinned: core.store.isPinned(object))
    }

    private func takesOfflineForm(_ playlist: PreparedPlaylist) -> Bool {
        (resource.policy == .offline || core.origins.mustReduce(resource))
            && mayTakeOfflineForm(playlist)
    }

    private func mayTakeOfflineForm(_ playlist: PreparedPlaylist) -> Bool {
        resource.mayTakeOfflineForm(facts, isWindow: playlist.form.timeShift != 0)
    }

    private func needsOriginConfirmation(_ playlist: PreparedPlaylist, now: Monotonic) -> Bool {
        !playlist.facts.isLive && resource.policy != .offline
            && mayTakeOfflineForm(playlist) && core.mayLack(facts, playlist.facts, now: now)
    }

    private func makeHead(by heads: AnswerHead, _ how: Provenance) -> ResponseHead {
        var made = makeHead(heads, how)
        // A head that cannot be written is rejected where it is sent.
        try? made.writeFields()
        head = made
        second = heads.now.seconds
        return made
    }
}

extension ProxyCore {
    /// True if the links of a session carry cookies: they change without a change of the playlist.
    func linksCarryCookies(_ resource: Resource) -> Bool {
        cookies?.text(of: resource.session.id) != nil
    }
}
