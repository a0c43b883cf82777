import FixtureCDN
import ScenarioSupport
import Testing

/// `--only-origin`: nothing is fetched from hosts that no setting names.
extension Stories {
    @Suite(.tags(.crowded)) struct OnlyOriginTests {}
}

extension Stories.OnlyOriginTests {
    @Test func `entries, links and redirects to other hosts are refused with the reason`() throws {
        let story = try Story(["--only-origin", "127.0.0.*"])
        let other = "http://localhost:\(story.cdn.port)/b.ts"
        story.cdn.put("/l.m3u8", text: vod(["a.ts", other]))
        for name in ["a", "b", "c"] { story.cdn.put("/\(name).ts", Array(name.utf8)) }
        story.cdn.setBehaviour(Behaviour(query: "location=\(percentEncoded(other))"), for: "/c.ts")
        let links = try story.links(in: "/l.m3u8")
        #expect(try story.follow(links[0]).text == "a")
        for path in [links[1], "/\(other)", "/\(story.cdn.url("/c.ts"))"] {
            let refused = try story.follow(path)
            #expect(refused.status == 403, "\(path)")
            #expect(refused.text.contains("not named with --only-origin"), "\(refused.text)")
            #expect(refused["Cache-Status"]?.contains("detail=only-origin") == true, "\(path)")
            #expect(refused["Proxy-Status"] == "sluice; error=http_request_denied", "\(path)")
        }
        #expect(story.cdn.requestCount("/b.ts") == 0)
        let why = try story.follow("/api/why?url=\(percentEncoded(other))")
        #expect(
            why.text.contains(
                "403, since the host is localhost, which is not named with --only-origin"))
    }

    @Test func `a mount's host is named by the mount`() throws {
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        cdn.put("/vod/a.ts", Array("a".utf8))
        let story = try Story([
            "--only-origin", "other.example", "--mount", "/demo/=\(cdn.url("/vod/"))",
        ])
        #expect(try story.follow("/demo/a.ts").text == "a")
        #expect(try story.follow("/http://localhost:\(cdn.port)/vod/a.ts").status == 403)
    }
}
