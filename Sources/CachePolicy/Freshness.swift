// Whether a stored response may be used now: playlist semantics first, HTTP second.
package import HLS
package import HTTP
import Numbers
package import Posix
import URISyntax

/// What the playlist said of itself when it was read.
package struct PlaylistFacts: Sendable, Equatable {
    /// A media playlist without EXT-X-ENDLIST: it will change.
    package var isLive: Bool
    /// EXT-X-TARGETDURATION; nil where the playlist has none.
    package var targetDuration: Interval?
    /// PART-TARGET of EXT-X-PART-INF, for low latency.
    package var partTarget: Interval?
    /// The number of the first segment that is not whole in it.
    package var nextSequence: Int
    /// The parts of that segment that it has.
    package var nextParts: Int

    package init(
        isLive: Bool, targetDuration: Interval? = nil, partTarget: Interval? = nil,
        nextSequence: Int = 0, nextParts: Int = 0
    ) {
        self.isLive = isLive
        self.targetDuration = targetDuration
        self.partTarget = partTarget
        self.nextSequence = nextSequence
        self.nextParts = nextParts
    }

    /// What the summary of a playlist says.
    package init(_ summary: PlaylistSummary) {
        self.init(
            isLive: summary.isLive, targetDuration: summary.targetDuration.map { Interval($0) },
            partTarget: summary.partTarget.map { Interval($0) },
            nextSequence: summary.nextMediaSequence, nextParts: summary.trailingPartCount)
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
    /// As it is, though stale, while the origin is asked behind it; `seconds` is 0 or less.
    case staleWhileRevalidate(seconds: Int64)
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
        case requestNoStore = "request-no-store"
        case refreshPolicy = "refresh-policy"
        /// A live list names it, and it may have been stored when the name stood for something else.
        case epoch
        case vary
    }

    /// What the decision is made from.
    package struct Question: Sendable {
        package var policy: Policy
        package var rules: ReuseRules
        /// Nil for everything that is no playlist.
        package var playlist: PlaylistFacts?
        package var requestFields: Fields
        package var now: WallTime
        /// The time since the response came, by the monotonic clock; nil where it came in an earlier run.
        package var steadyAge: Interval?

        package init(
            policy: Policy, rules: ReuseRules, playlist: PlaylistFacts?, requestFields: Fields,
            now: WallTime, steadyAge: Interval? = nil
        ) {
            self.steadyAge = steadyAge
            self.policy = policy
            self.rules = rules
            self.playlist = playlist
            self.requestFields = requestFields
            self.now = now
        }

        /// How long the response has been held; nil where nobody knows.
        ///
        /// The wall clock may be set back, and the monotonic one stands while the machine sleeps: the
        /// longer time counts.
        fileprivate var held: Interval? {
            let wall = now - rules.responseTime
            guard let steadyAge else { return wall >= .zero ? wall : nil }
            return max(wall, steadyAge)
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
        guard let held = question.held, held < playlist.reuse else { return .stale(.live) }
        return .fresh(seconds: (playlist.reuse - held).nanoseconds / 1_000_000_000)
    }

    private static func rfc(_ question: Question) -> Freshness {
        let rules = question.rules
        if rules.alwaysAsks { return .stale(.noCache) }
        // A clock that went back would keep it fresh until it has come there again.
        if rules.isOfFuture(at: question.now) { return .stale(.expired) }
        let request = RequestDirectives(question.requestFields)
        if request.asksOrigin { return .stale(.requestNoCache) }
        let age = rules.age(at: question.now)
        let left = rules.lifetime - age
        guard let control = request.control else {
            return left > 0 ? .fresh(seconds: left) : expired(rules, left)
        }
        // A response of this second is none too old for max-age=0, but that is how clients reload.
        if let maxAge = control.maxAge, age > maxAge || maxAge == 0 {
            return .stale(.requestMaxAge)
        }
        if let minFresh = control.minFresh, left < minFresh { return .stale(.requestMinFresh) }
        if left > 0 { return .fresh(seconds: left) }
        if !rules.forbidsStale, let allowed = control.maxStale {
            switch allowed {
            case .any: return .fresh(seconds: left)
            case .seconds(let most) where -left <= most: return .fresh(seconds: left)
            default: break
            }
        }
        return expired(rules, left)
    }

    /// A response past its lifetime by `-left` seconds.
    private static func expired(_ rules: ReuseRules, _ left: Int64) -> Freshness {
        // A window of stale-while-revalidate cannot go beyond what forbids all stale use.
        if !rules.forbidsStale, -left < rules.staleWhileRevalidate {
            return .staleWhileRevalidate(seconds: left)
        }
        return .stale(.expired)
    }

    /// Whether the stored response may be used although the origin could not be asked.
    package static func mayServeStale(_ question: Question) -> Bool {
        let rules = question.rules
        if let playlist = question.playlist, playlist.isLive, question.policy != .offline {
            return question.held.map { $0 < playlist.reuse + playlist.staleBound } ?? false
        }
        guard question.policy == .rfc else { return true }
        if rules.forbidsStale { return false }
        let staleness = rules.age(at: question.now) - rules.lifetime
        let asked = RequestDirectives(question.requestFields).control?.staleIfError
        // Where either side gives a bound, that is the permission; without one the origin is as
        // good as unreachable, which is permission enough (RFC 9111 section 4.2.4).
        if let bound = [rules.staleIfError, asked].compactMap({ $0 }).max() {
            return staleness <= bound
        }
        return true
    }
}

/// The directives of a request, read only where it has any.
package struct RequestDirectives: Sendable {
    /// Nil where the request has no Cache-Control.
    package let control: CacheControl?
    /// True for `no-cache`, or for `Pragma: no-cache` where there is no Cache-Control (RFC 9111
    /// section 5.4).
    package let asksOrigin: Bool

    package init(_ fields: Fields) {
        guard fields.contains(.cacheControl) else {
            control = nil
            asksOrigin =
                fields.contains(.pragma)
                && fields.listMembers(.pragma).contains {
                    ASCII.equalIgnoringCase($0, "no-cache")
                }
            return
        }
        let read = CacheControl(fields)
        control = read
        asksOrigin = read.noCache != nil
    }

    /// True for `no-store`: neither the request nor its response is to be kept.
    package var noStore: Bool { control?.noStore ?? false }
    /// True for `only-if-cached`: the origin is not to be asked.
    package var onlyIfCached: Bool { control?.onlyIfCached ?? false }
}

extension Interval {
    /// The sum of two lengths of time.
    static func + (a: Interval, b: Interval) -> Interval {
        Interval(nanoseconds: a.nanoseconds.addingSaturated(b.nanoseconds))
    }

    /// What is left of a length of time.
    static func - (a: Interval, b: Interval) -> Interval {
        Interval(nanoseconds: a.nanoseconds.subtractingSaturated(b.nanoseconds))
    }
}
