import FixtureCDN
import ScenarioSupport
import Testing

/// Origins that do not answer: noticed once, replaced by the store, probed in the background, used
/// again.
extension Stories {
    @Suite(.tags(.timed, .threads)) struct OfflineOutageTests {}
}

extension Stories.OfflineOutageTests {
    /// A story whose origin swallows connections; `/a.ts` is stored and must be revalidated.
    private func blackHoled(_ arguments: [String] = ["--policy", "refresh"]) throws -> (
        Story, BlackHole
    ) {
        let story = try Story(["--connect-timeout", "1"] + arguments)
        story.cdn.put("/a.ts", Array("bytes".utf8))
        story.put(list: "l")
        try story.keep("l", 0..<2, 3..<6)
        _ = try story.get("/a.ts")
        story.cdn.stop()
        return (story, try BlackHole(port: story.cdn.port))
    }

    @Test
    func `an origin that accepts no connection is waited for once`() throws {
        let (story, hole) = try blackHoled()
        defer { hole.end() }
        let first = try story.get("/a.ts")
        #expect(first.text == "bytes" && first.duration >= .milliseconds(900))
        let asked = try story.stat("origin_requests_total")
        for _ in 0..<5 {
            let answer = try story.get("/a.ts")
            #expect(answer["Cache-Status"]?.contains("origin-unreachable") == true)
            #expect(answer.text == "bytes")
        }
        #expect(try story.stat("origin_requests_total") == asked)
        #expect(try story.stat("origin_outages_total") == 1)
    }

    @Test
    func `a missing object fails immediately, and the origin is named`() throws {
        let (story, hole) = try blackHoled()
        defer { hole.end() }
        _ = try story.get("/a.ts")
        let asked = try story.stat("origin_requests_total")
        let answer = try story.get("/new.ts")
        #expect(answer.status == 504)
        #expect(answer.text.hasPrefix("origin error: ") && answer.text.contains("127.0.0.1"))
        #expect(answer.text.contains("has not answered") && answer["Retry-After"] != nil)
        #expect(answer["Proxy-Status"]?.contains("destination_unavailable") == true)
        // The origin was not asked for it.
        #expect(answer["Cache-Status"] == "sluice; detail=origin-error")
        #expect(try story.stat("origin_requests_total") == asked)
        let part = try story.get("/l.m3u8")
        #expect(part["Cache-Status"]?.contains("offline") == true)
    }

    @Test
    func `a byte range that its stored file does not have is no segment to play`() throws {
        let story = try Story(["--policy", "refresh"])
        story.cdn.put("/a.ts", Array("bytes".utf8))
        #expect(try story.get("/a.ts").text == "bytes")
        story.cdn.put(
            "/ranges.m3u8",
            text: """
                #EXTM3U
                #EXT-X-VERSION:4
                #EXT-X-TARGETDURATION:4
                #EXTINF:4,
                #EXT-X-BYTERANGE:3@0
                a.ts
                #EXTINF:4,
                #EXT-X-BYTERANGE:3@50
                a.ts
                #EXT-X-ENDLIST

                """)
        #expect(try story.get("/ranges.m3u8").text.contains("3@50"))
        story.cdn.stop()
        let list = try story.get("/ranges.m3u8").text
        #expect(list.contains("3@0") && !list.contains("3@50"), "\(list)")
    }

    @Test
    func `requests that wait for the origin's first byte fail together with the first of them`()
        throws
    {
        let (story, hole) = try blackHoled()
        defer { hole.end() }
        // Without shared knowledge each would make one more attempt.
        let asked = try story.stat("origin_requests_total")
        let answers = try inParallel(8) { number in
            try story.get("/n\(number).ts")
        }
        #expect(answers.allSatisfy { $0.status == 504 })
        #expect(try story.stat("origin_requests_total") <= asked + 8)
        #expect(try story.stat("origin_outages_total") == 1)
    }

    @Test
    func
        `an origin that is down is probed in the background, and used again after its first response`()
        throws
    {
        let (story, hole) = try blackHoled()
        _ = try story.get("/a.ts")
        #expect(try story.settled("origin_probes_total") { $0 > 0 } > 0)
        hole.end()
        story.cdn.put("/new.ts", Array("new".utf8))
        // A probe may come as soon as the origin is back.
        story.cdn.resetLog()
        try story.cdn.start()
        let isBack = try eventually(within: .seconds(15)) {
            try story.get("/new.ts").status == 200
        }
        #expect(isBack && story.cdn.requests.contains { $0.method == "HEAD" && $0.path == "/" })
        let answer = try story.get("/a.ts")
        #expect(answer["Cache-Status"]?.contains("origin-unreachable") == false)
    }

