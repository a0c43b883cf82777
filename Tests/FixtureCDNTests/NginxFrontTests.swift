// nginx before the sample CDN speaks TLS and HTTP/2 that curl accepts with the test CA.
import FixtureCDN
import ScenarioSupport
import Testing

@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: NginxFront.isAvailable && Tool.exists("curl"), "needs nginx, openssl and curl"))
struct NginxFrontTests {
    private func curl(_ front: NginxFront, _ path: String, _ options: [String] = []) throws
        -> Tool.Result
    {
        try Tool.run(["curl", "-sS", "--cacert", front.caFile] + options + [front.url(path)])
    }

    @Test(arguments: [(true, "HTTP/2.0"), (false, "HTTP/1.1")])
    func `requests reach the CDN over the configured protocol`(
        http2: Bool, version: String
    ) throws {
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        let front = try NginxFront(.proxy(cdn), http2: http2)
        defer { front.stop() }
        let result = try curl(front, "/bytes/a/1000", ["-r", "10-19"])
        #expect(result.status == 0, "\(result.stderr)")
        #expect(result.output == FixtureCDN.syntheticBytes("a", 10..<20))
        #expect(cdn.bytesServedRanges("/bytes/a/1000") == [10..<20])
        #expect(eventually { front.accessLog.count == 1 })
        #expect(front.accessLog.first?.hasPrefix("\(version) 206 GET /bytes/a/1000 ") == true)
    }

    @Test func `a fault of the CDN is visible through nginx`() throws {
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        let front = try NginxFront(.proxy(cdn))
        defer { front.stop() }
        #expect(try curl(front, "/bytes/a/100000?trunc=50000").status != 0)
    }

    @Test func `a folder is served, and clients without the CA reject it`() throws {
        let front = try NginxFront(.folder(Fixture.path("media")))
        defer { front.stop() }
        let result = try curl(front, "/ts/master.m3u8")
        #expect(result.output == (try Fixture.bytes("media/ts/master.m3u8")))
        #expect(try Tool.run(["curl", "-s", front.url("/ts/master.m3u8")]).status == 60)
    }
}
