// Whether the wall clock may decide what is too old to be kept.
import Numbers
import Posix

/// Withholds the wall clock until it has run evenly for some hours.
///
/// Deletions cannot be undone when a clock that was wrong is corrected. They are not urgent either:
/// other limits bound what is kept meanwhile.
struct ClockTrial: Sendable {
    private var last: (wall: WallTime, steady: Monotonic)?
    /// When the clock was looked at first, or after its last step.
    private var began = Monotonic(nanoseconds: 0)

    /// How long the clock must run evenly.
    private static let length = Interval.seconds(6 * 3_600)
    /// A greater difference between two looks is a step.
    private static let tolerance = Interval.seconds(60)

    /// Looks at the clock.
    ///
    /// - Returns: `wall`; nil while the trial lasts.
    mutating func trusted(_ wall: WallTime, at steady: Monotonic) -> WallTime? {
        let hasStepped = last.map { last in
            let (civil, elapsed) = (wall - last.wall, steady - last.steady)
            let step = civil.nanoseconds.subtractingSaturated(elapsed.nanoseconds)
            return step.magnitude > Self.tolerance.nanoseconds.magnitude
        }
        if hasStepped ?? true { began = steady }
        last = (wall, steady)
        return steady - began >= Self.length ? wall : nil
    }
}
