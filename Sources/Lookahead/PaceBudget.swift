// The schedule of a body that is sent at a limited rate.

/// A token bucket that fills at a rate and is emptied in steps.
///
/// Pure: the caller provides times, in seconds.
package struct PaceBudget: Sendable, Equatable {
    /// The time between two steps in seconds, which bounds how often a body wakes its loop.
    private static let stepSeconds = 0.02
    /// The smallest step in bytes; fewer are not worth a system call.
    private static let smallestStep = 16_384
    /// The most steps sent at once after a pause: a player that stops reading within a body must
    /// not measure the speed of the store afterwards.
    private static let mostSteps = 8

    private let rate: Double
    /// When the bytes taken so far began at the rate; later if there were pauses.
    private var start: Double
    private var taken = 0

    /// - Parameters:
    ///   - rate: bytes per second; less than 1 counts as 1.
    ///   - start: when the body began.
    package init(rate: Double, start: Double) {
        self.rate = max(1, rate)
        self.start = start
    }

    /// The number of bytes sent in one step.
    private var step: Int { max(Self.smallestStep, Int(min(rate * Self.stepSeconds, 1e9))) }

    /// Returns the number of bytes that may be sent now; 0 until a whole step has accumulated.
    ///
    /// The first step is available immediately, so that a player sees that its request is answered.
    package mutating func allowance(at now: Double) -> Int {
        let saved = Double((Self.mostSteps - 1) * step)
        start = max(start, now - (Double(taken) + saved) / rate)
        let earned = Int(min(max(0, now - start) * rate, 1e15)) + step
        let left = earned - taken
        return left >= step ? left : 0
    }

    /// Records sent bytes.
    package mutating func take(_ count: Int) { taken += count }

    /// Returns the seconds until a whole step is available.
    package func wait(at now: Double) -> Double {
        max(0, start + Double(taken) / rate - now)
    }
}
