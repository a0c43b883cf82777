import FixtureCDN
import ScenarioSupport
import Testing

/// A daemon whose parent holds files of an origin.
private final class HeldFilm: Sendable {
    let parent = FixtureCDN()
    /// The child, and the origin.
    let story: Story

    init() throws {
        try parent.start()
        story = try Story(["--parent", parent.baseURL + "/{scheme}/{host}{path}"])
    }

    /// The parent's path for a path of the origin.
    func place(_ path: String) -> String { "/http/127.0.0.1:\(story.cdn.port)\(path)" }

    func put(_ path: String, text: String) { parent.put(place(path), text: text) }

    /// Plays the first two segments of a list of four, which the parent serves.
    func playTwoOfFour() throws {
        let names = (0..<4).map { "l\($0).ts" }
        put("/l.m3u8", text: vod(names))
        for name in names { put("/" + name, text: name) }
        let media = uriLines(try story.get("/l.m3u8").text)
        for number in 0..<2 { #expect(try story.follow(media[number]).text == names[number]) }
    }

    /// Requests a file that the parent does not get, so that the origin is asked directly, until that
    /// is down.
    func markOrigin() throws -> Bool {
        parent.setBehaviour("status=504", for: place("/lost.ts"))
        return try eventually {
            _ = try story.get("/lost.ts")
            return try story.stat("origin_outages_total") == 1
        }
    }
}

/// Origins that the parent has a way to, or copies of, and the child has not.
extension Stories.ParentTests {
    @Test func `an origin that fails directly is not down for what its parent serves`() throws {
        let film = try HeldFilm()
        defer { film.parent.stop() }
        let story = film.story
        story.cdn.stop()
        let names = (0..<5).map { "l\($0).ts" }
        film.put("/l.m3u8", text: vod(names))
        for name in names { film.put("/" + name, text: name) }
        let long = segment("long", 400_000)
        film.parent.put(film.place(long), FixtureCDN.syntheticBytes("long.ts", 0..<400_000))
        let media = uriLines(try story.get("/l.m3u8").text)
        for number in [0, 1, 3] { #expect(try story.follow(media[number]).text == names[number]) }
        #expect(try story.get(long, range: "bytes=200000-200999").status == 206)
        #expect(try film.markOrigin())
        #expect(outline(try story.get("/l.m3u8")) == "l0 l1 l2 l3 l4 .")
        #expect(try story.follow(media[2]).text == names[2])
        #expect(isContent(try story.get(long).body, of: long))
        // Without a parent the origin is down.
        film.parent.stop()
        #expect(
            try eventually {
                _ = try story.follow(media[4])
                return outline(try story.get("/l.m3u8")) == "l0 l1 l2 l3 ."
            })
    }

    @Test(arguments: [true, false])
    func `the first play without parent and origin is shortened like the second`(
        _ restarts: Bool
    ) throws {
        let film = try HeldFilm()
        defer { film.parent.stop() }
        let story = film.story
        try film.playTwoOfFour()
        // As long as the parent answers, the origin is not contacted.
        #expect(outline(try story.get("/l.m3u8")) == "l0 l1 l2 l3 .")
        #expect(story.cdn.requests.isEmpty)
        film.parent.stop()
        story.cdn.stop()
        if restarts { try story.restart() }
        // The parent's previous answer is trusted for half a second.
        #expect(try eventually { outline(try story.get("/l.m3u8")) == "l0 l1 ." })
        #expect(outline(try story.get("/l.m3u8")) == "l0 l1 .")
    }

