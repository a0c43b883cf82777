/// What the command line of `Bench` asks for.

struct BenchOptions: Equatable {
    /// Whether the figures go to standard output as JSON, instead of tables.
    var isJSON = false
    /// Where they go as JSON beside the tables.
    var jsonPath: String?
    /// Where the plot of the comparison goes, as SVG.
    var plotPath: String?
    var isQuick = false
    /// Objects in a store of many.
    var objects = 20_000
    /// How often a line of the comparison is measured; some workloads take fewer.
    var repetitions = 5
    /// The peers to compare with; nil for all that are installed.
    var peers: [String]?
    /// Whether the measurement has a network and a file system of its own, where that is allowed.
    var isApart = true
    /// Lines and workloads of the comparison.
    var lines: [String] = []
    /// Groups that compare with nobody.
    var groups: Set<String> = []

    static let parts = ["rewrite", "parse"]
    static let alone = ["keys", "store"]
    static let playback = "play"

    /// Reads the arguments; throws what is wrong with the first that cannot be understood.
    init(_ arguments: [String]) throws(BenchError) {
        for argument in arguments {
            let words = argument.split(separator: "=", maxSplits: 1).map(String.init)
            if argument.hasPrefix("--") {
                try take(words[0], words.count > 1 ? words[1] : nil)
            } else {
                try take(name: argument)
            }
        }
        if lines.isEmpty, groups.isEmpty {
            lines = Line.workloads
            groups = Set(Self.parts + [Self.playback])
        }
        if isQuick {
            repetitions = 1
            objects = min(objects, 500)
        }
    }

    private mutating func take(_ option: String, _ value: String?) throws(BenchError) {
        switch (option, value) {
        case ("--json", nil): isJSON = true
        case ("--json", let path?): jsonPath = path
        case ("--svg", let path?): plotPath = path
        case ("--quick", nil): isQuick = true
        case ("--shared", nil): isApart = false
        case ("--objects", let text?): objects = try Self.number(option, text)
        case ("--repetitions", let text?): repetitions = try Self.number(option, text)
        case ("--peers", let text?):
            let names = text.split(separator: ",").map(String.init)
            let known = Peer.all.map(\.name) + ["none"]
            if let wrong = names.first(where: { !known.contains($0) }) {
                throw BenchError("--peers takes \(known.joined(separator: ", ")), not \(wrong)")
            }
            peers = names.filter { $0 != "none" }
        default: throw BenchError("\(option) is no option, or lacks its value; see --help")
        }
    }

    private mutating func take(name: String) throws(BenchError) {
        switch name {
        case "peers": lines += Line.workloads
        case "parts": groups.formUnion(Self.parts)
        case "alone": groups.formUnion(Self.alone)
        case _ where (Self.parts + Self.alone + [Self.playback]).contains(name):
            groups.insert(name)
        case _ where LineSelection.isKnown(name): lines.append(name)
        default:
            let known = Line.workloads + Self.parts + Self.alone + [Self.playback]
            let words = known.joined(separator: ", ")
            throw BenchError("no line or group \(name); there are \(words), and what --list prints")
        }
    }

    private static func number(_ option: String, _ text: String) throws(BenchError) -> Int {
        guard let number = Int(text), number > 0 else {
            throw BenchError("\(option) takes a number above 0, not \(text)")
        }
        return number
    }

    /// How often a piece of work is done.
    func times(_ count: Int) -> Int { isQuick ? max(1, count / 10) : count }

    /// How long a load goes on, in seconds.
    var loadSeconds: Double { isQuick ? 0.06 : 0.4 }
}
