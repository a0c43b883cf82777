import CommandSupport
import ArgumentParser
import Glibc

/// `sluice-lab bench feed`: the responsiveness of a feed over shaped links, by preload scheme.
struct BenchFeedCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "feed", abstract: "Swipe through a feed over a shaped link, scheme by scheme.",
        discussion: """
            Each run has a daemon with an empty cache and a viewer that goes through a feed of items; every \
            scheme gets the same viewers. A loader counts where the first frame (60 kB of the first segment) is \
            not there after --patience; the first item of a run nearly always has one. Wasted is what came from \
            the CDN and was never given to the player. After the plus-minus sign stands half of the interval \
            that holds the mean in 95 of 100 cases. Times are divided by --speed, and the link is faster by as \
            much. --simulate has the planner alone decide, over a link and a player in arithmetic.
            """)

    @Option(help: "The link: 3g, 4g, wifi, fibre or burst.")
    var profile = "4g"

    @Option(
        name: .customLong("scheme"),
        help: """
            none, published or default, with parameters as in default,ahead=4; several may be given; \
            default all three.
            """)
    var schemes: [String] = []

    @Option(
        name: .customLong("viewer"),
        help: "fixed, random, flick or backforth; several may be given; default all four.")
    var viewers: [String] = []

    @Option(help: "Visits of a run.")
    var visits = 60

    @Option(help: "Runs of each viewer.")
    var runs = 3

    @Option(help: "Runs at once, each with a CDN, a link and a daemon of its own.")
    var jobs = 1

    @Option(help: "How many times faster than life.")
    var speed = 2.0

    @Option(help: "Seconds without a picture after which a loader is shown.")
    var patience = 0.15

    @Option(help: "Bytes a second of an item; default 100000, which is 0.8 Mbit/s.")
    var itemRate = 100_000

    @Option(help: "Seconds of an item.")
    var itemSeconds = 16

    @Flag(help: "The default scheme over a grid of its parameters.")
    var sweep = false

    @Flag(help: "In arithmetic, without daemons and links.")
    var simulate = false

    @Flag(help: "Tell of each loader what there was of its item.")
    var verbose = false

    @Option(help: "Write a plot of the loaders there, as SVG.")
    var plot: String?

    @Option(help: "The sample CDN's program; default the one beside this.")
    var sampleCdn: String?

    func run() throws {
        guard (0.5...10).contains(speed), visits > 0, runs > 0, itemSeconds >= 2,
            itemRate >= 1_000, (1...16).contains(jobs), patience >= 0
        else {
            throw ValidationError(
                "--speed is 0.5 to 10, --jobs 1 to 16, --visits and --runs are 1 or more, items 2 s and 1 kB/s or more"
            )
        }
        guard BenchStand.link(profile) != nil, !simulate || profile != "burst" else {
            throw ValidationError(
                "--profile is 3g, 4g, wifi, fibre or burst, and no burst to simulate")
        }
        let patterns = try (viewers.isEmpty ? ViewerPattern.allCases.map(\.rawValue) : viewers).map
        {
            guard let pattern = ViewerPattern(rawValue: $0) else {
                throw ValidationError("--viewer is fixed, random, flick or backforth, not '\($0)'")
            }
            return pattern
        }
        let bench = FeedBench(terms: terms, schemes: try listed, patterns: patterns)
        let results = try bench.run()
        if verbose { print(results.reasons) }
        if sweep {
            print(results.grid.text)
        } else {
            for table in results.tables { print(table.text) }
        }
        guard let plot else { return }
        let drawn = BenchPlot(title: "Loaders per 1000 items", unit: profile, bars: results.bars)
        guard OutputFile.write(drawn.svg, to: plot) else {
            throw commandFailure("\(plot) cannot be written")
        }
    }

    private var terms: FeedBench.Terms {
        FeedBench.Terms(
            profile: profile, visits: visits, runs: runs, jobs: jobs, speed: speed,
            patience: patience, itemRate: itemRate, itemSegments: itemSeconds / 2,
            isSimulated: simulate, isVerbose: verbose, sampleCDN: sampleCdn)
    }

    private var listed: [FeedScheme] {
        get throws {
            var names = schemes.isEmpty ? ["none", "published", "default"] : schemes
            if sweep { names += FeedGrid.names }
            return try names.map { name in
                do throws(FeedScheme.Fault) {
                    return try FeedScheme(name)
                } catch {
                    throw ValidationError("--scheme: \(error.reason)")
                }
            }
        }
    }
}
