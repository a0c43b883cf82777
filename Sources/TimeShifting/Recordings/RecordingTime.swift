// When a recording is over, by two clocks.
import Library
import Posix

/// The time that a recording has left.
///
/// One that this run began is counted by the monotonic clock, since it was ordered for a length of
/// time and the wall clock may be set meanwhile. Its times are moved with the wall clock: they are
/// all that the next run knows. One that an earlier run or another node began ends by the wall
/// clock, but lasts no longer than it was ordered for.
struct RecordingTime: Sendable {
    private let end: Monotonic
    private let isNew: Bool

    /// Smaller differences are no step: a clock that is slowed down or sped up must not have the
    /// order saved again and again.
    private static let tolerance = Interval.seconds(10)

    /// - Parameters:
    ///   - order: the order.
    ///   - isNew: true if this run began it.
    ///   - wall: the time by the wall clock.
    ///   - now: the same by the monotonic clock.
    init(_ order: RecordingOrder, isNew: Bool, wall: WallTime, now: Monotonic) {
        self.isNew = isNew
        end = now + (order.until - (isNew ? wall : order.started))
    }

    /// True once the time of the recording is over.
    func isOver(_ order: RecordingOrder, wall: WallTime, now: Monotonic) -> Bool {
        now >= end || (!isNew && wall >= order.until)
    }

    /// Moves start and end of an order by as much as the wall clock was set.
    ///
    /// - Returns: false if it was not set.
    func move(_ order: inout RecordingOrder, wall: WallTime, now: Monotonic) -> Bool {
        guard isNew else { return false }
        let step = wall + (end - now) - order.until
        guard step.nanoseconds.magnitude > Self.tolerance.nanoseconds.magnitude else {
            return false
        }
        order.started = order.started + step
        order.until = order.until + step
        return true
    }
}
