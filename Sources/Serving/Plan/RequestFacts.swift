import CachePolicy
import HTTP
import Model
import Posix
import Store

/// What a plan is made from: values only, so that equal facts give equal plans.
///
/// Optional facts are nil until the plan asks for them with `learn`.
struct RequestFacts: Sendable {
    /// What is stored in the resource's place.
    enum Stored: Sendable {
        case nothing
        /// Variants that the request does not select.
        case otherVariants
        case response(Response)
    }

    /// A stored response.
    struct Response: Sendable {
        let facts: ObjectFacts
        let isComplete: Bool
        let total: Int64?

        init(_ facts: ObjectFacts, isComplete: Bool, total: Int64?) {
            self.facts = facts
            self.isComplete = isComplete
            self.total = total
        }

        init(_ object: StoredObject, _ facts: ObjectFacts) {
            self.init(facts, isComplete: object.isComplete, total: object.total)
        }
    }

    /// What JSON that was opened as an entry is.
    enum EntryText: Sendable {
        /// A text of HLS, which is rewritten; its resource takes the role of one.
        case text
        /// Perhaps one: the rest of the body tells.
        case open
        /// Passed on as it is.
        case other
    }

    /// What reading a playlist or JSON text came to.
    enum Text: Equatable, Sendable {
        case readable(PlaylistFacts, isShifted: Bool)
        case unreadable
    }

    /// What a playlist is without the network.
    enum OfflineOutcome: Sendable, CaseIterable {
        case whole, cut, nothing
    }

    /// What came of asking the origins of what a playlist lacks.
    enum OriginsWord: Sendable, CaseIterable {
        /// The playlist lacks nothing.
        case lacksNothing
        case asked
        /// An earlier decision for the same request has asked.
        case askedBefore
    }

    /// What the name of a resource stands for now.
    struct Name: Sendable {
        /// Another URL has replaced a dead one.
        var hasSuccessor = false
        /// The origin has given the name to another resource.
        var isGivenAway = false
    }

    /// A request to the origin that failed.
    struct Failure: Sendable {
        /// The origin could not be reached or did not work.
        var allowsStale = false
        /// A token may have died, and the URL of now has not been looked for too often.
        var maySearch = false
        /// A blocking reload failed.
        var isOfReload = false
    }

    /// What the origin, or the flight that was joined, has brought.
    struct Reply: Sendable {
        /// The origin said that what is stored is still right.
        var isRevalidated = false
        /// Another request's flight was joined.
        var isCollapsed = false
        /// It was stored already, and nobody was asked.
        var wasStored = false
        /// A part of it was stored before.
        var wasPartlyStored = false
        /// The end of what may be JSON of HLS was waited for.
        var hasAwaitedText = false
        /// Why the origin was asked about what was stored.
        var staleReason: Freshness.StaleReason?
        /// Why it is not kept.
        var notStored: Storability.NoStoreReason?

        /// How an answer with it came about.
        var disposition: Disposition {
            if isRevalidated { return .revalidated }
            if let notStored { return .bypass(notStored) }
            if let staleReason, !wasStored { return .refreshed(staleReason) }
            if wasPartlyStored { return .partial }
            if wasStored { return .hit }
            return isCollapsed ? .collapsed : .miss
        }
    }

    var resource: Resource
    var asked: Asked
    let method: HTTPMethod
    let range: ByteRangeSpec.Request
    /// The state of the resource's origin.
    var origin = OriginHealth.State.up
    /// Whether any origin is down.
    var hasDown = false

    var stored: Stored?
    var entry: EntryText?
    var isAnothers: Bool?
    var text: Text?
    var offline: OfflineOutcome?
    var originsWord: OriginsWord?
    /// Whether the playlist may lack something whose origin was not asked lately; told with `text`.
    var mayLack = false
    var name: Name?
    var isOfFormerEpoch: Bool?
    var isLiveSession: Bool?
    var holdsAsked: Bool?
    var mayShare: Bool?

    /// Set once a request to the origin failed; `stored` is then what may serve instead.
    var failure: Failure?
    /// Set once a request to the origin brought what is `stored`.
    var reply: Reply?

    init(_ resource: Resource, _ asked: Asked, _ method: HTTPMethod, _ range: ByteRangeSpec.Request)
    {
        self.resource = resource
        self.asked = asked
        self.method = method
        self.range = range
    }

    /// What is stored, where that is a response.
    var response: Response? { if case .response(let response)? = stored { response } else { nil } }

    var playlist: PlaylistFacts? {
        if case .readable(let facts, _)? = text { facts } else { nil }
    }
}
