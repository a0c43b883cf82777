import Posix

/// The pauses of a download whose fetches fail: they grow, and start anew after a success.
struct RetryPause: Sendable, Equatable {
    /// The longest pause, in seconds.
    static let longest: Int64 = 30

    private var failures = 0

    /// Returns the pause after a failure: one second, then two, up to half a minute.
    mutating func next() -> Interval {
        defer { failures = min(failures + 1, 5) }
        return .seconds(min(Self.longest, Int64(1) << Int64(failures)))
    }

    /// Starts anew: a fetch succeeded, or a client asks to go on.
    mutating func reset() { failures = 0 }
}
