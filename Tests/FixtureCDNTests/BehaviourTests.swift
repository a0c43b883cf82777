// The delays, faults, framings and conditions that a path can have.
import FixtureCDN
import ScenarioSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct BehaviourTests {
    let cdn = FixtureCDN(folder: Fixture.path("media"))
    let player: ScriptedPlayer
    let whole = FixtureCDN.syntheticBytes("a", 0..<1000)

    init() throws {
        try cdn.start()
        player = ScriptedPlayer(cdn.baseURL)
    }

    @Test(arguments: ["reset", "trunc"])
    func `a body is cut at the configured byte`(fault: String) throws {
        let response = try player.get("/bytes/a/1000?\(fault)=600")
        #expect(!response.complete)
        #expect(response.body == Array(whole[..<600]))
        #expect(response["Content-Length"] == "1000")
        #expect(response.broken?.hasPrefix(fault == "reset" ? "reset" : "closed") == true)
        #expect(cdn.bytesSent("/bytes/a/1000") == 600)
        cdn.stop()
    }

    @Test func `a counted fault ends after its number of requests`() throws {
        cdn.setBehaviour("trunc=10&fails=2", for: "/bytes/a/1000")
        let ends = try (0..<4).map { _ in try player.get("/bytes/a/1000").complete }
        #expect(ends == [false, false, true, true])
        let statuses = try (0..<2).map { _ in
            try player.get("/bytes/b/10?status=503&fails=1").status
        }
        #expect(statuses == [503, 200])
        cdn.stop()
    }

    @Test func `a stalled body stays silent until the client leaves`() throws {
        let stream = try player.open("/bytes/a/1000?stall=100")
        #expect(try stream.read(100) == Array(whole[..<100]))
        #expect(cdn.activeRequests == 1)
        stream.close()
        #expect(eventually { cdn.activeRequests == 0 })
        #expect(cdn.bytesSent("/bytes/a/1000") == 100)
        cdn.stop()
    }

    @Test func `first byte and body are delayed as configured`() throws {
        let late = try player.get("/bytes/a/1000?fb=150")
        #expect(late.timeToFirstByte >= .milliseconds(150))
        let paced = try player.get("/bytes/a/1000?rate=2500")
        #expect(paced.duration >= .milliseconds(380))
        #expect(paced.duration - paced.timeToFirstByte > .milliseconds(150))
        let split = try player.get("/bytes/a/1000?delaybody=400")
        #expect(split.duration >= .milliseconds(400))
        #expect(split.duration - split.timeToFirstByte > .milliseconds(150))
        cdn.stop()
    }

    @Test(arguments: ["chunked=1", "eof=1", "chunked=1&rate=100000", "norange=1"])
    func `every framing carries the whole body`(arguments: String) throws {
        let response = try player.get(
            "/bytes/a/1000?\(arguments)", headers: [("Range", "bytes=0-")])
        #expect(response.complete)
        #expect(response.body == whole)
        #expect((response["Content-Length"] == nil) == (arguments != "norange=1"))
        cdn.stop()
    }

    @Test func `a wrong length is announced and the true body sent`() throws {
        let long = try player.get("/bytes/a/1000?wronglength=5")
        #expect(long["Content-Length"] == "1005")
        #expect(!long.complete)
        #expect(try player.get("/bytes/a/1000?wronglength=-5").body.count == 995)
        cdn.stop()
    }

    @Test func `gzip is sent to clients that accept it, with another validator`() throws {
        let plain = try player.get("/ts/master.m3u8?gzip=1")
        let packed = try player.get(
            "/ts/master.m3u8?gzip=1", headers: [("Accept-Encoding", "gzip")])
        #expect(plain["Content-Encoding"] == nil)
        #expect(packed["Content-Encoding"] == "gzip")
        #expect(packed["ETag"] != plain["ETag"])
        let folder = try TemporaryFolder()
        try writeFile(folder.file("list.gz"), packed.body)
        let unpacked = try Tool.run(["gzip", "-dc", folder.file("list.gz")])
        #expect(unpacked.status == 0)
        #expect(unpacked.output == plain.body)
        cdn.stop()
    }

    @Test(arguments: [
        ("needtoken=x", "?token=x", "X-None: 1"),
        ("needcookie=a=1", "", "Cookie: b=2; a=1"),
        ("needheader=Referer: http://a/", "", "Referer: http://a/"),
    ])
    func `a client that does not meet a condition is rejected`(
        condition: String, query: String, field: String
    ) throws {
        let name = String(field.prefix { $0 != ":" })
        let fields = [(name: name, value: String(field.dropFirst(name.count + 2)))]
        cdn.setBehaviour(Behaviour(query: condition), for: "/bytes/*")
        #expect(try player.get("/bytes/a/10").status == 403)
        #expect(try player.get("/bytes/a/10" + query, headers: fields).status == 200)
        cdn.stop()
    }

    @Test func `fields, validators and redirects are as configured`() throws {
        let shaped = try player.get(
            "/bytes/a/10?etag=v2&type=text/x&cc=no-store&cookie=a%3D1&header=X-A:%20b")
        #expect(shaped["ETag"] == "\"v2\"")
        #expect(shaped["Content-Type"] == "text/x")
        #expect(shaped["Cache-Control"] == "no-store")
        #expect(shaped["Set-Cookie"] == "a=1")
        #expect(shaped["X-A"] == "b")
        let moved = try player.get("/bytes/a/10?location=http://127.0.0.2:1/x")
        #expect(moved.status == 302)
        #expect(moved["Location"] == "http://127.0.0.2:1/x")
        #expect(try player.get("/bytes/a/10?noetag=1&lastmod=").head["ETag"] == nil)
        cdn.stop()
    }

    @Test func `an object can be replaced under the same path`() throws {
        let before = try player.get("/bytes/a/1000")
        cdn.setBehaviour("as=/bytes/b/900", for: "/bytes/a/1000")
        let after = try player.get("/bytes/a/1000")
        #expect(after.body == FixtureCDN.syntheticBytes("b", 0..<900))
        #expect(after["ETag"] != before["ETag"])
        #expect(cdn.requestCount("/bytes/a/1000") == 2)
        cdn.stop()
    }

    @Test func `a held response waits until it is released, before the head or within the body`()
        throws
    {
        cdn.hold("/bytes/a/1000", afterBytes: 300)
        let stream = try player.open("/bytes/a/1000")
        #expect(try stream.read(300).count == 300)
        #expect(cdn.bytesSent("/bytes/a/1000") == 300)
        cdn.release("/bytes/a/1000")
        #expect(try stream.readRest().count == 700)
        cdn.stop()
    }
}
