// The rules about facts: joining, resuming, the first attempt, abandonment.
import HTTP
import Model
import Posix
import Upstream

/// How a failed transfer can be resumed.
enum Resumption: Equatable {
    case again
    case from(Int64, to: Int64?)
    /// Whatever the origin sends now continues the body.
    case anew
    /// No bytes were handed out yet: discard them and start over.
    case afresh

    /// Nil if the transfer cannot be resumed: the bytes that were handed out came from a
    /// representation that cannot be distinguished from another one.
    ///
    /// - Parameters:
    ///   - fill: the state of the body.
    ///   - wanted: the bytes that the transfer was to fetch.
    ///   - isOpaque: whether the position of the bytes in the body is unknown.
    ///   - wasObjectGiven: whether readers may have seen bytes.
    ///   - isOpenText: whether the body is a playlist, or may be one.
    ///   - job: the parameters of the flight.
    init?(
        _ fill: FillFacts, of wanted: Wanted, isOpaque: Bool, wasObjectGiven: Bool,
        isOpenText: Bool, _ job: FlightJob
    ) {
        guard fill.hasHead, !isOpaque else { return nil }
        if !wasObjectGiven, isOpenText || job.resource.decodesContent {
            self = .afresh
            return
        }
        if fill.offset == 0 {
            self = .again
            return
        }
        guard !job.resource.decodesContent || fill.total != nil, job.canBeJoined(fill),
            case .span(_, let end) = wanted
        else { return nil }
        self = .from(fill.offset, to: end)
    }
}

extension FlightMachine {
    /// True if another request brings the rest of the body, so that this transfer may end, or leave
    /// readers behind, before they have it.
    ///
    /// An origin that has ignored a range counts as one that always does, whatever a response has
    /// stated since: some send Accept-Ranges with a 200 to a range. Another request might get the
    /// whole body once more, while requests for bytes ahead are served by this transfer.
    func mayContinueLater(_ fill: FillFacts) -> Bool { ranges == .taken && job.canBeJoined(fill) }
}

/// What a request has in common with a flight that it may join.
struct JoinFacts {
    /// True if resource, delivery directives and terms let one response serve both.
    var isSameQuestion: Bool
    /// True if either needs a response of its own.
    var isAlone = false
    /// True if the request is for the object of the flight, or for any representation.
    var isSameObject = true
    var wanted: Wanted
    /// The offset of the flight's next byte, if known.
    var position: Int64?
    /// Whether the flight has an object.
    var hasObject: Bool
    /// True if readers can get the requested byte; bytes before the write position may be gone
    /// again, since a body that is not stored is punched out.
    var isAtHand: Bool
}

extension FlightMachine {
    /// True if a request can be served by joining this flight.
    func covers(_ request: JoinFacts) -> Bool {
        guard !hasEnded, !isOpaque, !isOutdated, request.isSameQuestion, !request.isAlone,
            request.isSameObject
        else { return false }
        // A live stream is sent from its edge on, whatever part is requested.
        if extent != .bounded { return true }
        if job.revalidates { return true }
        guard case .span(let start, _) = request.wanted else { return request.wanted == wanted }
        guard case .span(let first, let end) = wanted, let position = request.position else {
            return false
        }
        // The response to this range says nothing about a range that begins before it.
        guard start >= first else { return false }
        let isWithin = isWithin(start, position, end)
        if !request.hasObject || isPlaylist { return start == first || isWithin }
        return request.isAtHand && isWithin
    }

    private func isWithin(_ start: Int64, _ position: Int64, _ end: Int64?) -> Bool {
        if let end, start >= end { return false }
        // Another request would get the whole body too.
        if ranges.contains(.ignored) { return true }
        return start - position <= job.limits.joinDistance
    }
}

// MARK: The first attempt

/// What became of the short time that the first attempt has for its first byte.
enum FirstTry: Equatable {
    /// No request was sent.
    case due
    case running
    /// It was given up, and the next request is not sent yet.
    case hung
    case over
}

extension FlightMachine {
    /// Returns the time that the next request has for its first byte, and notes that it is sent.
    ///
    /// - Parameters:
    ///   - limit: the time that the settings give.
    ///   - isSlow: whether the origin may hold the request, or has answered late before.
    /// - Returns: a shorter time where another attempt follows, which has all of it.
    mutating func firstByteLimit(_ limit: Interval, isSlow: Bool) -> Interval {
        let short = job.limits.firstTry
        guard firstTry == .due, !isSlow, mayGiveUpEarly, limit > short else {
            firstTry = .over
            return limit
        }
        firstTry = .running
        return short
    }

    /// True if the next request needs a connection of its own: the first one hung, and kept
    /// connections may lead nowhere, which shows in a connection attempt sooner than in silence.
    var needsNewConnection: Bool { firstTry == .hung }

    /// True if a late head shows that the origin is slow.
    ///
    /// That of a fetch ahead may have been held back, whose reads yield to those of players.
    var showsSlowness: Bool { !job.beganAhead }

