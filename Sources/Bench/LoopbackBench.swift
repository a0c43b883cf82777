/// Measures the daemon as it ships, over loopback, beside a sample CDN.
import Glibc
import Posix

struct LoopbackBench {
    private let options: BenchOptions
    private let folder: BenchFolder
    private let origin: RunningProgram
    private let daemon: RunningProgram

    /// Starts both programs, which stand beside this one.
    init(_ options: BenchOptions) throws {
        self.options = options
        let bin = try BenchFolder.ownFolder()
        folder = try BenchFolder()
        origin = try RunningProgram(
            ["\(bin)/sample-cdn", "--folder", folder.path], ready: "listening http")
        daemon = try RunningProgram(
            [
                "\(bin)/sluice", "serve", "--port", "0", "--cache-dir", "\(folder.path)/cache",
                "--allow-host", "127.0.0.1", "--log-level", "error",
            ], ready: "sluice ready http")
    }

    func run(_ report: inout Report) throws {
        // Small first: what a young process takes is not blurred by what it did before.
        if options.groups.contains("idle") { try idle(&report) }
        if options.groups.contains("warm") {
            try warm("2 KB", size: 2_048, requests: 100_000, connections: 64, &report)
            try warm("2 MB", size: 2 << 20, requests: 3_000, connections: 8, &report)
        }
        if options.groups.contains("cold") { try cold(&report) }
    }

    /// The path of a synthetic segment at the origin.
    private func segment(_ name: String, _ size: Int) -> String {
        "/bytes/\(name)/\(size)?type=video/mp2t&cc=max-age%3D3600"
    }

    /// The path of the same segment through the daemon.
    private func through(_ path: String) -> String { "/http://\(origin.address)\(path)" }

    /// Sends a load and fails when a single answer was wrong.
    private func load(
        _ program: RunningProgram, _ paths: [String], requests: Int, connections: Int
    ) throws -> LoadResult {
        let result = try LoadGenerator(to: program.address, paths: paths)
            .run(requests: requests, connections: connections)
        guard result.failures == 0 else {
            throw BenchError("\(result.failures) of \(requests) requests failed")
        }
        return result
    }

    // MARK: Hits

    private func warm(
        _ name: String, size: Int, requests: Int, connections: Int, _ report: inout Report
    ) throws {
        let paths = (0..<64).map { through(segment("warm-\($0)", size)) }
        _ = try load(daemon, paths, requests: paths.count, connections: 4)
        var rates: [Double] = []
        var costs: [Double] = []
        for _ in 0..<3 {
            let before = daemon.processorSeconds
            let result = try load(
                daemon, paths, requests: options.times(requests), connections: connections)
            costs.append((daemon.processorSeconds - before) / Double(result.requests))
            rates.append(Double(result.requests) / result.seconds)
        }
        let subject = "\(name) hit, \(connections) connections"
        report.add("warm", "\(subject): rate", median(rates), "requests/s")
        report.add("warm", "\(subject): CPU of the daemon", median(costs) * 1e6, "us/request")
        if size >= 1 << 20 {
            let perGB = median(costs) / Double(size) * 1e9
            report.add("warm", "\(subject): CPU of the daemon", perGB, "s/GB")
        }
    }

    // MARK: Misses

    private func cold(_ report: inout Report) throws {
        let size = 2 << 20
        for connections in [1, 8] {
            let count = options.times(200)
            let before = daemon.processorSeconds
            let paths = (0..<count).map {
                through(segment("cold-\(connections)-\($0)", size))
            }
            let result = try load(daemon, paths, requests: count, connections: connections)
            let seconds = daemon.processorSeconds - before
            let name = "2 MB miss, \(connections) connections"
            report.add("cold", "\(name): rate", Double(result.bytes) / result.seconds / 1e6, "MB/s")
            report.add(
                "cold", "\(name): CPU of the daemon", seconds / Double(result.bytes) * 1e9, "s/GB")
        }
        try firstByteOverDirect(&report)
    }

    /// The same distinct segments direct and through the daemon, one at a time.
    private func firstByteOverDirect(_ report: inout Report) throws {
        let count = options.times(200)
        let paths = (0..<count).map { segment("first-\($0)", 100_000) }
        let direct = try load(origin, paths, requests: count, connections: 1)
        let proxied = try load(daemon, paths.map(through), requests: count, connections: 1)
        let over = median(proxied.firstBytes) - median(direct.firstBytes)
        report.add("cold", "first byte of a miss, over direct: median", over * 1e3, "ms")
    }

    // MARK: Idle connections

    private func idle(_ report: inout Report) throws {
        let path = through(segment("idle", 2_048))
        _ = try load(daemon, [path], requests: 64, connections: 8)
        let before = daemon.memoryBytes
        report.add("idle", "memory of the daemon after its first requests", before / 1e6, "MB")
        let count = 1_000
        // The first hundred grow tables that all later ones share.
        let kept = try (0..<count).map { _ in LoadLane(try connect(to: daemon.address)) }
        let request = Array("GET \(path) HTTP/1.1\r\nHost: \(daemon.address)\r\n\r\n".utf8)
        for lane in kept {
            _ = request.withUnsafeBytes { send($0, to: lane.number) }
        }
        try awaitAnswers(kept)
        let each = (daemon.memoryBytes - before) / Double(count)
        report.add("idle", "memory of an idle keep-alive connection", each / 1e3, "KB")
    }

    private func awaitAnswers(_ lanes: [LoadLane]) throws {
        var piece = [UInt8](repeating: 0, count: 16_384)
        for lane in lanes {
            lane.begin()
            while lane.isBusy {
                var poll = pollfd(fd: lane.number, events: Int16(POLLIN), revents: 0)
                guard Glibc.poll(&poll, 1, 10_000) > 0 else { throw BenchError("no answer") }
                piece.withUnsafeMutableBytes { buffer in
                    guard case .bytes(let count) = receive(from: lane.number, into: buffer) else {
                        return lane.fail()
                    }
                    lane.take(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                }
            }
            guard lane.isGood else { throw BenchError("an answer was no hit") }
        }
    }
}
