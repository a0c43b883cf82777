// What a request leads to, as one value: the exchange carries it out, `why` prints it. The file to
// open for "why was this a miss?"; `RequestFacts.plan` makes the value.
import CachePolicy
import HTTP
import Model

/// The next step of a request for an origin's resource.
///
/// | plan | what happens | name in Cache-Status, access log, metrics and `why` |
/// |---|---|---|
/// | `learn` | a fact is looked up, then the plan is made again | none |
/// | `serve` | the stored response is sent | that of its disposition |
/// | `serveLater` | the old list is sent when a player would reload | `stale` |
/// | `revalidate` | the origin is asked whether the stored response is still right | `refreshed-REASON`, or `revalidated` |
/// | `fetch` | the origin is asked for what is not stored | `miss`, or `refreshed-REASON` |
/// | `fetchOwnCopy` | the request starts over under the session's own key | that of the second start |
/// | `awaitReload` | the flights are asked for a list that has come so far, or a delta update | `miss` |
/// | `followSuccessor` | the request starts over at the URL that replaced a dead one | that of the second start |
/// | `findSuccessor` | the URL that replaced a dead one is looked for | that of the second start |
/// | `fetchRest` | what may be a JSON text of HLS is fetched to its end | `miss` |
/// | `refuse` | the request fails | `failed` |
enum RequestPlan: Equatable, Sendable {
    case learn(Fact)
    /// `ttl` is the remaining freshness in seconds, negative when stale, nil where it has no end.
    case serve(Disposition, ttl: Int64?)
    case serveLater
    case revalidate(Freshness.StaleReason)
    case fetch(FetchReason, MissingPart)
    case fetchOwnCopy
    case awaitReload
    case followSuccessor
    case findSuccessor
    case fetchRest
    case refuse(Refusal)

    /// A fact that costs a lookup, and is asked for only where the plan depends on it.
    enum Fact: String, Sendable, CaseIterable {
        /// What is stored for the resource.
        case stored
        /// Whether JSON that was opened as an entry is a text of HLS.
        case entryText = "entry-text"
        /// Whether the stored playlist is another viewer's.
        case owner
        /// What the playlist says of itself.
        case playlist
        /// What the playlist is without the network.
        case offlineForm = "offline-form"
        /// Whether the origins of what the playlist lacks answer.
        case originsWord = "origins-word"
        /// What the name of the resource stands for now, and whether another URL replaced it.
        case name
        /// Whether the stored response was kept when its name stood for something else.
        case epoch
        /// Whether the session plays a live stream.
        case stream
        /// Whether the bytes that are asked for are stored, or on their way.
        case bytes
        /// Whether the answer to another request may answer this one.
        case sharing
    }

    /// Why the origin is asked for what is not stored.
    enum FetchReason: Equatable, Sendable {
        case nothingStored
        /// What is stored cannot be used in this place.
        case unusable(StoredUse.Fault)
        /// The stored text cannot be read any more.
        case unreadable
        /// Only a part is stored, and no strong validator tells that the rest belongs to it.
        case partWithoutValidator
        /// Other variants are stored.
        case otherVariants
        /// The client has conditions that only the origin can judge.
        case clientConditions
        /// The client's `no-store`.
        case requestNoStore
        /// Another request's answer must not be used.
        case notShared

        /// The reason that a response which comes is told with; nil for a plain miss.
        var staleReason: Freshness.StaleReason? {
            switch self {
            case .otherVariants: .vary
            case .clientConditions: .requestNoCache
            case .requestNoStore: .requestNoStore
            case .nothingStored, .unusable, .unreadable, .partWithoutValidator, .notShared: nil
            }
        }
    }

    /// Whether an origin is asked, and its answer waited for.
    var asksOrigin: Bool {
        switch self {
        case .revalidate, .fetch, .awaitReload, .findSuccessor, .fetchRest: true
        case .learn(.originsWord): true
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
        case .refuse: "refuse"
        }
    }

    /// What the answer is expected to be told as, if the origin answers with content; nil for a
    /// failure, and where that is not known yet.
    var disposition: Disposition? {
        switch self {
        case .serve(let disposition, _): disposition
        case .serveLater: .staleOnError
        case .revalidate(let reason): .refreshed(reason)
        case .fetch(let reason, _): reason.staleReason.map(Disposition.refreshed) ?? .miss
        case .fetchOwnCopy, .awaitReload, .fetchRest: .miss
        case .learn, .followSuccessor, .findSuccessor, .refuse: nil
        }
    }
}
