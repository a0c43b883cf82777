import FixtureCDN
import ScenarioSupport
import Testing

/// Multivariant playlists that an origin makes for each viewer, and recognizes by a cookie.
extension Stories {
    @Suite(.tags(.crowded)) struct ViewerCookieTests {}
}

extension Stories.ViewerCookieTests {
    /// Puts the list that the origin makes for a viewer, with a cookie and links of that viewer's.
    private func put(_ viewer: String, _ story: Story, _ behaviour: String = "") {
        story.cdn.put("/m.m3u8", text: multivariant("/ads/\(viewer).m3u8"))
        story.cdn.put("/ads/\(viewer).m3u8", text: vod(["/bytes/3000/s.ts"]))
        let cookie = behaviour.isEmpty ? "cookie=sid=\(viewer);%20Path=/" : behaviour
        story.cdn.setBehaviour(Behaviour(query: cookie), for: "/m.m3u8")
    }

    private func multivariant(_ list: String) -> String {
        "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n\(list)\n"
    }

    /// Plays in the session of a device; returns the link of the media playlist, whose name is that
    /// of the origin's, and the statuses.
    @discardableResult
    private func play(
        _ story: Story, _ device: String, at cdn: FixtureCDN? = nil
    ) throws -> (list: String, statuses: [Int]) {
        let url = percentEncoded((cdn ?? story.cdn).url("/m.m3u8"))
        let master = try story.follow("/proxy?url=\(url)&h_User-Agent=\(device)")
        guard let link = uriLines(master.text).first else { return ("", [master.status]) }
        let media = try story.follow(link)
        let segments = try uriLines(media.text).map { try story.follow($0).status }
        return (link, [master.status, media.status] + segments)
    }

    private static let fine = [200, 200, 200]

    @Test func `a list whose response set a cookie is fetched anew for another session`() throws {
        let story = try Story()
        put("anna", story)
        #expect(try play(story, "A").list.hasSuffix("/anna.m3u8"))
        put("bert", story)
        for _ in 0..<2 {
            let (list, statuses) = try play(story, "B")
            #expect(list.hasSuffix("/bert.m3u8"))
            #expect(statuses == Self.fine)
            #expect(try play(story, "A").list.hasSuffix("/anna.m3u8"))
        }
        #expect(story.cdn.requestCount("/m.m3u8") == 2)
        #expect(story.cdn.requestCount("/bytes/3000/s.ts") == 1)
        // Whose list is whose is known after a restart too.
        try story.restart()
        put("carl", story)
        for (device, viewer) in [("A", "anna"), ("B", "bert"), ("C", "carl")] {
            #expect(try play(story, device).list.hasSuffix("/\(viewer).m3u8"))
        }
        #expect(story.cdn.requestCount("/m.m3u8") == 3)
    }

    @Test func `sessions that start together do not share such a list`() throws {
        let story = try Story()
        put("anna", story, "cookie=sid=1;%20Path=/&fb=200")
        _ = try inParallel(2) { try play(story, ["A", "B"][$0]) }
        #expect(story.cdn.requestCount("/m.m3u8") == 2)
    }

    @Test func `a list that is the same for two sessions is shared from then on`() throws {
        let story = try Story()
        put("all", story)
        for device in ["A", "B", "C", "D", "A", "B"] {
            #expect(try play(story, device).statuses == Self.fine)
        }
        #expect(story.cdn.requestCount("/m.m3u8") == 2)
    }

    @Test(arguments: [
        "cookie=AWSALB=x;%20Path=/", "cookie=sid=x;%20Path=/&cc=public,max-age=5",
        "cookie=sid=x;%20Path=/&cc=s-maxage=5", "cookie=sid=;%20Max-Age=0",
    ])
    func `a list that no viewer is recognized by is shared`(_ behaviour: String) throws {
        let story = try Story()
        put("all", story, behaviour)
        for device in ["A", "B"] { try play(story, device) }
        #expect(story.cdn.requestCount("/m.m3u8") == 1)
    }

    @Test(arguments: ["gone", "offline", "status=403", "status=404", "status=503"])
    func `what is stored plays in another session without its origin`(_ fault: String) throws {
        let story = try Story()
        put("anna", story)
        #expect(try play(story, "A").statuses == Self.fine)
        switch fault {
        case "gone": story.cdn.stop()
        case "offline": story.stop()
        default: story.cdn.setBehaviour(Behaviour(query: fault), for: "/m.m3u8")
        }
        let other =
            fault == "offline"
            ? try Story(["--policy", "offline"], cacheFolder: story.cacheFolder) : story
        let (list, statuses) = try play(other, "B", at: story.cdn)
        #expect(list.hasSuffix("/anna.m3u8"))
        #expect(statuses == Self.fine)
    }

    @Test func `a live media playlist is asked for once, whatever cookies it sets`() throws {
        let story = try Story()
        story.cdn.put("/m.m3u8", text: multivariant("l.m3u8"))
        story.cdn.put(
            "/l.m3u8", text: vod(["/bytes/3000/s.ts"]).replacing("#EXT-X-ENDLIST\n", with: ""))
        for path in ["/m.m3u8", "/l.m3u8"] {
            story.cdn.setBehaviour("cookie=sid=1;%20Path=/", for: path)
        }
        for device in ["A", "B", "C"] { try play(story, device) }
        #expect(story.cdn.requestCount("/l.m3u8") == 1)
    }

    @Test func `why tells that a list is another session's, and what is done`() throws {
        let story = try Story()
        put("anna", story)
        try play(story, "A")
        let url = percentEncoded(story.cdn.url("/m.m3u8"))
        let text = try story.player().get("/api/why?url=\(url)").text
        #expect(text.contains("\"plan\":\"fetch-own-copy\""))
        #expect(text.contains("cookie"))
    }
}

/// Downloads of titles whose segments require a cookie that their playlists set.
extension Stories.ViewerCookieTests {
    @Test(arguments: ["/m.m3u8", "/v/l.m3u8"], ["", "&h_User-Agent=B"])
    func `a download gets the cookie that a restart has lost, or that another session has`(
        setter: String, header: String
    ) throws {
        let story = try Story()
        story.cdn.put("/m.m3u8", text: multivariant("/v/l.m3u8"))
        story.cdn.put("/v/l.m3u8", text: vod((0..<3).map { "/bytes/30000/s\($0).ts" }))
        for path in ["/m.m3u8", "/v/l.m3u8"] { story.cdn.setBehaviour("etag=1", for: path) }
        story.cdn.setBehaviour("etag=1&cookie=pass=1;%20Path=/", for: setter)
        for index in 0..<3 {
            story.cdn.setBehaviour("needcookie=pass=1", for: "/bytes/30000/s\(index).ts")
        }
        let variant = try #require(uriLines(try story.get("/m.m3u8").text).first)
        _ = try story.follow(variant)
        try story.restart()
        let stage = DownloadStage(on: story)
        let id = try stage.order(story.cdn.url("/m.m3u8"), header)
        #expect(try stage.wait(id, for: "complete")["pieces"] == "3")
    }
}
