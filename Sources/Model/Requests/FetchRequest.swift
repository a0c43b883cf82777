// Requests for a flight, and its replies.
package import CachePolicy
import HLS
package import HTTP
package import Posix
package import Store
import Synchronization
package import Upstream

/// The requested bytes of a resource.
package enum Wanted: Sendable, Equatable {
    /// From `start` up to `end`, exclusive; nil for the end of the body.
    case span(start: Int64, end: Int64?)
    /// The last bytes of a body whose length is unknown.
    case suffix(Int64)

    package static let whole = Wanted.span(start: 0, end: nil)

    /// The first byte; 0 for a suffix, whose position is unknown.
    package var start: Int64 {
        if case .span(let start, _) = self { start } else { 0 }
    }

    /// The end, exclusive; nil for the end of the body.
    package var end: Int64? {
        if case .span(_, let end) = self { end } else { nil }
    }

    /// True if everything from the first byte on is requested.
    package var isOpen: Bool { if case .span(_, nil) = self { true } else { false } }

    /// The value of the Range field; nil for the whole body.
    package var rangeField: String? {
        switch self {
        case .span(0, nil): nil
        case .span(let start, nil): "bytes=\(start)-"
        case .span(let start, let end?): "bytes=\(start)-\(end - 1)"
        case .suffix(let length): "bytes=-\(length)"
        }
    }

    /// Byte positions from here on mean an open end (RFC 8673 section 2.2).
    package static let openEnd = Int64(1) << 53 - 1

    /// The most bytes next to a hole that are fetched again to compare them with the stored ones.
    package static let overlapLimit: Int64 = 8 << 10
}

/// When a request gets its reply.
package enum ReplyPoint: Sendable {
    /// As soon as the head has arrived and, where the type must be sniffed, the first bytes.
    case head
    /// When the body is complete, as playlists need.
    case completion
}

/// A request for bytes from an origin.
package struct FetchRequest: Sendable {
    /// What the response is for.
    package enum Purpose: Sendable {
        /// Any representation of the resource.
        case content
        /// The hole of an object.
        case hole(of: StoredObject)
        /// The proof that an object is unchanged, or its replacement; nil means whichever object is
        /// stored.
        case revalidation(of: StoredObject?)
        /// The rest of an object that takes no more bytes, in an object of its own.
        case rest(of: StoredObject)
    }

    package let resource: Resource
    package let wanted: Wanted
    package let purpose: Purpose
    package let repliesAt: ReplyPoint
    package let lane: Lane
    /// True if no player has requested it yet.
    package var isAhead = false
    package var terms = Terms()
    /// The budget of the player request that causes the fetch; nil creates a separate one.
    package var budget: OriginBudget?

    package init(
        resource: Resource, wanted: Wanted, for purpose: Purpose = .content,
        repliesAt: ReplyPoint, lane: Lane, terms: Terms = Terms()
    ) {
        self.resource = resource
        self.wanted = wanted
        self.purpose = purpose
        self.repliesAt = repliesAt
        self.lane = lane
        self.terms = terms
    }

    /// The object whose hole is filled, or that is revalidated; nil for any representation.
    package var object: StoredObject? {
        switch purpose {
        case .hole(let object): object
        case .revalidation(let object): object
        case .content, .rest: nil
        }
    }

    /// True if no stored object answers before the origin has proved that it is unchanged.
    package var revalidates: Bool { if case .revalidation = purpose { true } else { false } }

    /// The object whose rest is fetched into another one; nil for any other purpose.
    package var continued: StoredObject? {
        if case .rest(let object) = purpose { object } else { nil }
    }

    /// True if only a playlist can answer the request.
    ///
    /// The key does not show this, so the request may join the flight of a media file.
    package var needsPlaylist: Bool {
        resource.role == .playlist && !resource.followsHTTP && repliesAt == .completion
    }

    /// True if a flight for a session satisfies the wish for cookies, if there is one.
    package func takesCookies(of session: Session) -> Bool {
        !terms.wantsCookies || resource.session.id == session.id
    }

    /// True if the URL of a flight's resource is none that the origin refused for this request.
    package func takesURL(of other: Resource) -> Bool {
        !terms.needsOwnURL || resource.url == other.url
    }

    /// What HTTP's rules and delivery directives add to a fetch.
    package struct Terms: Sendable {
        /// HEAD fetches the head alone.
        package var method = HTTPMethod.get
        /// The client's own conditions, if the origin is to evaluate them; its 304 is passed on.
        package var conditions = Fields()
        /// Entity tags of stored variants, any of which the origin may select.
        package var tags: [VariantIndex.Variant] = []
        /// True if the list must satisfy the delivery directives.
        package var hasDirectives = false
        /// True if the fetch must neither use another request's response nor share its own.
        package var isAlone = false
        /// True if the cookies of the response are wanted too: no flight of another session does.
        package var wantsCookies = false
        /// When the session got the cookies that the request needs, having been refused without
        /// them; nil if it is not known to need any.
        package var cookiesSince: Monotonic?
        /// True if no flight for another URL with the same key answers it: its URL replaced an
        /// expired one, or the flight that it shared was refused at another URL.
        package var needsOwnURL = false
        /// True if a stale response will be served should the origin respond with a 5xx.
        package var staleServes = false
        /// True if it waits for the return of an origin that has fallen silent, since nothing else
        /// can be sent to its player.
        package var awaitsReturn = false
        /// True if a page of another site asks: redirects to hosts that may be private are refused.
        package var isForPage = false
        /// True if the title is to be stored as a whole, empty bodies included.
        package var keepsEmpty = false
        /// True if it precedes all other prefetches that wait for a slot.
        package var goesFirst = false
        /// True if it is for a longer window: it is sent to a host with one connection, too.
        package var fillsWindow = false
        /// True if the origin's present version is wanted, whatever parents have stored; a stored
        /// body then stays until its new version is whole, however long that is.
        package var refreshes = false
        /// Called with interim responses (RFC 9110 section 15.2), on the upstream loop.
        package var interim: (@Sendable (ResponseHead) -> Void)?
    }
}

