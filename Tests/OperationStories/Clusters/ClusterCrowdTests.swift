import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Stories of crowds before several daemons that share a file of keys, with HAProxy as in the manual.
extension Stories {
    @Suite(
        .tags(.crowded),
        .enabled(if: Cluster.isAvailable, "needs haproxy: apt-get install haproxy"))
    struct ClusterCrowdTests {}
}

extension Stories.ClusterCrowdTests {
    private static let segments = 8

    /// Streams whose playlists and segments need a header of the session; the URLs of every second
    /// one are longer than handles without a cluster's key are.
    private func put(_ streams: Int, on cdn: FixtureCDN) {
        let token = (0..<300).map { "\($0 * 7_919)" }.joined()
        for stream in 0..<streams {
            let query = stream % 2 == 0 ? "" : "?token=\(token)"
            let names = (0..<Self.segments).map { "s\($0).ts" }
            cdn.put("/v\(stream)/l.m3u8", text: vod(names.map { $0 + query }))
            cdn.setBehaviour("needheader=X-Pass:open", for: "/v\(stream)/l.m3u8")
            for name in names {
                cdn.put("/v\(stream)/\(name)", text: "\(stream) \(name)")
                cdn.setBehaviour("needheader=X-Pass:open", for: "/v\(stream)/\(name)")
            }
        }
    }

    /// Lets players watch streams at the same time; each has headers of its own.
    private func crowd(
        _ players: Int, of streams: Int, at cluster: Cluster,
        during: @escaping @Sendable (Int) throws -> Void = { _ in }
    ) throws -> Cluster.Seen {
        let seen = try inParallel(players + 1, within: .seconds(120)) { player -> Cluster.Seen in
            guard player < players else {
                try during(player)
                return Cluster.Seen()
            }
            let stream = player % streams
            let list = percentEncoded(cluster.cdn.url("/v\(stream)/l.m3u8"))
            return try cluster.watch(
                "/proxy?url=\(list)&h_X-Pass=open&h_X-Viewer=\(player)", pause: 50_000
            ) { number, body in
                body == Array("\(stream) s\(number).ts".utf8)
            }
        }
        return seen.reduce(Cluster.Seen(), +)
    }

    private func segmentCounts(_ cdn: FixtureCDN) -> [String: Int] {
        cdn.requests.filter { $0.method == "GET" && $0.path.hasSuffix(".ts") }
            .reduce(into: [:]) { $0[$1.path, default: 0] += 1 }
    }

    @Test func `sixty players with headers see no error while a node is killed`() throws {
        let cluster = try Cluster(sharesKey: true)
        put(20, on: cluster.cdn)
        let seen = try crowd(60, of: 20, at: cluster) { _ in
            // In the middle of the first half of the segments.
            _ = eventually {
                cluster.cdn.requests.filter { $0.path.hasSuffix(".ts") }.count > 40
            }
            cluster.nodes[0].kill(SIGKILL)
        }
        #expect(seen.failed.isEmpty, "\(seen.failed.prefix(3))")
        #expect(seen.played == 60 * Self.segments)
        // What the killed node had is fetched once more, and nothing else.
        let counts = segmentCounts(cluster.cdn)
        #expect(counts.count == 20 * Self.segments && counts.values.allSatisfy { $0 <= 2 })
        let again = counts.values.filter { $0 == 2 }.count
        #expect(again < 20 * Self.segments / 2, "\(again) segments were fetched again")
    }

    @Test func `a rolling upgrade under load is seen by no player`() throws {
        let cluster = try Cluster(sharesKey: true)
        put(20, on: cluster.cdn)
        let seen = try crowd(30, of: 20, at: cluster) { _ in
            for number in 0..<3 { try cluster.upgrade(number) }
        }
        #expect(seen.failed.isEmpty, "\(seen.failed.prefix(3))")
        #expect(seen.played == 30 * Self.segments)
        // Afterwards every node answers what all of them wrote, with what they had stored.
        let before = cluster.cdn.requests.count
        let later = try crowd(20, of: 20, at: cluster)
        #expect(later.failed.isEmpty && later.played == 20 * Self.segments)
        // HAProxy needs two checks before it asks a node again: some objects have moved meanwhile.
        #expect(cluster.cdn.requests.count - before < 20 * Self.segments)
    }

    @Test func `with an access token players of one stream meet, whatever their sessions`() throws {
        let cluster = try Cluster(sharesKey: true, ["--token", "a-long-token"])
        put(2, on: cluster.cdn)
        for viewer in 0..<3 {
            for stream in 0..<2 {
                let list = percentEncoded(cluster.cdn.url("/v\(stream)/l.m3u8?viewer=\(viewer)"))
                for headers in ["&h_X-Pass=open", "&h_X-Pass=open&h_X-Viewer=\(viewer)"] {
                    let seen = try cluster.watch(
                        "/proxy?url=\(list)\(headers)&token=a-long-token"
                    ) { number, body in body == Array("\(stream) s\(number).ts".utf8) }
                    #expect(seen.failed.isEmpty, "\(seen.failed.prefix(1))")
                }
            }
        }
        let counts = segmentCounts(cluster.cdn)
        #expect(counts.count == 16 && counts.values.allSatisfy { $0 == 1 }, "\(counts)")
        let unsigned = try ScriptedPlayer(cluster.url).get("/\(cluster.cdn.url("/v0/l.m3u8"))")
        #expect(unsigned.status == 401)
    }

    @Test func `plain sessions with a token meet too, since their signature is not hashed`() throws
    {
        let cluster = try Cluster(sharesKey: true, ["--token", "a-long-token"])
        cluster.cdn.put("/l.m3u8", text: vod((0..<6).map { "a\($0).ts" }))
        for number in 0..<6 { cluster.cdn.put("/a\(number).ts", text: "\(number)") }
        for viewer in 0..<4 {
            let list = percentEncoded(cluster.cdn.url("/l.m3u8?viewer=\(viewer)"))
            let seen = try cluster.watch("/proxy?url=\(list)&token=a-long-token") { number, body in
                body == Array("\(number)".utf8)
            }
            #expect(seen.failed.isEmpty && seen.played == 6, "\(seen.failed.prefix(1))")
        }
        let counts = segmentCounts(cluster.cdn)
        #expect(counts.count == 6 && counts.values.allSatisfy { $0 == 1 }, "\(counts)")
    }

    @Test func `windows of time shift are kept behind a balancer, and begin anew when a node goes`()
        throws
    {
        let cluster = try Cluster(sharesKey: true)
        let window = ShiftedStream.window()
        _ = cluster.cdn.live("/l.m3u8", window)
        cluster.cdn.put("/m.m3u8", text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nl.m3u8\n")
        let player = ScriptedPlayer(cluster.url)
        let entry = "/dvr=1h/\(cluster.cdn.url("/m.m3u8"))"
        let list = try #require(uriLines(try player.get(entry).text).first)
        func count() throws -> Int { uriLines(try player.get(list).text).count }
        #expect(try count() == 3)
        for number in 4...6 {
            window.advance(by: 1)
            #expect(try eventually { try count() == number })
        }
        let owner = try #require(
            try cluster.nodes.indices.max { a, b in
                try cluster.stat("origin_requests_total", of: cluster.nodes[a])
                    < cluster.stat("origin_requests_total", of: cluster.nodes[b])
            })
        cluster.nodes[owner].kill(SIGKILL)
        window.advance(by: 1)
        // Another node keeps a window from now on; the player goes on at the live edge.
        #expect(try eventually { try count() >= 3 })
        window.advance(by: 1)
        #expect(try eventually { try count() >= 4 })
    }
}
