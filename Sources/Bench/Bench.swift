/// `Bench`: measures what the documentation claims and prints one table.
import Glibc

private let usage = """
    usage: Bench [--json] [--quick] [--objects=N] [GROUP...]

    Measures the parts (rewrite, parse) and the release daemon over loopback beside a sample CDN
    (warm, cold, idle, keys, and store with very many objects), and prints a Markdown table. Needs the
    programs sluice and sample-cdn beside itself. Rates on a shared machine are noisy; CPU times
    are less so.

      --json       one JSON object a line instead of the table
      --quick      a tenth of the work, to see whether it runs
      --objects=N  objects in the store of the group store; default 100000, which are about 1 GB
                   of disk and two minutes
      GROUP        rewrite, parse, warm, cold, idle, keys or store; default all
      --help       prints this

    """

/// What the command line asked for.
struct BenchOptions {
    var isJSON = false
    var isQuick = false
    /// Objects in the store of the group store.
    var objects = 100_000
    var groups: Set<String> = []

    static let allGroups = ["rewrite", "parse", "warm", "cold", "idle", "keys", "store"]

    /// Reads the arguments; nil when they cannot be understood.
    init?(_ arguments: [String]) {
        for argument in arguments {
            switch argument {
            case "--json": isJSON = true
            case "--quick": isQuick = true
            case let count where count.hasPrefix("--objects="):
                guard let number = Int(count.dropFirst(10)), number > 0 else { return nil }
                objects = number
            case let name where Self.allGroups.contains(name): groups.insert(name)
            default: return nil
            }
        }
        objects = times(objects)
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
        print(options.isJSON ? report.json : report.table, terminator: "")
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