/// The result of a fetch.
package enum FetchReply: Sendable {
    case object(StoredObject, FetchOutcome)
    /// The origin responded that the revalidated object is unchanged.
    case notModified(StoredObject)
    /// A response without content, for this request only: to HEAD, or to the client's own
    /// condition.
    case head(StoredHead, length: String?)
    case failure(ProxyFailure)
}

/// How an object was obtained.
package struct FetchOutcome: Sendable {
    /// True if another request's flight was joined.
    package var isCollapsed: Bool
    /// True if it was stored already, so that no origin was contacted.
    package var wasStored = false
    /// The origin's status.
    package let status: HTTPStatus
    /// Why it is not stored; nil if it is.
    package var notStored: Storability.NoStoreReason?
    /// Fields that are not stored and belong only to the response that delivered them.
    package var onlyHere = Fields()
    /// True if the bytes were verified to continue those of another object.
    package var isProvenRest = false
    /// True if the response changed the cookies of the session that it was requested for.
    package var bringsCookies = false
    /// Holds the requested bytes until their reader has started.
    package var hold: Readers.Hold?
    /// What is kept of a body that may have no end; nil for one that has.
    package var endless: EndlessBody?

    package init(
        isCollapsed: Bool, wasStored: Bool = false, status: HTTPStatus,
        notStored: Storability.NoStoreReason?, onlyHere: Fields = Fields(),
        isProvenRest: Bool = false, bringsCookies: Bool = false
    ) {
        self.isCollapsed = isCollapsed
        self.wasStored = wasStored
        self.status = status
        self.notStored = notStored
        self.onlyHere = onlyHere
        self.isProvenRest = isProvenRest
        self.bringsCookies = bringsCookies
    }

    /// Returns the outcome for one of the waiting requests.
    package func told(isCollapsed: Bool, hold: Readers.Hold?, endless: EndlessBody?) -> Self {
        var told = self
        told.isCollapsed = isCollapsed
        if isCollapsed { told.onlyHere = Fields() }
        told.hold = hold
        told.endless = endless
        return told
    }
}

/// Identifies a request, so that it can be withdrawn.
package struct FetchID: Hashable, Sendable {
    private static let last = Atomic<UInt64>(0)
    private let number: UInt64

    package init() {
        number = Self.last.add(1, ordering: .relaxed).newValue
    }
}
