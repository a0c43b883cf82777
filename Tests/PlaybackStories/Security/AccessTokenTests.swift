import FixtureCDN
import ScenarioSupport
import Testing

/// The access token: it opens the daemon, and is sent to no origin.
extension Stories {
    @Suite(.tags(.timed)) struct AccessTokenTests {}
}

extension Stories.AccessTokenTests {
    private static let token = "acc3ss-token"

    /// The forms in which an entry can be written, with the token as an argument.
    private func entries(_ origin: String) -> [String] {
        let token = "token=\(Self.token)"
        let mark = origin.contains("?") ? "&" : "?"
        return [
            "/\(origin)\(mark)\(token)", "/dvr=1h/\(origin)\(mark)\(token)",
            "/\(percentEncoded(origin + mark + token))",
            "/\(origin)\(mark)\(token)&after=1", "/\(origin)\(mark)\(token)&\(token)",
            "/proxy?url=\(percentEncoded(origin))&\(token)",
            "/proxy?url=\(percentEncoded(origin + mark + token))&\(token)",
            // Kodi's and VLC's form of headers, behind which the token looks like one.
            "/proxy?url=\(origin)%7CUser-Agent=Kodi&\(token)",
            "/\(origin)%7CUser-Agent=Kodi&\(token)",
        ]
    }

    @Test func `the access token is removed from every form of entry`() throws {
        let story = try Story([
            "--token", Self.token, "--log-level", "trace",
        ])
        story.cdn.put("/l.m3u8", text: vod(["a.ts"]))
        for entry in entries(story.cdn.url("/l.m3u8"))
            + entries(story.cdn.url("/l.m3u8?x=1"))
        {
            let list = try story.follow(entry)
            #expect(list.status == 200 && !list.text.contains(Self.token), "\(entry)")
        }
        let asked = story.cdn.requests
        #expect(asked.count >= 3)
        #expect(!asked.contains { $0.target.contains("token") || $0.target.hasSuffix("?") })
        #expect(asked.allSatisfy { $0["token"] == nil })
        // All forms of one URL are one object.
        #expect(story.cdn.requestCount("/l.m3u8?x=1") == 1)
        let entry = "\(story.daemon.baseURL)/\(story.cdn.url("/l.m3u8"))?token=\(Self.token)"
        let order = try story.follow(
            "/api/downloads?url=\(percentEncoded(entry))&token=\(Self.token)", method: "POST")
        #expect(order.status < 300 && !order.text.contains(Self.token), "\(order.text)")
        story.stop()
        let databases = ["index.sqlite", "state.sqlite"].map { "\(story.cacheFolder)/\($0)" }
        for file in storedFiles(story.cacheFolder) + databases {
            #expect(!contains(file, Self.token), "\(file)")
        }
        #expect(!story.daemon.standardError.contains(Self.token))
    }

    @Test(arguments: ["Basic OmFjYzNzcy10b2tlbg==", "basic YW55b25lOmFjYzNzcy10b2tlbg=="])
    func `the password of Basic credentials is the token, whatever the user name`(
        _ credentials: String
    ) throws {
        let story = try Story(["--token", Self.token])
        story.cdn.put("/l.m3u8", text: vod(["a.ts"]))
        let fields = [("Authorization", credentials)]
        #expect(try story.get("/l.m3u8", headers: fields).status == 200)
        #expect(try story.follow("/api/stats", headers: fields).status == 200)
        #expect(!story.cdn.requests.isEmpty)
        #expect(story.cdn.requests.allSatisfy { $0["Authorization"] == nil })
        // Another password, and the token as the user name.
        for other in ["eDpvdGhlci10b2tlbg==", "YWNjM3NzLXRva2VuOng=", "!", ""] {
            let wrong = [("Authorization", "Basic \(other)")]
            #expect(try story.get("/l.m3u8", headers: wrong).status == 401, "\(other)")
        }
    }

    @Test func `Basic credentials, which browsers add by themselves, prove nothing`() throws {
        let story = try Story(["--token", Self.token])
        let basic = ("Authorization", "Basic OmFjYzNzcy10b2tlbg==")
        for page in [("Origin", "https://evil.example"), ("Sec-Fetch-Site", "cross-site")] {
            let answer = try story.follow("/api/stats", headers: [basic, page])
            #expect(answer.status == 401, "\(page)")
            #expect(answer.head.all("WWW-Authenticate") == ["Bearer realm=\"sluice\""], "\(page)")
        }
        let player = story.player()
        player.provesChanges = false
        let form = try player.get("/api/clear", headers: [basic], method: "POST")
        #expect(form.status == 403 && form.text.contains("Sluice-Request"), "\(form.text)")
        let proved = try story.follow(
            "/api/clear", headers: [basic, ("Sluice-Request", "1")], method: "POST")
        #expect(proved.status == 200)
    }

