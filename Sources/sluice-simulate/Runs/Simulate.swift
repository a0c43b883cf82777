// The program: `sluice-simulate`.
import ArgumentParser
import CSimulation
import DaemonService
import Glibc
import Logging

@main
struct Simulate: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sluice-simulate",
        abstract: "Run the whole daemon in simulated worlds, each decided by its seed.",
        discussion: """
            Each seed runs in a process of its own: the daemon's code on a simulated clock, network and disk, with players \
            that check every byte. A seed that fails is run again with parts of it switched off, and the shortest command \
            that still fails is printed.
            """)

    @Option(help: "Run this seed alone, in this process.")
    var seed: UInt64?

    @Flag(help: "Print what happens, with --seed.")
    var trace = false

    @Flag(help: "Print the end of a run that fails as a test for PlaybackStories, with --seed.")
    var story = false

    @Option(
        help: "With --seed: the parts that the run has, separated by commas; default all of them.")
    var only: String?

    @Option(help: "With --seed: for how many seconds things go wrong; default what the seed says.")
    var rough: Int?

    @Option(help: "Run a long span with few bytes instead: live-month, home-year or feeds-week.")
    var bulk: BulkKind?

    @Option(help: "How many seeds to run. 1...1000000.")
    var seeds = 100

    @Option(help: "The first seed.")
    var from: UInt64 = 1

    @Option(help: "How many more seeds to run, which no run had before. 0...1000000.")
    var fresh = 0

    @Option(
        help: """
            A file of more seeds to run, one at the beginning of each line; empty lines and lines that begin with # \
            are skipped.
            """)
    var listed: String?

    @Option(help: "Run fresh seeds for this many hours instead.")
    var hours: Double?

    @Option(help: "Processes at once; default the number of processors.")
    var jobs: Int?

    @Flag(help: "Run each seed twice and compare what happened.")
    var twice = false

    @Option(
        help: """
            How many of the seeds that failed are run again with less, until no part of them can be missed. \
            0...1000.
            """)
    var shrink = 3

    @Flag(help: "Begin no further seed once one has failed.")
    var untilFailure = false

    func run() throws {
        if let bulk {
            try Bulk(bulk, prints: trace).run()
        } else if let seed {
            let names = only?.split(separator: ",").map(String.init)
            try OneSeed(
                seed, parts: Parts(names), rough: rough, prints: trace, writesStory: story
            ).run()
        } else {
            let campaign = Campaign(
                jobs: jobs ?? max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))), twice: twice,
                stopsAtFailure: untilFailure)
            let unused = UInt64(time(nil)) << 24
            if let hours {
                campaign.add(unused..., for: Int(hours * 3_600))
            } else {
                let range = from..<from + UInt64(max(0, seeds))
                campaign.add(range)
                campaign.add(unused..<unused + UInt64(max(0, fresh)))
                if let listed {
                    campaign.add(try readSeeds(from: listed).filter { !range.contains($0) })
                }
            }
            guard campaign.run() else {
                if !untilFailure { campaign.shrink(atMost: shrink) }
                throw ExitCode.failure
            }
        }
    }
}
