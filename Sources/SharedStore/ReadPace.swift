package import Posix

/// Whether a read of the store goes on fast enough for a player that waits.
///
/// A store that has begun at once may send the rest slowly, and never be silent for as long as a
/// timeout.
package struct ReadPace: Sendable {
    /// The fewest bytes a second: the rate of a poor video.
    package static let leastRate: Int64 = 64 << 10
    /// The rate is measured over this time, in which players play what they have.
    package static let window = Interval.seconds(2 as Int64)
    /// A read of fewer bytes may be over before its rate is known.
    package static let leastBytes = 2 * leastRate

    private var since: Monotonic
    private var before: Int64

    /// Begins to measure.
    ///
    /// - Parameters:
    ///   - received: the bytes received so far.
    ///   - now: the time.
    package init(received: Int64, now: Monotonic) {
        before = received
        since = now
    }

    /// Measures whether the read was too slow since the last window began, and begins the next one
    /// if that is over.
    ///
    /// - Parameters:
    ///   - received: the bytes received so far.
    ///   - now: the time.
    /// - Returns: true if it was; false within a window.
    package mutating func checkIsTooSlow(received: Int64, now: Monotonic) -> Bool {
        let time = now - since
        guard time >= Self.window else { return false }
        let count = received - before
        (since, before) = (now, received)
        return Double(count) < Double(Self.leastRate) * Double(time.nanoseconds) / 1e9
    }
}
