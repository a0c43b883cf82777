// What a request asks of the flights, and what it hears back.
package import CachePolicy
package import HTTP
package import Store
import Synchronization
package import Upstream

/// The bytes that are wanted of a resource.
package enum Wanted: Sendable, Equatable {
    /// From `start` up to `end`, exclusive; nil for the end of the body.
    case span(start: Int64, end: Int64?)
    /// The last bytes of a body whose length is not known yet.
    case suffix(Int64)

    package static let whole = Wanted.span(start: 0, end: nil)

    /// The first byte; 0 where only the last ones are wanted, whose place is not known.
    package var start: Int64 {
        if case .span(let start, _) = self { start } else { 0 }
    }

    /// Whether all from the first byte on is wanted.
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
}

extension Wanted {
    /// Byte positions from here on mean that the end is not known (RFC 8673 section 2.2).
    package static let openEnd = Int64(1) << 53 - 1

    /// Bytes beside a hole that are asked for again, at most, to compare them with what is stored.
    package static let overlapLimit: Int64 = 8 << 10
}

/// When a request wants its answer.
package enum Delivery: Sendable {
    /// As soon as the head and, where the type is open, the first bytes are there.
    case head
    /// When the body is whole, as playlists need.
    case completion
}

/// A request for bytes from an origin.
package struct FetchRequest: Sendable {
    package let resource: Resource
    package let wanted: Wanted
    /// The generation whose hole is to be filled; nil for whatever the origin has.
    package var object: StoredObject?
    /// True asks the origin whether `object` is still right.
    package var revalidates = false
    package let delivery: Delivery
    package let lane: Lane
    /// True where no player has asked for it yet.
    package var isAhead = false
    package var terms = Terms()
    /// The budget of the player request that it is made for; nil gives it one of its own.
    package var budget: OriginBudget?

    package init(
        resource: Resource, wanted: Wanted, object: StoredObject? = nil, revalidates: Bool = false,
        delivery: Delivery, lane: Lane, isAhead: Bool = false, terms: Terms = Terms(),
        budget: OriginBudget? = nil
    ) {
        self.resource = resource
        self.wanted = wanted
        self.object = object
        self.revalidates = revalidates
        self.delivery = delivery
        self.lane = lane
        self.isAhead = isAhead
        self.terms = terms
        self.budget = budget
    }

    /// What HTTP's rules add to a request.
    package struct Terms: Sendable {
        /// HEAD asks for the head alone.
        package var method = HTTPMethod.get
        /// The client's own conditions, where the origin is to judge them; its 304 is passed on.
        package var conditions = Fields()
        /// Entity tags of stored variants, any of which may be the answer.
        package var tags: [VariantIndex.Variant] = []
        /// True where the list that is wanted is one that answers the delivery directives.
        package var isDelivery = false
        /// True where no other request's answer may be used, and none may use this one's.
        package var isAlone = false
        /// True where a stale response will serve if the origin answers with a 5xx.
        package var staleServes = false
        /// The object whose rest is wanted, where that goes into another one.
        package var rest: StoredObject?
        /// Told of interim answers (RFC 9110 section 15.2), on the upstream loop.
        package var interim: (@Sendable (ResponseHead) -> Void)?
    }
}

/// What became of it.
package enum FetchReply: Sendable {
    case object(StoredObject, FetchOutcome)
    /// The origin said that the object which was asked about is still right.
    case notModified(StoredObject)
    /// An answer without content, for the one that asked: to HEAD, or to its own condition.
    case head(StoredHead, length: String?)
    case failure(ProxyFailure)
}

/// How an object was come by.
package struct FetchOutcome: Sendable {
    /// True when another request's flight was joined.
    package let isCollapsed: Bool
    /// True when it was stored already, and nobody was asked.
    package var wasStored = false
    /// The origin's status.
    package let status: HTTPStatus
    /// Why it is not kept; nil if it is.
    package let notStored: Storability.NoStoreReason?
    /// Fields that are not kept and belong to the answer which brought them.
    package var onlyHere = Fields()
    /// True where the bytes were seen to go on behind those of another object.
    package var isProvenRest = false
    /// Keeps the bytes that were asked for until a reader of them is there.
    package var hold: Readers.Hold?

    package init(
        isCollapsed: Bool, wasStored: Bool = false, status: HTTPStatus,
        notStored: Storability.NoStoreReason?, onlyHere: Fields = Fields(),
        isProvenRest: Bool = false, hold: Readers.Hold? = nil
    ) {
        self.isCollapsed = isCollapsed
        self.wasStored = wasStored
        self.status = status
        self.notStored = notStored
        self.onlyHere = onlyHere
        self.isProvenRest = isProvenRest
        self.hold = hold
    }
}

/// Names a request, so that it can be taken back.
package struct FetchID: Hashable, Sendable {
    private static let last = Atomic<UInt64>(0)
    private let number: UInt64

    package init() {
        number = Self.last.add(1, ordering: .relaxed).newValue
    }
}
