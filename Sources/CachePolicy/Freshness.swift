/// Whether a stored response may be used now: playlist semantics first, HTTP second.
package import HTTP
package import Posix

/// What the playlist said of itself when it was read.
package struct PlaylistFacts: Sendable, Equatable {
    /// A media playlist without EXT-X-ENDLIST: it will change.
    package var isLive: Bool
    /// EXT-X-TARGETDURATION; nil where the playlist has none.
    package var targetDuration: Interval?
    /// PART-TARGET of EXT-X-PART-INF, for low latency.
    package var partTarget: Interval?

    package init(isLive: Bool, targetDuration: Interval? = nil, partTarget: Interval? = nil) {
        self.isLive = isLive
        self.targetDuration = targetDuration
        self.partTarget = partTarget
    }

    /// How long a live list may be reused: half of what the next change is expected in
    /// (RFC 8216 section 6.3.4 lets a player reload after half a target duration).
    package var reuse: Interval {
        let step = partTarget ?? targetDuration ?? .seconds(2)
        return Interval(nanoseconds: max(step.nanoseconds / 2, 50_000_000))
    }

    /// How long a live list may be served after the origin failed: three target durations is
    /// what a player holds in its buffer (RFC 8216 section 6.3.3); after that it should be told.
    package var staleBound: Interval {
        Interval(nanoseconds: 3 * (targetDuration ?? .seconds(6)).nanoseconds)
    }
}

/// The answer to "may this be used now?".
package enum Freshness: Equatable, Sendable {
    /// As it is; for so many seconds more, nil for as long as it is kept.
    case fresh(seconds: Int64?)
    /// Only after asking the origin, for this reason.
    case stale(StaleReason)

    /// Why the origin is asked first; the raw value is what logs show.
    package enum StaleReason: String, Sendable, CaseIterable {
        case expired
        case live
        case noCache = "no-cache"
        case requestNoCache = "request-no-cache"
        case requestMaxAge = "request-max-age"
        case requestMinFresh = "request-min-fresh"
        case refreshPolicy = "refresh-policy"
        case vary
    }

    /// What the decision is made from.
    package struct Question: Sendable {
        package var policy: Policy
        package var head: StoredHead
        /// Nil for everything that is no playlist.
        package var playlist: PlaylistFacts?
        package var requestFields: Fields
        package var now: WallTime
        package var isShared: Bool

        package init(
            policy: Policy, head: StoredHead, playlist: PlaylistFacts?, requestFields: Fields,
            now: WallTime, isShared: Bool
        ) {
            self.policy = policy
            self.head = head
            self.playlist = playlist
            self.requestFields = requestFields
            self.now = now
            self.isShared = isShared
        }
    }

    /// Decides whether the stored response is used as it is.
    package static func decide(_ question: Question) -> Freshness {
        switch question.policy {
        case .offline: return .fresh(seconds: nil)
        case .refresh: return .stale(.refreshPolicy)
        case .media:
            // Players send no-cache and max-age=0 by habit; they must not steer the cache.
            guard let playlist = question.playlist, playlist.isLive else {
                return .fresh(seconds: nil)
            }
            return live(playlist, question)
        case .rfc:
            if let playlist = question.playlist, playlist.isLive,
                case .stale(let reason) = live(playlist, question)
            {
                return .stale(reason)
            }
            return rfc(question)
        }
    }

    private static func live(_ playlist: PlaylistFacts, _ question: Question) -> Freshness {
        let held = question.now - question.head.responseTime
        // A clock that went back says nothing of the list's age: ask.
        guard held >= .zero, held < playlist.reuse else { return .stale(.live) }
        return .fresh(seconds: (playlist.reuse - held).nanoseconds / 1_000_000_000)
    }

    private static func rfc(_ question: Question) -> Freshness {
        let control = CacheControl(question.head.fields)
        if control.noCache == .response { return .stale(.noCache) }
        let request = CacheControl(question.requestFields)
        let pragma =
            !question.requestFields.contains(.cacheControl)
            && question.requestFields.listMembers(.pragma).contains("no-cache")
        if request.noCache != nil || pragma { return .stale(.requestNoCache) }
        let age = question.head.age(at: question.now)
        let lifetime = question.head.lifetime(isShared: question.isShared)
        if let maxAge = request.maxAge, age > maxAge { return .stale(.requestMaxAge) }
        if let minFresh = request.minFresh, lifetime - age < minFresh {
            return .stale(.requestMinFresh)
        }
        if age < lifetime { return .fresh(seconds: lifetime - age) }
        let forbids = control.mustRevalidate || (question.isShared && control.proxyRevalidate)
        if !forbids, let allowed = request.maxStale {
            switch allowed {
            case .any: return .fresh(seconds: lifetime - age)
            case .seconds(let most) where age - lifetime <= most:
                return .fresh(seconds: lifetime - age)
            default: break
            }
        }
        return .stale(.expired)
    }

    /// Whether the stored response may be used although the origin could not be asked.
    package static func mayServeStale(_ question: Question) -> Bool {
        if let playlist = question.playlist, playlist.isLive, question.policy != .offline {
            let held = question.now - question.head.responseTime
            return held < playlist.reuse + playlist.staleBound
        }
        guard question.policy == .rfc else { return true }
        let control = CacheControl(question.head.fields)
        let forbids =
            control.mustRevalidate || control.noCache != nil
            || (question.isShared && (control.proxyRevalidate || control.sharedMaxAge != nil))
        return !forbids
    }
}

extension Interval {
    /// The sum of two lengths of time.
    static func + (a: Interval, b: Interval) -> Interval {
        Interval(nanoseconds: a.nanoseconds &+ b.nanoseconds)
    }

    /// What is left of a length of time.
    static func - (a: Interval, b: Interval) -> Interval {
        Interval(nanoseconds: a.nanoseconds &- b.nanoseconds)
    }
}
