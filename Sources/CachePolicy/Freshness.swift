// Whether a stored response may be used: playlist semantics first, HTTP second.
package import HLS
package import HTTP
import Numbers
package import Posix
import URISyntax

/// The facts of a playlist that its freshness depends on.
package struct PlaylistFacts: Sendable, Equatable {
    /// True for a media playlist without EXT-X-ENDLIST: it will change.
    package var isLive: Bool
    /// True for a media playlist with EXT-X-ENDLIST that was live before: its URL may be that of a
    /// channel, and have another broadcast.
    package var hasEnded: Bool
    /// True for a multivariant playlist of which a media playlist is or was live: the names in that
    /// of a channel change.
    package var namesLive: Bool
    /// True for a multivariant playlist that may lack its end.
    package var mayBeCut: Bool
    /// EXT-X-TARGETDURATION; nil if the playlist lacks it.
    package var targetDuration: Interval?
    /// PART-TARGET of EXT-X-PART-INF, for low latency.
    package var partTarget: Interval?
    /// The media sequence number of the first segment that the playlist does not list as complete.
    package var nextSequence: Int
    /// The number of parts that it lists of that segment.
    package var nextParts: Int
    /// True for a list of channels in M3U, without a tag of HLS.
    package var isChannelList: Bool

    package init(
        isLive: Bool, targetDuration: Interval? = nil, partTarget: Interval? = nil,
        nextSequence: Int = 0, nextParts: Int = 0, isChannelList: Bool = false,
        hasEnded: Bool = false, namesLive: Bool = false, mayBeCut: Bool = false
    ) {
        self.isLive = isLive
        self.hasEnded = hasEnded
        self.namesLive = namesLive
        self.mayBeCut = mayBeCut
        self.targetDuration = targetDuration
        self.partTarget = partTarget
        self.nextSequence = nextSequence
        self.nextParts = nextParts
        self.isChannelList = isChannelList
    }

    /// Creates the facts from the summary of a playlist.
    ///
    /// - Parameters:
    ///   - summary: its properties.
    ///   - wasLive: whether it was live before this text of it, or a list that it names was.
    ///   - mayBeCut: whether its stored head says that it may lack its end.
    package init(_ summary: PlaylistSummary, wasLive: Bool, mayBeCut: Bool = false) {
        self.init(
            isLive: summary.isLive,
            targetDuration: summary.targetDuration.map { Interval($0) }
                .flatMap { $0 <= Self.longestTarget ? $0 : nil },
            partTarget: summary.partTarget.map { Interval($0) },
            nextSequence: summary.nextMediaSequence, nextParts: summary.trailingPartCount,
            isChannelList: summary.isChannelList,
            hasEnded: wasLive && summary.kind == .media && summary.hasEndList,
            namesLive: wasLive && summary.kind == .multivariant,
            mayBeCut: mayBeCut && summary.kind == .multivariant)
    }

    /// A longer target duration is taken for a mistake, such as milliseconds, and counts as unknown:
    /// a live list would be frozen for as long.
    package static let longestTarget = Interval.seconds(60 as Int64)

    /// How long a live playlist may be reused: half of the time to its next expected change (RFC
    /// 8216 section 6.3.4 lets a player reload after half a target duration).
    package var reuse: Interval {
        let step = partTarget ?? targetDuration ?? .seconds(2)
        return Interval(nanoseconds: max(step.nanoseconds / 2, 50_000_000))
    }

    /// True if it stays as it is unless its origin has another one by now.
    package var mayBeReplaced: Bool { hasEnded || namesLive || mayBeCut }

    /// How long a playlist that may be replaced is reused before its origin is asked: three target
    /// durations, at most a minute; 2 s if it may be cut.
    package var endedReuse: Interval { mayBeCut ? .seconds(2) : min(staleBound, .seconds(60)) }

    /// Returns how long it is reused before its origin is asked, whatever its lifetime in HTTP; nil
    /// if it does not change, or HTTP alone decides.
    package func longestReuse(by policy: Policy) -> Interval? {
        if isLive { return reuse }
        return mayBeReplaced && policy == .media ? endedReuse : nil
    }

    /// How long a live playlist may be served after the origin failed: three target durations,
    /// which a player buffers (RFC 8216 section 6.3.3); after that the player should see the error.
    package var staleBound: Interval {
        Interval(nanoseconds: 3 * (targetDuration ?? .seconds(6)).nanoseconds)
    }

    /// How long after its last update a live playlist stays unchanged while its origin fails.
    package var unchangedBound: Interval { reuse + staleBound }
}

