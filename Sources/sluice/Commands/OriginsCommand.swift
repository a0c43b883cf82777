import ArgumentParser
import CommandSupport

/// `sluice origins`: the costs of requests to each origin.
struct OriginsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "origins",
        abstract: "Show the requests to each origin: times, connections, errors.",
        discussion: """
            One line per origin, the most recently used first, since the daemon's start; at most 256 of them. Times \
            are `median / 99th percentile` in milliseconds over the latest few thousand requests: slot is the wait \
            for a slot, name the lookup of the host, connect TCP, tls the handshake, first the time from the request \
            to the first byte of the response, last from there to the last byte. Phases that did not happen, such as \
            those of reused connections, do not count. Errors are failed and incomplete transfers and 5xx responses; \
            reused is the share of requests on an existing connection, resumed the share of TLS handshakes that \
            resumed a session. An origin that refuses connections or does not answer is suspected first, then down; \
            "2 at once" is the limit of its host, set by --origin-limit, or 1 where it refuses a second connection. \
            Yielding is how many bytes downloads, or what players wait for, may have in flight, and the delay of the \
            line's queue, while receive windows are bounded. Lines below the table show the state of a shared store, \
            and what fails there.
            """)

    @OptionGroup var daemon: DaemonOptions

    @Flag(help: "Print the daemon's JSON.")
    var json = false

    func run() throws {
        let text = try daemon.client().send("GET", "/api/origins")
        print(json ? text : try Self.table(decodeJSON(text)), terminator: "")
    }

    private struct Report: Decodable {
        let origins: [Row]
        let sharedStore: SharedStoreLine?
    }

    private static func text(_ store: SharedStoreLine) -> String {
        let reason = store.reason.map { ": \($0)" } ?? ""
        let lines = store.failures.map { "  \($0)\n" }
        return "shared store \(store.store) is \(store.state)\(reason)\n\(lines.joined())"
    }

    private struct Times: Decodable {
        let p50: Double?
        let p99: Double?

        var text: String {
            guard let p50, let p99 else { return "-" }
            return "\(Self.short(p50)) / \(Self.short(p99))"
        }

        /// Formats tenths below ten, whole milliseconds from there on.
        private static func short(_ milliseconds: Double) -> String {
            let tenths = Int64(max(0, min(milliseconds, 1e9)) * 10 + 0.5)
            return tenths < 100 ? "\(tenths / 10).\(tenths % 10)" : "\((tenths + 5) / 10)"
        }
    }

    private struct Yielding: Decodable {
        let purpose: String
        let windowBytes: Int64
        let queueMs: Double

        var text: String {
            let delay = Int64(max(0, min(queueMs, 1e6)).rounded())
            return "\(purpose) \(OutputFormat.size(windowBytes)), \(delay) ms"
        }
    }

    private struct Row: Decodable {
        let origin: String
        let state: String
        let `protocol`: String?
        let requests: Int64
        let errors: Int64
        let bytes: Int64
        let reusedPercent: Double?
        let resumedPercent: Double?
        let connectionLimit: Int64?
        let yielding: Yielding?
        let slotMs: Times
        let nameMs: Times
        let connectMs: Times
        let tlsMs: Times
        let firstByteMs: Times
        let lastByteMs: Times
    }

    private static func table(_ report: Report) -> String {
        let store = report.sharedStore.map(text) ?? ""
        guard !report.origins.isEmpty else { return "no origin was requested yet\n" + store }
        var table = TextTable(rightAligned: Set(2...13))
        table.add(
            "origin", "state", "requests", "errors", "bytes", "slot", "name", "connect", "tls",
            "first", "last", "protocol", "reused", "resumed", "yielding")
        for row in report.origins {
            let state = row.connectionLimit.map { "\(row.state), \($0) at once" } ?? row.state
            table.add(
                row.origin, state, "\(row.requests)", "\(row.errors)",
                OutputFormat.size(row.bytes),
                row.slotMs.text, row.nameMs.text, row.connectMs.text, row.tlsMs.text,
                row.firstByteMs.text, row.lastByteMs.text, row.protocol ?? "-",
                percent(row.reusedPercent), percent(row.resumedPercent),
                row.yielding?.text ?? "-")
        }
        return table.text + "\n" + store
    }

    private static func percent(_ share: Double?) -> String {
        share.map { "\(Int64(max(0, min($0, 100)).rounded())) %" } ?? "-"
    }
}
