import CachePolicy
import Posix
import URISyntax

/// The origins that have answered later than a first attempt waits; the oldest are forgotten first.
///
/// Giving an attempt up early helps if it hangs. A slow origin answers the next attempt no sooner
/// and has twice the work, so that the player waits longer.
struct LateOrigins {
    private var lastLate = RecentMap<Origin, Monotonic>(capacity: 256)

    /// How long an origin counts as slow after a late answer.
    static let lifetime = Interval.seconds(600 as Int64)

    /// Notes an answer.
    ///
    /// A quick one changes nothing: an origin may be slow with some of its resources only.
    ///
    /// - Parameters:
    ///   - origin: the origin of the URL that was requested, whichever one it redirected to.
    ///   - time: the time from sending the request until its head.
    ///   - limit: the time that a first attempt has.
    ///   - now: the time of the head.
    mutating func note(
        _ origin: Origin, after time: Interval, limit: Interval, now: Monotonic
    ) {
        if time > limit { lastLate[origin] = now }
    }

    /// True if an origin has answered late within `lifetime`.
    func holds(_ origin: Origin, now: Monotonic) -> Bool {
        lastLate[origin].map { now - $0 < Self.lifetime } ?? false
    }
}
