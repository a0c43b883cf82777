import FixtureCDN
import ScenarioSupport
import Testing

/// Sessions: headers given at entry, and cookies set later, are sent with every later request.
extension Stories {
    @Suite(.tags(.crowded)) struct SessionTests {}
}

private let tree = [
    ("/m.m3u8", "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nv/l.m3u8\n"),
    (
        "/v/l.m3u8",
        vod(
            ["s.ts"],
            head: ["#EXT-X-KEY:METHOD=AES-128,URI=\"/k/key\"", "#EXT-X-MAP:URI=\"i.mp4\""])
    ),
    ("/k/key", "0123456789abcdef"), ("/v/i.mp4", "init"), ("/v/s.ts", "segment"),
]

extension Stories.SessionTests {
    /// Plays the whole tree from an entry; returns the statuses in order.
    private func play(_ story: Story, from entry: String) throws -> [Int] {
        let master = try story.follow(entry)
        guard let variant = uriLines(master.text).first, master.status == 200 else {
            return [master.status]
        }
        let media = try story.follow(variant)
        return try [master.status, media.status]
            + links(media.text).map { try story.follow($0).status }
    }

    private func story(_ arguments: [String] = []) throws -> Story {
        let story = try Story(arguments)
        for (path, text) in tree { story.cdn.put(path, text: text) }
        return story
    }

    @Test
    func `cookies are sent with later requests to where they belong`() throws {
        let story = try story()
        story.cdn.setBehaviour("cookie=sid=1;%20Path=/", for: "/m.m3u8")
        story.cdn.setBehaviour("needcookie=sid=1&cookie=list=2;%20Path=/v", for: "/v/l.m3u8")
        story.cdn.setBehaviour("needcookie=sid=1", for: "/k/key")
        story.cdn.setBehaviour("needcookie=list=2", for: "/v/s.ts")
        #expect(try play(story, from: story.url("/m.m3u8")) == [200, 200, 200, 200, 200])
        let key = try #require(story.cdn.requests.first { $0.path == "/k/key" })
        #expect(key["Cookie"] == "sid=1")
        let segment = try #require(story.cdn.requests.first { $0.path == "/v/s.ts" })
        #expect(segment["Cookie"] == "list=2; sid=1")
    }

    @Test
    func `each session has its own cookie jar, and no player sees a Set-Cookie`() throws {
        let story = try story()
        story.cdn.setBehaviour("cookie=sid=1;%20Path=/", for: "/m.m3u8")
        story.cdn.setBehaviour("needcookie=sid=1", for: "/v/s.ts")
        let first = try story.follow(story.url("/m.m3u8"))
        #expect(first["Set-Cookie"] == nil)
        let other = try story.get("/v/l.m3u8")
        #expect(try story.follow(uriLines(other.text)[0]).status == 403)
    }

    @Test
    func `a cookie set by a redirect is sent to its target`() throws {
        let story = try story()
        story.cdn.setBehaviour("location=/m.m3u8&cookie=gate=1;%20Path=/", for: "/enter.m3u8")
        story.cdn.setBehaviour("needcookie=gate=1", for: "/m.m3u8")
        #expect(try story.get("/enter.m3u8").status == 200)
    }

