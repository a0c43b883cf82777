/// Sets the release daemon beside the proxies that are installed, in one run over loopback.
///
/// Each workload starts every proxy afresh, one after the other, and that several times over, so
/// that what else the machine does falls on all of them. The origin is the sample CDN.
import Glibc
import Posix

struct ComparisonBench {
    /// The workloads and what each measures.
    static let groups = [
        "vs-large", "vs-small", "vs-cold", "vs-join", "vs-ranges", "vs-memory", "vs-failure",
        "vs-objects", "vs-playlist",
    ]

    let options: BenchOptions
    let folder: BenchFolder
    let origin: RunningProgram
    private let peers: [Peer]
    private var comparison = Comparison()

    init(_ options: BenchOptions) throws {
        self.options = options
        folder = try BenchFolder()
        origin = try RunningProgram(
            ["\(try BenchFolder.ownFolder())/sample-cdn", "--folder", folder.path],
            ready: "listening http")
        peers = Peer.all.filter { $0.path != nil }
        let missing = Peer.all.filter { $0.path == nil }.map(\.name)
        comparison.names = ["direct", "sluice"] + peers.map(\.name)
        if !missing.isEmpty {
            comparison.notes.append(
                "Not installed, and left out: \(missing.joined(separator: ", ")).")
        }
    }

    /// Measures the groups that were asked for; blocks for minutes.
    mutating func run() throws -> Comparison {
        for group in Self.groups where options.groups.contains(group) {
            // A store of many objects takes long to fill.
            let count = group == "vs-objects" || group == "vs-failure" ? 1 : options.repetitions
            for repetition in 0..<count {
                try measure(group, repetition)
            }
        }
        return comparison
    }

    private mutating func measure(_ group: String, _ repetition: Int) throws {
        var figures = Figures(group: group)
        if group == "vs-cold" { try coldDirect(&figures, repetition) }
        for peer in [nil] + peers.map(Optional.some) {
            if group == "vs-playlist", peer != nil { continue }
            if group == "vs-ranges", peer?.abilities.contains(.ranges) == false { continue }
            figures.name = peer?.name ?? "sluice"
            do {
                let proxy = try ProxyUnderTest(peer, folder: folder.path, origin: origin.address)
                try measure(proxy, peer, &figures, repetition)
            } catch {
                comparison.notes.append("\(group), \(figures.name): \(error)")
            }
            // The origin's log of requests would grow without end.
            _ = try getText(origin.address, "/__reset")
        }
        for (kind, name, value) in figures.found { comparison.add(kind, name, value) }
    }

    private func measure(
        _ proxy: ProxyUnderTest, _ peer: Peer?, _ figures: inout Figures, _ repetition: Int
    ) throws {
        switch figures.group {
        case "vs-large": try large(proxy, &figures)
        case "vs-small": try small(proxy, &figures)
        case "vs-cold": try cold(proxy, &figures, repetition)
        case "vs-join": try join(proxy, &figures)
        case "vs-ranges": try ranges(proxy, &figures)
        case "vs-memory": try memory(proxy, &figures)
        case "vs-failure": try failure(proxy, &figures)
        case "vs-objects":
            try objects(proxy, keepsOverRestart: peer?.abilities.contains(.disk) ?? true, &figures)
        default: try playlist(proxy, &figures)
        }
    }

    /// The figures of one round of one workload.
    struct Figures {
        let group: String
        var name = ""
        fileprivate(set) var found: [(Comparison.Kind, String, Double)] = []

        init(group: String) { self.group = group }

        mutating func add(_ what: String, _ value: Double, _ unit: String, more: Bool = false) {
            let kind = Comparison.Kind(group: group, what: what, unit: unit, isMoreBetter: more)
            found.append((kind, name, value))
        }
    }

    // MARK: Helpers

    /// The path of a synthetic object at the origin; its bytes depend on its name.
    func object(_ name: String, _ size: Int, _ behaviour: String = "") -> String {
        "/bytes/\(size)/\(name).ts?cc=max-age%3D3600\(behaviour)"
    }

    /// Sends a load; throws when a single answer was wrong.
    func load(
        _ address: SocketAddress, _ paths: [String], _ requests: Int, connections: Int,
        keepsAlive: Bool = true
    ) throws -> LoadResult {
        let result = try LoadGenerator(to: address, paths: paths, keepsAlive: keepsAlive)
            .run(requests: requests, connections: connections)
        guard result.failures == 0 else {
            throw BenchError("\(result.failures) of \(requests) requests failed")
        }
        return result
    }

    /// A number of the origin's counters.
    func originNumber(_ name: String) throws -> Double {
        let text = try getText(origin.address, "/__count")
        guard let found = text.firstRange(of: "\"\(name)\":"),
            let value = Double(text[found.upperBound...].prefix(while: \.isNumber))
        else { throw BenchError("the origin has no counter \(name)") }
        return value
    }

    /// Waits until the origin has sent nothing for a while: what proxies fetch behind is over.
    func waitForOrigin() throws {
        var before = -1.0
        for _ in 0..<100 {
            let now = try originNumber("bytes")
            if now == before { return }
            before = now
            usleep(200_000)
        }
    }
}
