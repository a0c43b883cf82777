// The rules of flights that need no state.
import HTTP
import Model
import Posix
import Store
import URISyntax

/// What a flight was begun for; nothing of it changes.
struct FlightJob {
    let resource: Resource
    let limits: FlightLimits
    let begunAt: Monotonic
    var revalidates = false
    var method = HTTPMethod.get
    /// Whether the origin judges conditions of the client.
    var hasConditions = false
    /// Whether the list that is wanted is one that answers delivery directives.
    var isDelivery = false
    /// Whether a stale response serves where the origin answers with a 5xx.
    var staleServes = false
    /// Whether the rest of another object is wanted.
    var wantsRest = false
    /// Whether a failed attempt may be repeated: not so soon after all attempts have failed.
    var mayRepeat = true
    /// Whether it was begun for no player: it may have been paused, and its time says nothing of the
    /// line.
    var beganAhead = false

    /// Whether HTTP's rules lead and not playlist semantics: under a mount.
    var followsHTTP: Bool { resource.kind != nil }

    /// The resource, in messages.
    var subject: String { resource.url.redacted }
}

/// The settings that flights decide by.
struct FlightLimits {
    /// Attempts in a row that may fail.
    var retries: Int
    /// The longest time without a new byte.
    var patience: Interval
    /// The longest time until an answer.
    var answer: Interval
    /// The distance to the next byte up to which a request waits for a flight.
    var joinDistance: Int64
    /// The longest body that is written with its head.
    var shortBody = Int64(StoredObject.shortLimit)

    /// The time until the next attempt.
    ///
    /// Exponential from 100 ms with up to half of it added at random, so that flights that broke
    /// together do not come back together.
    ///
    /// - Parameters:
    ///   - failures: attempts that have failed in a row.
    ///   - hasBody: whether the body has begun: without, an origin is asked twice more at most.
    ///   - waited: the time since the last new byte.
    ///   - jitter: the random part, from 0 to 1.
    /// - Returns: nil when the player has waited long enough.
    func delay(
        afterFailures failures: Int, hasBody: Bool, waited: Interval, jitter: Double
    ) -> Interval? {
        guard failures <= (hasBody ? retries : min(2, retries)) else { return nil }
        let base = Int64(100_000_000) << Int64(max(0, min(failures - 1, 6)))
        let delay = Interval(nanoseconds: base + Int64(Double(base / 2) * jitter))
        // A stall is noticed late; the player that sat through it must not be cut off untried.
        if hasBody, failures == 1 { return delay }
        guard waited.nanoseconds + delay.nanoseconds <= patience.nanoseconds else { return nil }
        return delay
    }
}

/// How a broken transfer can be resumed.
enum Resumption: Equatable {
    case again
    case from(Int64, to: Int64?)
    /// Nobody has seen the bytes yet: forget them and start over.
    case afresh