    @Test
    func
        `an origin that refuses connections is down after the second failure, and up after one response`()
        throws
    {
        let story = try Story()
        story.put(list: "l")
        try story.keep("l", 0..<2, 3..<6)
        let hidden = try story.links(in: "/l.m3u8")[2]
        story.cdn.stop()
        #expect(try story.follow(hidden).status == 502)
        #expect(outline(try story.get("/l.m3u8")) == "l0 l1 | l3 l4 l5 .")
        #expect(try story.stat("offline_lists_total") == 1)
        try story.cdn.start()
        // If connections are refused immediately, any request is the probe.
        #expect(try story.follow(hidden).status == 200)
        #expect(outline(try story.get("/l.m3u8")) == "l0 l1 l2 l3 l4 l5 .")
    }

    @Test
    func `a segment of a title that plays waits for an origin that falls silent and returns`()
        throws
    {
        let story = try Story(["--connect-timeout", "1"])
        story.put(list: "l")
        let media = try story.links(in: "/l.m3u8")
        #expect(try story.follow(media[0]).status == 200)
        story.cdn.stop()
        let hole = try BlackHole(port: story.cdn.port)
        let next = Background { try story.follow(media[1]).status }
        #expect(try story.settled("origin_outages_total") { $0 == 1 } == 1)
        // What is stored is not delayed.
        #expect(try story.follow(media[0]).status == 200)
        hole.end()
        try story.cdn.start()
        #expect(try next.value(within: .seconds(15)) == 200)
    }

    /// Returns the links of a playlist whose two segments its origin redirects to another one.
    private func redirectedLinks(of story: Story, to media: FixtureCDN) throws -> [String] {
        story.put(list: "l")
        for number in 0..<2 {
            let path = "/bytes/3000/l\(number).ts"
            story.cdn.setBehaviour(Behaviour(query: "location=\(media.url(path))"), for: path)
        }
        return try story.links(in: "/l.m3u8")
    }

    /// Requests a segment that its origin redirects to another one, which has fallen silent.
    ///
    /// - Returns: what holds the port of the silent origin, and the request's status.
    private func requestWhileSilent(
        _ media: FixtureCDN, of story: Story
    ) throws -> (hole: BlackHole, status: Background<Int>) {
        let links = try redirectedLinks(of: story, to: media)
        #expect(try story.follow(links[0]).status == 200)
        media.stop()
        let hole = try BlackHole(port: media.port)
        return (hole, Background { try story.follow(links[1]).status })
    }

    @Test
    func `a segment behind a redirect waits for the silent origin that it leads to`() throws {
        let story = try Story(["--connect-timeout", "1"])
        let media = FixtureCDN()
        try media.start()
        defer { media.stop() }
        let (hole, next) = try requestWhileSilent(media, of: story)
        #expect(try story.settled("origin_outages_total") { $0 == 1 } == 1)
        hole.end()
        try media.start()
        #expect(try next.value(within: .seconds(15)) == 200)
    }

    @Test
    func `a segment goes on waiting if the origin that redirected it falls silent as well`() throws
    {
        let story = try Story(["--connect-timeout", "1"])
        let media = FixtureCDN()
        try media.start()
        defer { media.stop() }
        let (hole, next) = try requestWhileSilent(media, of: story)
        // The request that waits has been redirected, and has found the media host silent.
        #expect(try story.settled("origin_retries_total") { $0 == 1 } == 1)
        story.cdn.stop()
        let other = try BlackHole(port: story.cdn.port)
        #expect(try story.get("/other.ts").status == 504)
        #expect(try story.stat("origin_outages_total") == 2)
        for hole in [hole, other] { hole.end() }
        for cdn in [media, story.cdn] { try cdn.start() }
        #expect(try next.value(within: .seconds(15)) == 200)
    }

    @Test
    func `one resource without a response is not an outage`() throws {
        let story = try Story(["--first-byte-timeout", "1"])
        for name in ["silent", "a", "b"] { story.cdn.put("/\(name).ts", Array(name.utf8)) }
        story.cdn.setBehaviour("fb=20000", for: "/silent.ts")
        let silent = Background { try story.get("/silent.ts").status }
        #expect(eventually { story.cdn.requestCount("/silent.ts") == 1 })
        #expect(try story.get("/a.ts").status == 200)
        #expect(try silent.value(within: .seconds(10)) == 504)
        #expect(try story.get("/b.ts").status == 200)
        #expect(try story.stat("origin_outages_total") == 0)
    }

    @Test
    func `a redirect to an origin that is down is not followed again`() throws {
        let (story, hole) = try blackHoled()
        defer { hole.end() }
        let front = FixtureCDN()
        try front.start()
        defer { front.stop() }
        front.setBehaviour(Behaviour(query: "location=\(story.cdn.url("/a.ts"))"), for: "/r.ts")
        #expect(try story.player().get(story.url(for: front.url("/r.ts"))).status == 504)
        let asked = try story.stat("origin_requests_total")
        let second = try story.player().get(story.url(for: front.url("/r.ts")))
        #expect(second.status == 504)
        #expect(front.requestCount("/r.ts") == 2)
        #expect(try story.stat("origin_requests_total") == asked + 1)
    }

