// How many log lines of one kind are written.
package import Posix
import Synchronization

/// Bounds the lines of each kind in the log: a disk that refuses everything fails thousands of
/// requests a second, each of which has something to report.
///
/// The lines that are left out are counted, and the count is due before the next line of any kind
/// once their window is over. Any thread may use it.
package final class LineQuota: Sendable {
    /// How many lines of a kind were left out in one window.
    package struct LeftOut: Equatable, Sendable {
        package let kind: String
        package let count: Int
    }

    private struct Window {
        let since: Monotonic
        var written = 0
        var leftOut = 0

        /// Counts a line; returns whether it is written.
        mutating func take() -> Bool {
            guard written < LineQuota.most else {
                leftOut += 1
                return false
            }
            written += 1
            return true
        }
    }

    /// Lines of a kind in one window.
    package static let most = 20
    /// How long a window takes, from its first line on.
    package static let window = Interval.seconds(10 as Int64)
    /// Kinds beyond this number share one quota.
    private static let mostKinds = 128
    private static let otherKinds = "other lines"

    private let windows = Mutex<[String: Window]>([:])

    package init() {}

    /// Decides about one line.
    ///
    /// - Parameters:
    ///   - kind: equal for lines that share a quota; a message without its fields.
    ///   - now: the present time.
    /// - Returns: whether the line is written, and what was left out in windows that are over.
    package func take(
        _ kind: String, now: Monotonic
    ) -> (isWritten: Bool, leftOut: [LeftOut]) {
        windows.withLock { windows in
            var leftOut: [LeftOut] = []
            // Few kinds of lines exist, and few lines are written.
            for (kind, window) in windows where now - window.since >= Self.window {
                windows[kind] = nil
                if window.leftOut > 0 { leftOut.append(LeftOut(kind: kind, count: window.leftOut)) }
            }
            leftOut.sort { $0.kind < $1.kind }
            let isKnown = windows[kind] != nil || windows.count < Self.mostKinds
            let isWritten = windows[isKnown ? kind : Self.otherKinds, default: Window(since: now)]
                .take()
            return (isWritten, leftOut)
        }
    }
}
