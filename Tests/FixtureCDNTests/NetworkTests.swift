// The sample CDN as a network peer: counters, going offline, many connections, two hosts.
import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct NetworkTests {
    let cdn = FixtureCDN(folder: Fixture.path("media"))

    init() throws {
        try cdn.start()
    }

    @Test func `stopping takes the CDN offline immediately, and starting uses the same port`()
        throws
    {
        let player = ScriptedPlayer(cdn.baseURL)
        let before = try player.get("/ts/master.m3u8")
        let stalled = try player.open("/bytes/a/1000?stall=10")
        #expect(try stalled.read(10).count == 10)
        let port = cdn.port
        cdn.stop()
        #expect(try stalled.readRest().isEmpty)
        #expect(stalled.broken != nil)
        #expect(throws: ScenarioFailure.self) { try player.get("/ts/master.m3u8") }
        for _ in 0..<3 {
            try cdn.start()
            #expect(cdn.port == port)
            let after = try player.get("/ts/master.m3u8")
            #expect(after.body == before.body)
            #expect(after["ETag"] == before["ETag"])
            cdn.stop()
        }
    }

    @Test func `the counters contain requests, bytes and ranges`() throws {
        let player = ScriptedPlayer(cdn.baseURL)
        _ = try player.get("/bytes/a/1000?x=1", headers: [("Range", "bytes=0-99"), ("X-A", "b")])
        _ = try player.get("/bytes/a/1000", headers: [("Range", "bytes=100-")])
        _ = try player.get("/bytes/a/1000", method: "HEAD")
        #expect(cdn.requestCount("/bytes/a/1000") == 3)
        #expect(cdn.requestCount("/bytes/a/1000?x=1") == 1)
        #expect(cdn.bytesSent("/bytes/a/1000") == 1000)
        #expect(cdn.bytesServedRanges("/bytes/a/1000") == [0..<100, 100..<1000])
        #expect(cdn.firstByteServedTwice("/bytes/a/1000") == nil)
        _ = try player.get("/bytes/a/1000", headers: [("Range", "bytes=500-501")])
        #expect(cdn.firstByteServedTwice("/bytes/a/1000") == 500)
        let first = try #require(cdn.requests.first)
        #expect(first.method == "GET" && first.status == 206 && first.range == "bytes=0-99")
        #expect(first["x-a"] == "b" && first.host == "127.0.0.1:\(cdn.port)")
        cdn.resetLog()
        #expect(cdn.requests.isEmpty && cdn.bytesSent() == 0)
        cdn.stop()
    }

    @Test func `a low-latency stream is made of transport streams alone, and says so`() throws {
        defer { cdn.stop() }
        let player = ScriptedPlayer(cdn.baseURL)
        let unfit = ["fmp4/160p/index", "byterange/index", "aes/index", "audio/index", "ts/master"]
        let make = "/__lowlatency?path=/ll&part=0.5&parts=4&from="
        for list in unfit {
            let answer = try player.get(make + "/\(list).m3u8").text
            #expect(answer.contains("no playlist of .ts files without encryption"), "\(list)")
        }
        #expect(try player.get("/ll/master.m3u8").status == 404)
        #expect(try player.get(make + "/ts/160p/index.m3u8").text == "{\"ok\":true}\n")
        #expect(try player.get("/ll/master.m3u8").status == 200)
    }

    @Test func `parts of a transport stream have whole frames, and as many in each`() throws {
        defer { cdn.stop() }
        let made = cdn.lowLatencyStream(
            of: "/ts/160p/index.m3u8", settings: LowLatencyStream.Settings())
        let stream = try #require(made)
        // A packet of a video stream (PES) has one frame.
        let start: [UInt8] = [0, 0, 1, 0xE0]
        for number in 0..<6 {
            let parts = (0..<4).map { stream.bytes(ofPart: $0, in: number) }
            #expect(Array(parts.joined()) == stream.bytes(ofSegment: number))
            for part in parts {
                #expect(part.indices.count { part[$0...].starts(with: start) } == 12)
            }
            for part in parts.dropFirst() {
                let packet = part.prefix(188)
                #expect(packet.indices.contains { packet[$0...].starts(with: start) })
            }
        }
    }

    @Test func `a discontinuity stands before the hint of the first part after it`() throws {
        defer { cdn.stop() }
        var settings = LowLatencyStream.Settings()
        settings.firstParts = 24
        let made = cdn.lowLatencyStream(of: "/ts/160p/index.m3u8", settings: settings)
        let stream = cdn.lowLatency("/ll", try #require(made))
        let player = ScriptedPlayer(cdn.baseURL)
        func list() throws -> String { try player.get("/ll/video.m3u8").text }
        #expect(stream.position.segment == 6 && stream.position.part == 0)
        #expect(try list().contains("s5.ts\n#EXT-X-DISCONTINUITY\n#EXT-X-PRELOAD-HINT:"))
        stream.advance()
        #expect(try list().contains("s5.ts\n#EXT-X-DISCONTINUITY\n#EXT-X-PART:"))
        stream.advance(parts: 23)
        stream.end()
        #expect(try list().hasSuffix("s11.ts\n#EXT-X-ENDLIST\n"))
    }

    @Test func `scripts read the log and the counters over HTTP`() throws {
        let player = ScriptedPlayer(cdn.baseURL)
        _ = try player.get("/bytes/a/10?x=\"")
        let lines = try player.get("/__log").text.split(separator: "\n")
        #expect(lines.count == 1)
        #expect(lines.first?.contains("\"target\":\"/bytes/a/10?x=\\\"\"") == true)
        #expect(try player.get("/__count").text.hasPrefix("{\"requests\":1,\"bytes\":10,"))
        _ = try player.get("/__set?path=/bytes/a/10&status=500")
        #expect(try player.get("/bytes/a/10").status == 500)
        _ = try player.get("/__reset")
        #expect(cdn.requestCount() == 0)
        cdn.stop()
    }

    @Test func `three hundred connections are served at once`() throws {
        let base = cdn.baseURL
        cdn.hold("/bytes/many/70000")
        let runs = (0..<300).map { _ in
            Background { try ScriptedPlayer(base).get("/bytes/many/70000").body }
        }
        #expect(eventually { cdn.activeRequests == 300 })
        cdn.release("/bytes/many/70000")
        let wanted = FixtureCDN.syntheticBytes("many", 0..<70_000)
        for run in runs { #expect(try run.value(within: .seconds(30)) == wanted) }
        #expect(cdn.peakConcurrentRequests == 300)
        #expect(cdn.openConnections <= 300)
        cdn.stop()
    }

    @Test func `an object of 64 MB is not held in memory`() throws {
        let stream = try ScriptedPlayer(cdn.baseURL).open("/bytes/big/67108864")
        let before = try residentBytes()
        var count = 0
        while !stream.isDone { count += try stream.read(1 << 20).count }
        #expect(count == 67_108_864)
        #expect(try residentBytes() - before < 48 << 20)
        cdn.stop()
    }

    @Test func `two hosts are two origins`() throws {
        let other = FixtureCDN(address: "127.0.0.2")
        try other.start()
        other.put("/x", text: "other")
        cdn.setBehaviour(Behaviour(query: "location=\(other.url("/x"))"), for: "/x")
        let player = ScriptedPlayer(cdn.baseURL)
        let target = try #require(try player.get("/x")["Location"])
        #expect(try player.get(target).text == "other")
        #expect(other.requests.first?.host == "127.0.0.2:\(other.port)")
        other.stop()
        cdn.stop()
    }

    private func residentBytes() throws -> Int {
        let pages = try readFile("/proc/self/statm").split(separator: 0x20)[1]
        return (Int(String(decoding: pages, as: UTF8.self)) ?? 0) * 4096
    }
}