    @Test
    func `a list is shortened where its segments belong to another origin that is down`() throws {
        let story = try Story()
        let media = FixtureCDN()
        try media.start()
        let live = story.cdn.live("/live.m3u8", liveWindow(target: 1))
        let uris = (0..<3).map { media.url(segment("s\($0)", 300)) }
        story.cdn.put("/l.m3u8", text: vod(uris))
        let found = try story.links(in: "/l.m3u8")
        for link in found[0...1] { #expect(try story.follow(link).status == 200) }
        media.stop()
        #expect(try story.follow(found[2]).status == 502)
        #expect(outline(try story.get("/l.m3u8")) == "s0 s1 .")
        // Segments of the other origin are as before.
        story.put(list: "other")
        _ = try story.get("/other.m3u8")
        #expect(outline(try story.get("/other.m3u8")).hasSuffix("other5 ."))
        #expect(outline(try story.get("/live.m3u8")) == "s0 s1 s2")
        withExtendedLifetime(live) {}
    }

    @Test
    func `a live playlist continues for a while, then ends, and is live again afterwards`() throws {
        let story = try Story()
        let window = story.cdn.live("/live.m3u8", liveWindow(target: 1, window: 3))
        for number in 0..<8 { story.cdn.put("/s\(number).ts", Array("\(number)".utf8)) }
        for link in try story.links(in: "/live.m3u8").dropFirst() { _ = try story.follow(link) }
        story.cdn.stop()
        var stale = 0
        let ended = try eventually(within: .seconds(15)) {
            let list = try story.get("/live.m3u8")
            guard list.status == 200 else { return false }
            if list["Cache-Status"]?.contains("origin-unreachable") == true { stale += 1 }
            return outline(list) == "s1 s2 ."
        }
        #expect(ended && stale > 0)
        window.advance()
        try story.cdn.start()
        let isLive = try eventually(within: .seconds(15)) {
            outline(try story.get("/live.m3u8")) == "s1 s2 s3"
        }
        #expect(isLive)
    }

    @Test func `the first reload of an old live playlist after refused connections gets its end`()
        throws
    {
        let story = try Story()
        let window = story.cdn.live("/live.m3u8", liveWindow(target: 1, window: 3))
        for number in 0..<3 { story.cdn.put("/s\(number).ts", Array("\(number)".utf8)) }
        for link in try story.links(in: "/live.m3u8") { _ = try story.follow(link) }
        story.cdn.stop()
        let begin = ContinuousClock.now
        // Only elapsed time makes it older than it may stay unchanged: three and a half seconds.
        _ = eventually(within: .seconds(10)) { ContinuousClock.now - begin > .seconds(4) }
        #expect(try story.stat("origin_probes_total") == 0)
        #expect(outline(try story.get("/live.m3u8")) == "s0 s1 s2 .")
        withExtendedLifetime(window) {}
    }

    @Test func `a live playlist that ends lists nothing of another host that is gone as well`()
        throws
    {
        let story = try Story()
        let other = FixtureCDN()
        try other.start()
        for cdn in [story.cdn, other] {
            for number in 0..<5 { cdn.put("/s\(number).ts", text: "\(number)") }
        }
        let uris = (0..<5).map { $0 % 2 == 0 ? "s\($0).ts" : other.url("/s\($0).ts") }
        let head = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:0\n"
        story.cdn.put("/live.m3u8", text: head + uris.map { "#EXTINF:1,\n\($0)\n" }.joined())
        let media = try story.links(in: "/live.m3u8")
        for number in [0, 2, 3, 4] { #expect(try story.follow(media[number]).status == 200) }
        story.cdn.stop()
        other.stop()
        let begin = ContinuousClock.now
        // Only elapsed time makes it older than it may stay unchanged: three and a half seconds.
        _ = eventually(within: .seconds(10)) { ContinuousClock.now - begin > .seconds(4) }
        for _ in 0..<2 { #expect(outline(try story.get("/live.m3u8")) == "s2 s3 s4 .") }
    }

    @Test
    func `a daemon that starts without a network plays stored titles`() throws {
        let (story, hole) = try blackHoled(["--policy", "media"])
        defer { hole.end() }
        try story.restart()
        #expect(outline(try story.get("/l.m3u8")) == "l0 l1 | l3 l4 l5 .")
        #expect(try story.get("/bytes/3000/l2.ts").status == 504)
    }

    @Test
    func `why reports that an origin does not answer, and the form of a list meanwhile`() throws {
        let (story, hole) = try blackHoled(["--policy", "media"])
        defer { hole.end() }
        _ = try story.get("/new.ts")
        let url = percentEncoded(story.cdn.url("/l.m3u8"))
        let report = try story.player().get("/api/why?url=\(url)").text
        #expect(report.contains("\"state\":\"down\"") && report.contains("\"outcome\":\"offline\""))
        let log = story.daemon.standardError
        #expect(log.contains("an origin does not answer"))
    }
}
