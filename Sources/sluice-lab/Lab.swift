import ArgumentParser
import CommandSupport

/// `sluice-lab`: experiments for tuning the daemon and for checking why it is tuned as it is.
@main
struct LabCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sluice-lab",
        abstract: "Measure sluice over shaped links, replay traces, and model tiers.",
        discussion: """
            The daemon needs none of it. `bench` starts daemons and the sample CDN on this machine and removes \
            what it made; `simulate` reads an access log of `sluice serve`, or makes a trace; `capacity` needs \
            nothing.
            Exit codes: 0 done, 1 failed, 64 wrong usage.
            """,
        version: "sluice-lab \(sluiceVersion)",
        subcommands: [BenchCommand.self, SimulateCommand.self, CapacityCommand.self])
}
