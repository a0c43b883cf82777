/// Workloads of what is stored: large and small hits, memory, many objects, playlists.
import Glibc
import Posix

extension ComparisonBench {
    /// 2 MB segments from the store.
    func large(_ proxy: ProxyUnderTest, _ figures: inout Figures) throws {
        let paths = (0..<100).map { proxy.path(object("large-\($0)", 2 << 20)) }
        for _ in 0..<2 { _ = try load(proxy.address, paths, paths.count, connections: 4) }
        for (connections, requests) in [(1, 400), (8, 1_200), (64, 1_200)] {
            let before = proxy.processorSeconds
            let result = try load(
                proxy.address, paths, options.times(requests), connections: connections)
            let seconds = proxy.processorSeconds - before
            let name = "2 MB hit, \(connections) connections"
            figures.add("\(name): CPU", seconds / Double(result.bytes) * 1e9, "s/GB")
            figures.add(
                "\(name): rate", Double(result.bytes) / result.seconds / 1e6, "MB/s", more: true)
        }
    }

    /// 2 KB answers from the store, on kept connections and on new ones.
    func small(_ proxy: ProxyUnderTest, _ figures: inout Figures) throws {
        let paths = (0..<64).map { proxy.path(object("small-\($0)", 2_048)) }
        for _ in 0..<2 { _ = try load(proxy.address, paths, paths.count, connections: 4) }
        for keepsAlive in [true, false] {
            let requests = options.times(keepsAlive ? 60_000 : 10_000)
            let before = proxy.processorSeconds
            let result = try load(
                proxy.address, paths, requests, connections: 64, keepsAlive: keepsAlive)
            let seconds = proxy.processorSeconds - before
            let name = keepsAlive ? "2 KB hit, kept connections" : "2 KB hit, new connections"
            figures.add("\(name): CPU", seconds / Double(requests) * 1e6, "us/request")
            figures.add(
                "\(name): rate", Double(requests) / result.seconds, "requests/s", more: true)
        }
    }

    /// What connections and slow readers take.
    func memory(_ proxy: ProxyUnderTest, _ figures: inout Figures) throws {
        let idle = proxy.memoryBytes
        figures.add("idle: memory", idle / 1e6, "MB")
        let count = options.times(1_000)
        let path = proxy.path(object("kept", 2_048))
        _ = try load(proxy.address, [path], 64, connections: 8)
        let before = proxy.memoryBytes
        let lanes = try (0..<count).map { _ in LoadLane(try connect(to: proxy.address)) }
        let request = Array("GET \(path) HTTP/1.1\r\nHost: \(proxy.address)\r\n\r\n".utf8)
        for lane in lanes { _ = request.withUnsafeBytes { send($0, to: lane.number) } }
        usleep(500_000)
        let each = (proxy.memoryBytes - before) / Double(count)
        withExtendedLifetime(lanes) { figures.add("idle connection: memory", each / 1e3, "KB") }
        try slowReaders(proxy, isCached: true, &figures)
        try slowReaders(proxy, isCached: false, &figures)
    }

    /// Players that have taken the first bytes of 2 MB and wait.
    private func slowReaders(
        _ proxy: ProxyUnderTest, isCached: Bool, _ figures: inout Figures
    ) throws {
        let count = options.times(200)
        let name = isCached ? "cached" : "cold"
        let paths = (0..<count).map { proxy.path(object("slow-\(name)-\($0)", 2 << 20)) }
        if isCached { _ = try load(proxy.address, paths, count, connections: 4) }
        let before = proxy.memoryBytes
        let script = RequestScript(
            paths.map {
                var request = TimedRequest($0)
                request.stopsAfter = 1
                return request
            }, to: proxy.address)
        try script.run(limit: 30)
        usleep(500_000)
        let each = (proxy.memoryBytes - before) / Double(count)
        withExtendedLifetime(script) {
            figures.add("slow reader of a \(name) 2 MB: memory", max(0, each) / 1e3, "KB")
        }
    }

