// Measures the daemon with very many small objects in its store: start, memory, hits, eviction.
import Glibc
import Posix

/// One cache folder, filled once by the daemon and then served by several daemons in sequence.
struct StoreBench {
    /// Body bytes of an object.
    private static let size = 4096
    /// The objects of the small store, which are also the repeatedly requested ones of the large
    /// store.
    private static let hotCount = 1_000

    private let options: BenchOptions
    private let folder: BenchFolder
    private let origin: RunningProgram

    init(_ options: BenchOptions) throws {
        self.options = options
        folder = try BenchFolder()
        origin = try .sampleCDN(in: folder)
    }

    func run(_ report: inout Report) throws {
        let small = try measureStart(of: 0, &report)
        try fill(&report)
        let large = try measureStart(of: options.objects, &report)
        let perObject = (large - small) / Double(options.objects)
        report.add("store", "memory an object", perObject, "bytes")
        try measureEviction(&report)
    }

    // MARK: Filling

    /// Requests every object once, so that the daemon stores it.
    private func fill(_ report: inout Report) throws {
        let daemon = try serve()
        let start = Monotonic.now()
        var done = 0
        while done < options.objects {
            let batch = min(20_000, options.objects - done)
            let paths = (done..<done + batch).map { path("object\($0)") }
            _ = try load(daemon, paths, requests: batch, connections: 64)
            done += batch
            // Otherwise the origin's request log would grow without limit.
            _ = try getText(origin.address, "/__reset")
        }
        let seconds = (Monotonic.now() - start).inSeconds
        report.add("store", "filling the store", Double(options.objects) / seconds, "objects/s")
        daemon.end()
        report.add(
            "store", "end of the daemon after filling, with all on the disk",
            (Monotonic.now() - start).inSeconds - seconds, "s")
    }

    // MARK: Start and hits

    /// Starts a daemon on `count` objects in addition to the hot ones.
    ///
    /// - Returns: its private memory in bytes once it is idle.
    private func measureStart(of count: Int, _ report: inout Report) throws -> Double {
        let name = "\(count + Self.hotCount) objects"
        let hot = (0..<Self.hotCount).map { path("hot\($0)") }
        if count == 0 {
            let daemon = try serve()
            _ = try load(daemon, hot, requests: hot.count, connections: 8)
            daemon.end()
        }
        dropCaches()
        let start = Monotonic.now()
        let daemon = try serve()
        report.add("store", "\(name): ready", (Monotonic.now() - start).inSeconds * 1e3, "ms")
        let first = try load(daemon, [hot[500]], requests: 1, connections: 1)
        guard first.requests == 1, try number("hits_total", daemon) >= 1 else {
            throw BenchError("the first request was no hit")
        }
        report.add("store", "\(name): first hit", (Monotonic.now() - start).inSeconds * 1e3, "ms")
        try waitForRest(daemon)
        report.add("store", "\(name): at rest", (Monotonic.now() - start).inSeconds, "s")
        let memory = daemon.privateBytes
        try measureHits(daemon, hot, name, &report)
        daemon.end()
        return memory
    }

    private func measureHits(
        _ daemon: RunningProgram, _ hot: [String], _ name: String, _ report: inout Report
    ) throws {
        _ = try load(daemon, hot, requests: hot.count, connections: 8)
        var costs: [Double] = []
        for _ in 0..<5 {
            let before = daemon.processorSeconds
            let result = try load(
                daemon, hot, requests: options.times(5_000), connections: 16)
            costs.append((daemon.processorSeconds - before) / Double(result.requests))
        }
        report.add("store", "\(name): CPU of a hit", median(costs) * 1e6, "us")
        let descriptors = try listFolder("/proc/\(daemon.pid)/fd").count
        report.add("store", "\(name): open descriptors after hits", Double(descriptors), "")
    }

    /// Waits until the daemon uses almost no processor time: its background work is done.
    private func waitForRest(_ daemon: RunningProgram) throws {
        let deadline = Monotonic.now() + .seconds(600 as Int64)
        var before = daemon.processorSeconds
        while Monotonic.now() < deadline {
            usleep(500_000)
            let now = daemon.processorSeconds
            if now - before < 0.01 { return }
            before = now
        }
        throw BenchError("the daemon does not come to rest")
    }

    // MARK: Eviction

    /// Starts a daemon whose budget is a tenth too small, and measures hits while it evicts.
    private func measureEviction(_ report: inout Report) throws {
        var daemon = try serve()
        try waitForRest(daemon)
        let budget = try number("stored_bytes", daemon) / 10 * 9
        daemon.end()
        let hot = (0..<Self.hotCount).map { path("hot\($0)") }
        let start = Monotonic.now()
        daemon = try serve(cacheSize: budget)
        var pauses: [Double] = []
        while try number("stored_bytes", daemon) > budget {
            pauses += try load(daemon, hot, requests: 500, connections: 1).firstBytes
            guard (Monotonic.now() - start).inSeconds < 120 else {
                let now = try number("stored_bytes", daemon)
                throw BenchError("the daemon does not evict: \(now) bytes, budget \(budget)")
            }
        }
        let name = "eviction of a tenth"
        report.add("store", name, (Monotonic.now() - start).inSeconds, "s")
        report.add("store", "\(name): hits meanwhile", Double(pauses.count), "")
        let slow = quantile(pauses, 0.99)
        report.add("store", "\(name): first byte of a hit, 99 %", slow * 1e3, "ms")
        report.add("store", "\(name): longest pause of a reader", (pauses.max() ?? 0) * 1e3, "ms")
        try waitForRest(daemon)
        let before = try number("hits_total", daemon)
        _ = try load(daemon, hot, requests: hot.count, connections: 1)
        let kept = try number("hits_total", daemon) - before
        report.add("store", "\(name): of \(hot.count) hot objects kept", Double(kept), "")
        daemon.end()
    }

    // MARK: Programs

    private func serve(cacheSize: Int = 1_000_000_000_000) throws -> RunningProgram {
        try .daemon(
            in: folder,
            ["--allow-host", "127.0.0.1", "--min-free", "0", "--cache-size", "\(cacheSize)"])
    }

    /// The path of a synthetic object through the daemon.
    private func path(_ name: String) -> String {
        "/http://\(origin.address)/bytes/\(name)/\(Self.size)?type=video/mp2t"
    }

    private func load(
        _ daemon: RunningProgram, _ paths: [String], requests: Int, connections: Int
    ) throws -> LoadResult {
        try sendLoad(
            paths, to: daemon.address, LoadShape(requests: requests, connections: connections))
    }

    /// One number of the daemon's statistics.
    private func number(_ name: String, _ daemon: RunningProgram) throws -> Int {
        Int(try jsonNumber(name, at: daemon.address, "/api/stats"))
    }

    /// Drops the page cache, so that a start is cold; without the privilege a warm start is
    /// measured.
    private func dropCaches() {
        sync()
        let file = open("/proc/sys/vm/drop_caches", O_WRONLY)
        guard file >= 0 else { return }
        _ = write(file, "2", 1)
        close(file)
    }
}
