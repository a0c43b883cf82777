package import Posix
import Synchronization

/// The source of a loop's time.
package enum LoopClock: Sendable {
    /// CLOCK_MONOTONIC and CLOCK_REALTIME.
    case system
    /// Time that advances only when a test moves it.
    case manual(ManualClock)

    /// Returns the monotonic and the wall time; does not block.
    var times: (Monotonic, WallTime) {
        switch self {
        case .system: (.now(), .now())
        case .manual(let clock): (clock.now, clock.wallNow)
        }
    }
}

/// A clock that stands still until it is moved, for tests of timeouts.
///
/// Loops that use it wait for descriptors as usual; their timers run when the clock is moved.
package final class ManualClock: Sendable {
    private struct State {
        var now: Monotonic
        var wallNow: WallTime
        var loops: [LoopHandle] = []
    }

    private let state: Mutex<State>

    /// Creates a clock that starts at these times, by default those of the system's clocks.
    package init(now: Monotonic = .now(), wallNow: WallTime = .now()) {
        state = Mutex(State(now: now, wallNow: wallNow))
    }

    package var now: Monotonic { state.withLock { $0.now } }
    package var wallNow: WallTime { state.withLock { $0.wallNow } }

    func join(_ loop: LoopHandle) {
        state.withLock { $0.loops.append(loop) }
    }

    /// Moves the clock; blocks until each of its running loops has handled the events that were
    /// ready before, and then the timers that are due.
    ///
    /// Timers that these timers schedule for the same moment may run in the next round.
    package func advance(by interval: Interval) {
        precondition(interval >= .zero, "a monotonic clock goes forwards")
        // Two rounds: an accepted connection is registered in one and read in the next.
        for _ in 0..<2 { finishRound() }
        state.withLock {
            $0.now = $0.now + interval
            $0.wallNow = $0.wallNow + interval
        }
        finishRound()
    }

    private func finishRound() {
        for loop in state.withLock({ $0.loops }) {
            // A loop that has ended drops the job, or runs it last.
            guard let done = try? ThreadSemaphore() else { continue }
            if loop.enqueue({ _ in done.signal() }) { _ = done.wait(atMost: .seconds(10 as Int64)) }
        }
    }
}