    /// Nil where the transfer cannot be resumed: bytes that were handed out came from a representation
    /// that could not be told from another one.
    ///
    /// - Parameters:
    ///   - fill: what has come.
    ///   - wanted: what was wanted of the transfer.
    ///   - isOpaque: whether the bytes stand in no known place of the body.
    ///   - isHandedOut: whether readers may have seen bytes.
    ///   - isOpenText: whether the body is a playlist, or may be one.
    ///   - job: what the flight is for.
    init?(
        _ fill: FillFacts, of wanted: Wanted, isOpaque: Bool, isHandedOut: Bool, isOpenText: Bool,
        _ job: FlightJob
    ) {
        guard fill.hasHead, !isOpaque else { return nil }
        if !isHandedOut, isOpenText || job.resource.decodesContent {
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

extension FlightJob {
    /// Whether a later response can be known to hold the rest of what has come of this one.
    ///
    /// Under HTTP's rules by a strong validator or not at all (RFC 9111 section 3.4); a playlist's
    /// media also by its length. An end that is not known cannot be checked by anything else.
    func canBeJoined(_ fill: FillFacts) -> Bool {
        if resource.live.growth != nil { return true }
        return fill.hasStrongValidator || (fill.total != nil && !followsHTTP)
    }
}

/// A stored body that a response is compared with.
struct StoredBody: Equatable {
    /// Bytes that are compared, at most.
    static let mostCompared = Wanted.overlapLimit

    let spans: SpanSet
    var total: Int64?

    /// How many bytes before the wanted ones are asked for again.
    func before(_ wanted: Wanted) -> Int64 {
        guard case .span(let start, _) = wanted, start > 0 else { return 0 }
        let before = spans.ranges.last { $0.lowerBound < start && $0.upperBound >= start }
        return before.map { min(Self.mostCompared, start - $0.lowerBound) } ?? 0
    }

    /// How many bytes behind the wanted ones are asked for, to be compared.
    func behind(_ wanted: Wanted) -> Int64 {
        guard case .span(let start, let end?) = wanted,
            let stored = spans.ranges.first(where: { $0.upperBound > start }),
            max(stored.lowerBound, start) == end
        else { return 0 }
        return min(Self.mostCompared, stored.upperBound - end)
    }

    /// The end of the bytes at the beginning of a response that are compared: those just before the
    /// wanted ones, or what is stored from the first byte of the response on.
    ///
    /// - Returns: nil where the response does not begin before the wanted bytes, or there is nothing
    ///   to compare.
    func provenStart(of response: Placement, wanted start: Int64) -> Int64? {
        let first = response.start
        guard first < start, total == nil || response.total == nil || total == response.total,
            response.last ?? start >= start
        else { return nil }
        var proven = start
        if !spans.contains(max(first, start - Self.mostCompared)..<start) {
            proven = min(spans.contiguousEnd(from: first), first + Self.mostCompared, start)
        }
        return proven > first ? proven : nil
    }
}

/// What a request has in common with a flight that it may wait for.
struct JoinFacts {
    /// Whether resource, delivery directives and terms let one response answer both.
    var isSameQuestion: Bool
    /// Whether either has to have a response of its own.
    var isAlone = false
    /// Whether the request is for the object of the flight, or for whatever the origin has.
    var isSameObject = true
    var wanted: Wanted
    /// Where the next byte of the flight goes, as far as known.
    var position: Int64?
    /// Whether the flight has an object.
    var hasObject: Bool
    /// Whether readers have the wanted byte: what lies behind the end of what is written may be gone
    /// again, since a body that is not kept is punched out.
    var isAtHand: Bool
}

extension FlightMachine {
    /// Whether a request is served by waiting for this flight.
    func covers(_ request: JoinFacts) -> Bool {
        guard !hasEnded, !isOpaque, !isOutdated, request.isSameQuestion, !request.isAlone,
            request.isSameObject
        else { return false }
        if job.revalidates { return true }
        guard case .span(let start, _) = request.wanted else { return request.wanted == wanted }
        guard case .span(let first, let end) = wanted, let position = request.position else {
            return false
        }
        // What a response will say of this range says nothing of one that begins before it.
        guard start >= first else { return false }
        let isWithin = isWithin(start, position, end)
        if !request.hasObject || isPlaylist { return start == first || isWithin }
        return request.isAtHand && isWithin
    }

    private func isWithin(_ start: Int64, _ position: Int64, _ end: Int64?) -> Bool {
        if let end, start >= end { return false }
        // Another request would be answered with the whole body too.
        if ranges.contains(.ignored) { return true }
        return start - position <= job.limits.joinDistance
    }
}

// MARK: Abandonment

/// How far a flight has come, and how fast.
struct FlightProgress: Equatable {
    /// Where its first byte went.
    var first: Int64
    var position: Int64
    /// Where it ends.
    var end: Int64
    /// The time since bytes of this response may have come.
    var elapsed: Interval

    /// Whether the rest will have come before it would pay to stop.
    func isAboutToEnd(within limit: Interval) -> Bool {
        // The first bytes come in one burst, which says nothing of the pace.
        let elapsed = max(limit.nanoseconds, elapsed.nanoseconds)
        let perNanosecond = Double(position - first) / Double(elapsed)
        return Double(end - position) <= perNanosecond * Double(limit.nanoseconds)
    }

    /// Whether little is left, or half of it is done and not too much is left.
    func isMostlyDone(remainder: Int64, half: Int64) -> Bool {
        let left = end - position
        return left <= remainder || (position - first >= (end - first) / 2 && left <= half)
    }
}

extension FlightMachine {
    /// How far the flight has come; nil while no body comes, or where its end is not known.
    func progress(at position: Int64, total: Int64?, now: Monotonic) -> FlightProgress? {
        guard case .filling(let filling) = state, let first = fill?.firstOffset else { return nil }
        var end = total
        if case .span(_, let wantedEnd?) = wanted { end = wantedEnd }
        guard let end else { return nil }
        return FlightProgress(
            first: first, position: position, end: end, elapsed: now - filling.since)
    }

    /// Whether the flight goes on for a grace time once nobody waits for it.
    ///
    /// A player that hangs up before the head often asks again at once, and would have the origin
    /// asked twice; but what has not got to the origin yet costs nothing to ask again.
    func hasGrace(isWithOrigin: Bool) -> Bool {
        isHandedOut || (isWithOrigin && (phase == .asking || phase == .filling))
    }

    /// Whether anybody waits for what the flight brings.
    ///
    /// - Parameters:
    ///   - isRead: whether a reader wants what comes next.
    ///   - now: the time.
    ///   - wayToReader: the time in which a player that was told of an object begins to read it.
    /// - Returns: false where the flight may end.
    func isNeeded(
        isRead: @autoclosure () -> Bool, now: Monotonic, wayToReader: Interval
    ) -> Bool {
        guard !hasEnded, waiters.isEmpty else { return true }
        guard isHandedOut else { return false }
        return isRead() || wasToldLately(now, within: wayToReader)
    }
}
