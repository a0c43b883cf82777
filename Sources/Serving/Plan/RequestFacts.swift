import CachePolicy
import HTTP
import Model
import Posix
import Store

/// The input of a plan: values only, so that equal facts give equal plans.
///
/// Optional facts are nil until the plan requests them with `learn`.
struct RequestFacts: Sendable {
    /// What is stored for the resource.
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

    /// The class of JSON that was opened as an entry.
    enum EntryText: Sendable {
        /// An HLS JSON text, which is rewritten; its resource takes the role `json`.
        case text
        /// Undecided: the rest of the body is needed.
        case open
        /// Passed on unchanged.
        case other
    }

    /// The result of parsing a playlist or JSON text.
    enum Text: Equatable, Sendable {
        case readable(PlaylistFacts, isShifted: Bool)
        case unreadable
    }

    /// The offline form of a playlist.
    enum OfflineOutcome: Sendable, CaseIterable {
        case whole, cut, nothing
    }

    /// The result of checking the origins of what a playlist lacks.
    enum OriginConfirmation: Sendable, CaseIterable {
        /// The playlist lacks nothing.
        case lacksNothing
        case asked
        /// An earlier decision for the same request has checked.
        case askedBefore
    }

    /// The current meaning of a resource's name.
    struct Name: Sendable {
        /// Another URL has replaced an expired one.
        var hasSuccessor = false
        /// It is a playlist, and stored at that URL.
        var isSuccessorStored = false
        /// The origin has reused the name for another resource.
        var isNameReused = false
    }

    /// A request to the origin that failed.
    struct Failure: Sendable {
        /// The origin was unreachable or did not work.
        var allowsStale = false
        /// A token may have expired, and its successor has not been searched for too often.
        var maySearch = false
        /// A blocking reload failed.
        var isOfReload = false
        /// The origin has fallen silent, its return is awaited, and the request has not waited for it.
        var mayAwaitReturn = false
        /// The origin has nothing under the name any more, which still means what is stored.
        var keepsMeaning = false
    }

    /// The reply of the origin, or of the flight that was joined.
    struct Reply: Sendable {
        /// The origin responded that the stored response is still valid.
        var isRevalidated = false
        /// Another request's flight was joined.
        var isCollapsed = false
        /// It was stored already, and no origin was contacted.
        var wasStored = false
        /// A part of it was stored before.
        var wasPartlyStored = false
        /// The end of what may be HLS JSON was waited for.
        var hasAwaitedText = false
        /// Why the stored response was revalidated or fetched anew.
        var staleReason: Freshness.StaleReason?
        /// Why it is not stored.
        var notStored: Storability.NoStoreReason?

        /// The disposition of a response with it.
        var disposition: Disposition {
            if isRevalidated { return .revalidated(staleReason) }
            if let notStored {
                return .bypass(notStored, over: staleReason, isCollapsed: isCollapsed)
            }
            if let staleReason, !wasStored { return .refreshed(staleReason) }
            if wasPartlyStored, !isCollapsed { return .partial }
            if wasStored { return .hit }
            return isCollapsed ? .collapsed : .miss
        }
    }

    var resource: Resource
    var circumstances: RequestCircumstances
    let method: HTTPMethod
    let range: ByteRangeSpec.Request
    /// The state of the resource's origin; up if a parent is asked in its place.
    var origin = OriginHealth.State.up
    /// True if any origin is down, and nothing else may have what a playlist names.
    var hasDown = false
    /// True if a fetch of the resource has failed for this request, even where `failure` is dropped
    /// since its offline form is known.
    var hasFailed = false

    var stored: Stored?
    var entry: EntryText?
    var belongsToAnotherViewer: Bool?
    /// True if the stored playlist may have been made for one client of a mount; set with
    /// `belongsToAnotherViewer`.
    var isOfOneClient = false
    var text: Text?
    var offline: OfflineOutcome?
    var originConfirmation: OriginConfirmation?
    /// True if the playlist may lack something whose origin was not checked recently; set with
    /// `text`.
    var mayLack = false
    var name: Name?
    /// The time since a live playlist or a delta update of it was last read; the longest time if
    /// that is unknown.
    var sinceReading: Interval?
    var isOfFormerEpoch: Bool?
    /// True if the name stands for something else by now, and the resource is what it meant before;
    /// set with `isOfFormerEpoch`.
    var isNameGivenAway = false
    var isLiveSession: Bool?
    var isPinned: Bool?
    var holdsAsked: Bool?
    var mayShare: Bool?

    /// Set once a request to the origin failed; `stored` then is what may be served instead.
    var failure: Failure?
    /// Set once a request to the origin delivered `stored`.
    var reply: Reply?

    init(
        _ resource: Resource, _ circumstances: RequestCircumstances, _ method: HTTPMethod,
        _ range: ByteRangeSpec.Request
    ) {
        self.resource = resource
        self.circumstances = circumstances
        self.method = method
        self.range = range
    }

    /// The stored response, if there is one.
    var response: Response? { if case .response(let response)? = stored { response } else { nil } }

    var playlist: PlaylistFacts? {
        if case .readable(let facts, _)? = text { facts } else { nil }
    }
}
