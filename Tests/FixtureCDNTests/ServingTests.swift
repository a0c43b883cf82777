// What the sample CDN serves: files, memory, synthetic bytes, ranges and conditions.
import FixtureCDN
import ScenarioSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ServingTests {
    let cdn: FixtureCDN
    let player: ScriptedPlayer

    init() throws {
        cdn = FixtureCDN(folder: Fixture.path("media"))
        try cdn.start()
        player = ScriptedPlayer(cdn.baseURL)
    }

    @Test(arguments: [
        ("/ts/master.m3u8", "application/vnd.apple.mpegurl"), ("/ts/160p/seg000.ts", "video/mp2t"),
        ("/fmp4/160p/seg000.m4s", "video/iso.segment"), ("/plain/clip.mp4", "video/mp4"),
        ("/audio/seg000.aac", "audio/aac"), ("/ts/subs/seg000.vtt", "text/vtt"),
        ("/aes/first.key", "application/octet-stream"),
    ])
    func `a file is served whole and with its type`(path: String, type: String) throws {
        let response = try player.get(path)
        #expect(response.status == 200)
        #expect(response["Content-Type"] == type)
        #expect(response.body == (try Fixture.bytes("media" + path)))
        cdn.stop()
    }

    @Test(arguments: [
        ("bytes=0-", 206, 0..<1000), ("bytes=10-19", 206, 10..<20), ("bytes=-100", 206, 900..<1000),
        ("bytes=990-5000", 206, 990..<1000), ("bytes=-5000", 206, 0..<1000),
        ("bytes=20-10", 200, 0..<1000), ("bytes=0-1,5-6", 200, 0..<1000),
        ("lines=1-2", 200, 0..<1000),
    ])
    func `a range is answered as requested`(range: String, status: Int, bytes: Range<Int>) throws {
        let response = try player.get("/bytes/a/1000", headers: [("Range", range)])
        #expect(response.status == status)
        #expect(response.body == FixtureCDN.syntheticBytes("a", bytes))
        if status == 206 {
            let span = "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/1000"
            #expect(response["Content-Range"] == span)
        }
        cdn.stop()
    }

    @Test(arguments: ["bytes=1000-", "bytes=5000-6000", "bytes=-0"])
    func `a range behind the end gets 416 with the length`(range: String) throws {
        let response = try player.get("/bytes/a/1000", headers: [("Range", range)])
        #expect(response.status == 416)
        #expect(response["Content-Range"] == "bytes */1000")
        cdn.stop()
    }

    @Test func `a range is ignored when If-Range has another validator`() throws {
        let tag = try #require(try player.get("/bytes/a/1000")["ETag"])
        let fields = [(name: "Range", value: "bytes=0-9")]
        #expect(
            try player.get("/bytes/a/1000", headers: fields + [("If-Range", tag)]).status == 206)
        let other = try player.get("/bytes/a/1000", headers: fields + [("If-Range", "\"other\"")])
        #expect(other.status == 200)
        #expect(other.body.count == 1000)
        cdn.stop()
    }

    @Test func `a current validator gets 304 without a body`() throws {
        let first = try player.get("/ts/master.m3u8")
        let tag = try #require(first["ETag"])
        let second = try player.get("/ts/master.m3u8", headers: [("If-None-Match", tag)])
        #expect(second.status == 304)
        #expect(second.body.isEmpty && second.complete)
        let date = try #require(first["Last-Modified"])
        let third = try player.get("/ts/master.m3u8", headers: [("If-Modified-Since", date)])
        #expect(third.status == 304)
        cdn.stop()
    }

    @Test func `HEAD has the fields of GET and no body`() throws {
        let head = try player.get("/plain/clip.mp4", method: "HEAD")
        let get = try player.get("/plain/clip.mp4")
        #expect(head.body.isEmpty)
        for name in ["Content-Length", "Content-Type", "ETag", "Accept-Ranges"] {
            #expect(head[name] == get[name])
        }
        cdn.stop()
    }

    @Test func `synthetic bytes are the same wherever a range begins`() {
        let whole = FixtureCDN.syntheticBytes("name", 0..<100)
        for start in 0..<100 {
            #expect(FixtureCDN.syntheticBytes("name", start..<100) == Array(whole[start...]))
        }
        #expect(FixtureCDN.syntheticBytes("other", 0..<100) != whole)
    }

    @Test func `a resource in memory has precedence over a file`() throws {
        cdn.put("/ts/master.m3u8", text: "#EXTM3U\n")
        #expect(try player.get("/ts/master.m3u8").text == "#EXTM3U\n")
        cdn.remove("/ts/master.m3u8")
        #expect(
            try player.get("/ts/master.m3u8").text == (try Fixture.text("media/ts/master.m3u8")))
        cdn.stop()
    }

    @Test(arguments: ["/../make-media", "/ts/%2e%2e/%2e%2e/make-media", "/nothing", "/ts"])
    func `paths outside of the folder, and folders, are not served`(path: String) throws {
        #expect(try player.get(path).status == 404)
        cdn.stop()
    }

    @Test func `a connection is reused and closed when the client asks for it`() throws {
        for _ in 0..<3 { _ = try player.get("/bytes/a/10") }
        #expect(cdn.acceptedConnections == 1)
        let stream = try player.open("/bytes/a/10", headers: [("Connection", "close")])
        #expect(try stream.readRest().count == 10)
        #expect(stream.waitForClose())
        let old = try player.sendRaw(Array("GET /bytes/a/10 HTTP/1.0\r\n\r\n".utf8))
        #expect(try old.readRest().count == 10)
        #expect(old.waitForClose())
        cdn.stop()
    }

    @Test func `a live window is moved by the test and ends`() throws {
        let segments = (0..<3).map { LiveWindow.Segment(uri: "s\($0).ts", duration: 2) }
        let window = cdn.live(
            "/live.m3u8", LiveWindow(segments: segments, targetDuration: 2, windowSize: 2))
        #expect(try player.get("/live.m3u8").text.contains("#EXT-X-MEDIA-SEQUENCE:0\n"))
        window.advance(by: 2)
        let list = try player.get("/live.m3u8").text
        #expect(list.contains("#EXT-X-MEDIA-SEQUENCE:2\n"))
        #expect(list.hasSuffix("s2.ts\n#EXT-X-DISCONTINUITY\n#EXTINF:2.0,\ns0.ts\n"))
        window.end()
        #expect(try player.get("/live.m3u8").text.hasSuffix("#EXT-X-ENDLIST\n"))
        cdn.stop()
    }
}
