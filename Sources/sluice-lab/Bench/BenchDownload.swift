import CommandSupport
import ArgumentParser
import Glibc
import HTTP
import Lookahead
import Posix
import URISyntax

/// `sluice-lab bench download`: the download speed over shaped links, by concurrency controller.
struct BenchDownloadCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "download", abstract: "Download over shaped links, controller by controller.",
        discussion: """
            Each run has a daemon of its own with an empty cache and downloads one title. The table holds the \
            median of the runs: goodput, how often that is what one transfer after the other gives, and the most \
            transfers at once that the CDN saw. With --player somebody plays another title over the same link \
            meanwhile, and has played it alone before; the stalls are those of all runs, and the rest is what the \
            link carries beyond the title that is played.
            """)

    @Option(
        name: .customLong("profile"),
        help: "3g, 4g, wifi, fibre or burst; several may be given; default wifi and 4g.")
    var profiles: [String] = []

    @Option(
        name: .customLong("concurrency"),
        help:
            "A controller: fixed:N, table or probe; several may be given; default fixed:1 and probe."
    )
    var plans: [String] = []

    @Option(help: "Runs of each.")
    var runs = 1

    @Option(help: "Seconds that the title would take at the link's full rate, about.")
    var length = 8.0

    @Flag(help: "Every fixed number of a grid, the table and the probe.")
    var sweep = false

    @Flag(help: "Play another title over the same link meanwhile.")
    var player = false

    @Option(help: "Write a plot of the goodputs there, as SVG.")
    var plot: String?

    @Option(help: "The sample CDN's program; default the one beside this.")
    var sampleCdn: String?

    func run() throws {
        var plans = self.plans.isEmpty ? ["fixed:1", "probe"] : self.plans
        if sweep { plans = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32].map { "fixed:\($0)" } }
        if sweep { plans += ["table", "probe"] }
        for plan in plans where ConcurrencyPlan(plan) == nil {
            throw ValidationError("--concurrency is fixed:N, table or probe, not '\(plan)'")
        }
        let stand = try BenchStand(program: sampleCdn)
        var bars: [BenchPlot.Bar] = []
        for profile in profiles.isEmpty ? ["wifi", "4g"] : profiles {
            try stand.shape(profile)
            let bench = DownloadBench(
                stand: stand, profile: profile, length: length, runs: max(1, runs))
            if player {
                print(try bench.tableWithPlayer(plans).text)
            } else {
                let (table, found) = try bench.table(plans)
                print(table.text)
                bars += found
            }
            fflush(nil)
        }
        if let plot {
            let drawn = BenchPlot(title: "Download by controller", unit: "MB/s", bars: bars)
            guard OutputFile.write(drawn.svg, to: plot) else {
                throw commandFailure("\(plot) cannot be written")
            }
        }
    }
}

/// The runs over one link.
private struct DownloadBench {
    /// The result of one download.
    struct Run {
        var seconds: Double
        var bytes: Int64
        var peak: Int
        /// Megabytes per second.
        var goodput: Double { Double(bytes) / seconds / 1e6 }
    }

    let stand: BenchStand
    let profile: String
    let length: Double
    let runs: Int

    private var link: (shared: Int, single: Int, delay: Int, segment: Int) {
        BenchStand.link(profile) ?? (1, 1, 1, 1)
    }

    private var shape: BenchStand.TitleShape {
        let count = Int(Double(link.shared) * length / Double(link.segment))
        return BenchStand.TitleShape(segments: max(20, count), bytes: link.segment, seconds: 2)
    }

    func table(_ plans: [String]) throws -> (BenchTable, [BenchPlot.Bar]) {
        var table = BenchTable(
            "Download over \(profile), \(shape.segments) segments of \(shape.bytes / 1_000) kB",
            ["controller", "MB/s", "times serial", "seconds", "most at once"])
        var bars: [BenchPlot.Bar] = []
        var serial: Double?
        for plan in plans {
            var all: [Run] = []
            for _ in 0..<runs { all.append(try download(plan)) }
            let goodput = Figure.median(all.map(\.goodput))
            if plan == "fixed:1" { serial = goodput }
            bars.append(BenchPlot.Bar(group: profile, name: plan, value: goodput))
            table.add([
                plan, Figure.short(goodput), serial.map { Figure.short(goodput / $0) } ?? "",
                Figure.short(Figure.median(all.map(\.seconds))), "\(all.map(\.peak).max() ?? 0)",
            ])
        }
        return (table, bars)
    }

