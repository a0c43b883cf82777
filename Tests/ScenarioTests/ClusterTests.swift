import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Stories of several daemons behind HAProxy, with the settings of the manual.
extension Stories {
    @Suite(
        .tags(.crowded),
        .enabled(if: Cluster.isAvailable, "needs haproxy: apt-get install haproxy"))
    struct ClusterTests {}
}

/// Daemons, HAProxy before them, and the CDN.
private final class Cluster: Sendable {
    private static let program = "/usr/sbin/haproxy"
    static var isAvailable: Bool { access(program, X_OK) == 0 }

    let cdn = FixtureCDN()
    let nodes: [DaemonProcess]
    private let folder: TemporaryFolder
    private let balancer: Shared<ChildProcess>
    let port: UInt16

    /// `joined` are the nodes that HAProxy knows from the start, the first ones.
    init(nodes count: Int = 3, joined: Int = 3) throws {
        let folder = try TemporaryFolder()
        self.folder = folder
        try cdn.start()
        nodes = try (0..<count).map { try Story.serve(folder.makeFolder("node\($0)")) }
        let probe = FixtureCDN()
        try probe.start()
        port = probe.port
        probe.stop()
        balancer = Shared(try Self.balance(Array(nodes[..<joined]), folder, port))
        try awaitNodes()
    }

    deinit {
        balancer.value.end()
        for node in nodes { node.kill(SIGKILL) }
        for node in nodes { _ = try? node.waitForExit() }
        cdn.stop()
    }

    var url: String { "http://127.0.0.1:\(port)" }

    /// Starts HAProxy anew, with all nodes.
    func joinAll() throws {
        balancer.value.end()
        let all = try Self.balance(nodes, folder, port)
        balancer.update { $0 = all }
        try awaitNodes()
    }

    private func awaitNodes() throws {
        let isUp = eventually(within: .seconds(20)) {
            (try? ScriptedPlayer(url).get("/api/health"))?.status == 200
        }
        if !isUp {
            throw ScenarioFailure(String(decoding: balancer.value.standardError, as: UTF8.self))
        }
    }

    private static func balance(
        _ nodes: [DaemonProcess], _ folder: TemporaryFolder, _ port: UInt16
    ) throws -> ChildProcess {
        let text = String(
            decoding: try readFile(Fixture.path("cluster/haproxy.cfg")), as: UTF8.self)
        var lines: [String] = []
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.contains("server node") || line.contains("bind :8443") { continue }
            // Nodes are as good as old ones from the beginning.
            lines.append(
                String(line).replacing("bind :8080", with: "bind 127.0.0.1:\(port)")
                    .replacing(" slowstart 30s", with: ""))
        }
        for (number, node) in nodes.enumerated() {
            lines.append("    server node\(number + 1) \(node.baseURL.dropFirst(7))")
        }
        try writeFile(folder.file("haproxy.cfg"), (lines.joined(separator: "\n") + "\n").utf8)
        return try ChildProcess([program, "-db", "-f", folder.file("haproxy.cfg")])
    }

    func stat(_ name: String, of node: DaemonProcess) throws -> Int {
        let text = try ScriptedPlayer(node.baseURL).get("/api/stats").text
        guard let found = text.firstRange(of: "\"\(name)\":") else { return 0 }
        return Int(text[found.upperBound...].prefix { $0.isNumber }) ?? 0
    }
}

extension Stories.ClusterTests {
    /// Puts streams of some segments on the CDN, whose lists carry a token of each viewer.
    private func put(_ streams: Int, segments: Int, on cdn: FixtureCDN) {
        for stream in 0..<streams {
            let names = (0..<segments).map { "s\($0).ts" }
            cdn.put("/v\(stream)/l.m3u8", text: vod(names))
            for name in names { cdn.put("/v\(stream)/\(name)", text: "\(stream) \(name)") }
        }
    }

