import ArgumentParser
import Glibc
import Posix

/// `Bench`: measures what the documentation claims, and prints each figure with the command that
/// repeats it.
@main
struct BenchProgram: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "Bench",
        abstract: "Compare the release daemon with the proxies that are installed.",
        discussion: """
            Compares with nginx, nginx with slices, Varnish, Traffic Server, Squid and HAProxy and \
            prints Markdown tables; all over loopback, before a sample CDN. Needs the programs \
            sluice and sample-cdn beside itself. As root it takes a network and a file system of \
            its own. Rates on a shared machine are noisy, CPU times are less so, counts not at all.
            """)

    @OptionGroup var options: BenchOptions

    func run() throws {
        if options.listsLines {
            return print(Line.all.map { "\($0.id)  \($0.what) \($0.unit)" }.joined(separator: "\n"))
        }
        if options.isApart { PrivateNetwork.enter() }
        try Self.measure(options)
    }

    private static func measure(_ options: BenchOptions) throws {
        var output = Output(options)
        let folder = try BenchFolder()
        if !options.lines.isEmpty { try compare(options, folder, &output) }
        var report = Report()
        if options.groups.contains("rewrite") { try PartsBench.rewrite(options, &report) }
        if options.groups.contains("read") { try PartsBench.read(options, &report) }
        if options.groups.contains("parse") { try PartsBench.parse(options, &report) }
        if options.groups.contains("keys") { try KeysBench(options).run(&report) }
        if options.groups.contains("store") { try StoreBench(options).run(&report) }
        if !report.figures.isEmpty { output.add(report.table, report.json) }
        if options.groups.contains(BenchOptions.playback) {
            for table in try Playback.run(options, in: folder) {
                output.add(table.markdown, table.json)
            }
        }
        try output.end()
    }

    private static func compare(
        _ options: BenchOptions, _ folder: BenchFolder, _ output: inout Output
    ) throws {
        let network = PrivateNetwork()
        if let network { folder.isMounted = network.mountFileSystem(on: folder) }
        // Hits touch no memory that the process has not used before.
        let isCold = options.lines.contains {
            !["large", "small", "playlist"].contains($0.prefix { $0 != "." })
        }
        let warm = isCold ? WarmMemory(bytes: options.isQuick ? 256 << 20 : 4 << 30) : nil
        let bench = try ComparisonBench(options, folder: folder, network: network)
        let facts = Machine.facts(
            options.wantedPeers, in: folder,
            [
                network == nil ? "the machine's own network" : "a network of its own",
                folder.isMounted ? "a fresh ext4" : "the machine's file system",
                warm == nil ? "memory as it comes" : "memory kept warm",
            ])
        var comparison = try withExtendedLifetime(warm) { try bench.run() }
        comparison.notes = facts + comparison.notes
        output.add(comparison.table + "\n", comparison.json)
        if let path = options.plotPath { try writeText(comparison.plot, to: path) }
    }
}

/// The outputs: tables or JSON to standard output as figures are measured, and JSON into a file.
private struct Output {
    private let options: BenchOptions
    private var lines = ""

    init(_ options: BenchOptions) { self.options = options }

    mutating func add(_ table: String, _ json: String) {
        print(options.isJSON ? json : table, terminator: "")
        fflush(nil)
        lines += json
    }

    func end() throws {
        if let path = options.jsonPath { try writeText(lines, to: path) }
    }
}

/// Something that makes a measurement worthless.
struct BenchError: Error, Equatable, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// Writes to standard error.
func printError(_ text: String) {
    let bytes = Array(text.utf8)
    _ = write(STDERR_FILENO, bytes, bytes.count)
}
