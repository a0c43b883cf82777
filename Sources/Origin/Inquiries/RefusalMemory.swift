// Until when origins have asked not to be sent a request again (RFC 9110 section 10.2.3).
import CachePolicy
import HTTP
package import Model
package import Posix
import Store
import Synchronization
import URISyntax
import Upstream

/// The resources that origins refused with a `Retry-After`; the oldest are forgotten first.
///
/// The upstream loop writes, any thread reads.
package final class RefusalMemory: Sendable {
    /// What remains of a pause that an origin asked for.
    package struct Pause: Sendable {
        package let left: Interval
        /// The failure of a request that does not wait for the end of the pause.
        package let failure: ProxyFailure
    }

    private struct Refusal: Sendable {
        let status: HTTPStatus
        let until: Monotonic
    }

    private let refusals = Mutex(RecentMap<ObjectKey, Refusal>(capacity: 1_024))

    /// The longest pause that an origin may ask for: nobody waits longer for a stream that is down,
    /// and the number may be a mistake.
    static let longest = Interval.seconds(300 as Int64)

    package init() {}

    /// Notes that an origin refused a resource, and asks for a pause.
    func note(_ key: ObjectKey, _ status: HTTPStatus, _ pause: Interval, now: Monotonic) {
        guard pause > .zero else { return }
        let refusal = Refusal(status: status, until: now + min(pause, Self.longest))
        refusals.withLock { $0[key] = refusal }
    }

    /// Returns the remaining pause of a resource; nil if it may be asked.
    package func pause(of resource: Resource, now: Monotonic) -> Pause? {
        guard !resource.followsHTTP, let refusal = refusal(of: resource.key, now: now) else {
            return nil
        }
        let left = refusal.until - now
        var failure = ProxyFailure(originStatus: refusal.status, subject: resource.url.redacted)
        failure.retryAfter = (left.nanoseconds - 1) / 1_000_000_000 + 1
        failure.isUnasked = true
        return Pause(left: left, failure: failure)
    }

    private func refusal(of key: ObjectKey, now: Monotonic) -> Refusal? {
        refusals.withLock { refusals in
            guard let refusal = refusals[key] else { return nil }
            if refusal.until > now { return refusal }
            refusals[key] = nil
            return nil
        }
    }

    /// Returns when a request may be sent.
    ///
    /// A player's request for something that is not stored waits, if that is within a player's
    /// patience; any other fails, and what is stored may be served.
    func turn(of request: FetchRequest, patience: Interval, now: Monotonic) -> OriginProbes.Turn {
        guard let pause = pause(of: request.resource, now: now) else { return .now }
        let mayWait =
            request.lane <= .playback && !request.revalidates && !request.terms.hasDirectives
        return mayWait && pause.left <= patience ? .later(pause.left) : .refused(pause.failure)
    }
}
