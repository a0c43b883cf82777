import FixtureCDN
import ScenarioSupport
import Testing

/// Players that continue at their old links after a restart, where the URL that they opened does
/// not tell that it is a playlist, or redirects.
extension Stories {
    @Suite(.tags(.crowded)) struct RestartRevivalTests {}
}

extension Stories.RestartRevivalTests {
    /// The links to the segments of a title that is opened at a path, the first of them played.
    private func play(_ story: Story, _ entry: String, isMedia: Bool = false) throws -> [String] {
        var text = try story.get(entry).text
        if !isMedia { text = try story.follow(try #require(uriLines(text).first)).text }
        let links = uriLines(text)
        try #require(links.count == 3)
        #expect(try story.follow(links[0]).status == 200)
        return links.map { link in
            link.hasPrefix("/")
                ? link : "/" + link.split(separator: "/").dropFirst(2).joined(separator: "/")
        }
    }

    private func putMaster(_ story: Story, at path: String, naming list: String) {
        story.cdn.put(path, text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n\(list)\n")
    }

    /// Puts three segments that need a token, and a list of them.
    private func put(_ story: Story, list: String, _ token: String) {
        let names = (0..<3).map { "/bytes/30000/s\($0).ts?token=\(token)" }
        story.cdn.put(list, text: vod(names))
        story.cdn.setBehaviour(Behaviour(query: "needtoken=\(token)"), for: "/bytes/*")
    }

    @Test(arguments: ["/go", "/play.php"])
    func `a cookie comes from an entry whose URL does not tell its type`(_ entry: String) throws {
        let story = try Story()
        putMaster(story, at: entry, naming: "/v/l.m3u8")
        story.cdn.put("/v/l.m3u8", text: vod((0..<3).map { "/bytes/30000/s\($0).ts" }))
        story.cdn.setBehaviour("cookie=pass=1;%20Path=/", for: entry)
        story.cdn.setBehaviour("needcookie=pass=1", for: "/bytes/*")
        let links = try play(story, entry)
        try story.restart()
        let answer = try story.player().get(links[1])
        #expect(answer.status == 200)
        #expect(isContent(answer.body, of: "/bytes/30000/s1.ts"))
        #expect(story.cdn.requestCount(entry) == 2)
    }

    @Test func `a token comes from a media playlist whose URL does not tell its type`() throws {
        let story = try Story()
        put(story, list: "/go", "a")
        let links = try play(story, "/go", isMedia: true)
        try story.restart()
        put(story, list: "/go", "b")
        let answer = try story.player().get(links[1])
        #expect(answer.status == 200)
        #expect(isContent(answer.body, of: "/bytes/30000/s1.ts"))
    }

    /// Lets a path redirect into the folder of a token, and ends that of the token before.
    private func redirect(_ story: Story, _ path: String, to name: String, _ token: String) {
        story.cdn.setBehaviour(
            Behaviour(query: "location=/\(token)/\(name)&cc=no-store"), for: path)
        if token != "a" { story.cdn.setBehaviour("status=403", for: "/a/*") }
        put(story, list: "/\(token)/l.m3u8", token)
    }

    @Test(arguments: ["/watch/7.m3u8", "/watch/7"])
    func `an entry that redirects is asked again, not what it led to before`(_ entry: String) throws
    {
        let story = try Story()
        for token in ["a", "b"] { putMaster(story, at: "/\(token)/m.m3u8", naming: "l.m3u8") }
        redirect(story, entry, to: "m.m3u8", "a")
        let links = try play(story, entry)
        try story.restart()
        redirect(story, entry, to: "m.m3u8", "b")
        let answer = try story.player().get(links[1])
        #expect(answer.status == 200)
        #expect(isContent(answer.body, of: "/bytes/30000/s1.ts"))
        #expect(story.cdn.requestCount(entry) == 2)
    }

    @Test func `a media playlist that redirects is asked again as its parent names it`() throws {
        let story = try Story()
        putMaster(story, at: "/m.m3u8", naming: "/v/l.m3u8?id=7")
        redirect(story, "/v/l.m3u8", to: "l.m3u8", "a")
        let links = try play(story, "/m.m3u8")
        try story.restart()
        redirect(story, "/v/l.m3u8", to: "l.m3u8", "b")
        let answer = try story.player().get(links[1])
        #expect(answer.status == 200)
        #expect(isContent(answer.body, of: "/bytes/30000/s1.ts"))
        #expect(story.cdn.requestCount("/v/l.m3u8") == 2)
        #expect(story.cdn.requestCount("/m.m3u8") == 1)
    }

    @Test func `an entry whose key lacks its signature is asked where it redirected`() throws {
        let story = try Story()
        // The key rules leave it out.
        let signature = "1893456000_4492f25946a2e8e1414a8bb53dab8a6ba1cf4615"
        story.cdn.setBehaviour(
            Behaviour(query: "needtoken=\(signature)&location=/s/m.m3u8&cc=no-store"),
            for: "/w.m3u8")
        putMaster(story, at: "/s/m.m3u8", naming: "/a/l.m3u8")
        put(story, list: "/a/l.m3u8", "a")
        let links = try play(story, "/w.m3u8?token=\(signature)")
        try story.restart()
        story.cdn.setBehaviour("status=403", for: "/a/*")
        putMaster(story, at: "/s/m.m3u8", naming: "/b/l.m3u8")
        put(story, list: "/b/l.m3u8", "b")
        let answer = try story.player().get(links[1])
        #expect(answer.status == 200)
        #expect(isContent(answer.body, of: "/bytes/30000/s1.ts"))
        #expect(story.cdn.requestCount("/s/m.m3u8") == 2)
    }
}
