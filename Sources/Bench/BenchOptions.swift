import ArgumentParser

/// The options of one run of `Bench`.
struct BenchOptions: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "What to measure.",
            discussion: """
                A workload (large, small, cold, join, ranges, memory, failure, objects, playlist, \
                secure), a part of one (cold.c8) or a line (cold.c8.cpu); peers: all of these; \
                parts: rewrite, read and parse; alone: keys and store; play: first plays, feeds and \
                downloads. Default: peers, parts and play.
                """,
            valueName: "name"))
    private var names: [String] = []

    @Option(
        name: .customLong("peers"),
        help: "Compares with these only, separated by commas; none: with nobody.",
        transform: Self.peers)
    private var chosenPeers: Peers?

    @Option(
        name: .customLong("repetitions"),
        help: "Runs of each workload, of which the median counts; default 5.",
        transform: Self.count)
    private var chosenRepetitions: Int?

    @Option(
        name: .customLong("objects"), help: "Objects in a store of many; default 20000.",
        transform: Self.count)
    private var chosenObjects: Int?

    @Flag(name: .customLong("quick"), help: "Runs the smallest loads once, as a smoke test.")
    var isQuick = false

    @Flag(name: .customLong("json"), help: "Prints JSON lines instead of tables.")
    var isJSON = false

    @Option(
        name: .customLong("json-file"),
        help: ArgumentHelp("Writes the JSON lines there too.", valueName: "file"))
    var jsonPath: String?

    @Option(
        name: .customLong("svg"),
        help: ArgumentHelp("Writes the comparison's ratios there as bars.", valueName: "file"))
    var plotPath: String?

    @Flag(
        name: .customLong("shared"),
        help: "Uses the machine's network and file system even as root.")
    private var isShared = false

    @Flag(name: .customLong("list"), help: "Prints the lines and measures nothing.")
    var listsLines = false

    static let parts = ["rewrite", "read", "parse"]
    static let alone = ["keys", "store"]
    static let playback = "play"

    /// Runs of each workload.
    var repetitions: Int { isQuick ? 1 : chosenRepetitions ?? 5 }
    /// The number of objects in the large store.
    var objects: Int {
        let wanted = chosenObjects ?? 20_000
        return isQuick ? min(wanted, 500) : wanted
    }
    /// The peers to compare with; nil for all that are installed.
    var peers: [String]? { chosenPeers?.names }
    /// The kinds of those peers, installed or not.
    var wantedPeers: [Peer] { Peer.all.filter { peers?.contains($0.name) ?? true } }
    /// Whether the measurement gets a separate network and file system, where permitted.
    var isApart: Bool { !isShared }
    /// Workloads and lines of the comparison with peers, in the order given.
    var lines: [String] {
        if names.isEmpty { return Line.workloads }
        return names.flatMap { name in
            name == "peers" ? Line.workloads : LineSelection.isKnown(name) ? [name] : []
        }
    }
    /// The requested groups without peers.
    var groups: Set<String> {
        if names.isEmpty { return Set(Self.parts + [Self.playback]) }
        return names.reduce(into: []) { groups, name in
            switch name {
            case "parts": groups.formUnion(Self.parts)
            case "alone": groups.formUnion(Self.alone)
            case _ where Self.groupNames.contains(name): groups.insert(name)
            default: break
            }
        }
    }

    /// The number of repetitions of a piece of work.
    func times(_ count: Int) -> Int { isQuick ? max(1, count / 10) : count }

    /// The duration of a load in seconds.
    var loadSeconds: Double { isQuick ? 0.06 : 0.4 }

    // MARK: Checks

    private static let groupNames = parts + alone + [playback]

    func validate() throws {
        let known = ["peers", "parts", "alone"] + Self.groupNames
        for name in names where !known.contains(name) && !LineSelection.isKnown(name) {
            let words = (Line.workloads + Self.groupNames).joined(separator: ", ")
            throw ValidationError(
                "no line or group '\(name)'; there are \(words), and what --list prints")
        }
    }

    private static func count(_ text: String) throws -> Int {
        guard let number = Int(text), number > 0 else {
            throw ValidationError("takes a whole number above 0")
        }
        return number
    }

    /// A list that may be empty, which ArgumentParser's options cannot express.
    struct Peers: Equatable {
        var names: [String]
    }

    private static func peers(_ text: String) throws -> Peers {
        let names = text.split(separator: ",").map(String.init)
        let known = Peer.all.map(\.name) + ["none"]
        if let wrong = names.first(where: { !known.contains($0) }) {
            throw ValidationError("takes \(known.joined(separator: ", ")), not \(wrong)")
        }
        return Peers(names: names.filter { $0 != "none" })
    }
}
