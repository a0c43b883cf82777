import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// The outcome that `why` predicts is that of the next request.
extension Stories.WhyTests {
    /// The name of a response's outcome in its `Cache-Status`.
    private func outcome(_ answer: PlayerResponse) -> String {
        guard answer.status < 400, let status = answer["Cache-Status"] else { return "failed" }
        var members: [String: String] = [:]
        for part in status.split(separator: ";").dropFirst() {
            let pair = part.split(separator: "=").map { $0.filter { $0 != " " && $0 != "\"" } }
            members[pair[0]] = pair.count == 2 ? pair[1] : ""
        }
        let detail = members["detail"]
        if members["hit"] != nil {
            return detail == "origin-unreachable" ? "stale" : detail ?? "hit"
        }
        switch (members["fwd"], detail) {
        case ("partial", _): return "partial"
        case _ where members["fwd-status"] == "304": return "revalidated"
        case (_, let detail?): return "refreshed-\(detail)"
        default: return "miss"
        }
    }

    /// The outcome that `why` expects of a plain GET.
    private func expected(_ player: ScriptedPlayer, _ url: String) throws -> String {
        let text = try player.get("/api/why?url=\(percentEncoded(url))").text
        let next = text.components(after: "\"next\":{\"outcome\":\"")
        #expect(text.contains("\"plan\":\""), "\(text)")
        return String(next.prefix { $0 != "\"" })
    }

    /// Asks `why`, then asks for the thing itself, and compares.
    ///
    /// - Returns: what both say.
    @discardableResult
    private func compare(_ player: ScriptedPlayer, _ url: String, _ path: String) throws -> String {
        let expected = try expected(player, url)
        let answer = try player.get(path)
        let seen = outcome(answer)
        // Only the origin knows whether it has something new.
        let isSame = expected.hasPrefix("refreshed-") && seen == "revalidated" || expected == seen
        #expect(isSame, "\(path): why says \(expected), then came \(seen): \(answer.status)")
        return expected
    }

    private func compare(_ story: Story, _ path: String) throws -> String {
        try compare(story.player(), story.cdn.url(path), "/" + story.cdn.url(path))
    }

    @Test
    func
        `why predicts the outcome of the next request, with an origin that answers and one that is gone`()
        throws
    {
        let story = try Story(["--connect-timeout", "1"])
        let part = segment("part", 4_000_000)
        story.put(list: "whole")
        try story.keep("whole", 0..<6)
        story.put(list: "holes")
        try story.keep("holes", 0..<2, 3..<6)
        story.put(list: "empty")
        try story.keep("empty", 0..<0)
        let window = story.cdn.live("/live.m3u8", liveWindow(target: 60, window: 3))
        window.advance()
        let kept = segment("kept", 4_000)
        #expect(try compare(story, kept) == "miss")
        #expect(try compare(story, kept) == "hit")
        _ = try story.get(part, range: "bytes=1000000-1000999")
        _ = try story.get("/live.m3u8")
        #expect(try compare(story, "/live.m3u8") == "hit")
        for list in ["whole", "holes", "empty"] {
            #expect(try compare(story, "/\(list).m3u8") == "hit")
        }
        story.cdn.stop()
        let hole = try BlackHole(port: story.cdn.port)
        defer { hole.end() }
        #expect(try story.get("/new.ts").status == 504)
        let told = try [kept, part, "/new.ts", "/whole.m3u8", "/holes.m3u8", "/empty.m3u8"].map {
            try compare(story, $0)
        }
        #expect(told == ["hit", "failed", "failed", "hit", "offline", "failed"])
        let live = try compare(story, "/live.m3u8")
        #expect(live == "stale" || live == "hit" || live == "failed")
    }

    @Test func `why names the status of the answer while an origin refuses connections`() throws {
        let story = try Story()
        _ = try story.get(segment("kept", 4_000))
        story.cdn.stop()
        let isDown = try eventually {
            let status = try story.get("/new.ts").status
            return try status == 502 && story.stat("origins_down") == 1
        }
        #expect(isDown)
        let url = percentEncoded(story.cdn.url("/new.ts"))
        let text = try story.player().get("/api/why?url=\(url)").text
        #expect(text.contains("502, since the origin does not answer"), "\(text)")
        let answers = try inParallel(3) { number in try story.get("/new\(number).ts").status }
        #expect(answers == [502, 502, 502])
    }

    @Test func `why knows the pause that an origin has asked for`() throws {
        let story = try Story()
        let path = segment("paused", 10_000)
        story.cdn.setBehaviour("status=503&header=Retry-After:3600", for: path)
        #expect(try story.get(path).status == 502)
        #expect(try compare(story, path) == "failed")
        let url = percentEncoded(story.cdn.url(path))
        let text = try story.player().get("/api/why?url=\(url)").text
        #expect(text.contains("502, since the origin has asked for a pause"), "\(text)")
        #expect(story.cdn.requestCount(path) == 1)
    }

