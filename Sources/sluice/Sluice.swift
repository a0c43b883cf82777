// The program: `sluice <command>`.
import CommandSupport
import ArgumentParser
import Glibc
import Posix
import Reactor

@main
struct Program {
    /// Not async: an async main leaves its thread to libdispatch, which parks it with all signals
    /// unblocked, and a SIGTERM delivered to such a thread kills the process instead of draining
    /// it.
    static func main() {
        // Before any descriptor is opened, or it could become standard output.
        StandardDescriptors.occupy()
        // libdispatch, whose threads run tasks, asks for priorities that only root may have, and
        // logs with syslog(3) that it does not get them. Whoever sets the variable wants to see it.
        setenv("LIBDISPATCH_LOG", "NO", 0)
        // Before any thread is created, or a signal to a thread without the mask would kill the
        // process.
        if CommandLine.arguments.dropFirst().first == "serve" {
            SignalSource.blockSignals()
        } else {
            failOnLostOutput()
        }
        refuseBrokenText()
        if let fault = CommandAdvice.fault(in: CommandLine.arguments.dropFirst()) {
            printError(fault)
            SluiceCommand.exit(withError: ExitCode.validationFailure)
        }
        do {
            var command = try SluiceCommand.parseAsRoot()
            try command.run()
        } catch {
            if let text = OptionAdvice.message(for: error, CommandLine.arguments.dropFirst()) {
                printError(text)
                SluiceCommand.exit(withError: ExitCode.validationFailure)
            }
            SluiceCommand.exit(withError: error)
        }
    }

    /// Ends the program where it would take another file or URL than the one that was given.
    private static func refuseBrokenText() {
        if let place = StartText.brokenArgument {
            printError(
                "sluice: argument \(place) is not UTF-8; percent-encode such bytes of a URL, and give the file or folder a name in UTF-8"
            )
            SluiceCommand.exit(withError: ExitCode.validationFailure)
        }
        if let name = StartText.brokenVariable(beginning: "SLUICE_") {
            printError("sluice: the value of the variable \(name) is not UTF-8; correct it")
            SluiceCommand.exit(withError: ExitCodes.configuration)
        }
    }

    /// Has a command fail whose output cannot be written, for example to a full disk, however it
    /// ends: a script must not take an empty file for its result.
    ///
    /// Not the daemon, which serves players whatever becomes of the line that says it is ready.
    private static func failOnLostOutput() {
        atexit {
            guard let reason = StandardOutput.finish() else { return }
            printError("sluice: standard output cannot be written: \(reason)")
            _exit(EXIT_FAILURE)
        }
    }
}

struct SluiceCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sluice",
        abstract: "A caching reverse proxy for HLS: every play after the first needs no CDN.",
        discussion: """
            Start the daemon with `sluice serve`, then give a player the URL that `sluice url <URL>` prints.
            Exit codes: 0 done, 1 failed, 2 inspect found violations or doctor a problem, 3 port taken, 4 cache folder unusable, 5 daemon not reachable, \
            6 too few descriptors or too short files, 64 wrong usage, 78 wrong configuration.
            """,
        version: "sluice \(sluiceVersion)",
        subcommands: [
            ServeCommand.self, URLCommand.self, DecodeCommand.self, StatsCommand.self,
            LsCommand.self, PinCommand.self, UnpinCommand.self, PurgeCommand.self,
            ClearCommand.self, VerifyCommand.self, DfCommand.self, OriginsCommand.self,
            CheckCommand.self, ConfigCommand.self, DoctorCommand.self, InspectCommand.self,
            WhyCommand.self,
            KeysCommand.self,
            DownloadCommand.self, ExportCommand.self, FeedCommand.self,
            RecordCommand.self, ReportCommand.self, TLSCommand.self, ClusterCommand.self,
        ])

    /// Prints the help as an error: a unit whose arguments were lost must not count as done.
    func run() throws {
        printError(
            SluiceCommand.helpMessage(for: SluiceCommand.self, includeHidden: false, columns: nil))
        throw ExitCode.validationFailure
    }
}
