import Glibc
import Posix

/// Compares the release daemon with the installed proxies, in one run over loopback.
///
/// The proxies alternate within each repetition, so that other load on the machine affects all of
/// them. The origin is the sample CDN, or nginx where TLS is needed.
final class ComparisonBench {
    let options: BenchOptions
    let folder: BenchFolder
    let origin: RunningProgram
    let selection: LineSelection
    let network: PrivateNetwork?
    private(set) var comparison: Comparison
    private let peers: [Peer]
    private var calm = Calm()

    init(_ options: BenchOptions, folder: BenchFolder, network: PrivateNetwork?) throws {
        self.options = options
        self.folder = folder
        self.network = network
        selection = LineSelection(names: options.lines)
        origin = try RunningProgram(
            ["\(try BenchFolder.ownFolder())/sample-cdn", "--folder", folder.path],
            ready: "listening http")
        let wanted = Peer.all.filter { options.peers?.contains($0.name) ?? true }
        peers = wanted.filter { $0.path != nil }
        comparison = Comparison(
            names: [Comparison.direct, Comparison.own] + peers.map(\.name), selection: selection)
        let missing = wanted.filter { $0.path == nil }.map(\.name)
        if !missing.isEmpty {
            comparison.notes.append(
                "Not installed, and left out: \(missing.joined(separator: ", ")).")
        }
    }

    /// Measures the requested lines; blocks for minutes.
    func run() throws -> Comparison {
        for workload in Workload.all where selection.needs(workload.name) {
            try measure(workload)
        }
        if let words = calm.words { comparison.notes.append(words) }
        return comparison
    }

    /// The participants of a workload: the daemon (nil) and the able peers.
    private func candidates(_ workload: Workload) -> [Peer?] {
        let able = peers.filter { $0.abilities.isSuperset(of: workload.needs) }
        return [nil] + (workload.isOurs ? [] : able.map(Optional.some))
    }

    private func measure(_ workload: Workload) throws {
        let since = Monotonic.now()
        var out: Set<String> = []
        let repetitions = min(options.repetitions, workload.most)
        var standing: [ProxyUnderTest] = []
        for repetition in 0..<repetitions {
            for (place, peer) in candidates(workload).enumerated() {
                let name = peer?.name ?? Comparison.own
                guard !out.contains(name) else { continue }
                do {
                    let isFirst = standing.count <= place || !workload.stands
                    let proxy = isFirst ? try start(peer, workload) : standing[place]
                    if workload.stands, isFirst { standing.append(proxy) }
                    let round = Round(
                        bench: self, proxy: proxy, repetition: repetition,
                        salt: "\(workload.name)-\(repetition)-\(name)")
                    if isFirst { try workload.prepare(round) }
                    try workload.run(round)
                } catch {
                    out.insert(name)
                    comparison.notes.append("\(workload.name), \(name): \(error)")
                    // Keeps its place, so that the indices of the others do not change.
                    if workload.stands, standing.count == place {
                        standing.append(try ProxyUnderTest(stopped: peer, folder: folder.path))
                    }
                }
                // The origin's log of requests would grow without end.
                _ = try getText(origin.address, "/__reset")
            }
        }
        let seconds = Int((Monotonic.now() - since).inSeconds.rounded())
        printError("\(workload.name): \(repetitions) rounds, \(seconds) s\n")
    }

    private func start(_ peer: Peer?, _ workload: Workload) throws -> ProxyUnderTest {
        let proxy = try ProxyUnderTest(peer, folder: folder.path, origin: origin.address)
        if workload.checksBytes { try check(proxy) }
        return proxy
    }

    /// Compares what a proxy serves, fetched and stored, with the origin's bytes.
    private func check(_ proxy: ProxyUnderTest) throws {
        let path = object("check-\(proxy.address.port)", 300_000)
        var straight = TimedRequest(path)
        straight.keepsBody = true
        let wanted = try TimedRequest.one(straight, to: origin.address).body
        var through = TimedRequest(proxy.path(path))
        through.keepsBody = true
        for _ in 0..<2 {
            let answer = try TimedRequest.one(through, to: proxy.address)
            guard answer.isWhole, answer.body == wanted else {
                throw BenchError("it hands out other bytes than the origin")
            }
        }
    }

    // MARK: Helpers for workloads

    /// The path of a synthetic object at the origin; its bytes depend on its name.
    func object(_ name: String, _ size: Int, _ behaviour: String = "") -> String {
        "/bytes/\(size)/\(name).ts?cc=max-age%3D3600\(behaviour)"
    }

    fileprivate func add(_ id: String, _ name: String, _ value: Double) {
        comparison.add(id, name, value)
    }

    /// Sends a load; throws if any response was wrong.
    func load(
        _ address: SocketAddress, _ paths: [String], _ shape: LoadShape
    ) throws -> LoadResult {
        let generator = try LoadGenerator(to: address, paths: paths, keepsAlive: shape.keepsAlive)
        let result = try generator.run(
            requests: shape.requests, connections: shape.connections, seconds: shape.seconds)
        guard result.failures == 0, result.requests > 0 else {
            throw BenchError(
                "\(result.failures) of \(result.failures + result.requests) requests failed")
        }
        return result
    }

    /// Records the machine's other load during a measurement.
    func watched<T>(_ proxy: ProxyUnderTest?, _ work: () throws -> T) rethrows -> T {
        let before = Calm.Sample(processes: [proxy?.processorSeconds, origin.processorSeconds])
        let result = try work()
        calm.add(
            before, Calm.Sample(processes: [proxy?.processorSeconds, origin.processorSeconds]))
        return result
    }

    /// The value of one of the origin's counters.
    func originNumber(_ name: String) throws -> Double {
        let text = try getText(origin.address, "/__count")
        guard let found = text.firstRange(of: "\"\(name)\":"),
            let value = Double(text[found.upperBound...].prefix(while: \.isNumber))
        else { throw BenchError("the origin has no counter \(name)") }
        return value
    }

    /// Waits until the origin has sent nothing for a while: background fetches are finished.
    func waitForOrigin() throws {
        var before = -1.0
        for _ in 0..<200 {
            let now = try originNumber("bytes")
            if now == before, try originNumber("active") == 0 { return }
            before = now
            usleep(60_000)
        }
    }
}

/// How a load is sent.
struct LoadShape {
    var requests = Int.max
    var connections = 1
    var keepsAlive = true
    /// The seconds after which no further request is sent.
    var seconds = Double.infinity
}

/// One proxy's turn in one repetition of a workload.
struct Round {
    let bench: ComparisonBench
    let proxy: ProxyUnderTest
    let repetition: Int
    /// Part of the names of objects that have not been requested before.
    let salt: String

    var options: BenchOptions { bench.options }

    func needs(_ part: String) -> Bool { bench.selection.needs(part) }

    func add(_ id: String, _ value: Double) { bench.add(id, proxy.name, value) }

    func addDirect(_ id: String, _ value: Double) { bench.add(id, Comparison.direct, value) }

    /// The path of an object through the proxy.
    func path(_ name: String, _ size: Int, _ behaviour: String = "") -> String {
        proxy.path(bench.object(name, size, behaviour))
    }

    func load(_ paths: [String], _ shape: LoadShape) throws -> LoadResult {
        try bench.load(proxy.address, paths, shape)
    }

    /// Sends a load and returns its result with the processor seconds that the proxy used.
    func measured(_ paths: [String], _ shape: LoadShape) throws -> (LoadResult, Double) {
        try bench.watched(proxy) {
            let before = proxy.processorSeconds
            let result = try load(paths, shape)
            return (result, proxy.processorSeconds - before)
        }
    }
}
