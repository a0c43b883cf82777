// Counters shared by the loops of a server.
import Synchronization
import TLS

/// The number of connections over all loops, and of the places that they take together.
///
/// A connection takes one place, and each request that it answers besides the first takes another.
final class ConnectionCounter: Sendable {
    private let value = Atomic<Int>(0)
    private let streams = Atomic<Int>(0)
    private let rests = Atomic<Int>(0)

    /// The number of connections.
    var count: Int { value.load(ordering: .relaxed) - streams.load(ordering: .relaxed) }

    /// How often a connection has given back memory.
    var restCount: Int { rests.load(ordering: .relaxed) }

    func noteRest() { rests.add(1, ordering: .relaxed) }

    /// Counts one more connection; false if the limit is reached.
    func enter(limit: Int) -> Bool {
        // Incremented first: two loops that check at the same time must not both take the last
        // place.
        if value.add(1, ordering: .relaxed).newValue <= limit { return true }
        leave()
        return false
    }

    func leave() {
        value.subtract(1, ordering: .relaxed)
    }

    /// Counts one more stream besides the first of its connection; false if the limit is reached.
    func enterStream(limit: Int) -> Bool {
        guard enter(limit: limit) else { return false }
        streams.add(1, ordering: .relaxed)
        return true
    }

    func leaveStream() {
        streams.subtract(1, ordering: .relaxed)
        leave()
    }
}

/// The TLS handshakes over all loops, by outcome.
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

/// The number of TLS handshakes since the start.
package struct HandshakeFigures: Sendable {
    package let full: Int
    /// Handshakes that resumed an earlier session.
    package let resumed: Int
    /// Handshakes that failed or were abandoned.
    package let failed: Int

    package init(full: Int = 0, resumed: Int = 0, failed: Int = 0) {
        self.full = full
        self.resumed = resumed
        self.failed = failed
    }
}

/// Calls a closure once, when a given number of steps have been made.
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
