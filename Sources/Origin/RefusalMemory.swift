// Until when origins have asked not to be sent a request again (RFC 9110 section 10.2.3).
import CachePolicy
import HTTP
import Model
import Posix
import Store
import URISyntax
import Upstream

/// The resources that origins refused with a `Retry-After`; the oldest are forgotten first.
struct RefusalMemory {
    private struct Refusal: Sendable {
        let status: HTTPStatus
        let until: Monotonic
    }

    private var refusals = RecentMap<ObjectKey, Refusal>(capacity: 1_024)

    /// The longest pause that an origin may ask for: nobody waits longer for a stream that is down,
    /// and the number may be a mistake.
    static let longest = Interval.seconds(300 as Int64)

    /// Notes that an origin refused a resource, and asks for a pause.
    mutating func note(_ key: ObjectKey, _ status: HTTPStatus, _ pause: Interval, now: Monotonic) {
        guard pause > .zero else { return }
        refusals[key] = Refusal(status: status, until: now + min(pause, Self.longest))
    }

    /// Returns the remaining pause of a resource, and the status that the origin gave; nil if it may
    /// be asked.
    mutating func pause(of key: ObjectKey, now: Monotonic) -> (left: Interval, status: HTTPStatus)?
    {
        guard let refusal = refusals[key] else { return nil }
        guard refusal.until > now else {
            refusals[key] = nil
            return nil
        }
        return (refusal.until - now, refusal.status)
    }

    /// Returns when a request may be sent.
    ///
    /// A player's request for something that is not stored waits, if that is within a player's
    /// patience; any other fails, and what is stored may be served.
    mutating func turn(
        of request: FetchRequest, patience: Interval, now: Monotonic
    ) -> OriginProbes.Turn {
        guard !request.resource.followsHTTP,
            let (left, status) = pause(of: request.resource.key, now: now)
        else { return .now }
        let mayWait =
            request.lane <= .playback && !request.revalidates && !request.terms.hasDirectives
        if mayWait, left <= patience { return .later(left) }
        var failure = ProxyFailure(originStatus: status, subject: request.resource.url.redacted)
        failure.retryAfter = (left.nanoseconds - 1) / 1_000_000_000 + 1
        failure.isUnasked = true
        return .refused(failure)
    }
}
