import ArgumentParser

/// `sluice-lab bench`: the test bench for downloads, feeds and first plays.
struct BenchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bench",
        abstract: "Measure downloads, feeds and first plays over links in user space.",
        discussion: """
            Starts the sample CDN behind a shaped link and daemons before it, all on this machine, and removes \
            what it made. Profiles: 3g (1.6 Mbit/s, 300 ms), 4g (7 Mbit/s, 100 ms), wifi (124 Mbit/s, 48 a \
            connection, 60 ms), fibre (500 Mbit/s, 8 ms), burst (4g with outages).
            """,
        subcommands: [
            BenchDownloadCommand.self, BenchFeedCommand.self, BenchPlayCommand.self,
        ])
}
