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
        origin = try .sampleCDN(in: folder)
        let wanted = options.wantedPeers
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
        /// By name; only of a workload whose proxies stand for all rounds.
        var standing: [String: ProxyUnderTest] = [:]
        for repetition in 0..<repetitions {
            for peer in candidates(workload) {
                let name = peer?.name ?? Comparison.own
                guard !out.contains(name) else { continue }
                do {
                    let known = standing[name]
                    let proxy = try known ?? start(peer, workload)
                    if workload.stands { standing[name] = proxy }
                    let round = Round(
                        bench: self, proxy: proxy, repetition: repetition,
                        salt: "\(workload.name)-\(repetition)-\(name)")
                    if known == nil { try workload.prepare(round) }
                    try workload.run(round)
                } catch {
                    out.insert(name)
                    comparison.notes.append("\(workload.name), \(name): \(error)")
                }
                // The origin's log of requests would grow without end.
                _ = try getText(origin.address, "/__reset")
            }
        }
        let seconds = Int((Monotonic.now() - since).inSeconds.rounded())
        printError("\(workload.name): \(repetitions) rounds, \(seconds) s\n")
    }

    private func start(_ peer: Peer?, _ workload: Workload) throws -> ProxyUnderTest {
        let place = BenchOrigin(port: origin.address.port)
        let proxy = try ProxyUnderTest(peer, folder: folder.path, origin: place)
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

    /// Sends a load to a proxy, and records the machine's other load meanwhile.
    ///
    /// - Returns: its result, and the processor seconds that the proxy used.
    func measured(
        _ proxy: ProxyUnderTest, _ paths: [String], _ shape: LoadShape
    ) throws -> (LoadResult, Double) {
        let sample = Calm.Sample(processes: [proxy.processorSeconds, origin.processorSeconds])
        let before = proxy.processorSeconds
        let result = try sendLoad(paths, to: proxy.address, shape)
        let used = proxy.processorSeconds - before
        calm.add(sample, Calm.Sample(processes: [proxy.processorSeconds, origin.processorSeconds]))
        return (result, used)
    }

    /// The value of one of the origin's counters.
    func originNumber(_ name: String) throws -> Double {
        try jsonNumber(name, at: origin.address, "/__count")
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
        try sendLoad(paths, to: proxy.address, shape)
    }

    /// Sends a load and returns its result with the processor seconds that the proxy used.
    func measured(_ paths: [String], _ shape: LoadShape) throws -> (LoadResult, Double) {
        try bench.measured(proxy, paths, shape)
    }

    /// Adds what a load of large bodies cost, and how fast they came.
    func addTransfer(_ id: String, _ result: LoadResult, _ processor: Double) {
        add("\(id).cpu", processor / Double(result.bytes) * 1e9)
        add("\(id).rate", Double(result.bytes) / result.seconds / 1e6)
    }

    /// Adds what a load of small bodies cost, and how fast they came.
    func addRequests(_ id: String, _ result: LoadResult, _ processor: Double) {
        add("\(id).cpu", processor / Double(result.requests) * 1e6)
        add("\(id).rate", Double(result.requests) / result.seconds)
    }
}