/// The decision whether a stored response may be used.
package enum Freshness: Equatable, Sendable {
    /// Use it, for this many more seconds; nil for as long as it is stored.
    case fresh(seconds: Int64?)
    /// Use it, though stale, and revalidate in the background; `seconds` is 0 or less.
    case staleWhileRevalidate(seconds: Int64)
    /// Revalidate it first, for this reason.
    case stale(StaleReason)

    /// The reason to revalidate first; the raw value is what logs show.
    package enum StaleReason: String, Sendable, CaseIterable {
        case expired
        /// The clock was set back to before the response was stored.
        case clock
        case live
        /// A live playlist that has ended: its stream may be on air again under the same URL. Or a
        /// multivariant playlist that names live ones, which may have other names by now, or that
        /// may be cut.
        case ended
        case noCache = "no-cache"
        case requestNoCache = "request-no-cache"
        case requestMaxAge = "request-max-age"
        case requestMinFresh = "request-min-fresh"
        case requestNoStore = "request-no-store"
        case refreshPolicy = "refresh-policy"
        /// A live playlist names it, and it may have been stored when the name identified another
        /// resource.
        case epoch
        case vary

        /// The reason in the terms of RFC 9211 section 2.2.
        package var forwardReason: CacheStatus.ForwardReason {
            switch self {
            case .requestNoCache, .requestMaxAge, .requestMinFresh, .requestNoStore: .request
            case .vary: .varyMiss
            case .expired, .clock, .live, .ended, .noCache, .refreshPolicy, .epoch: .stale
            }
        }
    }

    /// The input of the decision.
    package struct Question: Sendable {
        package var policy: Policy
        package var rules: ReuseRules
        /// Nil for responses other than playlists.
        package var playlist: PlaylistFacts?
        package var requestFields: Fields
        package var now: WallTime
        /// The time since the response arrived, by the monotonic clock; nil if it arrived in an
        /// earlier run.
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

        /// The age of the response in seconds; a clock that was set back does not make it younger.
        fileprivate var age: Int64 {
            let steady = rules.initialAge.addingSaturated(steadyAge?.flooredSeconds ?? 0)
            return max(rules.age(at: now), steady)
        }

        /// True if the request excludes the response, however fresh that is (RFC 9111 sections
        /// 5.2.1.1 and 5.2.1.4).
        package var isAskedPast: Bool {
            let request = RequestDirectives(requestFields)
            if request.asksOrigin { return true }
            return request.control?.maxAge.map { age > $0 || $0 == 0 } ?? false
        }

        /// How long the response has been stored; nil if unknown.
        ///
        /// The wall clock may be set back, and the monotonic one stops while the machine sleeps:
        /// the longer time is used.
        fileprivate var held: Interval? {
            let wall = now - rules.responseTime
            guard let steadyAge else { return wall >= .zero ? wall : nil }
            return max(wall, steadyAge)
        }
    }

    /// Decides whether the stored response may be used.
    package static func decide(_ question: Question) -> Freshness {
        switch question.policy {
        case .offline: return .fresh(seconds: nil)
        case .refresh: return .stale(.refreshPolicy)
        case .media:
            // Players send no-cache and max-age=0 by default; they must not control the cache.
            guard let playlist = question.playlist else { return .fresh(seconds: nil) }
            if playlist.isLive { return live(playlist, question) }
            return playlist.mayBeReplaced ? ended(playlist, question) : .fresh(seconds: nil)
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

    private static func ended(_ playlist: PlaylistFacts, _ question: Question) -> Freshness {
        guard let held = question.held, held < playlist.endedReuse else { return .stale(.ended) }
        return .fresh(seconds: (playlist.endedReuse - held).nanoseconds / 1_000_000_000)
    }

    private static func rfc(_ question: Question) -> Freshness {
        let rules = question.rules
        if rules.requiresRevalidation { return .stale(.noCache) }
        // A clock that was set back would keep it fresh until that time is reached again.
        if rules.isOfFuture(at: question.now) { return .stale(.clock) }
        let request = RequestDirectives(question.requestFields)
        if request.asksOrigin { return .stale(.requestNoCache) }
        let age = question.age
        let left = rules.lifetime - age
        guard let control = request.control else {
            return left > 0 ? .fresh(seconds: left) : expired(rules, left)
        }
        // A response of the current second would satisfy max-age=0, but clients send it to reload.
        if let maxAge = control.maxAge, age > maxAge || maxAge == 0 {
            return .stale(.requestMaxAge)
        }
        if let minFresh = control.minFresh, left < minFresh { return .stale(.requestMinFresh) }
        if left > 0 { return .fresh(seconds: left) }
        if rules.staleUse == .allowed, let allowed = control.maxStale {
            switch allowed {
            case .any: return .fresh(seconds: left)
            case .seconds(let most) where -left <= most: return .fresh(seconds: left)
            default: break
            }
        }
        return expired(rules, left)
    }

    /// Decides for a response that has been stale for `-left` seconds.
    private static func expired(_ rules: ReuseRules, _ left: Int64) -> Freshness {
        // stale-while-revalidate does not apply where all stale use is forbidden.
        if rules.staleUse != .forbidden, -left < rules.staleWhileRevalidate {
            return .staleWhileRevalidate(seconds: left)
        }
        return .stale(.expired)
    }

    /// Returns how long the revalidation of a playlist that is or was live is waited for before the
    /// stored one is served: no longer than a player waits, than the list takes to change, and than
    /// the stored one may be served.
    ///
    /// - Parameters:
    ///   - question: the input of decisions on the stored one.
    ///   - isWatched: true for an extended window whose player has reloaded it before: it is served
    ///     however old it is. A new player begins at its end, which the origin is to say.
    /// - Returns: nil if the origin is waited for however long it takes.
    package static func reloadPatience(_ question: Question, isWatched: Bool = false) -> Interval? {
        guard let playlist = question.playlist else { return nil }
        let step = playlist.targetDuration ?? .seconds(6)
        if isWatched, playlist.isLive { return min(step, .seconds(8)) }
        guard mayServeStale(question) else { return nil }
        if playlist.mayBeReplaced, question.policy == .media { return min(step, .seconds(8)) }
        guard playlist.isLive, let held = question.held else { return nil }
        // Less the time that serving it takes.
        let left = playlist.unchangedBound - held - .milliseconds(200)
        // While the origin may be about to answer, a list at the end of its time is no answer.
        guard left > min(step, .seconds(2)) else { return nil }
        return min(step, min(left, .seconds(8)))
    }

    /// Returns how many seconds a response that is served without the origin's word stays fresh;
    /// negative for one that is stale, nil if nothing limits it or its age is unknown.
    package static func remaining(_ question: Question) -> Int64? {
        let rules = question.rules
        var ofList: Int64?
        if let playlist = question.playlist, playlist.isLive, let held = question.held {
            // Rounded down, so that a list that is stale by less than a second says so.
            ofList = (playlist.reuse - held).flooredSeconds
        } else if let playlist = question.playlist, playlist.mayBeReplaced,
            let held = question.held
        {
            ofList = (playlist.endedReuse - held).flooredSeconds
        }
        switch question.policy {
        case .offline: return nil
        case .media: return ofList
        case .rfc, .refresh:
            let ofRules = rules.lifetime.subtractingSaturated(question.age)
            let isLive = question.playlist?.isLive ?? false
            return isLive ? min(ofList ?? ofRules, ofRules) : ofRules
        }
    }

    /// True if the stored response may be used although the origin could not be reached.
    package static func mayServeStale(_ question: Question) -> Bool {
        let rules = question.rules
        // Players buffer a stream; a list of channels holds as long as its channels answer.
        if let playlist = question.playlist, playlist.isLive, !playlist.isChannelList,
            question.policy != .offline
        {
            return question.held.map { $0 < playlist.unchangedBound } ?? false
        }
        guard question.policy == .rfc else { return true }
        if rules.requiresRevalidation { return false }
        let staleness = question.age - rules.lifetime
        // What is fresh is not stale use, though a client has asked for newer (RFC 9111 section
        // 5.2.2.2: "once it has become stale"). After the clock was set back, nobody knows.
        if staleness < 0, !rules.isOfFuture(at: question.now) { return true }
        switch rules.staleUse {
        case .forbidden: return false
        case .asStated: return staleness <= rules.staleIfError ?? rules.staleWhileRevalidate
        case .allowed: break
        }
        let asked = RequestDirectives(question.requestFields).control?.staleIfError
        // A stale-if-error from either side sets the bound; without one, the origin counts as
        // disconnected, which permits stale use (RFC 9111 section 4.2.4).
        if let bound = [rules.staleIfError, asked].compactMap({ $0 }).max() {
            return staleness <= bound
        }
        return true
    }
}

/// The directives of a request, parsed only if it has any.
package struct RequestDirectives: Sendable {
    /// Nil without Cache-Control in the request.
    package let control: CacheControl?
    /// True for `no-cache`, or for `Pragma: no-cache` without Cache-Control (RFC 9111 section 5.4).
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

    /// True for `no-store`: neither the request nor its response may be stored.
    package var noStore: Bool { control?.noStore ?? false }
    /// True for `only-if-cached`: the origin must not be contacted.
    package var onlyIfCached: Bool { control?.onlyIfCached ?? false }
}

extension Interval {
    /// The whole seconds, rounded down.
    fileprivate var flooredSeconds: Int64 {
        let (whole, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        return rest < 0 ? whole - 1 : whole
    }

    /// Returns the sum of two intervals.
    static func + (a: Interval, b: Interval) -> Interval {
        Interval(nanoseconds: a.nanoseconds.addingSaturated(b.nanoseconds))
    }

    /// Returns the difference of two intervals.
    static func - (a: Interval, b: Interval) -> Interval {
        Interval(nanoseconds: a.nanoseconds.subtractingSaturated(b.nanoseconds))
    }
}
