import FixtureCDN
import ScenarioSupport
import Testing

/// The four policies, and playing again when the origin is gone.
extension Stories {
    @Suite(.tags(.timed)) struct OfflineTests {}
}

extension Stories.OfflineTests {
    /// Everything that a multivariant playlist refers to, in order; nil for incomplete responses.
    private func playAll(_ player: ScriptedPlayer, _ entry: String) throws -> [[UInt8]?] {
        func fetch(_ link: String) throws -> PlayerResponse { try player.get(link) }
        let master = try fetch(entry)
        var found: [[UInt8]?] = []
        for variant in links(master.text) {
            let media = try fetch(variant)
            for link in links(media.text) {
                let answer = try fetch(link)
                found.append(answer.status == 200 && answer.complete ? answer.body : nil)
            }
        }
        return found
    }

    @Test(arguments: ["ts", "fmp4", "aes", "audio"])
    func `a played title plays again without the CDN, also after a restart`(_ fixture: String)
        throws
    {
        let story = try Story(playing: [])
        let entry = story.cdn.url("/\(fixture)/master.m3u8")
        let first = try playAll(story.player(), "/" + entry)
        #expect(first.count >= 6 && !first.contains(nil))
        story.cdn.stop()
        #expect(try playAll(story.player(), "/" + entry) == first)
        try story.restart()
        #expect(try playAll(story.player(), "/" + entry) == first)
        let offline = try story.succeed(["--policy", "offline"])
        #expect(try playAll(ScriptedPlayer(offline.baseURL), "/" + entry) == first)
    }

    @Test
    func `offline never contacts the origin, and names what is missing`() throws {
        let story = try Story()
        _ = story.cdn.live("/l.m3u8", liveWindow())
        story.cdn.put("/s0.ts", text: "bytes")
        let found = try story.links(in: "/l.m3u8")
        _ = try story.follow(found[0])
        story.cdn.resetLog()
        let daemon = try story.succeed(["--policy", "offline"])
        let player = ScriptedPlayer(daemon.baseURL)
        let list = try player.get("/" + story.cdn.url("/l.m3u8"))
        #expect(list.status == 200 && links(list.text) == [found[0]])
        let missing = try player.get(found[1])
        #expect(missing.status == 504 && missing.text.contains("policy offline"))
        #expect(story.cdn.requestCount() == 0)
    }

    @Test
    func `media reuses resources of a playlist at any age, but respects no-store`() throws {
        let story = try Story()
        for (name, control) in [("a", "max-age=0"), ("b", "no-cache"), ("c", "no-store")] {
            story.cdn.put("/\(name).ts", Array(name.utf8))
            story.cdn.setBehaviour(Behaviour(query: "cc=\(control)"), for: "/\(name).ts")
        }
        story.cdn.put("/l.m3u8", text: vod(["a.ts", "b.ts", "c.ts"]))
        let found = try story.links(in: "/l.m3u8")
        for link in found + found {
            _ = try story.follow(link, headers: [("Cache-Control", "no-cache")])
        }
        #expect(["/a.ts", "/b.ts", "/c.ts"].map { story.cdn.requestCount($0) } == [1, 1, 2])
    }

    @Test
    func `rfc respects max-age and revalidates with the entity tag afterwards`() throws {
        let story = try Story(["--policy", "rfc"])
        story.cdn.put("/fresh.ts", Array("fresh".utf8))
        story.cdn.put("/old.ts", Array("old".utf8))
        story.cdn.setBehaviour("cc=max-age=3600", for: "/fresh.ts")
        story.cdn.setBehaviour("cc=max-age=0", for: "/old.ts")
        for _ in 0..<2 {
            for name in ["fresh", "old"] { #expect(try story.get("/\(name).ts").text == name) }
        }
        #expect(story.cdn.requestCount("/fresh.ts") == 1)
        let asked = story.cdn.requests.filter { $0.path == "/old.ts" }
        #expect(asked.map(\.status) == [200, 304] && asked[1]["If-None-Match"] != nil)
        story.cdn.put("/old.ts", Array("new".utf8))
        #expect(try story.get("/old.ts").text == "new")
    }

    @Test
    func `rfc respects the player's directives, and no-store`() throws {
        let story = try Story(["--policy", "rfc"])
        for name in ["a", "b"] { story.cdn.put("/\(name).ts", Array(name.utf8)) }
        story.cdn.setBehaviour("cc=max-age=3600", for: "/a.ts")
        story.cdn.setBehaviour("cc=no-store", for: "/b.ts")
        for _ in 0..<2 { for path in ["/a.ts", "/b.ts"] { _ = try story.get(path) } }
        _ = try story.get("/a.ts", headers: [("Cache-Control", "no-cache")])
        #expect(story.cdn.requestCount("/a.ts") == 2 && story.cdn.requestCount("/b.ts") == 2)
    }

    @Test
    func `refresh always revalidates, and a 304 transfers no body`() throws {
        let story = try Story(["--policy", "refresh"])
        story.cdn.put("/a.ts", Array("bytes".utf8))
        story.cdn.put("/l.m3u8", text: vod(["a.ts"]))
        for _ in 0..<3 {
            #expect(try story.get("/a.ts").text == "bytes")
            #expect(try story.get("/l.m3u8").status == 200)
        }
        #expect(story.cdn.requestCount("/a.ts") == 3 && story.cdn.requestCount("/l.m3u8") == 3)
        #expect(story.cdn.bytesSent("/a.ts") == 5)
    }

    @Test(arguments: ["refresh", "rfc"])
    func `stored responses are served and marked while the origin is gone`(_ policy: String) throws
    {
        let story = try Story(["--policy", policy])
        story.cdn.put("/a.ts", Array("bytes".utf8))
        story.cdn.setBehaviour("cc=max-age=0", for: "/a.ts")
        _ = try story.get("/a.ts")
        story.cdn.stop()
        let answer = try story.get("/a.ts")
        #expect(
            answer.text == "bytes" && answer["Cache-Status"]?.contains("origin-unreachable") == true
        )
        #expect(try story.stat("stale_total") == 1)
    }

    @Test
    func `Cache-Status of an error says why the origin was asked`() throws {
        let story = try Story(["--policy", "rfc"])
        story.cdn.put("/a.ts", Array("bytes".utf8))
        story.cdn.setBehaviour("cc=max-age=0, must-revalidate", for: "/a.ts")
        #expect(try story.get("/a.ts").status == 200)
        story.cdn.setBehaviour("status=503", for: "/a.ts")
        let stale = try story.get("/a.ts")
        #expect(stale.status >= 500 && stale.text.hasPrefix("origin error: "))
        #expect(
            stale["Cache-Status"]?.hasPrefix("sluice; fwd=stale; fwd-status=503") == true,
            "\(stale["Cache-Status"] ?? "-")")
        story.cdn.setBehaviour("status=503", for: "/b.ts")
        let missing = try story.get("/b.ts")["Cache-Status"]
        #expect(missing?.hasPrefix("sluice; fwd=uri-miss; fwd-status=503") == true)
    }

    @Test
    func `Cache-Status tells a miss from a hit`() throws {
        let story = try Story()
        story.cdn.put("/a.ts", Array("bytes".utf8))
        let miss = try story.get("/a.ts")["Cache-Status"]
        let hit = try story.get("/a.ts")["Cache-Status"]
        #expect(miss?.hasPrefix("sluice; fwd=uri-miss") == true, "\(miss ?? "-")")
        #expect(hit?.hasPrefix("sluice; hit") == true, "\(hit ?? "-")")
    }
}
