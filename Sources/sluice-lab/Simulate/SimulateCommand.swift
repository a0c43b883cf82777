import CommandSupport
import ArgumentParser
import Numbers
import Retention
import RetentionLab

/// `sluice-lab simulate`: compares the hit ratios of retention policies on traces.
struct SimulateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulate",
        abstract: "Replay a trace against retention policies and store sizes.",
        discussion: """
            The trace is the access log of `serve --access-log`, a file with a line a request (TIME NAME \
            BYTES [TITLE [KIND [OFFSET LENGTH]]]), `-` for standard input, or one of those that are made \
            from a seed: feed (short videos with swipes), series, live (live channels and films). \
            Printed is the share of requests and of bytes that the store would have answered, in per cent.
            """)

    @Argument(help: "feed, series, live, a file, or - for standard input.")
    var trace: String

    @Option(
        help: ArgumentHelp(
            "Policies: lru, s3fifo, sieve, tinylfu, titles; default all.", valueName: "names"))
    var policy: String?

    @Option(
        help: ArgumentHelp(
            "Store sizes in bytes, or with K, M, G, T; default fits the trace.", valueName: "sizes")
    )
    var size: String?

    @Option(
        help: ArgumentHelp(
            "Seeds of a made trace; the result is their mean.", valueName: "numbers"))
    var seed = "1"

    @Option(
        help: ArgumentHelp(
            "The first part of the requests, in per cent, that fills the store and is not counted.",
            valueName: "per cent"))
    var warmUp = 0

    @Flag(help: "Print JSON.")
    var json = false

    @Option(help: ArgumentHelp("Draw the byte hit ratios into an SVG file.", valueName: "file"))
    var plot: String?

    func run() throws {
        guard 0..<100 ~= warmUp else { throw ValidationError("--warm-up is 0 to 99") }
        let policies = try list(policy, or: RetentionPolicyName.allCases, "policy") {
            RetentionPolicyName(rawValue: $0)
        }
        let seeds = try list(seed, or: [], "seed") {
            ExternalNumber.integer($0, in: 0...UInt64.max)
        }
        let traces = try loadTraces(seeds)
        guard traces.contains(where: { !$0.isEmpty }) else {
            throw ValidationError("no request in the trace")
        }
        let standard = TraceName(rawValue: trace)?.sizes ?? Self.fittingSizes(traces)
        let sizes = try list(size, or: standard, "size", SimulationSize.parse)
        let report = SimulationReport(
            trace: trace, traces, policies: policies, sizes: sizes, warmUp: Double(warmUp) / 100)
        print(json ? report.json : report.table)
        guard let plot else { return }
        let image = SimulationPlot(report).svg
        guard OutputFile.write(image, to: plot) else {
            throw ValidationError("cannot write \(plot)")
        }
    }

    /// The most bytes of a trace: some millions of lines.
    private static let mostBytes = 512 << 20

    private func loadTraces(_ seeds: [UInt64]) throws -> [[TraceRequest]] {
        if let name = TraceName(rawValue: trace) {
            return seeds.map { name.generator.requests(seed: $0) }
        }
        let bytes: [UInt8]
        do throws(InputFile.Fault) {
            bytes = try InputFile.read(trace, atMost: Self.mostBytes, isPipeAllowed: true)
        } catch {
            throw ValidationError(
                "\(error); made traces are \(TraceName.allCases.map(\.rawValue).joined(separator: ", "))"
            )
        }
        var reader = TraceReader()
        do {
            try reader.read(bytes)
        } catch {
            throw ValidationError("\(trace), \(error)")
        }
        if reader.skipped > 0 {
            printError("\(reader.skipped) lines are of requests that no stored object answers")
        }
        return [reader.finish()]
    }

    /// A fiftieth, a twentieth, a tenth and a fifth of the distinct bytes in the trace.
    private static func fittingSizes(_ traces: [[TraceRequest]]) -> [Int64] {
        var sizes: [UInt128: Int64] = [:]
        for request in traces.joined() { sizes[request.name] = request.size }
        let all = max(1, sizes.values.reduce(0, +))
        return [50, 20, 10, 5].map { max(1, all / $0) }
    }

    private func list<Item>(
        _ text: String?, or standard: [Item], _ what: String, _ parse: (String) -> Item?
    ) throws -> [Item] {
        guard let text else { return standard }
        return try text.split(separator: ",").map {
            guard let item = parse(String($0)) else {
                throw ValidationError("no \(what): \($0)")
            }
            return item
        }
    }
}

/// Human-readable sizes.
enum SimulationSize {
    private static let units: [Character: Int64] = [
        "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40,
    ]

    static func parse(_ text: String) -> Int64? {
        let unit = text.last.flatMap { units[Character($0.uppercased())] }
        let digits = unit == nil ? text : String(text.dropLast())
        guard let number = ExternalNumber.integer(digits, in: 1...Int64.max) else { return nil }
        let (bytes, overflow) = number.multipliedReportingOverflow(by: unit ?? 1)
        return overflow ? nil : bytes
    }

    static func text(_ bytes: Int64) -> String {
        for (name, unit) in [("T", Int64(1) << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)]
        where bytes >= 10 * unit || (bytes >= unit && bytes % unit == 0) {
            return "\(bytes / unit)\(name)"
        }
        return "\(bytes)"
    }
}
