// Wall time, monotonic time and durations as three types that do not mix; all arithmetic saturates.
import Glibc
import Numbers

/// A point on CLOCK_MONOTONIC, in nanoseconds since an arbitrary start; not moved by clock changes.
package struct Monotonic: Comparable, Hashable, Sendable {
    package var nanoseconds: Int64

    package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    package static func < (a: Monotonic, b: Monotonic) -> Bool {
        a.nanoseconds < b.nanoseconds
    }

    package static func + (a: Monotonic, b: Interval) -> Monotonic {
        Monotonic(nanoseconds: a.nanoseconds.addingSaturated(b.nanoseconds))
    }

    package static func - (a: Monotonic, b: Interval) -> Monotonic {
        Monotonic(nanoseconds: a.nanoseconds.subtractingSaturated(b.nanoseconds))
    }

    package static func - (a: Monotonic, b: Monotonic) -> Interval {
        Interval(nanoseconds: a.nanoseconds.subtractingSaturated(b.nanoseconds))
    }

    /// The time in seconds, for arithmetic with fractions; its origin has no meaning.
    package var inSeconds: Double { Double(nanoseconds) / 1e9 }

    /// Reads the clock (clock_gettime(2)); does not block.
    package static func now() -> Monotonic {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Monotonic(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }
}

/// A point in civil time, in nanoseconds since 1970-01-01T00:00:00Z; may jump when the clock is
/// set.
package struct WallTime: Comparable, Hashable, Sendable {
    package var nanoseconds: Int64

    package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }
    package init(seconds: Int64) {
        nanoseconds = seconds.multipliedSaturated(by: 1_000_000_000)
    }

    /// Whole seconds since the epoch, rounded down.
    package var seconds: Int64 {
        let (quotient, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        return rest < 0 ? quotient - 1 : quotient
    }

    package static func < (a: WallTime, b: WallTime) -> Bool {
        a.nanoseconds < b.nanoseconds
    }

    package static func + (a: WallTime, b: Interval) -> WallTime {
        WallTime(nanoseconds: a.nanoseconds.addingSaturated(b.nanoseconds))
    }

    package static func - (a: WallTime, b: WallTime) -> Interval {
        Interval(nanoseconds: a.nanoseconds.subtractingSaturated(b.nanoseconds))
    }

    /// Reads the clock (clock_gettime(2)); does not block.
    package static func now() -> WallTime {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return WallTime(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }
}

/// A length of time in nanoseconds; may be negative.
package struct Interval: Comparable, Hashable, Sendable, CustomStringConvertible {
    package var nanoseconds: Int64

    package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    package static func milliseconds(_ count: Int64) -> Interval {
        Interval(nanoseconds: count.multipliedSaturated(by: 1_000_000))
    }
    package static func seconds(_ count: Int64) -> Interval {
        Interval(nanoseconds: count.multipliedSaturated(by: 1_000_000_000))
    }
    /// Creates an interval from seconds with a fraction, clamped to about 292 years; zero for NaN.
    package init(seconds count: Double) {
        nanoseconds = Int64(saturating: count * 1e9)
    }
    package static let zero = Interval(nanoseconds: 0)

    package var inSeconds: Double { Double(nanoseconds) / 1e9 }
    package var inMilliseconds: Double { Double(nanoseconds) / 1e6 }

    package static func < (a: Interval, b: Interval) -> Bool {
        a.nanoseconds < b.nanoseconds
    }

    package var description: String { "\(inMilliseconds) ms" }
}

extension Interval {
    /// Converts a duration.
    package init(_ duration: Duration) {
        let parts = duration.components
        self.init(
            nanoseconds: parts.seconds.multipliedSaturated(by: 1_000_000_000)
                .addingSaturated(parts.attoseconds / 1_000_000_000))
    }
}
