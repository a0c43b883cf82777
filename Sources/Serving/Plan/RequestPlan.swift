// The next step of a request, as one value: the exchange performs it, `why` prints it. This file
// answers "why was this a miss?"; `RequestFacts.plan` makes the value.
import CachePolicy
import HTTP
import Model

/// The next step of a request for an origin's resource.
///
/// | plan | what happens | name in Cache-Status, access log and `why`; metrics count by its first word |
/// |---|---|---|
/// | `learn` | a fact is looked up, then the plan is made again | none |
/// | `serve` | the stored response is sent | that of its disposition |
/// | `serveLater` | the old list is sent when a player would reload | `stale` |
/// | `revalidate` | the stored response is revalidated | `refreshed-REASON`, or `revalidated` |
/// | `fetch` | what is not stored is fetched from the origin | `miss`, or `refreshed-REASON` |
/// | `fetchOwnCopy` | the request starts over under the session's own key | that of the second start |
/// | `awaitReload` | a list that satisfies the directives, or a delta update, is fetched | `miss` |
/// | `followSuccessor` | the request starts over at the successor of an expired URL | that of the second start |
/// | `findSuccessor` | the successor of an expired URL is searched for | that of the second start |
/// | `fetchRest` | what may be an HLS JSON text is fetched to its end | `miss` |
/// | `awaitReturn` | the fetch that failed waits for the return of its origin | `miss` |
/// | `refuse` | the request fails | `failed` |
enum RequestPlan: Equatable, Sendable {
    case learn(Fact)
    /// `ttl` is the remaining freshness in seconds, negative when stale, nil if unlimited.
    case serve(Disposition, ttl: Int64?)
    case serveLater
    case revalidate(Freshness.StaleReason)
    case fetch(FetchReason, MissingPart)
    case fetchOwnCopy
    case awaitReload
    case followSuccessor
    case findSuccessor
    case fetchRest
    case awaitReturn
    case refuse(Refusal)

    /// A fact that costs a lookup, and is requested only if the plan depends on it.
    enum Fact: String, Sendable, CaseIterable {
        /// What is stored for the resource.
        case stored
        /// Whether JSON that was opened as an entry is an HLS JSON text.
        case entryText = "entry-text"
        /// Whether the stored playlist belongs to another viewer.
        case owner
        /// The facts in the playlist's text.
        case playlist
        /// The offline form of the playlist.
        case offlineForm = "offline-form"
        /// Whether the origins of what the playlist lacks answer; for a live one, its own origin
        /// too.
        case originConfirmation = "origin-confirmation"
        /// When the live playlist was last read, delta updates of it included.
        case reading
        /// The current meaning of the resource's name, and whether another URL replaced it.
        case name
        /// Whether the stored response belongs to an earlier epoch of its name, and the resource
        /// itself does.
        case epoch
        /// Whether a pinned title has the stored response.
        case pin
        /// Whether a key is one of a live stream: a list that segments leave names it, or its
        /// session plays one.
        case stream
        /// Whether the requested bytes are stored, or on their way.
        case bytes
        /// Whether the response to another request may serve this one.
        case sharing
    }

    /// Why what is not stored is fetched.
    enum FetchReason: Equatable, Sendable {
        case nothingStored
        /// The stored object cannot be used for this resource.
        case unusable(StoredUse.Fault)
        /// The stored text cannot be parsed any more.
        case unreadable
        /// Only a part is stored, without a strong validator to match the rest by.
        case partWithoutValidator
        /// Other variants are stored.
        case otherVariants
        /// The client sent conditions that only the origin can evaluate.
        case clientConditions
        /// The client's `no-store`.
        case requestNoStore
        /// The response to another request must not be used.
        case notShared

        /// The reason in the disposition of a fetched response; nil for a plain miss.
        var staleReason: Freshness.StaleReason? {
            switch self {
            case .otherVariants: .vary
            case .clientConditions: .requestNoCache
            case .requestNoStore: .requestNoStore
            case .nothingStored, .unusable, .unreadable, .partWithoutValidator, .notShared: nil
            }
        }

        /// What is fetched and why, for `why`.
        var text: String {
            switch self {
            case .nothingStored, .notShared, .requestNoStore, .clientConditions: "fetch all of it"
            case .unusable(let fault): "fetch anew: \(fault.text)"
            case .unreadable: "fetch anew: the stored text cannot be parsed"
            case .partWithoutValidator:
                "fetch anew: no strong validator proves that the rest belongs to the stored part"
            case .otherVariants: "fetch the variant that the request selects"
            }
        }
    }

    /// True if an origin is contacted and its response waited for.
    var asksOrigin: Bool {
        switch self {
        case .revalidate, .fetch, .awaitReload, .findSuccessor, .fetchRest, .awaitReturn: true
        case .learn(.originConfirmation): true
        case .learn, .serve, .serveLater, .fetchOwnCopy, .followSuccessor, .refuse: false
        }
    }

    /// The stable name.
    var name: String {
        switch self {
        case .learn(let fact): "learn-\(fact.rawValue)"
        case .serve: "serve"
        case .serveLater: "serve-later"
        case .revalidate: "revalidate"
        case .fetch: "fetch"
        case .fetchOwnCopy: "fetch-own-copy"
        case .awaitReload: "await-reload"
        case .followSuccessor: "follow-successor"
        case .findSuccessor: "find-successor"
        case .fetchRest: "fetch-rest"
        case .awaitReturn: "await-return"
        case .refuse: "refuse"
        }
    }

    /// The expected disposition of the response, if the origin responds with content; nil for a
    /// failure, and if it is unknown yet.
    var disposition: Disposition? {
        switch self {
        case .serve(let disposition, _): disposition
        case .serveLater: .staleOnError
        case .revalidate(let reason): .refreshed(reason)
        case .fetch(let reason, _): reason.staleReason.map(Disposition.refreshed) ?? .miss
        case .fetchOwnCopy, .awaitReload, .fetchRest, .awaitReturn: .miss
        case .learn, .followSuccessor, .findSuccessor, .refuse: nil
        }
    }
}
