// What a request asks of the flights, and what it hears back.
import CachePolicy
import HLS
import HTTP
import Routing
import Store
import Synchronization
import Upstream
import URISyntax

/// The resource that is asked for, with everything a fetch of it needs.
///
/// Immutable and shared: a hit passes it on a dozen times, which must not cost a copy of all its parts.
final class Resource: Sendable {
    /// What a resource is made of; others are made from it by `changing`, which forgets no part.
    struct Parts: Sendable {
        var url: AbsoluteURL
        var cacheKey: CacheKey
        var session: Session
        /// Nil when the place does not tell: an entry, a mount.
        var role: ResourceRole?
        var policy: Policy
        /// False where each answer is its own, as with delivery directives.
        var mayStore = true
        /// The player's fields that go to the origin.
        var forwardedFields: Fields
        var isMounted = false
        /// The kind of cache that we are for it; nil where playlist semantics lead and not HTTP's:
        /// for playback URLs, and for what a mount names like a playlist.
        var kind: CacheKind?
        /// The mount that it was asked for under, where HTTP's rules lead.
        var mount: Mount?
        /// What it has from a live list that names it.
        var live = LiveTerms.none
    }

    private let parts: Parts
    /// The digest of the cache key.
    let key: ObjectKey
    /// The encoding of the cache key.
    let keyText: String
    /// The extension of the origin's file name, in lower case; empty for none.
    let nameExtension: String

    init(_ parts: Parts) {
        self.parts = parts
        keyText = parts.cacheKey.text
        key = ObjectKey(sha256Of: keyText)
        nameExtension = parts.url.nameExtension
    }

    /// The resource that differs from this one in what `change` sets.
    func changing(_ change: (inout Parts) -> Void) -> Resource {
        var parts = parts
        change(&parts)
        return Resource(parts)
    }

    var url: AbsoluteURL { parts.url }
    var cacheKey: CacheKey { parts.cacheKey }
    var session: Session { parts.session }
    var role: ResourceRole? { parts.role }
    var policy: Policy { parts.policy }
    var mayStore: Bool { parts.mayStore }
    var forwardedFields: Fields { parts.forwardedFields }
    var isMounted: Bool { parts.isMounted }
    var kind: CacheKind? { parts.kind }
    var mount: Mount? { parts.mount }
    var live: LiveTerms { parts.live }

    /// Content codings are undone for text that is read here; media is asked for as it is, and
    /// whatever HTTP's rules lead for goes to the client as it came.
    var decodesContent: Bool {
        if kind != nil { return false }
        switch role {
        case .playlist?, .json?: return true
        case nil: return !isNamedAsMedia
        default: return false
        }
    }

    /// Whether the origin's file has a name that no playlist bears.
    var isNamedAsMedia: Bool {
        switch nameExtension {
        case "ts", "m4s", "mp4", "m4a", "m4v", "aac", "mp3", "mov", "mkv", "webm", "bin", "cmfv",
            "cmfa":
            true
        default: false
        }
    }
}

/// The bytes that are wanted of a resource.
enum Wanted: Sendable, Equatable {
    /// From `start` up to `end`, exclusive; nil for the end of the body.
    case span(start: Int64, end: Int64?)
    /// The last bytes of a body whose length is not known yet.
    case suffix(Int64)

    static let whole = Wanted.span(start: 0, end: nil)

    /// The first byte; 0 where only the last ones are wanted, whose place is not known.
    var start: Int64 {
        if case .span(let start, _) = self { start } else { 0 }
    }

    /// The value of the Range field; nil for the whole body.
    var rangeField: String? {
        switch self {
        case .span(0, nil): nil
        case .span(let start, nil): "bytes=\(start)-"
        case .span(let start, let end?): "bytes=\(start)-\(end - 1)"
        case .suffix(let length): "bytes=-\(length)"
        }
    }
}

/// When a request wants its answer.
enum Delivery: Sendable {
    /// As soon as the head and, where the type is open, the first bytes are there.
    case head
    /// When the body is whole, as playlists need.
    case completion
}

/// A request for bytes from an origin.
struct FetchRequest: Sendable {
    let resource: Resource
    let wanted: Wanted
    /// The generation whose hole is to be filled; nil for whatever the origin has.
    var object: StoredObject?
    /// True asks the origin whether `object` is still right.
    var revalidates = false
    let delivery: Delivery
    let lane: Lane
    /// True where no player has asked for it yet.
    var isAhead = false
    var terms = Terms()
    /// The budget of the player request that it is made for; nil gives it one of its own.
    var budget: OriginBudget?

    /// What HTTP's rules add to a request.
    struct Terms: Sendable {
        /// HEAD asks for the head alone.
        var method = HTTPMethod.get
        /// The client's own conditions, where the origin is to judge them; its 304 is passed on.
        var conditions = Fields()
        /// Entity tags of stored variants, any of which may be the answer.
        var tags: [VariantIndex.Variant] = []
        /// True where the list that is wanted is one that answers the delivery directives.
        var isDelivery = false
        /// True where no other request's answer may be used, and none may use this one's.
        var isAlone = false
        /// True where a stale response will serve if the origin answers with a 5xx.
        var staleServes = false
        /// The object whose rest is wanted, where that goes into another one.
        var rest: StoredObject?
        /// Told of interim answers (RFC 9110 section 15.2), on the upstream loop.
        var interim: (@Sendable (ResponseHead) -> Void)?
    }
}

/// What became of it.
enum FetchReply: Sendable {
    case object(StoredObject, FetchOutcome)
    /// The origin said that the object which was asked about is still right.
    case notModified(StoredObject)
    /// An answer without content, for the one that asked: to HEAD, or to its own condition.
    case head(StoredHead, length: String?)
    case failure(ProxyFailure)
}

/// How an object was come by.
struct FetchOutcome: Sendable {
    /// True when another request's flight was joined.
    let isCollapsed: Bool
    /// True when it was stored already, and nobody was asked.
    var wasStored = false
    /// The origin's status.
    let status: HTTPStatus
    /// Why it is not kept; nil if it is.
    let notStored: Storability.NoStoreReason?
    /// Fields that are not kept and belong to the answer which brought them.
    var onlyHere = Fields()
    /// True where the bytes were seen to go on behind those of another object.
    var isProvenRest = false
    /// Keeps the bytes that were asked for until a reader of them is there.
    var hold: Readers.Hold?
}

/// Names a request, so that it can be taken back.
struct FetchID: Hashable, Sendable {
    private static let last = Atomic<UInt64>(0)
    private let number: UInt64

    init() {
        number = Self.last.add(1, ordering: .relaxed).newValue
    }
}
