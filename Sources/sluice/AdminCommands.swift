/// `sluice stats`, `purge` and `clear`: ask a running daemon.
import ArgumentParser
import HTTP

/// How to reach the daemon.
struct DaemonOptions: ParsableArguments {
    @Option(help: "The daemon's base URL; default http://127.0.0.1:9000.")
    var daemon = "http://127.0.0.1:9000"

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

struct PurgeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "purge", abstract: "Forget what is stored for a URL.")

    @Argument(help: "The origin's URL, or ours for it.")
    var url: String

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        print(
            try daemon.client().send("POST", "/api/purge?url=\(PercentCoding.queryComponent(url))"),
            terminator: "")
    }
}

struct ClearCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear", abstract: "Forget everything that is stored.")

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        print(try daemon.client().send("POST", "/api/clear"), terminator: "")
    }
}
