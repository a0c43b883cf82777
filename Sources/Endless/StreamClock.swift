package import Posix

/// The time that a stream's own clock has advanced.
package struct StreamClock: Sendable, Equatable {
    /// Units of the clock in a second (ISO/IEC 13818-1, 2.4.2.2).
    private static let rate: UInt64 = 90_000
    private static let mask: UInt64 = 1 << 33 - 1
    /// A step that is longer is a jump to another time.
    private static let longestStep = 10 * rate

    private var last: UInt64?
    private var units: UInt64 = 0

    package init() {}

    /// True once the clock was read.
    package var hasStarted: Bool { last != nil || units > 0 }

    /// The time that it has advanced, without its jumps.
    package var elapsed: Interval {
        Interval(seconds: Double(units) / Double(Self.rate))
    }

    /// Takes the next reading, of 33 bits.
    mutating func advance(to reading: UInt64) {
        defer { last = reading }
        guard let last else { return }
        let step = (reading &- last) & Self.mask
        if step <= Self.longestStep { units &+= step }
    }

    /// Adds a duration in samples.
    mutating func add(samples: UInt64, rate: UInt64) {
        units &+= samples * Self.rate / max(1, rate)
    }

    /// The next reading is of another clock.
    mutating func interrupt() { last = nil }
}