    private func download(_ plan: String) throws -> Run {
        let title = try stand.title("title", shape)
        let daemon = try stand.daemon(["--concurrency", plan, "--look-ahead", "off"])
        _ = try stand.figures()
        let start = Monotonic.now()
        try DownloadBench.order(title, of: daemon)
        let bytes = try DownloadBench.finish(daemon)
        let seconds = Monotonic.now().seconds(since: start)
        return Run(seconds: seconds, bytes: bytes, peak: try stand.figures().peak)
    }

    // MARK: With a player

    /// Measures a player of a title at half the link's rate, alone and beside a download.
    func tableWithPlayer(_ plans: [String]) throws -> BenchTable {
        var table = BenchTable(
            "A player on \(profile), alone and beside a download",
            ["controller", "start, s", "stalls", "stalled, s", "download, MB/s", "of the rest"])
        // Within half of the link and the rate of one connection, so that it plays well alone.
        let rate = min(Double(link.shared) * 0.5, Double(link.single) * 0.6)
        let other = BenchStand.TitleShape(
            segments: max(8, Int(length)), bytes: Int(rate * 2), seconds: 2)
        let film = try stand.title("film", other)
        var plays: [String: [Beside]] = [:]
        for _ in 0..<runs {
            plays["", default: []].append(try playAlone(film))
            for plan in plans { plays[plan, default: []].append(try play(film, beside: plan)) }
        }
        for plan in [""] + plans {
            let all = plays[plan] ?? []
            let download = Figure.median(all.compactMap(\.download))
            table.add([
                plan.isEmpty ? "the player alone" : "beside \(plan)",
                Figure.short(Figure.median(all.map(\.figures.firstSegment))),
                "\(all.reduce(0) { $0 + $1.figures.stalls })",
                Figure.short(all.reduce(0) { $0 + $1.figures.stalled }),
                plan.isEmpty ? "" : Figure.short(download / 1e6),
                plan.isEmpty ? "" : Figure.short(download / (Double(link.shared) - rate)),
            ])
        }
        return table
    }

    private struct Beside {
        var figures: FirstPlayFigures
        /// Bytes per second of the download while the player played.
        var download: Double?
    }

    private func playAlone(_ film: String) throws -> Beside {
        let daemon = try stand.daemon(["--look-ahead", "off"])
        return Beside(figures: try play(film, daemon))
    }

    private func play(_ film: String, beside plan: String) throws -> Beside {
        let title = try stand.title(
            "title", .init(segments: shape.segments * 8, bytes: shape.bytes, seconds: 2))
        let daemon = try stand.daemon(["--concurrency", plan, "--look-ahead", "off"])
        try Self.order(title, of: daemon)
        usleep(1_500_000)
        let before = try Self.bytes(daemon)
        let start = Monotonic.now()
        let figures = try play(film, daemon)
        let seconds = Monotonic.now().seconds(since: start)
        return Beside(
            figures: figures, download: Double(try Self.bytes(daemon) - before) / seconds)
    }

    private func play(_ film: String, _ daemon: BenchProgram) throws -> FirstPlayFigures {
        // Resets the link, so that outages come at the same times in every play.
        try stand.shape(profile)
        let player = FirstPlayer(entry: "\(daemon.base)/\(film)", frame: 1)
        guard let figures = player.play() else {
            throw commandFailure("the play broke off over \(profile)")
        }
        return figures
    }

    // MARK: Orders

    private static func order(_ title: String, of daemon: BenchProgram) throws {
        _ = try AdminClient(base: daemon.base, token: nil).send(
            "POST", "/api/downloads?url=\(PercentCoding.queryComponent(title))")
    }

    private static func only(_ daemon: BenchProgram) throws -> DownloadState {
        let text = try AdminClient(base: daemon.base, token: nil).send("GET", "/api/downloads")
        let page: Page = try decodeJSON(text)
        guard let download = page.downloads.first else {
            throw commandFailure("the daemon forgot the download")
        }
        return download
    }

    private static func bytes(_ daemon: BenchProgram) throws -> Int64 { try only(daemon).bytes }

    /// Waits for the end of the download; returns its bytes.
    private static func finish(_ daemon: BenchProgram) throws -> Int64 {
        while true {
            let download = try only(daemon)
            if download.state == "complete" { return download.bytes }
            if download.state == "failed" {
                throw commandFailure("the download failed: \(download.reason ?? "")")
            }
            usleep(10_000)
        }
    }

    /// The measured members of `GET /api/downloads`.
    private struct Page: Decodable {
        let downloads: [DownloadState]
    }

    private struct DownloadState: Decodable {
        let state: String
        let reason: String?
        let bytes: Int64
    }
}