    @Test
    func `headers given at entry are sent for lists, keys, sections and segments`() throws {
        let story = try story()
        for (path, _) in tree {
            story.cdn.setBehaviour("needheader=Referer:https://site.example/a?b", for: path)
        }
        let headers =
            "h_Referer=\(percentEncoded("https://site.example/a?b"))&h_User-Agent=TV%2F1&h_Origin=https%3A%2F%2Fsite.example"
            + "&h_Authorization=Bearer%20abc&h_X-Key=k"
        #expect(
            try play(story, from: story.entry("/m.m3u8", headers)) == [200, 200, 200, 200, 200])
        for request in story.cdn.requests {
            #expect(request["User-Agent"] == "TV/1" && request["Authorization"] == "Bearer abc")
            #expect(request["Origin"] == "https://site.example" && request["X-Key"] == "k")
        }
        #expect(try play(story, from: story.url("/m.m3u8")) == [403])
    }

    @Test
    func `headers and cookies are sent for steering manifests, asset lists and what these name`()
        throws
    {
        let story = try Story()
        let range = "#EXT-X-DATERANGE:ID=\"1\",X-ASSET-LIST=\"/ads\""
        story.cdn.put("/m.m3u8", text: "#EXTM3U\n#EXT-X-CONTENT-STEERING:SERVER-URI=\"/steer\"\n")
        story.cdn.put("/l.m3u8", text: vod(["s.ts"], head: [range]))
        story.cdn.put("/steer", text: #"{"VERSION":1,"RELOAD-URI":"/again"}"#)
        story.cdn.put("/again", text: "{}")
        story.cdn.put("/ads", text: #"{"ASSETS":[{"URI":"/ad.m3u8"}]}"#)
        story.cdn.put("/ad.m3u8", text: vod(["ad.ts"]))
        for path in ["/m.m3u8", "/l.m3u8"] {
            story.cdn.setBehaviour("needheader=X-Key:k&cookie=c=1;%20Path=/", for: path)
        }
        for path in ["/steer", "/again", "/ads", "/ad.m3u8"] {
            story.cdn.setBehaviour("needheader=X-Key:k&needcookie=c=1", for: path)
        }
        for (path, steps) in [("/m.m3u8", 2), ("/l.m3u8", 2)] {
            var answer = try story.follow(story.entry(path, "h_X-Key=k"))
            for _ in 0..<steps {
                let next = answer.text.split(separator: "\"").last {
                    $0.contains("/j/") || $0.contains("/p/")
                }
                answer = try story.follow(String(try #require(next)))
                #expect(answer.status == 200)
            }
        }
    }

    @Test
    func `a session survives a restart`() throws {
        let story = try story()
        story.cdn.setBehaviour("needheader=Referer:r", for: "/v/s.ts")
        let master = try story.follow(story.entry("/m.m3u8", "h_Referer=r"))
        let media = try story.follow(uriLines(master.text)[0])
        try story.restart()
        #expect(try story.follow(uriLines(media.text)[0]).text == "segment")
    }

    @Test
    func `credentials are not sent after a redirect to another origin, other headers are`() throws {
        let story = try story()
        let other = FixtureCDN(address: "127.0.0.2")
        try other.start()
        defer { other.stop() }
        other.put("/s.ts", Array("elsewhere".utf8))
        story.cdn.setBehaviour(Behaviour(query: "location=\(other.url("/s.ts"))"), for: "/v/s.ts")
        let answer = try story.follow(
            story.entry("/v/s.ts", "h_Authorization=Basic%20abc&h_Cookie=a%3Db&h_Referer=r"))
        #expect(answer.text == "elsewhere")
        #expect(story.cdn.requests.last?["Authorization"] == "Basic abc")
        #expect(story.cdn.requests.last?["Cookie"] == "a=b")
        #expect(other.requests.last?["Authorization"] == nil)
        #expect(other.requests.last?["Cookie"] == nil)
        #expect(other.requests.last?["Referer"] == "r")
    }

    @Test
    func `credentials that a redirect left behind are sent neither farther on nor back`() throws {
        let story = try story()
        let other = FixtureCDN(address: "127.0.0.2")
        try other.start()
        defer { other.stop() }
        story.cdn.put("/back.ts", text: "back")
        story.cdn.setBehaviour(Behaviour(query: "location=\(other.url("/x.ts"))"), for: "/v/s.ts")
        other.setBehaviour("location=/y.ts", for: "/x.ts")
        other.setBehaviour(
            Behaviour(query: "location=\(story.cdn.url("/back.ts"))"), for: "/y.ts")
        let answer = try story.follow(
            story.entry("/v/s.ts", "h_Authorization=Basic%20abc&h_Cookie=a%3Db"))
        #expect(answer.text == "back")
        #expect(other.requests.map(\.path) == ["/x.ts", "/y.ts"])
        for name in ["Authorization", "Cookie"] {
            #expect(story.cdn.requests.first?[name] != nil)
            #expect(other.requests.allSatisfy { $0[name] == nil }, "\(name)")
            #expect(story.cdn.requests.last?.path == "/back.ts")
            #expect(story.cdn.requests.last?[name] == nil, "\(name)")
        }
    }

    @Test
    func `a response to credentials is not shown to others, its segments are shared`() throws {
        let story = try story()
        story.cdn.setBehaviour("needheader=Authorization:Bearer%20a", for: "/m.m3u8")
        #expect(
            try play(story, from: story.entry("/m.m3u8", "h_Authorization=Bearer%20a")).allSatisfy {
                $0 == 200
            })
        #expect(try story.get("/m.m3u8").status == 403)
        let count = story.cdn.requestCount("/v/s.ts")
        #expect(
            try story.get("/v/s.ts").text == "segment" && story.cdn.requestCount("/v/s.ts") == count
        )
    }

    @Test(arguments: ["private", "private,max-age=60", "no-store"])
    func `a viewer's own list is not shown to another session, its segments are`(
        _ control: String
    ) throws {
        let story = try story()
        story.cdn.put("/n.m3u8", text: tree[0].1)
        let behaviour = Behaviour(query: "cc=\(percentEncoded(control))&fb=200")
        story.cdn.setBehaviour(behaviour, for: "/v/l.m3u8")
        let variants = try ["/m.m3u8", "/n.m3u8"].map { try story.links(in: $0)[0] }
        let base = story.daemon.baseURL
        let lists = try inParallel(2) { try ScriptedPlayer(base).get(variants[$0]).text }
        #expect(story.cdn.requestCount("/v/l.m3u8") == 2)
        story.cdn.put("/v/l.m3u8", text: vod(["other.ts"]))
        let again = try variants.map { try story.follow($0).text }
        if control != "no-store" { #expect(again == lists) }
        for list in lists { #expect(try story.follow(uriLines(list)[0]).text == "segment") }
        #expect(story.cdn.requestCount("/v/s.ts") == 1)
    }

    @Test
    func `a viewer's own list plays again when the origin is gone`() throws {
        let story = try story()
        story.cdn.setBehaviour("cc=private", for: "/v/l.m3u8")
        #expect(try play(story, from: story.url("/m.m3u8")).allSatisfy { $0 == 200 })
        story.cdn.stop()
        #expect(try play(story, from: story.url("/m.m3u8")).allSatisfy { $0 == 200 })
        try story.restart()
        #expect(try play(story, from: story.url("/m.m3u8")).allSatisfy { $0 == 200 })
    }

    @Test
    func `purging a URL also removes responses to credentials`() throws {
        let story = try story()
        let entry = story.entry("/m.m3u8", "h_Authorization=Bearer%20a")
        for address in [entry, story.url("/m.m3u8")] { _ = try story.follow(address) }
        let purge = "/api/purge?url=\(percentEncoded(story.cdn.url("/m.m3u8")))"
        #expect(try story.follow(purge, method: "POST").text.contains("\"removed\":2,"))
        _ = try story.follow(entry)
        #expect(story.cdn.requestCount("/m.m3u8") == 3)
    }

    @Test func `a key that credentials have opened is for sessions that have them`() throws {
        let story = try story(["--look-ahead", "off"])
        func key(_ header: String) throws -> PlayerResponse {
            let entry = header.isEmpty ? story.url("/v/l.m3u8") : story.entry("/v/l.m3u8", header)
            let media = try story.follow(entry).text
            return try story.follow(try #require(links(media).first { $0.hasPrefix("/k/") }))
        }
        for (viewer, text) in [("a", "aaaaaaaaaaaaaaaa"), ("b", "bbbbbbbbbbbbbbbb")] {
            story.cdn.put("/k/key", text: text)
            for _ in 0..<2 { #expect(try key("h_Authorization=Bearer%20\(viewer)").text == text) }
        }
        #expect(try key("h_Authorization=Bearer%20a").text == "aaaaaaaaaaaaaaaa")
        #expect(story.cdn.requestCount("/k/key") == 2)
        story.cdn.setBehaviour("status=401", for: "/k/key")
        #expect(try key("").status == 401)
        // Titles that are played offline have the key that was fetched first.
        story.cdn.setBehaviour("status=503", for: "/k/key")
        #expect(try key("h_Authorization=Bearer%20c").text == "aaaaaaaaaaaaaaaa")
    }

    @Test func `a key that was lent in an outage is asked for when the origin is back`() throws {
        let story = try story()
        func keyLink(_ entry: String) throws -> String {
            let media = try story.follow(entry).text
            return try #require(links(media).first { $0.hasPrefix("/k/") })
        }
        let owner = try keyLink(story.entry("/v/l.m3u8", "h_Authorization=Bearer%20a"))
        #expect(try story.follow(owner).text == "0123456789abcdef")
        let other = try keyLink(story.url("/v/l.m3u8"))
        story.cdn.stop()
        #expect(try story.get("/unknown.ts").status == 502)
        // On one connection, so that one loop sees the same head again.
        let player = story.player()
        for _ in 0..<3 { #expect(try player.get(other).text == "0123456789abcdef") }
        try story.cdn.start()
        story.cdn.setBehaviour("status=401", for: "/k/key")
        // If connections are refused immediately, any request is the probe.
        story.cdn.put("/back.ts", text: "back")
        #expect(try story.get("/back.ts").text == "back")
        #expect(try player.get(other).status == 401)
    }

    @Test func `a key that user information has opened is for sessions with the same`() throws {
        let story = try story(["--look-ahead", "off"])
        // "Basic " and the Base64 of ann:s3cret
        story.cdn.setBehaviour(
            "needheader=Authorization:Basic%20YW5uOnMzY3JldA==", for: "/k/key")
        func key(_ path: String, _ user: String) throws -> PlayerResponse {
            let media = try story.follow("/http://\(user)127.0.0.1:\(story.cdn.port)\(path)").text
            return try story.follow(try #require(links(media).first { $0.hasPrefix("/k/") }))
        }
        story.cdn.put("/v/other.m3u8", text: vod(["s.ts"], head: [Self.keyTag]))
        for path in ["/v/l.m3u8", "/v/other.m3u8"] {
            #expect(try key(path, "ann:s3cret@").text == "0123456789abcdef")
        }
        #expect(story.cdn.requestCount("/k/key") == 1)
        for user in ["", "bob:s3cret@"] { #expect(try key("/v/l.m3u8", user).status == 403) }
        try story.restart()
        #expect(try key("/v/l.m3u8", "").status == 403)
        let count = story.cdn.requestCount("/k/key")
        #expect(try key("/v/l.m3u8", "ann:s3cret@").text == "0123456789abcdef")
        #expect(story.cdn.requestCount("/k/key") == count)
    }

    private static let keyTag = "#EXT-X-KEY:METHOD=AES-128,URI=\"/k/key\""

    @Test
    func
        `a key is fetched once, readable by its owner only, and not at all where forbidden`()
        throws
    {
        let story = try story()
        for _ in 0..<2 { _ = try play(story, from: story.url("/m.m3u8")) }
        #expect(story.cdn.requestCount("/k/key") == 1)
        for file in storedFiles(story.cacheFolder) { #expect(try permissions(file) == "600") }
        story.cdn.setBehaviour("cc=no-store", for: "/k/secret")
        story.cdn.put("/k/secret", Array("fedcba9876543210".utf8))
        story.cdn.put(
            "/n.m3u8", text: vod(["s.ts"], head: ["#EXT-X-KEY:METHOD=AES-128,URI=\"/k/secret\""]))
        let link = try story.links(in: "/n.m3u8")[0]
        let before = storedFiles(story.cacheFolder).count
        for _ in 0..<2 { #expect(try story.follow(link).text == "fedcba9876543210") }
        #expect(
            story.cdn.requestCount("/k/secret") == 2
                && storedFiles(story.cacheFolder).count == before)
    }

    @Test
    func `a key that a live stream changes under its URL is revalidated`() throws {
        let story = try Story()
        for isLive in [true, false] {
            let key = isLive ? "/k/live" : "/k/film"
            let film = vod(["s.ts"], head: ["#EXT-X-KEY:METHOD=AES-128,URI=\"\(key)\""])
            let live = film.replacing("#EXT-X-ENDLIST\n", with: "")
            story.cdn.put("/l.m3u8", text: isLive ? live : film)
            story.cdn.put(key, text: "0123456789abcdef")
            story.cdn.setBehaviour("lastmod=", for: key)
            let link = try story.links(in: "/l.m3u8?\(isLive)")[0]
            #expect(try story.follow(link).text == "0123456789abcdef")
            story.cdn.put(key, text: "fedcba9876543210")
            let expected = isLive ? "fedcba9876543210" : "0123456789abcdef"
            #expect(try story.follow(link).text == expected)
        }
    }

    private func permissions(_ path: String) throws -> String {
        try Tool.run(["stat", "-c", "%a", path]).stdout.filter { $0 != "\n" }
    }

    @Test
    func `segments with one name under different sections are distinguished`() throws {
        let story = try Story()
        for part in ["a", "b"] {
            story.cdn.put(
                "/\(part)/l.m3u8", text: vod(["s.m4s"], head: ["#EXT-X-MAP:URI=\"init.mp4\""]))
            for name in ["init.mp4", "s.m4s"] {
                story.cdn.put("/\(part)/\(name)", Array("\(part) \(name)".utf8))
            }
        }
        for part in ["a", "b"] {
            let found = try story.links(in: "/\(part)/l.m3u8").map { try story.follow($0).text }
            #expect(found == ["\(part) init.mp4", "\(part) s.m4s"])
        }
    }
}
