import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Several daemons behind HAProxy, with the settings of the manual.
extension Stories {
    @Suite(
        .tags(.crowded),
        .enabled(if: Cluster.isAvailable, "needs haproxy: apt-get install haproxy"))
    struct ClusterTests {}
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
        // HAProxy may still count a request that the player has seen end. With four nodes and one
        // request at a time that is more than the fair share of its node, and the next is sent on.
        let cluster = try Cluster(nodes: 4, joined: 3, boundsLoad: false)
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
        let byNode = try cluster.nodes.map { try cluster.stat("origin_requests_total", of: $0) }
        #expect(
            taken >= moved.count,
            "\(moved.count) moved; by node \(byNode); HAProxy: \(cluster.haproxyMessages)")
    }
}
