// The outcome of a request: one value for the response field, the log and the counters.
package import HTTP

/// The outcome of a request, with a stable name.
package enum Disposition: Equatable, Sendable {
    /// The whole response was stored and fresh.
    case hit
    /// Part of the response was stored, part came from the origin.
    case partial
    /// The origin could not be reached; the stale stored response was served.
    case staleOnError
    /// A playlist, cut to what can be played without the network.
    case offline
    /// Stale, and served while the origin is asked in the background (RFC 5861 section 3).
    case staleWhileRevalidate
    /// The origin confirmed the stored response; with why it was asked, nil if this is unknown.
    case revalidated(Freshness.StaleReason?)
    /// Nothing usable was stored.
    case miss
    /// Nothing usable was stored, or not all, and the request was collapsed with another request's
    /// fetch.
    case collapsed
    /// It has no length and may have no end: it is passed on, and stored only if it ends; with
    /// whether the request was collapsed with another request's fetch.
    case live(isCollapsed: Bool = false)
    /// The request joined a live stream without an end, at its edge.
    case joinedLive
    /// It was fetched and not stored; with why the stored response, if there was one, had to be
    /// revalidated, and whether the request was collapsed with another request's fetch.
    case bypass(
        Storability.NoStoreReason, over: Freshness.StaleReason? = nil, isCollapsed: Bool = false)
    /// A stored response was replaced by a newer one from the origin.
    case refreshed(Freshness.StaleReason)

    /// True if the response came from the origin for this request.
    package var isFirstHand: Bool {
        switch self {
        case .miss, .bypass(_, over: _, isCollapsed: false), .refreshed, .live(isCollapsed: false):
            true
        case .hit, .partial, .staleOnError, .offline, .staleWhileRevalidate, .revalidated,
            .collapsed, .bypass, .live, .joinedLive:
            false
        }
    }

    /// True if the request was collapsed with another request's fetch.
    package var isCollapsed: Bool {
        switch self {
        case .collapsed, .bypass(_, over: _, isCollapsed: true), .live(isCollapsed: true),
            .joinedLive:
            true
        default: false
        }
    }

    /// True if the origin sent or confirmed the response for this request.
    package var hasOriginsWord: Bool {
        switch self {
        case .revalidated: true
        default: isFirstHand
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
        case .live: "live"
        case .joinedLive: "joined-live"
        case .bypass(let reason, _, _): "bypass-\(reason.rawValue)"
        case .refreshed(let reason): "refreshed-\(reason.rawValue)"
        }
    }

    /// The `Cache-Status` member (RFC 9211 section 2).
    ///
    /// - Parameters:
    ///   - ttl: remaining freshness in seconds, negative when stale; nil without a limit.
    ///   - status: the status of the origin's response, if there was one.
    ///   - reason: why the request was sent to the origin, which failed; nil if it was not sent.
    /// - Returns: the member, with the reason if there is one.
    package func cacheStatus(
        ttl: Int64?, status: HTTPStatus?, failed reason: CacheStatus.ForwardReason? = nil
    ) -> CacheStatus {
        var value = CacheStatus(cache: "sluice", ttl: ttl)
        switch self {
        case .hit:
            value.hit = true
        case .staleOnError, .offline:
            // A hit is a request that was not forwarded (section 2.1).
            value.hit = reason == nil
            value.forward = reason
            value.detail = self == .offline ? "offline" : "origin-unreachable"
        case .staleWhileRevalidate:
            value.hit = true
            value.detail = "stale-while-revalidate"
        case .partial:
            value.forward = .partial
            // Omitted, it would mean the status of the response (RFC 9211 section 2.3). The origin
            // is asked for a range, mostly after this is sent.
            value.forwardStatus = status ?? .partialContent
            value.stored = true
        case .revalidated(let reason):
            value.forward = reason?.forwardReason ?? .stale
            value.forwardStatus = .notModified
            value.detail = reason?.rawValue
        case .miss, .collapsed:
            value.forward = .uriMiss
            value.stored = true
            value.collapsed = isCollapsed
        case .live, .joinedLive:
            value.forward = .uriMiss
            value.collapsed = isCollapsed
            value.detail = name
        case .bypass(let reason, let former, _):
            value.forward = former?.forwardReason ?? .uriMiss
            value.collapsed = isCollapsed
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
