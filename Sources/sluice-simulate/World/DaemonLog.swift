// The daemon's log on its way into the trace.
import Logging
import Synchronization

/// Log lines of the daemon that the trace has not taken yet.
final class LogLines: Sendable {
    private let lines = Mutex<[String]>([])

    func add(_ line: String) { lines.withLock { $0.append(line) } }

    func take() -> [String] {
        lines.withLock { lines in
            defer { lines = [] }
            return lines
        }
    }
}

/// The daemon's log as lines of the trace.
struct TraceLog: LogHandler {
    let lines: LogLines
    var logLevel = Logger.Level.notice
    var metadata: Logger.Metadata = [:]

    init(_ lines: LogLines) { self.lines = lines }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let fields = (event.metadata ?? [:]).sorted { $0.key < $1.key }
            .map { "\($0.key)=\($0.value)" }.joined(separator: " ")
        lines.add("log: \(event.level) \(event.message) \(fields)")
    }
}
