/// `Bench`: measures what the documentation claims and prints it with what repeats it.
import Glibc
import Posix

private let usage = """
    usage: Bench [OPTION...] [NAME...]

    Sets the release daemon beside the proxies that are installed (nginx, nginx with slices,
    Varnish, Traffic Server, Squid, HAProxy) and prints Markdown tables; all over loopback, before
    a sample CDN. Needs the programs sluice and sample-cdn beside itself. As root it takes a network
    and a file system of its own. Rates on a shared machine are noisy, CPU times are less so, counts
    not at all.

      NAME              a workload (large, small, cold, join, ranges, memory, failure, objects,
                        playlist, secure), a part of one (cold.c8), or a line (cold.c8.cpu);
                        peers: all of these; parts: rewrite and parse; alone: keys and store;
                        play: first plays, feeds and downloads. Default: peers, parts and play
      --peers=A,B       compares with these only; none: with nobody
      --repetitions=N   of every workload; default 5, of which the middle counts
      --objects=N       objects in a store of many; default 20000
      --quick           the smallest loads, once, to see whether it runs
      --json            JSON lines instead of tables; --json=FILE: beside them
      --svg=FILE        writes the comparison's ratios as bars
      --shared          uses the machine's network and file system even as root
      --list            prints the lines
      --help            prints this

    """

@main
struct BenchMain {
    static func main() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        if arguments.contains("--help") || arguments.contains("-h") {
            return print(usage, terminator: "")
        }
        if arguments.contains("--list") {
            return print(Line.all.map { "\($0.id)  \($0.what) \($0.unit)" }.joined(separator: "\n"))
        }
        let options: BenchOptions
        do {
            options = try BenchOptions(arguments)
        } catch {
            printError("Bench: \(error)\n")
            exit(64)
        }
        do {
            if options.isApart { PrivateNetwork.enter() }
            try measure(options)
        } catch {
            printError("Bench: \(error)\n")
            exit(1)
        }
    }

    private static func measure(_ options: BenchOptions) throws {
        var output = Output(options)
        let folder = try BenchFolder()
        if !options.lines.isEmpty { try compare(options, folder, &output) }
        var report = Report()
        if options.groups.contains("rewrite") { try PartsBench.rewrite(options, &report) }
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
        // What answers from its store touches no memory that it has not had before.
        let isCold = options.lines.contains {
            !["large", "small", "playlist"].contains($0.prefix { $0 != "." })
        }
        let warm = isCold ? WarmMemory(bytes: options.isQuick ? 256 << 20 : 4 << 30) : nil
        let bench = try ComparisonBench(options, folder: folder, network: network)
        let wanted = Peer.all.filter { options.peers?.contains($0.name) ?? true }
        let facts = Machine.facts(
            wanted, in: folder,
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

/// Where figures go: tables or JSON to standard output, as they are found, and JSON into a file.
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