    /// How many requests fail while a stream is played to its end; `during` is called with the number of
    /// each segment before it is asked for.
    private func play(
        _ stream: Int, _ cluster: Cluster, viewer: Int, during: (Int) throws -> Void = { _ in }
    ) throws -> Int {
        let player = ScriptedPlayer(cluster.url)
        let entry = cluster.cdn.url("/v\(stream)/l.m3u8?viewer=\(viewer)")
        let list = try player.get("/\(entry)")
        guard list.status == 200 else { return 1 }
        var failed = 0
        for (number, link) in uriLines(list.text).enumerated() {
            try during(number)
            let answer = try ScriptedPlayer(cluster.url).get(link)
            if answer.status != 200 || answer.text != "\(stream) s\(number).ts" { failed += 1 }
        }
        return failed
    }

    private func segmentCounts(_ cdn: FixtureCDN) -> [String: Int] {
        cdn.requests.filter { $0.method == "GET" && $0.path.hasSuffix(".ts") }
            .reduce(into: [:]) { $0[$1.path, default: 0] += 1 }
    }

    @Test func `three nodes fetch each segment once for all viewers, and share them out`() throws {
        let cluster = try Cluster()
        put(4, segments: 12, on: cluster.cdn)
        for viewer in 0..<3 {
            for stream in 0..<4 { #expect(try play(stream, cluster, viewer: viewer) == 0) }
        }
        let counts = segmentCounts(cluster.cdn)
        #expect(counts.count == 48 && counts.values.allSatisfy { $0 == 1 })
        for node in cluster.nodes {
            #expect(try cluster.stat("origin_requests_total", of: node) >= 5)
        }
    }

    @Test func `a segment of a live list whose URL has a token is fetched once for all viewers`()
        throws
    {
        let cluster = try Cluster()
        cluster.cdn.put(
            "/live.m3u8", text: "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\na.ts\n")
        cluster.cdn.put("/a.ts", text: "live")
        for viewer in 0..<6 {
            let player = ScriptedPlayer(cluster.url)
            let list = try player.get("/\(cluster.cdn.url("/live.m3u8?auth_key=\(viewer)"))")
            #expect(try player.get(try #require(uriLines(list.text).first)).text == "live")
        }
        #expect(cluster.cdn.requestCount("/a.ts") == 1)
    }

    @Test func `a node that is killed is seen by no player, and moves only its share`() throws {
        let cluster = try Cluster()
        put(2, segments: 24, on: cluster.cdn)
        for stream in 0..<2 { #expect(try play(stream, cluster, viewer: 0) == 0) }
        let held = try cluster.stat("origin_requests_total", of: cluster.nodes[0])
        cluster.cdn.resetLog()
        var failed = 0
        for stream in 0..<2 {
            failed += try play(stream, cluster, viewer: 1) { number in
                guard stream == 0, number == 6 else { return }
                cluster.nodes[0].kill(SIGKILL)
            }
        }
        #expect(failed == 0)
        let again = segmentCounts(cluster.cdn)
        #expect(again.values.allSatisfy { $0 == 1 } && again.count <= held)
    }

    @Test func `a node that is added takes a share, and leaves the rest where it was`() throws {
        let cluster = try Cluster(nodes: 4, joined: 3)
        put(2, segments: 48, on: cluster.cdn)
        for stream in 0..<2 { #expect(try play(stream, cluster, viewer: 0) == 0) }
        cluster.cdn.resetLog()
        try cluster.joinAll()
        for stream in 0..<2 { #expect(try play(stream, cluster, viewer: 1) == 0) }
        let moved = segmentCounts(cluster.cdn)
        #expect(moved.values.allSatisfy { $0 == 1 })
        // A quarter of 96 is 24.
        #expect((8...48).contains(moved.count), "\(moved.count) of 96 moved")
        let taken = try cluster.stat("origin_requests_total", of: cluster.nodes[3])
        #expect(taken >= moved.count)
    }
}
