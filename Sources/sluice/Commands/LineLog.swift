import CommandSupport
import DaemonService
import FoundationEssentials
import Logging
import Model
import Posix
import Synchronization

/// The log level of all loggers that were given none, which a reload may change.
///
/// Thread-safe.
final class SharedLogLevel: Sendable {
    private let number: Atomic<Int>

    init(_ level: Logger.Level) { number = Atomic(Self.number(of: level)) }

    var level: Logger.Level {
        get { Logger.Level.allCases[number.load(ordering: .relaxed)] }
        set { number.store(Self.number(of: newValue), ordering: .relaxed) }
    }

    private static func number(of level: Logger.Level) -> Int {
        Logger.Level.allCases.firstIndex(of: level) ?? 0
    }
}

/// The log on standard error, one line per event, as text or as JSON.
///
///     2026-11-23T01:14:22Z notice request failed: the origin answered 503  fault=origin status=502
///     {"time":"2026-11-23T01:14:22Z","level":"notice","message":"request failed","metadata":{"fault":"origin"}}
///
/// In text, `reason` or `error` follows the message, then the other fields that have a value. In
/// JSON, `metadata` contains every field as a string, by name.
///
/// From notices on, a message has a quota of lines. In systemd's journal a line has the priority of
/// its level.
struct LineLog: LogHandler {
    /// Shared by all copies.
    private let quota = LineQuota()
    var format = LogFormat.text
    private let shared: SharedLogLevel
    private var own: Logger.Level?
    var metadata: Logger.Metadata = [:]

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    init(format: LogFormat = .text, shared: SharedLogLevel = SharedLogLevel(.notice)) {
        self.format = format
        self.shared = shared
    }

    /// The shared level, until this logger is given one.
    var logLevel: Logger.Level {
        get { own ?? shared.level }
        set { own = newValue }
    }

    func log(event: LogEvent) {
        let message = "\(event.message)"
        // Who asks for more wants all of it.
        if event.level >= .notice {
            let (isWritten, leftOut) = quota.take(message, now: .now())
            for kind in leftOut {
                print(
                    .notice, "lines were left out of the log",
                    ["message": kind.kind, "count": "\(kind.count)"])
            }
            guard isWritten else { return }
        }
        print(
            event.level, message,
            metadata.merging(event.metadata ?? [:]) { $1 }.mapValues { "\($0)" })
    }

    private static let output = ErrorLines()

    private func print(_ level: Logger.Level, _ message: String, _ fields: [String: String]) {
        let write = format == .json ? Self.object : Self.line
        let line = write(WallTime.now(), level, message, fields)
        Self.output.print(Self.marked(line, level)) { count in
            let notice = write(
                WallTime.now(), .warning, "lines were dropped because nobody read standard error",
                ["count": "\(count)"])
            return Self.marked(notice, .warning)
        }
    }

    /// Returns a line as standard error takes it: the journal removes the priority again.
    private static func marked(_ line: String, _ level: Logger.Level) -> String {
        guard JournalStream.isStandardError else { return line }
        let priority =
            switch level {
            case .critical: 2
            case .error: 3
            case .warning: 4
            case .notice: 5
            case .info: 6
            case .debug, .trace: 7
            }
        return JournalStream.marked(line, priority: priority)
    }

    /// Formats an event as JSON; control characters are escaped, so it never takes more than one
    /// line.
    static func object(
        _ time: WallTime, _ level: Logger.Level, _ message: String, _ fields: [String: String]
    ) -> String {
        let members = fields.sorted { $0.key < $1.key }
            .map { JSONValue.Member($0.key, .text($0.value)) }
        return JSONValue.object([
            .init("time", .text(timestamp(time))), .init("level", .text("\(level)")),
            .init("message", .text(message)), .init("metadata", .object(members)),
        ]).encoded
    }

    /// Fields with the cause of an event.
    private static let causes = ["reason", "error"]

    static func line(
        _ time: WallTime, _ level: Logger.Level, _ message: String, _ fields: [String: String]
    ) -> String {
        var line = "\(timestamp(time)) \(level) \(message)"
        for name in causes {
            if let text = fields[name], !text.isEmpty { line += ": \(text)" }
        }
        let rest = fields.filter {
            !causes.contains($0.key) && !$0.value.isEmpty && $0.value != "-"
        }
        if !rest.isEmpty {
            line +=
                "  "
                + rest.sorted { $0.key < $1.key }.map { "\($0)=\($1)" }
                .joined(separator: " ")
        }
        // A message is one line, whatever an origin put into it.
        return PrintableText.oneLine(line)
    }

    /// Formats a time by RFC 3339 in UTC.
    private static func timestamp(_ time: WallTime) -> String {
        Date(timeIntervalSince1970: Double(time.seconds)).formatted(.iso8601)
    }
}
