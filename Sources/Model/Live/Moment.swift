package import Posix

/// A time of the wall clock and, for what happened in this run, of the monotonic clock: the wall clock
/// may be set back, and then tells no order.
package struct Moment: Sendable, Comparable {
    package var wall: WallTime
    /// Nil for what an earlier run left, and for what was read back from the disk.
    package var steady: Monotonic?

    package init(wall: WallTime, steady: Monotonic? = nil) {
        self.wall = wall
        self.steady = steady
    }

    /// What an earlier run left came before all of this run.
    package static func < (a: Moment, b: Moment) -> Bool {
        switch (a.steady, b.steady) {
        case (let first?, let second?): first < second
        case (nil, nil): a.wall < b.wall
        case (nil, _?): true
        case (_?, nil): false
        }
    }

    /// Whether a response came before this.
    ///
    /// - Parameters:
    ///   - times: when it came, by the monotonic clock; nil where that is not known.
    ///   - responseTime: the same by the wall clock.
    /// - Returns: true for a response that came earlier.
    package func isAfter(_ times: SteadyTimes?, responseTime: WallTime) -> Bool {
        if let times, let steady { return times.received < steady }
        return responseTime < wall
    }

    /// The time from one moment to another; by the wall clock where either is of an earlier run.
    package static func - (a: Moment, b: Moment) -> Interval {
        if let end = a.steady, let start = b.steady { return end - start }
        return a.wall - b.wall
    }
}

/// When a response was asked for and when it came, by the monotonic clock of this run.
package struct SteadyTimes: Sendable {
    package let requested: Monotonic
    package let received: Monotonic

    package init(requested: Monotonic, received: Monotonic) {
        self.requested = requested
        self.received = received
    }
}
