import FixtureCDN
import ScenarioSupport
import Testing

/// Lists that change: how long one is reused, and what happens if it cannot be renewed.
extension Stories {
    @Suite(.tags(.timed, .threads)) struct LivePlaylistTests {}
}

private func sequence(_ playlist: PlayerResponse) -> String? {
    playlist.text.split(separator: "\n").first { $0.hasPrefix("#EXT-X-MEDIA-SEQUENCE:") }
        .map { String($0.dropFirst(22)) }
}

/// The age that the daemon states, in seconds.
private func statedAge(_ playlist: PlayerResponse) -> Int {
    playlist["Age"].flatMap { Int($0) } ?? 0
}

extension Stories.LivePlaylistTests {
    @Test
    func `a live list is reused for half a target duration and no longer`() throws {
        let story = try Story()
        let window = story.cdn.live("/l.m3u8", liveWindow(target: 6))
        let begin = ContinuousClock.now
        #expect(sequence(try story.get("/l.m3u8")) == "0")
        window.advance()
        let reused = try story.get("/l.m3u8")
        #expect(sequence(reused) == "0" && story.cdn.requestCount("/l.m3u8") == 1)
        #expect(reused["Cache-Status"]?.contains("hit") == true)
        var oldest = 0
        let renewed = try eventually {
            let list = try story.get("/l.m3u8")
            if sequence(list) == "0" { oldest = max(oldest, statedAge(list)) }
            return sequence(list) == "1"
        }
        let age = ContinuousClock.now - begin
        // Half a target duration by the daemon's clock, plus a second for the rounded Date.
        #expect(renewed && age >= .seconds(2.9) && oldest <= 4, "\(age), \(oldest) s")
    }

    @Test
    func `many players of a live list cost the origin one request each half target duration`()
        throws
    {
        let story = try Story()
        _ = story.cdn.live("/l.m3u8", liveWindow(target: 40))
        story.cdn.setBehaviour("fb=100", for: "/l.m3u8")
        let url = story.url("/l.m3u8")
        let lists = try inParallel(20) { _ in try ScriptedPlayer(url).get(url) }
        #expect(lists.allSatisfy { $0.status == 200 && sequence($0) == "0" })
        #expect(story.cdn.requestCount("/l.m3u8") == 1)
    }

    @Test
    func `with its origin gone a live list is stale for three target durations, then an error`()
        throws
    {
        let story = try Story()
        _ = story.cdn.live("/l.m3u8", liveWindow(target: 1))
        _ = try story.get("/l.m3u8")
        story.cdn.stop()
        let begin = ContinuousClock.now
        var stale: PlayerResponse?
        _ = try eventually {
            let list = try story.get("/l.m3u8")
            if list["Cache-Status"]?.contains("origin-unreachable") == true { stale = list }
            return stale != nil
        }
        #expect(stale?.status == 200 && stale?["Age"] != nil)
        var last: PlayerResponse?
        var oldest = 0
        _ = try eventually {
            let list = try story.get("/l.m3u8")
            if list.status == 200 { oldest = max(oldest, statedAge(list)) }
            last = list
            return list.status != 200
        }
        let age = ContinuousClock.now - begin
        #expect(age > .seconds(2.5) && oldest <= 4, "\(age), \(oldest) s")
        #expect(last?.status == 502 || last?.status == 504)
        #expect(last?.text.hasPrefix("origin error: ") == true)
    }

    @Test
    func `with an origin that accepts and does not answer, a player gets the stored live list`()
        throws
    {
        let story = try Story()
        _ = story.cdn.live("/l.m3u8", liveWindow(target: 2))
        let first = try story.get("/l.m3u8")
        story.cdn.setBehaviour("fb=20000", for: "/l.m3u8")
        let isServed = try eventually {
            let list = try story.get("/l.m3u8")
            #expect(list.status == 200 && list.body == first.body)
            #expect(list.duration < .seconds(5))
            return list["Cache-Status"]?.hasPrefix("sluice; fwd=stale; ttl=-") == true
        }
        #expect(isServed)
        #expect(story.cdn.requestCount("/l.m3u8") == 2)
    }

    @Test
    func `a playlist that gains ENDLIST is not reloaded, an EVENT without it is`() throws {
        let story = try Story()
        let window = story.cdn.live("/l.m3u8", liveWindow())
        _ = try story.get("/l.m3u8")
        window.end()
        let ended = try eventually { try story.get("/l.m3u8").text.contains("#EXT-X-ENDLIST") }
        let count = story.cdn.requestCount("/l.m3u8")
        _ = try story.get("/l.m3u8")
        #expect(ended && story.cdn.requestCount("/l.m3u8") == count)
        story.cdn.put(
            "/e.m3u8",
            text: "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-PLAYLIST-TYPE:EVENT\n#EXTINF:1,\na.ts\n"
        )
        _ = try story.get("/e.m3u8")
        let again = try eventually {
            _ = try story.get("/e.m3u8")
            return story.cdn.requestCount("/e.m3u8") >= 2
        }
        #expect(again)
    }

