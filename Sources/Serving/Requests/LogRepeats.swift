// Collapses repeated log lines into a count.
import CachePolicy
import Logging
import Posix
import Reactor
import Synchronization

/// The subjects of recent log lines.
///
/// Any thread may use it. Bounded: 256 subjects.
final class LogRepeats: Sendable {
    private struct Line: Sendable {
        var since: Monotonic
        var repeated = 0
    }

    /// Repetitions within this time after a line are counted.
    static let window = Interval.seconds(10 as Int64)

    private let lines = Mutex(RecentMap<String, Line>(capacity: 256))

    enum Verdict: Equatable {
        case log
        /// Counted; if `isFirst`, the count must be logged after `window`.
        case counted(isFirst: Bool)
    }

    /// Decides about one line.
    func take(_ subject: String, now: Monotonic) -> Verdict {
        lines.withLock { lines in
            guard var line = lines[subject],
                line.repeated > 0 || now - line.since < Self.window
            else {
                lines[subject] = Line(since: now)
                return .log
            }
            line.repeated += 1
            lines[subject] = line
            return .counted(isFirst: line.repeated == 1)
        }
    }

    /// Removes a line and returns its counted repetitions.
    func close(_ subject: String) -> Int {
        lines.withLock { lines in
            defer { lines[subject] = nil }
            return lines[subject]?.repeated ?? 0
        }
    }
}

extension ProxyCore {
    /// Logs a failed request; repetitions within ten seconds become one line with a count.
    ///
    /// - Parameters:
    ///   - metadata: the metadata of the line.
    ///   - subject: equal for lines that count as repetitions.
    ///   - loop: where the count is logged later.
    func logFailure(_ metadata: Logger.Metadata, subject: String, on loop: EventLoop) {
        switch repeats.take(subject, now: loop.now) {
        case .log: log.notice("request failed", metadata: metadata)
        case .counted(isFirst: false): return
        case .counted(isFirst: true):
            loop.schedule(after: LogRepeats.window) { [self] _ in
                let count = repeats.close(subject)
                guard count > 0 else { return }
                log.notice(
                    "request failed; repeated \(count) \(count == 1 ? "time" : "times")",
                    metadata: metadata)
            }
        }
    }
}
