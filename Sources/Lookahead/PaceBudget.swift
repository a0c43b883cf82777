// How many bytes of a paced body may go out by when.

/// A bucket that fills at a rate and is emptied in steps.
///
/// Pure: the caller tells the times, in seconds.
package struct PaceBudget: Sendable, Equatable {
    /// The time between two steps, which bounds how often a body wakes its loop.
    private static let stepSeconds = 0.02
    /// The smallest step in bytes: less is not worth a system call.
    private static let smallestStep = 16_384

    private let rate: Double
    private let start: Double
    private var taken = 0

    /// - Parameters:
    ///   - rate: bytes a second; less than 1 counts as 1.
    ///   - start: when the body began.
    package init(rate: Double, start: Double) {
        self.rate = max(1, rate)
        self.start = start
    }

    /// Bytes that go out in one step.
    private var step: Int { max(Self.smallestStep, Int(min(rate * Self.stepSeconds, 1e9))) }

    /// Bytes that may go out now; 0 where a whole step has not come together yet.
    ///
    /// The first step is there at once: a player that asks should see that it is answered.
    package func allowance(at now: Double) -> Int {
        let earned = Int(min(max(0, now - start) * rate, 1e15)) + step
        let left = earned - taken
        return left >= step ? left : 0
    }

    /// Notes that bytes went out.
    package mutating func take(_ count: Int) { taken += count }

    /// Seconds until there is a step again.
    package func wait(at now: Double) -> Double {
        max(0, start + Double(taken) / rate - now)
    }
}
