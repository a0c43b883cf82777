// Results of walks through the whole index, used for a while.
import Numbers
import Posix

/// The last result of work that takes longer the more is stored.
///
/// It is used for 20 times as long as the work took, so that however many ask, and however often,
/// the work takes at most a twentieth of a thread's time. Quick work is repeated for almost every
/// request.
struct CostlyResult<Value: Sendable>: Sendable {
    private static var pausesPerRun: Int64 { 20 }

    /// The least time for which a result is used.
    private let leastUse: Interval
    private var last: (value: Value, from: Monotonic, until: Monotonic)?
    private var forgottenAt = Monotonic(nanoseconds: .min)

    init(usedAtLeast leastUse: Interval = .zero) { self.leastUse = leastUse }

    /// Returns the last result while it is to be used; nil if the work is to be done.
    func value(at now: Monotonic) -> Value? {
        guard let last, now >= last.from, now < last.until else { return nil }
        return last.value
    }

    /// Keeps the result of work that began and ended at these times, unless it began before the
    /// last `forget`.
    mutating func keep(_ value: Value, from start: Monotonic, to end: Monotonic) {
        guard start >= forgottenAt else { return }
        let took = max(Interval.zero, end - start).nanoseconds
        let use = Interval(nanoseconds: took.multipliedSaturated(by: Self.pausesPerRun))
        last = (value, start, end + max(use, leastUse))
    }

    /// Forgets the last result, since what the work reads has changed.
    mutating func forget(at now: Monotonic) {
        last = nil
        forgottenAt = now
    }
}
