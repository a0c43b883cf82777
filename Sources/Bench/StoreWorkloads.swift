// Resources of a proxy: memory of connections and readers, and very many small objects.
import Glibc
import Posix

/// Memory of connections and slow readers (PSS).
enum MemoryWorkload {
    /// Measures readers with the packet size of real networks: with loopback's 64 KB packets,
    /// kernel buffers would absorb whole segments.
    static func run(_ round: Round) throws {
        round.bench.network?.setPacketSize(1_500)
        defer { round.bench.network?.setPacketSize(65_536) }
        if round.needs("memory.idle") {
            usleep(round.options.isQuick ? 100_000 : 500_000)
            round.add("memory.idle.pss", round.proxy.memoryBytes / 1e6)
        }
        if round.needs("memory.connection") { try idleConnections(round) }
        if round.needs("memory.cached") { try slowReaders(round, "cached") }
        if round.needs("memory.cold") { try slowReaders(round, "cold") }
    }

    private static func idleConnections(_ round: Round) throws {
        let count = round.options.times(1_000)
        let path = round.path("kept-\(round.salt)", 2_048)
        _ = try round.load([path], LoadShape(requests: 64, connections: 8))
        let before = round.proxy.memoryBytes
        let lanes = try (0..<count).map { _ in LoadLane(try connect(to: round.proxy.address)) }
        let request = Array("GET \(path) HTTP/1.1\r\nHost: \(round.proxy.address)\r\n\r\n".utf8)
        for lane in lanes {
            lane.begin()
            _ = request.withUnsafeBytes { Posix.send($0, to: lane.number) }
        }
        for lane in lanes {
            while lane.isBusy {
                var poll = pollfd(fd: lane.number, events: Int16(POLLIN), revents: 0)
                guard Glibc.poll(&poll, 1, 10_000) > 0 else { throw BenchError("no answer") }
                _ = lane.read()
            }
            guard lane.isGood else { throw BenchError("a connection of \(count) was refused") }
        }
        usleep(200_000)
        let each = (round.proxy.memoryBytes - before) / Double(count)
        withExtendedLifetime(lanes) { round.add("memory.connection.pss", max(0, each) / 1e3) }
    }

    /// Players that have read the first bytes of 2 MB and pause.
    private static func slowReaders(_ round: Round, _ kind: String) throws {
        let count = round.options.times(200)
        let paths = (0..<count).map { round.path("slow-\(kind)-\(round.salt)-\($0)", 2 << 20) }
        if kind == "cached" {
            for _ in 0..<2 {
                _ = try round.load(paths, LoadShape(requests: count, connections: 4))
            }
        }
        let before = round.proxy.memoryBytes
        let script = RequestScript(
            paths.map {
                var request = TimedRequest($0)
                request.stopsAfter = 1
                return request
            }, to: round.proxy.address)
        try script.run(limit: 30)
        usleep(500_000)
        let each = (round.proxy.memoryBytes - before) / Double(count)
        withExtendedLifetime(script) { round.add("memory.\(kind).pss", max(0, each) / 1e3) }
    }
}

/// Very many small objects: misses, random hits, memory, and hits after a restart.
enum ObjectsWorkload {
    static func run(_ round: Round) throws {
        let count = round.options.objects
        let paths = (0..<count).map { round.path("many-\($0)", 4_096) }
        var processor = 0.0
        for start in stride(from: 0, to: count, by: 10_000) {
            let batch = Array(paths[start..<min(count, start + 10_000)])
            processor += try round.measured(
                batch, LoadShape(requests: batch.count, connections: 32)
            ).1
            _ = try getText(round.bench.origin.address, "/__reset")
        }
        round.add("objects.miss.cpu", processor / Double(count) * 1e6)
        // Deferred writes are finished by then; Traffic Server syncs its directory every 3 s.
        usleep(round.options.isQuick ? 300_000 : 3_500_000)
        let random = (0..<min(100_000, 4 * count)).map { _ in paths[Int.random(in: 0..<count)] }
        let (result, hits) = try round.measured(
            random, LoadShape(connections: 64, seconds: 3 * round.options.loadSeconds))
        round.addRequests("objects.hit", result, hits)
        round.add("objects.all.pss", round.proxy.memoryBytes / 1e6)
        if round.proxy.keepsOverRestart { try restart(round, Array(random.prefix(100))) }
    }

    private static func restart(_ round: Round, _ paths: [String]) throws {
        round.proxy.stop()
        let asked = try round.bench.originNumber("requests")
        let start = Monotonic.now()
        try round.proxy.start(untilAnswered: paths[0])
        round.add("objects.restart.first", (Monotonic.now() - start).inSeconds * 1e3)
        let unlike = Array(Set(paths))
        _ = try round.load(unlike, LoadShape(requests: unlike.count, connections: 1))
        let missed = try round.bench.originNumber("requests") - asked
        round.add("objects.restart.hits", max(0, 1 - missed / Double(unlike.count)) * 100)
    }
}

/// Playlists rewritten for the player, which no peer does.
enum PlaylistWorkload {
    static func run(_ round: Round) throws {
        for (id, segments) in [("k1", 1_000), ("k20", 20_000)] where round.needs("playlist.\(id)") {
            let name = "list-\(segments).m3u8"
            try PlaylistFile.write(to: "\(round.bench.folder.path)/\(name)", segments: segments)
            let cold = round.options.times(segments == 1_000 ? 100 : 20)
            // Each in a different session, so that none has been rewritten before.
            let lists = (0...cold).map {
                "/proxy?url=http%3A%2F%2F\(round.bench.origin.address)%2F\(name)"
                    + "&h_X-Viewer=\(round.repetition)-\($0)"
            }
            _ = try round.load([lists[0]], LoadShape(requests: 1))
            let (_, first) = try round.measured(
                Array(lists.dropFirst()), LoadShape(requests: cold))
            round.add("playlist.\(id).cold", first / Double(cold) * 1e6)
            let (result, again) = try round.measured(
                [lists[cold]], LoadShape(connections: 8, seconds: round.options.loadSeconds))
            round.add("playlist.\(id).memory", again / Double(result.requests) * 1e6)
        }
    }
}

/// A media playlist in the form that packagers write.
enum PlaylistFile {
    static func write(to path: String, segments: Int) throws {
        var text = "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:0\n"
        for index in 0..<segments { text += "#EXTINF:4.0,\nsegments/part-\(index).ts\n" }
        try writeText(text + "#EXT-X-ENDLIST\n", to: path)
    }
}
