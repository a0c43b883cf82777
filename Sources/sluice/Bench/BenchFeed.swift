/// `sluice bench feed`: how a feed feels over shaped links, by scheme of getting ready.
import ArgumentParser
import Glibc
import Posix

struct BenchFeedCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "feed", abstract: "Swipe through a feed over a shaped link, scheme by scheme.",
        discussion: """
            Each run has a daemon with an empty cache and a viewer that goes through a feed of items. \
            A loader counts where the first frame (60 kB of the first segment) is not there after --patience. \
            Wasted is what came from the CDN and was never given to the player. Times are divided by --speed, and \
            the link is faster by as much, so that nothing but the daemon's own work differs.
            """)

    @Option(help: "The link: 3g, 4g, wifi, fibre or burst.")
    var profile = "4g"

    @Option(
        name: .customLong("scheme"),
        help: "none, published or default; several may be given; default all three.")
    var schemes: [String] = []

    @Option(
        name: .customLong("viewer"),
        help: "fixed, random, flick or backforth; several may be given; default all four.")
    var viewers: [String] = []

    @Option(help: "Visits of a run.")
    var visits = 30

    @Option(help: "Runs of each, with other dwell times.")
    var runs = 1

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

    @Option(help: "Write a plot of the loaders there, as SVG.")
    var plot: String?

    @Option(help: "The sample CDN's program; default the one beside this.")
    var sampleCdn: String?

    func run() throws {
        guard (0.5...10).contains(speed), visits > 0, runs > 0, itemSeconds >= 2,
            itemRate >= 1_000
        else {
            throw ValidationError(
                "--speed is 0.5 to 10, --visits and --runs are 1 or more, items 2 s and 1 kB/s or more"
            )
        }
        let patterns = try (viewers.isEmpty ? ViewerPattern.allCases.map(\.rawValue) : viewers).map
        {
            guard let pattern = ViewerPattern(rawValue: $0) else {
                throw ValidationError("--viewer is fixed, random, flick or backforth, not '\($0)'")
            }
            return pattern
        }
        let stand = try BenchStand(program: sampleCdn)
        try stand.shape(profile, speed: speed)
        let item = BenchStand.TitleShape(
            segments: itemSeconds / 2, bytes: itemRate * 2, seconds: 2)
        let bench = FeedBench(
            stand: stand, item: item, visits: visits, runs: runs, speed: speed, patience: patience)
        var bars: [BenchPlot.Bar] = []
        for pattern in patterns {
            let (table, found) = try bench.table(pattern, cases, profile)
            print(table.text)
            fflush(nil)
            bars += found
        }
        if let plot {
            let drawn = BenchPlot(title: "Loaders per 1000 items", unit: profile, bars: bars)
            guard SimulationFiles.write(drawn.svg, to: plot) else {
                throw BenchFault.end("\(plot) cannot be written")
            }
        }
    }

    /// Names, schemes and parameters of what is compared.
    private var cases: [FeedBench.Case] {
        let named = schemes.isEmpty ? ["none", "published", "default"] : schemes
        guard sweep else {
            return named.map { FeedBench.Case(name: $0, scheme: $0, parameters: "") }
        }
        var all: [FeedBench.Case] = []
        for ahead in [1, 2, 4, 6] {
            for parallel in [1, 2, 4] {
                for bytes in [100_000, 200_000, 400_000] {
                    all.append(
                        FeedBench.Case(
                            name: "ahead \(ahead), \(parallel) at once, \(bytes / 1_000) kB",
                            scheme: "default",
                            parameters:
                                "\"ahead\":\(ahead),\"parallel\":\(parallel),\"headBytes\":\(bytes)"
                        ))
                }
            }
        }
        return all
    }
}

/// The runs over one link.
private struct FeedBench {
    struct Case {
        let name: String
        let scheme: String
        let parameters: String
    }

    let stand: BenchStand
    let item: BenchStand.TitleShape
    let visits: Int
    let runs: Int
    let speed: Double
    let patience: Double

    func table(
        _ pattern: ViewerPattern, _ cases: [Case], _ profile: String
    ) throws -> (BenchTable, [BenchPlot.Bar]) {
        var table = BenchTable(
            "Feed over \(profile), viewer \(pattern.rawValue), \(visits) visits a run, \(runs) runs",
            [
                "scheme", "loaders per 1000", "start, median s", "stalls", "wasted, %",
                "MB from CDN", "slowest swipe, ms",
            ])
        var bars: [BenchPlot.Bar] = []
        for wanted in cases {
            var all = ViewerFigures()
            var sent: Int64 = 0
            for run in 0..<runs {
                let (figures, bytes) = try self.run(wanted, pattern, seed: UInt64(run + 1))
                all.add(figures)
                sent += bytes
            }
            let loaders = Double(all.loaders) * 1_000 / Double(max(1, all.visits))
            let wasted = Double(max(0, sent - all.played)) * 100 / Double(max(1, sent))
            bars.append(BenchPlot.Bar(group: pattern.rawValue, name: wanted.name, value: loaders))
            table.add([
                wanted.name, Figure.short(loaders), Figure.short(Figure.median(all.startUps)),
                all.broken == 0 ? "\(all.stalls)" : "\(all.stalls), \(all.broken) broken",
                Figure.short(wasted), Figure.short(Double(sent) / 1e6),
                Figure.short(all.slowestSwipe * 1_000),
            ])
        }
        return (table, bars)
    }

    private func run(
        _ wanted: Case, _ pattern: ViewerPattern, seed: UInt64
    ) throws -> (ViewerFigures, Int64) {
        let titles = try (0..<visits).map { number in
            try stand.title("item-\(number)", item)
        }
        let daemon = try stand.daemon([])
        _ = try stand.figures()
        let viewer = FeedViewer(daemon.base, titles: titles, speed: speed, patience: patience)
        let figures = try viewer.run(
            scheme: wanted.scheme, parameters: wanted.parameters,
            visits: pattern.visits(visits, items: titles.count, seed: seed))
        return (figures, try stand.figures().bytes)
    }
}

extension ViewerFigures {
    fileprivate mutating func add(_ other: ViewerFigures) {
        visits += other.visits
        loaders += other.loaders
        startUps += other.startUps
        stalls += other.stalls
        slowestSwipe = max(slowestSwipe, other.slowestSwipe)
        played += other.played
        broken += other.broken
    }
}