    @Test
    func `Age counts from the origin, Date is ours, and pages may read both`() throws {
        let story = try Story()
        story.cdn.put("/a.ts", Array("bytes".utf8))
        story.cdn.setBehaviour(
            "header=Age:100&header=Date:Thu,%2001%20Jan%202026%2000:00:00%20GMT", for: "/a.ts")
        let first = try story.get("/a.ts")
        #expect((first["Age"].flatMap { Int($0) } ?? 0) >= 100)
        #expect(
            first.head.all("Date").count == 1
                && first["Date"]?.contains("Jan 2026 00:00:00") == false)
        let exposed = first["Access-Control-Expose-Headers"] ?? ""
        for name in ["Age", "Date", "Cache-Status"] { #expect(exposed.contains(name)) }
    }

    @Test
    func `a live list that ends with its connection and is cut leaves the stored one`() throws {
        let story = try Story()
        let window = story.cdn.live("/l.m3u8", liveWindow(target: 4))
        story.cdn.setBehaviour("eof=1", for: "/l.m3u8")
        let whole = try story.get("/l.m3u8")
        #expect(whole.text.contains("#EXTINF"))
        window.advance()
        story.cdn.setBehaviour("eof=1&trunc=60", for: "/l.m3u8")
        var last = whole
        let isReloaded = try eventually {
            last = try story.get("/l.m3u8")
            return story.cdn.requestCount("/l.m3u8") > 1
        }
        #expect(isReloaded && last.status == 200)
        #expect(last.text.contains("#EXTINF"), "\(last.text)")
    }

    @Test(arguments: [("media", true), ("rfc", false)])
    func `a slow clock of the origin makes no playlist old, but for the policy rfc`(
        policy: String, isYoung: Bool
    ) throws {
        let story = try Story(["--policy", policy])
        _ = story.cdn.live("/l.m3u8", liveWindow())
        story.cdn.setBehaviour(
            "header=Date:Thu,%2001%20Jan%202026%2000:00:00%20GMT", for: "/l.m3u8")
        let list = try story.get("/l.m3u8")
        #expect(list.status == 200 && (statedAge(list) < 1_000) == isYoung, "\(list.head)")
    }

    @Test
    func `a live playlist with an entity tag is revalidated, not reloaded`() throws {
        let story = try Story()
        _ = story.cdn.live("/l.m3u8", liveWindow())
        _ = try story.get("/l.m3u8")
        var answer: PlayerResponse?
        _ = try eventually {
            answer = try story.get("/l.m3u8")
            return story.cdn.requestCount("/l.m3u8") == 2
        }
        #expect(story.cdn.requests.last?["If-None-Match"] != nil)
        #expect(story.cdn.requests.last?.status == 304)
        #expect(answer?.status == 200 && answer.flatMap(sequence) == "0")
        #expect(try story.stat("revalidated_total") == 1)
    }

    @Test
    func `a segment that does not exist yet is not remembered as missing`() throws {
        let story = try Story()
        _ = story.cdn.live("/l.m3u8", liveWindow())
        let link = try story.links(in: "/l.m3u8")[0]
        #expect(try story.follow(link).status == 404)
        story.cdn.put("/s0.ts", Array("here now".utf8))
        #expect(try story.follow(link).text == "here now")
    }

    @Test
    func `delivery directives reach the origin in one request`() throws {
        let story = try Story()
        let window = story.cdn.live("/l.m3u8", liveWindow(target: 4))
        story.cdn.put("/m.m3u8", text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nl.m3u8?t=1\n")
        let link = try story.links(in: "/m.m3u8")[0]
        let base = story.daemon.baseURL
        story.cdn.setBehaviour("fb=200", for: "/l.m3u8")
        let same = try inParallel(5) { _ in
            try ScriptedPlayer(base).get(link + "?_HLS_msn=2&_HLS_part=1&cmcd=x")
        }
        #expect(same.allSatisfy { $0.status == 200 })
        #expect(story.cdn.requestCount("/l.m3u8?t=1&_HLS_msn=2&_HLS_part=1") == 1)
        window.advance()
        #expect(sequence(try story.follow(link + "?_HLS_msn=3")) == "1")
        #expect(story.cdn.requestCount("/l.m3u8") == 2)
    }

    @Test(arguments: ["no-store", "private, no-store"])
    func `a list that may not be stored is not shared`(_ control: String) throws {
        let story = try Story()
        story.cdn.put("/l.m3u8", text: vod(["a.ts"]))
        story.cdn.setBehaviour(Behaviour(query: "cc=\(percentEncoded(control))"), for: "/l.m3u8")
        for _ in 0..<2 { #expect(try story.get("/l.m3u8").status == 200) }
        #expect(story.cdn.requestCount("/l.m3u8") == 2)
    }

    @Test
    func `segments of a live window are kept as such, and those of a film are not`() throws {
        let story = try Story()
        _ = story.cdn.live("/l.m3u8", liveWindow(target: 4))
        story.cdn.put("/s0.ts", text: String(repeating: "live", count: 9_999))
        let live = try #require(try story.links(in: "/l.m3u8").first)
        #expect(try story.follow(live).status == 200)
        story.cdn.put("/film.m3u8", text: vod([segment("film", 40_000)]))
        let film = try #require(try story.links(in: "/film.m3u8").first)
        #expect(try story.follow(film).status == 200)
        // Listed shortly after they were stored.
        let areListed = try eventually {
            let kinds = try story.follow("/api/df").text
            return kinds.contains("\"live media\"") && kinds.contains("\"media\"")
        }
        #expect(areListed)
    }
}