    /// Very many small objects: hits at random, memory, and the first hit after a restart.
    func objects(
        _ proxy: ProxyUnderTest, keepsOverRestart: Bool, _ figures: inout Figures
    ) throws {
        let count = options.objects
        let paths = (0..<count).map { proxy.path(object("many-\($0)", 4_096)) }
        var before = proxy.processorSeconds
        for start in stride(from: 0, to: count, by: 20_000) {
            let batch = Array(paths[start..<min(count, start + 20_000)])
            _ = try load(proxy.address, batch, batch.count, connections: 32)
            _ = try getText(origin.address, "/__reset")
        }
        let name = "\(count) objects of 4 KB"
        figures.add(
            "\(name): CPU of a miss", (proxy.processorSeconds - before) / Double(count) * 1e6, "us")
        let requests = options.times(100_000)
        let random = (0..<requests).map { _ in paths[Int.random(in: 0..<count)] }
        sleep(3)
        before = proxy.processorSeconds
        let result = try load(proxy.address, random, requests, connections: 16)
        figures.add(
            "\(name): CPU of a hit", (proxy.processorSeconds - before) / Double(requests) * 1e6,
            "us")
        figures.add(
            "\(name): rate of hits", Double(requests) / result.seconds, "requests/s", more: true)
        figures.add("\(name): memory", proxy.memoryBytes / 1e6, "MB")
        guard keepsOverRestart else { return }
        try restart(proxy, random[0], name, &figures)
    }

    private func restart(
        _ proxy: ProxyUnderTest, _ path: String, _ name: String, _ figures: inout Figures
    ) throws {
        proxy.stop()
        _ = try getText(origin.address, "/__reset")
        let start = Monotonic.now()
        try proxy.start()
        // The question whether it is ready goes to the origin, a hit does not.
        let asked = try originNumber("requests")
        _ = try TimedRequest.one(TimedRequest(path), to: proxy.address)
        figures.add("\(name): first hit", (Monotonic.now() - start).inSeconds * 1e3, "ms")
        figures.add(
            "\(name): first answer was a hit", try originNumber("requests") == asked ? 1 : 0, "",
            more: true)
    }

    /// A list of 1,000 segments that is written anew for the player; peers pass lists on as they are.
    func playlist(_ proxy: ProxyUnderTest, _ figures: inout Figures) throws {
        try PlaylistFile.write(to: "\(folder.path)/list.m3u8", segments: 1_000)
        let cold = options.times(200)
        // Each of another session, so that none has been written before.
        let lists = (0..<cold).map {
            "/proxy?url=http%3A%2F%2F\(origin.address)%2Flist.m3u8&h_X-Viewer=\($0)"
        }
        _ = try load(proxy.address, [lists[0]], 1, connections: 1)
        var before = proxy.processorSeconds
        _ = try load(proxy.address, lists, cold, connections: 1)
        figures.add(
            "playlist of 1,000 segments, new session: CPU",
            (proxy.processorSeconds - before) / Double(cold) * 1e6, "us/request")
        let warm = options.times(5_000)
        before = proxy.processorSeconds
        _ = try load(proxy.address, [lists[cold - 1]], warm, connections: 8)
        figures.add(
            "playlist of 1,000 segments, from memory: CPU",
            (proxy.processorSeconds - before) / Double(warm) * 1e6, "us/request")
    }
}

/// A media playlist as packagers write them.
enum PlaylistFile {
    static func write(to path: String, segments: Int) throws {
        var text = "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:0\n"
        for index in 0..<segments { text += "#EXTINF:4.0,\nsegments/part-\(index).ts\n" }
        text += "#EXT-X-ENDLIST\n"
        let file = try openFile(path, flags: O_WRONLY | O_CREAT | O_TRUNC, mode: 0o644)
        try Array(text.utf8).withUnsafeBytes { try writeAll($0, to: file.number, at: 0) }
    }
}