    @Test func `why predicts the outcome of the next request in offline mode`() throws {
        let story = try Story()
        let (kept, part) = (segment("kept", 4_000), segment("part", 4_000_000))
        story.put(list: "holes")
        try story.keep("holes", 0..<2, 3..<6)
        _ = try story.get(kept)
        _ = try story.get(part, range: "bytes=1000000-1000999")
        let daemon = try story.succeed(["--policy", "offline"])
        let player = ScriptedPlayer(daemon.baseURL)
        let told = try [kept, part, "/new.ts", "/holes.m3u8"].map { path in
            try compare(player, story.cdn.url(path), "/" + story.cdn.url(path))
        }
        #expect(told == ["hit", "failed", "failed", "offline"])
        daemon.kill(SIGTERM)
        _ = try daemon.waitForExit()
    }

    @Test func `why predicts the outcome of the next request under a mount`() throws {
        let story = try Story()
        let daemon = try story.succeed(["--mount", "/mount/=\(story.cdn.url("/"))"])
        let player = ScriptedPlayer(daemon.baseURL)
        let controls = [
            ("fresh", "cc=max-age%3D600", "hit"),
            ("old", "cc=max-age%3D60&header=Age:100", "refreshed-expired"),
            ("asking", "cc=no-cache", "refreshed-no-cache"),
            (
                "behind", "cc=max-age%3D60,stale-while-revalidate%3D600&header=Age:100",
                "stale-while-revalidate"
            ),
            ("unkept", "cc=no-store", "miss"),
            ("varied", "cc=max-age%3D600&header=Vary:Accept-Language", "refreshed-vary"),
        ]
        for (name, behaviour, outcome) in controls {
            let path = segment(name, 1_000)
            story.cdn.setBehaviour(Behaviour(query: behaviour), for: path)
            let german = name == "varied" ? [("Accept-Language", "de")] : []
            _ = try player.get("/mount\(path)", headers: german)
            let expected = try expected(player, "\(daemon.baseURL)/mount\(path)")
            #expect(expected == outcome, "\(name)")
            // An unstorable response is a bypass only once the origin has said so.
            guard name != "unkept" else { continue }
            try compare(player, "\(daemon.baseURL)/mount\(path)", "/mount\(path)")
        }
        daemon.kill(SIGTERM)
        _ = try daemon.waitForExit()
    }

    @Test func `a playlist made for one viewer is fetched anew for another`() throws {
        let story = try Story()
        story.put(list: "own")
        story.cdn.setBehaviour("cc=private", for: "/own.m3u8")
        let url = story.cdn.url("/own.m3u8")
        _ = try story.get("/own.m3u8")
        #expect(try compare(story, "/own.m3u8") == "hit")
        try story.restart()
        // The session of the stored copy was known to the daemon that has ended.
        let text = try story.player().get("/api/why?url=\(percentEncoded(url))").text
        #expect(text.contains("\"outcome\":\"miss\""))
        #expect(text.contains("\"plan\":\"fetch-own-copy\""))
        #expect(outcome(try story.get("/own.m3u8")) == "miss")
    }

    @Test func `a key that another session's credentials have opened is fetched anew`() throws {
        let story = try Story(["--look-ahead", "off"])
        story.cdn.put("/key", text: "0123456789abcdef")
        story.cdn.put(
            "/l.m3u8", text: vod(["s.ts"], head: ["#EXT-X-KEY:METHOD=AES-128,URI=\"/key\""]))
        func key(_ entry: String) throws -> String {
            try #require(links(try story.follow(entry).text).first { $0.hasPrefix("/k/") })
        }
        let opener = try key(story.entry("/l.m3u8", "h_Authorization=Bearer%20a"))
        let other = try key(story.url("/l.m3u8"))
        let told = try [opener, opener, other, other].map { link in
            try compare(story.player(), story.daemon.baseURL + link, link)
        }
        #expect(told == ["miss", "hit", "miss", "hit"])
        #expect(story.cdn.requestCount("/key") == 2)
    }
}

extension String {
    /// The text behind the first occurrence of another; empty if it does not occur.
    fileprivate func components(after text: String) -> Substring {
        let (own, wanted) = (Array(utf8), Array(text.utf8))
        guard own.count >= wanted.count else { return "" }
        for start in 0...(own.count - wanted.count)
        where own[start..<(start + wanted.count)].elementsEqual(wanted) {
            return Substring(String(decoding: own[(start + wanted.count)...], as: UTF8.self))
        }
        return ""
    }
}
