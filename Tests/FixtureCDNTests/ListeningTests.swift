import FixtureCDN
import ScenarioSupport
import Testing

/// Ends of the fixtures that listen.
@Suite struct ListeningTests {
    @Test func `a way out that is stopped ends its connections`() throws {
        let proxy = try WayOutProxy(.http)
        let stream = try ScriptedPlayer("http://127.0.0.1:\(proxy.port)").sendRaw("GET".utf8)
        proxy.stop()
        #expect(stream.waitForClose())
    }

    @Test func `a failing path that is stopped ends its connections`() throws {
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        let path = try FailingPath(to: cdn.port)
        let stream = try ScriptedPlayer("http://127.0.0.1:\(path.port)").sendRaw("GET".utf8)
        path.stop()
        #expect(stream.waitForClose())
    }

    @Test func `a CDN and a bucket keep their ports over stops`() throws {
        let cdn = FixtureCDN()
        let bucket = BucketFixture()
        for _ in 0..<3 {
            try cdn.start()
            try bucket.start()
            let (port, location) = (cdn.port, bucket.location)
            cdn.stop()
            bucket.stop()
            #expect(cdn.port == port && bucket.location == location)
            #expect(cdn.openConnections == 0)
        }
    }
}