    @Test func `an answer of the parent is enough for the requests of half a second`() throws {
        let film = try HeldFilm()
        defer { film.parent.stop() }
        let story = film.story
        try film.playTwoOfFour()
        film.parent.resetLog()
        let count = 20
        for _ in 0..<count { #expect(outline(try story.get("/l.m3u8")) == "l0 l1 l2 l3 .") }
        let asked = film.parent.requestCount("/")
        #expect(asked > 0 && asked < count)
    }

    @Test func `another program in place of a sluice costs no error, and the log names it once`()
        throws
    {
        let other = FixtureCDN()
        try other.start()
        defer { other.stop() }
        other.setBehaviour("location=/login", for: "/o/*")
        let story = try Story(["--parent", other.baseURL])
        for number in 0..<3 {
            let path = segment("s\(number)", 9_000)
            #expect(isContent(try story.get(path).body, of: path))
        }
        #expect(try story.stat("origin_errors_total") == 0)
        let warning = "a parent does not answer"
        let log = { story.daemon.standardError }
        #expect(eventually { log().contains(warning) })
        #expect(log().contains("it is not another sluice"))
        #expect(other.requestCount("/login") == 0)
    }

    @Test func `a page that a parent sends in place of a segment is asked for at the origin`()
        throws
    {
        let film = try HeldFilm()
        defer { film.parent.stop() }
        let story = film.story
        let page = "<!DOCTYPE html><html><body>sign in</body></html>"
        film.parent.put(film.place("/a.ts"), text: page, contentType: "text/html")
        story.cdn.put("/a.ts", text: "media")
        let answer = try story.get("/a.ts")
        #expect(answer.status == 200 && answer.text == "media")
        #expect(try story.stat("parent_failures_total") == 1)
    }

    @Test(.enabled(if: NginxFront.isAvailable, "needs nginx and openssl"))
    func `a parent whose certificate is not trusted is left out, and the log says what to do`()
        throws
    {
        let cdn = FixtureCDN()
        try cdn.start()
        let front = try NginxFront(.proxy(cdn))
        defer {
            front.stop()
            cdn.stop()
        }
        let story = try Story(["--parent", front.baseURL + "/{scheme}/{host}{path}"])
        for number in 0..<5 {
            let path = segment("s\(number)", 9_000)
            #expect(isContent(try story.get(path).body, of: path))
        }
        #expect(try story.stat("parent_failures_total") == 1)
        #expect(
            eventually {
                let log = story.daemon.standardError
                return log.contains("a parent does not answer")
                    && log.contains("--origin-ca 127.0.0.1=FILE")
            })
        let report = try story.follow("/api/origins").text
        #expect(report.contains("\"state\":\"down\""), "\(report)")
    }

    @Test func `a live window advances through a parent while its origin fails directly`() throws {
        let film = try HeldFilm()
        defer { film.parent.stop() }
        let story = film.story
        story.cdn.stop()
        film.put("/live.m3u8", text: liveList(7, ["a.ts", "b.ts"]))
        let first = uriLines(try story.get("/live.m3u8").text)
        #expect(first.count == 2)
        #expect(try film.markOrigin())
        film.put("/live.m3u8", text: liveList(8, ["b.ts", "c.ts"]))
        var second = ""
        #expect(
            try eventually {
                second = try story.get("/live.m3u8").text
                return second.contains("SEQUENCE:8")
            })
        #expect(uriLines(second).first == first.last && !second.contains("ENDLIST"))
    }

    @Test func `a request that is with a parent does not fail with its origin`() throws {
        let film = try HeldFilm()
        defer { film.parent.stop() }
        let story = film.story
        story.cdn.stop()
        let place = film.place("/slow.ts")
        film.put("/slow.ts", text: "slow")
        film.parent.hold(place)
        let slow = Background { try story.get("/slow.ts").text }
        #expect(eventually { film.parent.requestCount(place) == 1 })
        #expect(try film.markOrigin())
        film.parent.release(place)
        #expect(try slow.value() == "slow")
        #expect(film.parent.requestCount(place) == 1)
    }

    @Test func `an origin is down for a session that bypasses the parent, and for no other`()
        throws
    {
        let film = try HeldFilm()
        defer { film.parent.stop() }
        let story = film.story
        let names = (0..<3).map { "l\($0).ts" }
        story.cdn.put("/l.m3u8", text: vod(names))
        film.put("/l.m3u8", text: vod(names))
        for name in names {
            story.cdn.put("/" + name, text: name)
            film.put("/" + name, text: name)
        }
        let entry = story.entry("/l.m3u8", "h_X-Key=s3cret")
        let own = uriLines(try story.follow(entry).text)
        for link in own.prefix(2) { #expect(try story.follow(link).status == 200) }
        #expect(try story.stat("parent_requests_total") == 0)
        story.cdn.stop()
        #expect(
            try eventually {
                _ = try story.follow(own[2])
                return try story.stat("origin_outages_total") == 1
            })
        #expect(outline(try story.follow(entry)) == "l0 l1 .")
        let list = try story.get("/l.m3u8")
        #expect(outline(list) == "l0 l1 l2 .")
        #expect(try story.follow(uriLines(list.text)[2]).text == names[2])
    }
}