    /// Returns the time that the next request has for its head if interim responses come: what is
    /// left until the answer.
    ///
    /// Once a body has begun, that time limits nothing: it may have begun long ago.
    func headLimit(now: Monotonic) -> Interval {
        guard fill == nil, let used = budget.with({ $0.timeAtOrigins(now: now) }) else {
            return job.limits.answer
        }
        return max(.zero, Interval(nanoseconds: job.limits.answer.nanoseconds - used.nanoseconds))
    }

    /// Whether a failure ends the short time of the first attempt, which says nothing of the
    /// origin: it may only be slow.
    func isEarlyEnd(_ error: UpstreamError) -> Bool {
        firstTry == .running && error.kind == .firstByteTimeout
    }

    /// True if a player waits for what another attempt may fetch, and nothing stored could be sent
    /// instead.
    private var mayGiveUpEarly: Bool {
        job.method == .get && !job.followsHTTP && !job.revalidates && job.mayRepeat
            && !isAhead && lane <= .playback && fill == nil && job.limits.retries > 0
            && budget.mayAsk && budget.with { $0.failuresInARow } == 0
    }
}

// MARK: The return of an origin

/// Whether a flight waits for the return of its origin instead of sending a request.
enum ReturnWait: Equatable {
    case none, lasts
    /// It has waited in vain.
    case over
}

extension FlightMachine {
    /// Tells whether a flight that has no transfer waits for the return of its origin.
    ///
    /// A body in flight waits for as long as the origin is awaited, and is then requested once
    /// more. Requests that share a flight wait until the last of them has waited long enough: it
    /// may be the repetition of one that its player has given up. A list is what tells players that
    /// its origin is gone, and a live stream has a way back of its own.
    ///
    /// - Parameters:
    ///   - mark: the mark of the origin; nil if it answers, or is not asked.
    ///   - now: the time.
    /// - Returns: `none` for a flight that does not wait.
    func returnWait(for mark: OriginHealth.Mark?, now: Monotonic) -> ReturnWait {
        guard let mark, mark.state == .down, mark.isSilent, !isAhead, !isPlaylist,
            lane <= .playback, extent == .bounded, !job.revalidates, !job.hasDirectives
        else { return .none }
        let isAwaited = mark.isAwaited(now: now)
        if fill != nil { return isAwaited ? .lasts : .none }
        guard job.awaitsReturn else { return .none }
        return isAwaited && now - waiters.lastJoinedAt < job.limits.returnWait ? .lasts : .over
    }
}

// MARK: Abandonment

/// The progress and speed of a flight.
struct FlightProgress: Equatable {
    /// The offset of its first byte.
    var first: Int64
    var position: Int64
    /// The end of its bytes.
    var end: Int64
    /// The time since the response began.
    var elapsed: Interval

    /// True if the rest will arrive sooner than stopping the transfer would pay.
    func isAboutToEnd(within limit: Interval) -> Bool {
        // The first bytes arrive in one burst, which does not show the speed.
        let elapsed = max(limit.nanoseconds, elapsed.nanoseconds)
        let perNanosecond = Double(position - first) / Double(elapsed)
        return Double(end - position) <= perNanosecond * Double(limit.nanoseconds)
    }

    /// True if little is left, or if at least half is done and not too much is left.
    func isMostlyDone(remainder: Int64, half: Int64) -> Bool {
        let left = end - position
        return left <= remainder || (position - first >= (end - first) / 2 && left <= half)
    }
}

extension FlightMachine {
    /// Returns the progress of the flight; nil while no body is received, or if its end is unknown.
    func progress(at position: Int64, total: Int64?, now: Monotonic) -> FlightProgress? {
        guard case .filling(let filling) = state, let first = fill?.firstOffset else { return nil }
        var end = total
        if case .span(_, let wantedEnd?) = wanted { end = wantedEnd }
        guard let end else { return nil }
        return FlightProgress(
            first: first, position: position, end: end, elapsed: now - filling.since)
    }

    /// True if the flight continues for a grace period after the last waiter left.
    ///
    /// A player that hangs up before the head often repeats the request, which would send it to the
    /// origin twice; a request that was not sent yet can be repeated at no cost.
    func hasGrace(isWithOrigin: Bool) -> Bool {
        wasObjectGiven || (isWithOrigin && (phase == .asking || phase == .filling))
    }

    /// True if something waits for what the flight fetches.
    ///
    /// - Parameters:
    ///   - isRead: whether a reader needs the next bytes.
    ///   - now: the time.
    /// - Returns: false if the flight may end.
    func isNeeded(isRead: @autoclosure () -> Bool, now: Monotonic) -> Bool {
        guard !hasEnded, waiters.isEmpty else { return true }
        guard wasObjectGiven else { return false }
        return isRead()
            || waiters.wasObjectGivenLately(now, within: GracePeriods.wayToReader)
    }
}