    @Test func `a frame of another site cannot use Basic credentials, but a link can`() throws {
        let story = try Story(["--token", Self.token])
        story.cdn.put("/l.m3u8", text: vod(["a.ts"]))
        let navigation = [
            ("Authorization", "Basic OmFjYzNzcy10b2tlbg=="), ("Sec-Fetch-Site", "cross-site"),
            ("Sec-Fetch-Mode", "navigate"),
        ]
        let frame = try story.get(
            "/l.m3u8", headers: navigation + [("Sec-Fetch-Dest", "iframe")])
        #expect(frame.status == 401 && story.cdn.requests.isEmpty)
        #expect(frame.head.all("WWW-Authenticate") == ["Bearer realm=\"sluice\""])
        let link = try story.get(
            "/l.m3u8", headers: navigation + [("Sec-Fetch-Dest", "document")])
        #expect(link.status == 200)
    }

    @Test func `a refusal offers Basic, but not to the console, which has a form`() throws {
        let story = try Story(["--token", Self.token])
        let offers = try story.follow("/api/stats").head.all("WWW-Authenticate")
        #expect(offers.map { $0.prefix { $0 != " " } } == ["Bearer", "Basic"])
        for field in [
            ("Sluice-Request", "1"), ("Sec-Fetch-Dest", "empty"), ("Accept", "text/event-stream"),
        ] {
            let answer = try story.follow("/api/stats", headers: [field])
            #expect(answer.status == 401, "\(field)")
            #expect(answer.head.all("WWW-Authenticate").count == 1, "\(field)")
        }
    }

    @Test(arguments: ["/", "/dvr=1h/"])
    func `an origin's own argument token reaches it`(_ start: String) throws {
        let story = try Story(["--token", Self.token])
        story.cdn.put("/l.m3u8", text: vod(["a.ts"]))
        story.cdn.setBehaviour(Behaviour(query: "needtoken=theirs"), for: "/l.m3u8")
        let url = story.cdn.url("/l.m3u8?token=theirs")
        #expect(try story.follow("\(start)\(url)&token=\(Self.token)").status == 200)
        #expect(try story.follow("\(start)\(url)").status == 401)
        #expect(story.cdn.requests.allSatisfy { $0.target == "/l.m3u8?token=theirs" })
        let open = try Story()
        open.cdn.put("/l.m3u8", text: vod(["a.ts"]))
        open.cdn.setBehaviour(Behaviour(query: "needtoken=theirs"), for: "/l.m3u8")
        #expect(try open.follow("\(start)\(open.cdn.url("/l.m3u8?token=theirs"))").status == 200)
    }

    @Test(arguments: [false, true])
    func `a URL that is not encoded keeps its origin's token and what is behind it`(
        _ needsToken: Bool
    ) throws {
        let story = try Story(needsToken ? ["--token", Self.token] : [])
        story.cdn.put("/l.m3u8", text: vod(["a.ts"]))
        let theirs = "/l.m3u8?sig=2&token=theirs&y=3"
        let ours = needsToken ? "&token=\(Self.token)" : ""
        #expect(try story.follow("/proxy?url=\(story.cdn.url(theirs))\(ours)").status == 200)
        #expect(!story.cdn.requests.isEmpty)
        #expect(story.cdn.requests.allSatisfy { $0.target == theirs })
    }

    @Test func `a mount keeps the origin's token and drops ours`() throws {
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        cdn.put("/vod/a.ts", Array("bytes".utf8))
        let story = try Story(["--token", Self.token, "--mount", "/demo/=\(cdn.url("/vod/"))"])
        let answer = try story.follow(
            "/demo/a.ts?token=theirs&token=\(Self.token)",
            headers: [("Referer", "\(story.daemon.baseURL)/?token=\(Self.token)")])
        #expect(answer.text == "bytes")
        #expect(cdn.requests.map(\.target) == ["/vod/a.ts?token=theirs"])
        #expect(cdn.requests.allSatisfy { $0["Referer"] == nil })
        #expect(try story.follow("/demo/a.ts?tok%65n=\(Self.token)").text == "bytes")
    }

    @Test func `a signed link does not work under the letter of another role`() throws {
        let story = try Story(["--token", Self.token])
        story.cdn.put("/l.m3u8", text: vod(["a.ts"]))
        story.cdn.put("/a.ts", Array("bytes".utf8))
        let list = try story.follow(story.entry("/l.m3u8", "token=\(Self.token)"))
        let link = uriLines(list.text)[0]
        #expect(link.hasPrefix("/s/"))
        for letter in "piklvjgf" {
            let other = "/\(letter)/" + link.dropFirst(3)
            #expect(try story.follow(other).status == 403, "\(letter)")
        }
        #expect(story.cdn.requestCount("/a.ts") == 0)
        #expect(try story.follow(link).text == "bytes")
    }

    /// Whether a file holds a text.
    private func contains(_ path: String, _ text: String) -> Bool {
        guard let bytes = try? readFile(path) else { return false }
        return bytes.firstRange(of: Array(text.utf8)) != nil
    }

    @Test func `health needs no access token, since load balancers ask for it`() throws {
        let story = try Story(["--token", Self.token])
        #expect(try story.player().get("/api/health?ready").status == 200)
        #expect(try story.player().get("/api/stats").status == 401)
    }

    @Test func `a refusal tells a wrong access token from a missing one`() throws {
        let story = try Story(["--token", Self.token])
        let missing = try story.player().get("/api/stats")
        #expect(missing.status == 401 && missing.text.contains("needs its access token"))
        let wrong = try story.player().get("/api/stats?token=another-one")
        #expect(wrong.status == 401 && wrong.text.contains("is not that of this daemon"))
    }
}
