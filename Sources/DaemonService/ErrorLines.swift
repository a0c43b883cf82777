import Glibc
import Numbers
import Posix
import Synchronization

/// Lines on standard error from threads that must not wait for its reader: lines that it does not
/// take are dropped and counted.
///
/// Thread-safe.
package final class ErrorLines: Sendable {
    /// How long the first line waits for a reader that has stopped; after that one none does, until
    /// it reads on.
    private static let patience = Interval.milliseconds(50)

    private struct State {
        var dropped = 0
        /// True if the last line was not written to its end.
        var isTorn = false
    }

    private let file: CInt
    private let state = Mutex(State())

    package init(file: CInt = STDERR_FILENO) { self.file = file }

    /// Writes a line.
    ///
    /// - Parameters:
    ///   - line: without its line end.
    ///   - notice: makes the line that says how many were dropped.
    package func print(_ line: String, notice: (Int) -> String) {
        state.withLock { state in
            let before = state.dropped > 0 ? notice(state.dropped) + "\n" : ""
            let bytes = Array("\(state.isTorn ? "\n" : "")\(before)\(line)\n".utf8)
            let wait = state.dropped > 0 ? .zero : Self.patience
            let done = BoundedWrite.write(bytes, to: file, until: .now() + wait)
            if done > 0 { state.isTorn = bytes[done - 1] != UInt8(ascii: "\n") }
            state.dropped = done == bytes.count ? 0 : state.dropped.addingSaturated(1)
        }
    }
}
