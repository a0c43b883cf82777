// The values that the loops of a server share.
import Synchronization
import TLS

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

/// TLS handshakes over all loops, by how they ended.
final class HandshakeCounter: Sendable {
    private let full = Atomic<Int>(0)
    private let resumed = Atomic<Int>(0)
    private let failed = Atomic<Int>(0)

    var figures: HandshakeFigures {
        HandshakeFigures(
            full: full.load(ordering: .relaxed), resumed: resumed.load(ordering: .relaxed),
            failed: failed.load(ordering: .relaxed))
    }

    func add(_ establishment: TLSSession.Establishment) {
        switch establishment {
        case .full: full.add(1, ordering: .relaxed)
        case .resumed: resumed.add(1, ordering: .relaxed)
        }
    }

    func addFailure() { failed.add(1, ordering: .relaxed) }
}

/// TLS handshakes since the start.
package struct HandshakeFigures: Sendable {
    package var full = 0
    /// Those that continued an earlier session.
    package var resumed = 0
    /// Those that ended, or were given up, before they were over.
    package var failed = 0

    package init() {}

    init(full: Int, resumed: Int, failed: Int) {
        self.full = full
        self.resumed = resumed
        self.failed = failed
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
