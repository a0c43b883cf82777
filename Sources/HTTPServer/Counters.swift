// The two values that the loops of a server share.
import Synchronization

/// Connections over all loops.
final class ConnectionCounter: Sendable {
    private let value = Atomic<Int>(0)

    var count: Int { value.load(ordering: .relaxed) }

    /// Counts one more, unless the limit is reached.
    func enter(limit: Int) -> Bool {
        // Counted first: two loops that look at the same time must not both take the last place.
        if value.add(1, ordering: .relaxed).newValue <= limit { return true }
        leave()
        return false
    }

    func leave() {
        value.subtract(1, ordering: .relaxed)
    }
}

/// Calls a closure once, when as many parts as there are have ended.
final class Countdown: Sendable {
    private let left: Atomic<Int>
    private let then: @Sendable () -> Void

    init(from count: Int, then: @escaping @Sendable () -> Void) {
        left = Atomic(count)
        self.then = then
    }

    func step() {
        if left.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { then() }
    }
}
