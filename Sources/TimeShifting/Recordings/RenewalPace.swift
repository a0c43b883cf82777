import HTTP
import Library
import Posix

/// Decides when a recording reads its entry past the cache, since the origin refuses a playlist
/// that the entry named, or what such a playlist names.
///
/// Each time without a success in between doubles the delay, from one target duration up to 32 of
/// them.
struct RenewalPace: Sendable, Equatable {
    private var next: Monotonic?
    private var tries: Int64 = 0

    /// Decides whether the entry is read now, and notes that it is.
    ///
    /// - Parameters:
    ///   - status: the origin's status; nil if it did not answer.
    ///   - target: the target duration.
    ///   - now: the time.
    /// - Returns: true if it is.
    mutating func begins(
        after status: HTTPStatus?, target: Interval, now: Monotonic
    ) -> Bool {
        guard PlaylistRenewal.fits(status), next.map({ now >= $0 }) ?? true else { return false }
        let step = min(max(target.nanoseconds, 200_000_000), 30_000_000_000)
        next = now + Interval(nanoseconds: step << min(tries, 5))
        tries += 1
        return true
    }

    /// Notes that something came; the next refusal waits for the present delay at most.
    mutating func ends() { tries = 0 }
}
