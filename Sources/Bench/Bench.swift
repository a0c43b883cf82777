/// `Bench`: measures what the documentation claims and prints one table.
import Glibc
import Posix

private let usage = """
    usage: Bench [--json] [--quick] [--objects=N] [--repetitions=N] [--svg=FILE] [GROUP...]

    Sets the release daemon beside the proxies that are installed (nginx, nginx with slices, Varnish,
    Traffic Server, Squid, HAProxy), measures its parts and the daemon alone, all over loopback beside
    a sample CDN, and prints Markdown tables. Needs the programs sluice and sample-cdn beside itself.
    Rates on a shared machine are noisy; CPU times are less so, and counts not at all.

      --json           one JSON object a line instead of the tables
      --quick          a tenth of the work, once, to see whether it runs
      --objects=N      objects in a store of many; default 100000, which are about 1 GB of disk and
                       two minutes for each proxy
      --repetitions=N  of every workload of the comparison; default 5, of which the middle counts
      --svg=FILE       writes the comparison's ratios as bars
      GROUP            peers: the comparison, that is vs-large, vs-small, vs-cold, vs-join,
                       vs-ranges, vs-memory, vs-failure, vs-objects and vs-playlist;
                       parts: rewrite and parse;
                       alone: warm, cold, idle, keys and store; default all
      --help           prints this

    """

/// What the command line asked for.
struct BenchOptions {
    var isJSON = false
    var isQuick = false
    /// Objects in a store of many.
    var objects = 100_000
    /// How often a workload of the comparison is measured.
    var repetitions = 5
    /// Where the plot of the comparison goes.
    var plotPath: String?
    var groups: Set<String> = []

    private static let parts = ["rewrite", "parse"]
    private static let alone = ["warm", "cold", "idle", "keys", "store"]
    private static let allGroups = ComparisonBench.groups + parts + alone

    /// Reads the arguments; nil when they cannot be understood.
    init?(_ arguments: [String]) {
        for argument in arguments {
            switch argument {
            case "--json": isJSON = true
            case "--quick": isQuick = true
            case let count where count.hasPrefix("--objects="):
                guard let number = Int(count.dropFirst(10)), number > 0 else { return nil }
                objects = number
            case let count where count.hasPrefix("--repetitions="):
                guard let number = Int(count.dropFirst(14)), number > 0 else { return nil }
                repetitions = number
            case let path where path.hasPrefix("--svg=") && path.count > 6:
                plotPath = String(path.dropFirst(6))
            case "peers": groups.formUnion(ComparisonBench.groups)
            case "parts": groups.formUnion(Self.parts)
            case "alone": groups.formUnion(Self.alone)
            case let name where Self.allGroups.contains(name): groups.insert(name)
            default: return nil
            }
        }
        objects = times(objects)
        if isQuick { repetitions = 1 }
        if groups.isEmpty { groups = Set(Self.allGroups) }
    }

    /// How often a piece of work is done.
    func times(_ count: Int) -> Int { isQuick ? max(1, count / 10) : count }
}

@main
struct Bench {
    static func main() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        if arguments.contains("--help") || arguments.contains("-h") {
            print(usage, terminator: "")
            return
        }
        guard let options = BenchOptions(arguments) else {
            printError(usage)
            exit(64)
        }
        var report = Report()
        do {
            if !options.groups.isDisjoint(with: ComparisonBench.groups) { try compare(options) }
            if options.groups.contains("rewrite") { try PartsBench.rewrite(options, &report) }
            if options.groups.contains("parse") { try PartsBench.parse(options, &report) }
            if !options.groups.isDisjoint(with: ["warm", "cold", "idle"]) {
                try LoopbackBench(options).run(&report)
            }
            if options.groups.contains("keys") { try KeysBench(options).run(&report) }
            if options.groups.contains("store") { try StoreBench(options).run(&report) }
        } catch {
            printError("Bench: \(error)\n")
            exit(1)
        }
        if report.figures.isEmpty { return }
        print(options.isJSON ? report.json : report.table, terminator: "")
    }

    private static func compare(_ options: BenchOptions) throws {
        var bench = try ComparisonBench(options)
        let comparison = try bench.run()
        print(options.isJSON ? comparison.json : comparison.table + "\n", terminator: "")
        guard let path = options.plotPath else { return }
        let file = try openFile(path, flags: O_WRONLY | O_CREAT | O_TRUNC, mode: 0o644)
        try Array(comparison.plot.utf8).withUnsafeBytes {
            try writeAll($0, to: file.number, at: 0)
        }
    }
}

/// Something that makes a measurement worthless.
struct BenchError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// Writes to standard error.
func printError(_ text: String) {
    let bytes = Array(text.utf8)
    _ = write(STDERR_FILENO, bytes, bytes.count)
}
