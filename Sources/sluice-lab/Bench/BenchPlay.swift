import CommandSupport
import ArgumentParser
import FoundationEssentials
import Glibc

/// `sluice-lab bench play`: start-up time directly, through the daemon, and on replay.
struct BenchPlayCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "play", abstract: "Time the first frame: direct, first play and replay.",
        discussion: """
            A player asks for the multivariant playlist, a variant stream, the initialization section (with \
            --encrypted also the key) and segments, on one connection that it keeps: straight from the CDN, \
            through a daemon with an empty cache, and through the same daemon once more. The ways take turns, \
            over a link that begins anew each time; the table holds the medians. First frame: 60 kB of the first \
            segment are there. Stalls count from when it is whole.
            """)

    @Option(
        name: .customLong("profile"),
        help: "3g, 4g, wifi, fibre or burst; several may be given; default 4g.")
    var profiles: [String] = []

    @Option(help: "Runs of each.")
    var runs = 5

    @Option(help: "Seconds of media that are played.")
    var length = 6

    @Option(help: "Bytes a second of the title; default half of the link, at most 2500000.")
    var rate: Int?

    @Option(help: "Bytes of the first segment that make a picture.")
    var frame = 60_000

    @Flag(help: "The title has a key.")
    var encrypted = false

    @Flag(help: "Print every run as JSON.")
    var json = false

    @Option(help: "The sample CDN's program; default the one beside this.")
    var sampleCdn: String?

    @Option(
        name: .customLong("serve"), parsing: .singleValue,
        help: ArgumentHelp(
            "An option of `serve` for the daemon; repeatable.", valueName: "OPTION")
    )
    var daemonOptions: [String] = []

    func run() throws {
        guard runs > 0, length >= 2, frame > 0, rate ?? 1 > 0 else {
            throw ValidationError("--runs, --frame and --rate are at least 1, --length at least 2")
        }
        let stand = try BenchStand(program: sampleCdn)
        var all: [PlayBench.Result] = []
        for profile in profiles.isEmpty ? ["4g"] : profiles {
            try stand.shape(profile)
            let bench = PlayBench(
                stand: stand, profile: profile, shape: try shape(profile), frame: frame,
                daemonOptions: daemonOptions)
            let results = try bench.measure(runs)
            all += results
            guard !json else { continue }
            print(bench.table(results).text)
            fflush(nil)
        }
        if json { print(try Self.text(all)) }
    }

    private func shape(_ profile: String) throws -> BenchStand.TitleShape {
        guard let link = BenchStand.link(profile) else { throw ExitCode.failure }
        let half = Int(min(Double(link.shared) * 0.5, Double(link.single) * 0.6))
        let rate = self.rate ?? min(half, 2_500_000)
        return BenchStand.TitleShape(
            segments: max(1, length / 2), bytes: rate * 2, seconds: 2, hasKey: encrypted)
    }

    private static func text(_ results: [PlayBench.Result]) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        encoder.keyEncodingStrategy = .convertToSnakeCase
        return String(decoding: try encoder.encode(results), as: UTF8.self)
    }
}

/// The plays over one link.
private struct PlayBench {
    enum Way: String, Encodable, CaseIterable {
        case direct
        case firstPlay = "first play"
        case replay
    }

    /// One play.
    struct Result: Encodable {
        let profile: String
        let way: Way
        let figures: FirstPlayFigures
    }

    let stand: BenchStand
    let profile: String
    let shape: BenchStand.TitleShape
    let frame: Int
    let daemonOptions: [String]

    /// Every run starts with a different way, so that none of them benefits from quiet moments
    /// alone.
    func measure(_ runs: Int) throws -> [Result] {
        let title = try stand.title("film", shape)
        var results: [Result] = []
        for run in 0..<runs {
            let direct = { try play(.direct, title) }
            if run % 2 == 0 { results.append(try direct()) }
            let daemon = try stand.daemon(daemonOptions)
            results.append(try play(.firstPlay, "\(daemon.base)/\(title)"))
            results.append(try play(.replay, "\(daemon.base)/\(title)"))
            if run % 2 == 1 { results.append(try direct()) }
        }
        return results
    }

    private func play(_ way: Way, _ entry: String) throws -> Result {
        // Resets the link, so that its outages come at the same times in every play.
        try stand.shape(profile)
        _ = try stand.figures()
        guard var figures = FirstPlayer(entry: entry, frame: frame).play() else {
            throw commandFailure("the play broke off: \(way.rawValue) over \(profile)")
        }
        let counted = try stand.figures()
        figures.cdnRequests = counted.requests
        figures.cdnBytes = counted.bytes
        return Result(profile: profile, way: way, figures: figures)
    }

    func table(_ results: [Result]) -> BenchTable {
        var table = BenchTable(
            "Start over \(profile), segments of \(shape.bytes / 1_000) kB",
            [
                "way", "first frame, s", "to direct", "first segment, s", "to direct", "stalls",
                "stalled, s", "requests to the CDN", "its MB",
            ])
        let median = { (way: Way, value: (FirstPlayFigures) -> Double) in
            Figure.median(results.filter { $0.way == way }.map { value($0.figures) })
        }
        for way in Way.allCases {
            let frame = median(way) { $0.firstFrame }
            let segment = median(way) { $0.firstSegment }
            table.add([
                way.rawValue, Figure.thousandths(frame),
                Figure.thousandths(frame / median(.direct) { $0.firstFrame }),
                Figure.thousandths(segment),
                Figure.thousandths(segment / median(.direct) { $0.firstSegment }),
                Figure.short(median(way) { Double($0.stalls) }),
                Figure.short(median(way) { $0.stalled }),
                Figure.short(median(way) { Double($0.cdnRequests) }),
                Figure.short(median(way) { Double($0.cdnBytes) / 1e6 }),
            ])
        }
        return table
    }
}
