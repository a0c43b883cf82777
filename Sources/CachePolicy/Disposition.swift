// What happened to a request: one value for the response field, the log and the counters.
package import HTTP

/// The outcome of a request by its stable name.
package enum Disposition: Equatable, Sendable {
    /// All of it was stored and fresh.
    case hit
    /// Part of it was stored, part came from the origin.
    case partial
    /// The origin could not be asked; what was stored was served although stale.
    case staleOnError
    /// A playlist, cut to what can be played without the network.
    case offline
    /// Stale, and used while the origin is asked behind it (RFC 5861 section 3).
    case staleWhileRevalidate
    /// The origin said that what was stored is still right.
    case revalidated
    /// Nothing usable was stored.
    case miss
    /// Nothing usable was stored, and another request's fetch was joined.
    case collapsed
    /// It was fetched and not kept.
    case bypass(Storability.NoStoreReason)
    /// Stored, but the origin had something newer.
    case refreshed(Freshness.StaleReason)

    /// Whether the answer is the origin's own, and not one that was stored.
    package var isFirstHand: Bool {
        switch self {
        case .miss, .bypass, .refreshed: true
        case .hit, .partial, .staleOnError, .offline, .staleWhileRevalidate, .revalidated,
            .collapsed:
            false
        }
    }

    /// Whether the origin was asked and said that this is right.
    package var hasOriginsWord: Bool {
        switch self {
        case .hit, .partial, .staleOnError, .offline, .staleWhileRevalidate, .collapsed: false
        case .revalidated, .miss, .bypass, .refreshed: true
        }
    }

    /// The name in logs and counters.
    package var name: String {
        switch self {
        case .hit: "hit"
        case .partial: "partial"
        case .staleOnError: "stale"
        case .offline: "offline"
        case .staleWhileRevalidate: "stale-while-revalidate"
        case .revalidated: "revalidated"
        case .miss: "miss"
        case .collapsed: "collapsed"
        case .bypass(let reason): "bypass-\(reason.rawValue)"
        case .refreshed(let reason): "refreshed-\(reason.rawValue)"
        }
    }

    /// The `Cache-Status` member (RFC 9211 section 2).
    ///
    /// - Parameters:
    ///   - ttl: remaining freshness in seconds, negative when stale; nil when it has no end.
    ///   - status: the origin's status, where it was asked.
    /// - Returns: the member, with the reason in it where there is one.
    package func cacheStatus(ttl: Int64?, status: HTTPStatus?) -> CacheStatus {
        var value = CacheStatus(cache: "sluice", ttl: ttl)
        switch self {
        case .hit:
            value.hit = true
        case .staleOnError:
            value.hit = true
            value.detail = "origin-unreachable"
        case .offline:
            value.hit = true
            value.detail = "offline"
        case .staleWhileRevalidate:
            value.hit = true
            value.detail = "stale-while-revalidate"
        case .partial:
            value.forward = .partial
            value.stored = true
        case .revalidated:
            value.forward = .stale
            value.forwardStatus = .notModified
        case .miss, .collapsed:
            value.forward = .uriMiss
            value.stored = true
            value.collapsed = self == .collapsed
        case .bypass(let reason):
            value.forward = .uriMiss
            value.detail = reason.rawValue
        case .refreshed(let reason):
            value.forward = reason.forwardReason
            value.stored = reason != .requestNoStore
            value.detail = reason.rawValue
        }
        if !value.hit, value.forwardStatus == nil { value.forwardStatus = status }
        return value
    }
}

extension Freshness.StaleReason {
    /// The reason as RFC 9211 section 2.2 names it.
    package var forwardReason: CacheStatus.ForwardReason {
        switch self {
        case .requestNoCache, .requestMaxAge, .requestMinFresh, .requestNoStore: .request
        case .vary: .varyMiss
        case .expired, .live, .noCache, .refreshPolicy, .epoch: .stale
        }
    }
}
