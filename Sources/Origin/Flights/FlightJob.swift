import HTTP
import Model
import Posix
import Store
import URISyntax

/// The constant parameters of a flight.
struct FlightJob {
    let resource: Resource
    let limits: FlightLimits
    let begunAt: Monotonic
    var revalidates = false
    var method = HTTPMethod.get
    /// True if the origin evaluates conditions of the client.
    var hasConditions = false
    /// True if the list must satisfy delivery directives.
    var hasDirectives = false
    /// True if a stale response is served should the origin respond with a 5xx.
    var staleServes = false
    /// True if the rest of another object is fetched.
    var wantsRest = false
    /// True if its players have no other source, so that the flight waits for the return of the
    /// origin.
    var awaitsReturn = false
    /// True if an attempt that fails without a byte may be repeated; false soon after all attempts
    /// have failed, unless it waits for the return of its origin first.
    var mayRepeat = true
    /// True if it was started as an ahead fetch: it may have been paused, so its duration does not
    /// measure the line.
    var beganAhead = false

    /// True if HTTP's rules apply instead of playlist semantics: under a mount.
    var followsHTTP: Bool { resource.followsHTTP }

    /// The resource, in messages.
    var subject: String { resource.url.redacted }

    /// True if a later response can be recognised as the rest of this body.
    ///
    /// Under HTTP's rules only a strong validator proves that (RFC 9111 section 3.4); for media of
    /// a playlist a known length suffices too.
    func canBeJoined(_ fill: FillFacts) -> Bool {
        if resource.live.growth != nil { return true }
        return fill.hasStrongValidator || (fill.total != nil && !followsHTTP)
    }
}

/// The settings for the decisions of flights.
struct FlightLimits {
    /// Attempts that may fail in a row.
    var retries: Int
    /// The longest time without a new byte.
    var patience: Interval
    /// The longest time until a response.
    var answer: Interval
    /// The longest time for the first byte of the first attempt, so that one that hangs leaves the
    /// player time for another; players wait for eight to ten seconds.
    var firstTry = Interval.seconds(4 as Int64)
    /// The longest time for which a request waits for the return of an origin before it fails:
    /// players that hear nothing for longer give up, or ask anew, which waits again.
    var returnWait = Interval.seconds(15 as Int64)
    /// The distance to the next byte up to which a request joins a flight.
    var joinDistance: Int64
    /// The longest body that is written together with its head.
    var shortBody = Int64(StoredObject.shortLimit)

    /// Returns the time until the next attempt.
    ///
    /// Exponential from 100 ms with up to half of it added at random, so that flights that failed
    /// together do not retry together.
    ///
    /// - Parameters:
    ///   - failures: attempts that have failed in a row.
    ///   - hasBody: whether the body has begun: before that, at most two more requests are sent.
    ///   - waited: the time since the last new byte.
    ///   - jitter: the random part, from 0 to 1.
    /// - Returns: nil if there must not be another attempt.
    func delay(
        afterFailures failures: Int, hasBody: Bool, waited: Interval, jitter: Double
    ) -> Interval? {
        guard failures <= (hasBody ? retries : min(2, retries)) else { return nil }
        let base = Int64(100_000_000) << Int64(max(0, min(failures - 1, 6)))
        let delay = Interval(nanoseconds: base + Int64(Double(base / 2) * jitter))
        // A stall is detected late; its player must get at least one retry.
        if hasBody, failures == 1 { return delay }
        guard waited.nanoseconds + delay.nanoseconds <= patience.nanoseconds else { return nil }
        return delay
    }

    /// Returns true if a pause that the origin asks for ends within a player's patience, together
    /// with what the player has waited already.
    ///
    /// The time waited is rounded down to whole seconds, in which `Retry-After` is given: otherwise
    /// a pause as long as the patience would be too long, since the refusal itself takes time.
    ///
    /// - Parameters:
    ///   - pause: the pause; zero if the origin asks for none.
    ///   - waited: the time since the last new byte.
    /// - Returns: false if the request should fail now.
    func mayPause(for pause: Interval, waited: Interval) -> Bool {
        guard pause > .zero else { return true }
        let second: Int64 = 1_000_000_000
        let seconds = max(0, waited.nanoseconds / second)
        return pause.nanoseconds <= patience.nanoseconds - seconds * second
    }
}

extension FlightLimits {
    init(_ settings: ProxySettings) {
        self.init(
            retries: settings.retries, patience: settings.patience, answer: settings.answerLimit,
            joinDistance: settings.joinDistance)
    }
}
