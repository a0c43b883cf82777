// Waits of the scenarios: each has a deadline, none is a fixed sleep.
import FixtureCDN
import Glibc
import Synchronization

/// The longest wait of a scenario before it fails.
package let patience: Duration = .seconds(10)

/// Polls `condition` until it holds; false if it does not within `limit`.
///
/// Each poll may be a request to the daemon and costs processor time that other stories need: the
/// pause grows from one millisecond to `longest`, by a thirty-second of the time waited.
package func eventually(
    within limit: Duration = patience, pausing longest: Duration = .milliseconds(20),
    _ condition: () throws -> Bool
) rethrows -> Bool {
    let begin = ContinuousClock.now
    while true {
        if try condition() { return true }
        let waited = ContinuousClock.now - begin
        guard waited < limit else { return false }
        let pause: Duration = min(max(waited / 32, .milliseconds(1)), longest)
        usleep(UInt32(pause / .microseconds(1)))
    }
}

/// A meeting point of threads: opens when the given number have arrived.
package final class Barrier: Sendable {
    package let name: String
    private let parties: Int
    private let arrived = Mutex(0)

    /// A barrier for `parties` arrivals; one makes it a gate that `arrive()` opens.
    package init(_ name: String, parties: Int = 1) {
        self.name = name
        self.parties = parties
    }

    package var isOpen: Bool { arrived.withLock { $0 >= parties } }

    /// Counts one arrival and does not wait.
    package func arrive() {
        arrived.withLock { $0 += 1 }
    }

    /// Waits for the opening without counting as an arrival.
    package func wait(within limit: Duration = patience) throws {
        guard eventually(within: limit, { isOpen }) else {
            throw ScenarioFailure("barrier \"\(name)\" did not open")
        }
    }

    /// Arrives and waits for the others.
    package func meet(within limit: Duration = patience) throws {
        arrive()
        try wait(within: limit)
    }
}

/// A failed scenario, with its transcript.
package struct ScenarioFailure: Error, CustomStringConvertible, Sendable {
    package let message: String
    package let transcript: String

    package init(_ message: String, transcript: Transcript? = nil) {
        self.message = message
        self.transcript = transcript?.description ?? ""
    }

    package var description: String {
        transcript.isEmpty ? message : "\(message)\n--- transcript ---\n\(transcript)"
    }
}

/// Work on a separate thread: blocking players must not hold the threads of the test runner.
package final class Background<Value: Sendable>: Sendable {
    private let result = Mutex<Result<Value, any Error>?>(nil)

    /// Starts `work` immediately.
    package init(_ work: @escaping @Sendable () throws -> Value) {
        let started = startDetachedThread { [self] in
            let outcome = Result { try work() }
            result.withLock { $0 = outcome }
        }
        precondition(started, "no thread could be made")
    }

    package var isDone: Bool { result.withLock { $0 != nil } }

    /// Waits for the result.
    package func value(within limit: Duration = patience) throws -> Value {
        guard eventually(within: limit, { isDone }), let outcome = result.withLock({ $0 }) else {
            throw ScenarioFailure("background work did not end within \(limit)")
        }
        return try outcome.get()
    }
}

/// Runs `body` for 0..<count concurrently, each on its own thread; returns the results in that
/// order.
package func inParallel<Value: Sendable>(
    _ count: Int, within limit: Duration = .seconds(30),
    _ body: @escaping @Sendable (Int) throws -> Value
) throws -> [Value] {
    let runs = (0..<count).map { index in Background { try body(index) } }
    return try runs.map { try $0.value(within: limit) }
}
