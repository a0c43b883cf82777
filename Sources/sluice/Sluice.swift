/// The program: `sluice <command>`.
import ArgumentParser
import Reactor

/// What scripts can tell failures by.
enum ExitCodes {
    /// What was inspected breaks a rule that must be kept.
    static let violations = ExitCode(2)
    /// The address and port are taken by another process.
    static let portTaken = ExitCode(3)
    /// The cache folder cannot be used.
    static let cacheFolder = ExitCode(4)
    /// The daemon to be asked does not answer.
    static let unreachable = ExitCode(5)
    /// The process may open too few files and sockets.
    static let descriptors = ExitCode(6)
    /// A setting is wrong (sysexits.h, EX_CONFIG).
    static let configuration = ExitCode(78)
}

/// The version, as `sluice --version` and the pages print it.
let sluiceVersion = "0.5.0"

@main
struct Program {
    /// Not async: an async main leaves its thread to libdispatch, which parks it with all signals
    /// unblocked, and a SIGTERM that finds one such thread ends the process instead of draining it.
    static func main() {
        // Before any thread is made, or a signal would end the process in one that does not know.
        if CommandLine.arguments.dropFirst().first == "serve" { SignalSource.blockSignals() }
        SluiceCommand.main()
    }
}

struct SluiceCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sluice",
        abstract: "An HLS caching reverse proxy: play through it once, and again without the CDN.",
        discussion: """
            Start the daemon with `sluice serve`, then give a player the URL that `sluice url <URL>` prints.
            Exit codes: 0 done, 1 failed, 2 inspect found violations, 3 port taken, 4 cache folder unusable, 5 daemon not reachable, \
            6 too few descriptors, 64 wrong usage, 78 wrong configuration.
            """,
        version: "sluice \(sluiceVersion)",
        subcommands: [
            ServeCommand.self, URLCommand.self, DecodeCommand.self, StatsCommand.self,
            LsCommand.self, PinCommand.self, UnpinCommand.self, PurgeCommand.self,
            ClearCommand.self, VerifyCommand.self, DfCommand.self, CheckCommand.self,
            SimulateCommand.self, InspectCommand.self, WhyCommand.self, KeysCommand.self,
            DownloadCommand.self, ExportCommand.self, BenchCommand.self, FeedCommand.self,
            RecordCommand.self,
        ])
}
