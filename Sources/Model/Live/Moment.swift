package import Posix

/// A wall-clock time, with a monotonic time for events of this run: the wall clock may be set back
/// and then gives no order.
package struct Moment: Sendable, Comparable {
    package var wall: WallTime
    /// Nil for events of an earlier run, and for what was read back from the disk.
    package var steady: Monotonic?

    package init(wall: WallTime, steady: Monotonic? = nil) {
        self.wall = wall
        self.steady = steady
    }

    /// Orders events of earlier runs before all of this run.
    package static func < (a: Moment, b: Moment) -> Bool {
        switch (a.steady, b.steady) {
        case (let first?, let second?): first < second
        case (nil, nil): a.wall < b.wall
        case (nil, _?): true
        case (_?, nil): false
        }
    }

    /// True if a response was received before this moment.
    ///
    /// - Parameters:
    ///   - times: when it was requested and received, by the monotonic clock; nil if unknown.
    ///   - responseTime: when it was received, by the wall clock.
    /// - Returns: true for a response received earlier.
    package func isAfter(_ times: SteadyTimes?, responseTime: WallTime) -> Bool {
        if let times, let steady { return times.received < steady }
        return responseTime < wall
    }

    /// Returns the time between two moments; by the wall clock if either is of an earlier run.
    package static func - (a: Moment, b: Moment) -> Interval {
        if let end = a.steady, let start = b.steady { return end - start }
        return a.wall - b.wall
    }

    /// Returns the time since an event; nil if that is unknown, as after the clock was set back.
    ///
    /// Zero if the event is later by the monotonic clock: another loop received it after this round
    /// had read the clock.
    package func elapsed(since event: Moment) -> Interval? {
        let time = self - event
        if time >= .zero { return time }
        return steady == nil || event.steady == nil ? nil : Interval.zero
    }
}

/// When a response was requested and received, by the monotonic clock of this run.
package struct SteadyTimes: Sendable {
    package let requested: Monotonic
    package let received: Monotonic

    package init(requested: Monotonic, received: Monotonic) {
        self.requested = requested
        self.received = received
    }
}
