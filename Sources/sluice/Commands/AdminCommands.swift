/// `sluice stats`: asks a running daemon.
import ArgumentParser

/// How to reach the daemon.
struct DaemonOptions: ParsableArguments {
    @Option(help: "The daemon's base URL; default http://127.0.0.1:9000.")
    var daemon = Self.standard

    /// Where `sluice serve` listens unless it is told otherwise.
    static let standard = "http://127.0.0.1:9000"

    @Option(help: "The daemon's access token, if it needs one.")
    var token: String?

    func client() -> AdminClient { AdminClient(base: daemon, token: token) }
}

struct StatsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats", abstract: "Print the daemon's counters.")

    @OptionGroup var daemon: DaemonOptions

    @Flag(help: "Print the JSON as it comes; default a line a figure.")
    var json = false

    func run() throws {
        let text = try daemon.client().send("GET", "/api/stats")
        if json {
            print(text, terminator: "")
            return
        }
        // The object is flat but for two small ones, whose figures take the outer name in front.
        print(StatsTable(json: text).lines.joined(separator: "\n"))
    }
}
