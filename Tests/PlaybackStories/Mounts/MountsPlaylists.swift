import FixtureCDN
import ScenarioSupport
import Testing

/// Playlists under a mount that an origin makes for one client.
extension Stories {
    @Suite(.tags(.crowded, .threads)) struct MountsPlaylists {}
}

extension Stories.MountsPlaylists {
    /// A playlist with one segment of this name.
    private func list(_ name: String) -> [UInt8] {
        Array("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n\(name).ts\n#EXT-X-ENDLIST\n".utf8)
    }

    @Test(arguments: [
        ("Cache-Control", "private, max-age=60"), ("Cache-Control", "no-store"), ("Vary", "Cookie"),
    ])
    func `a playlist that was made for one client goes to no other`(
        _ name: String, _ value: String
    ) throws {
        let story = try MountedStory()
        let fields: [WireHead.Field] = [
            (name, value), ("Last-Modified", "Sat, 01 Jan 2011 00:00:00 GMT"),
        ]
        for client in ["a", "b", "c"] {
            story.origin.answer("/o/l.m3u8", .respond(200, fields, list(client)))
            let answer = try story.ask("GET", "/l.m3u8", [("Cookie", "who=\(client)")])
            #expect(answer.text.contains("/\(client).ts"), "\(client): \(answer.text)")
        }
        try story.origin.verify()
    }

    @Test(arguments: ["media", "refresh"])
    func `no policy gives one client's playlist to another`(_ policy: String) throws {
        let story = try MountedStory(["--origin-policy", "127.0.0.1=\(policy)"])
        func ask(_ index: Int, as client: String) throws -> PlayerResponse {
            try story.ask("GET", "/\(index).m3u8", [("Authorization", "Basic \(client)")])
        }
        let fields: [WireHead.Field] = [
            ("Cache-Control", "private"), ("Vary", "Cookie"), ("Cache-Control", "max-age=60"),
        ]
        for (index, field) in fields.enumerated() {
            for client in ["a", "b", "c"] {
                story.origin.answer("/o/\(index).m3u8", .respond(200, [field], list(client)))
                let text = try ask(index, as: client).text
                #expect(text.contains("/\(client).ts"), "\(field): \(text)")
            }
        }
        try story.origin.verify()
        story.origin.stop()
        for index in fields.indices { #expect(try ask(index, as: "d").status >= 500) }
    }

    @Test func `a playlist for credentials goes to no client without them`() throws {
        let story = try MountedStory()
        let fields: [WireHead.Field] = [("Cache-Control", "max-age=60")]
        story.origin.answer("/o/l.m3u8", .respond(200, fields, list("a")))
        let credentials: [WireHead.Field] = [("Authorization", "Basic YTpi")]
        #expect(try story.ask("GET", "/l.m3u8", credentials).text.contains("/a.ts"))
        story.origin.answer("/o/l.m3u8", .respond(200, fields, list("b")))
        #expect(try story.ask("GET", "/l.m3u8").text.contains("/b.ts"))
        // It is for everybody then.
        #expect(try story.ask("GET", "/l.m3u8").text.contains("/b.ts"))
        #expect(story.origin.requestCount("/o/l.m3u8") == 2)
    }

    @Test func `a playlist that varies by origin or coding is stored`() throws {
        let story = try MountedStory(
            ["--cors-origin", "http://one.test", "--cors-origin", "http://two.test"])
        let fields: [WireHead.Field] = [
            ("Cache-Control", "max-age=60"), ("Vary", "Origin, Accept-Encoding"),
        ]
        story.origin.answer("/o/l.m3u8", .respond(200, fields, list("a")))
        for site in ["http://one.test", "http://two.test"] {
            let answer = try story.ask("GET", "/l.m3u8", [("Origin", site)])
            #expect(answer.text.contains("/a.ts"))
        }
        #expect(story.origin.requestCount("/o/l.m3u8") == 1)
    }

    @Test func `a playlist of another name has a variant for each value of what it depends on`()
        throws
    {
        let story = try MountedStory()
        let fields: [WireHead.Field] = [("Cache-Control", "max-age=60"), ("Vary", "X-Client")]
        for client in ["a", "b"] {
            story.origin.answer("/o/live", .respond(200, fields, list(client)))
            for _ in 1...3 {
                let answer = try story.ask("GET", "/live", [("X-Client", client)])
                #expect(answer.text.contains("/\(client).ts"), "\(client): \(answer.text)")
            }
        }
        #expect(story.origin.requestCount("/o/live") == 2)
    }

    @Test(arguments: ["bytes=10-40", "bytes=0-1", "bytes=-20", nil], ["max-age=60", "no-store"])
    func `a part or the head of a playlist of another name is that of the rewritten text`(
        _ range: String?, _ control: String
    ) throws {
        let site = try Story()
        site.cdn.put("/v/live", list("a"), contentType: "application/vnd.apple.mpegurl")
        site.cdn.setBehaviour(Behaviour(query: "cc=\(control)"), for: "/v/live")
        let daemon = try site.succeed(["--mount", "/demo/=\(site.cdn.url("/v/"))"])
        defer { daemon.kill(9) }
        let player = ScriptedPlayer(daemon.baseURL)
        let fields: [WireHead.Field] = range.map { [("Range", $0)] } ?? []
        func ask() throws -> PlayerResponse {
            try player.get("/demo/live", headers: fields, method: range == nil ? "HEAD" : "GET")
        }
        let first = try ask()
        let requests = site.cdn.requestCount("/v/live")
        let second = try ask()
        if control != "no-store" { #expect(site.cdn.requestCount("/v/live") == requests) }
        let whole = try player.get("/demo/live")
        #expect(whole.text.contains("/a.ts") && whole.text.hasSuffix("#EXT-X-ENDLIST\n"))
        for answer in [first, second] {
            #expect(answer.status == 200 && answer["Content-Range"] == nil)
            #expect(answer["Content-Length"] == "\(whole.body.count)")
            #expect(answer.text == (range == nil ? "" : whole.text))
        }
    }

    @Test(arguments: [false, true], ["max-age=60", "no-store"])
    func `links of a playlist continue after their token has expired`(
        _ isNested: Bool, _ control: String
    ) throws {
        let site = try Story()
        func renew(_ token: String) {
            let names = (0..<3).map { "/bytes/30000/s\($0).ts?token=\(token)" }
            site.cdn.put("/v/l.m3u8", text: vod(names))
            let head = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n"
            site.cdn.put("/v/m.m3u8", text: head + "l.m3u8?token=\(token)\n")
            let need = isNested ? "&needtoken=\(token)" : ""
            site.cdn.setBehaviour(Behaviour(query: "cc=\(control)\(need)"), for: "/v/l.m3u8")
            site.cdn.setBehaviour(Behaviour(query: "cc=\(control)"), for: "/v/m.m3u8")
            site.cdn.setBehaviour(Behaviour(query: "needtoken=\(token)"), for: "/bytes/*")
        }
        renew("a")
        let daemon = try site.succeed(["--mount", "/demo/=\(site.cdn.url("/v/"))"])
        defer { daemon.kill(9) }
        let player = ScriptedPlayer(daemon.baseURL)
        let cookie: [WireHead.Field] = [("Cookie", "who=me")]
        var text = try player.get("/demo/\(isNested ? "m" : "l").m3u8", headers: cookie).text
        if isNested { text = try player.get(try #require(uriLines(text).first)).text }
        let links = uriLines(text)
        try #require(links.count == 3)
        #expect(try player.get(links[0]).status == 200)
        site.cdn.resetLog()
        renew("b")
        let answer = try player.get(links[1])
        #expect(answer.status == 200)
        #expect(isContent(answer.body, of: "/bytes/30000/s1.ts"))
        // The other clients of the mount have the same session.
        #expect(site.cdn.requests.allSatisfy { $0["Cookie"] == nil })
    }

    @Test(arguments: [true, false])
    func `clients that wait for one playlist get their own if it is private`(_ isPrivate: Bool)
        throws
    {
        let story = try MountedStory()
        let fields: [WireHead.Field] = [
            ("Cache-Control", isPrivate ? "private, max-age=60" : "max-age=60")
        ]
        let both = Barrier("both wait")
        story.origin.answer(
            "/o/l.m3u8", .hold(until: both), .respond(200, fields, list("a")))
        if isPrivate { story.origin.answer("/o/l.m3u8", .respond(200, fields, list("b"))) }
        func ask() -> Background<String> {
            Background { try story.ask("GET", "/l.m3u8").text }
        }
        let first = ask()
        #expect(eventually { story.origin.requestCount("/o/l.m3u8") == 1 })
        let known = try story.requestCount() + 1
        var polls = 0
        let second = ask()
        #expect(
            try eventually {
                polls += 1
                return try story.requestCount() >= known + polls
            })
        both.arrive()
        let texts = try [first, second].map { try $0.value() }
        #expect(texts[0].contains("/a.ts"))
        #expect(texts[1].contains(isPrivate ? "/b.ts" : "/a.ts"))
        try story.origin.verify()
    }

    @Test(arguments: [nil, "\"e\"", "W/\"e\""])
    func `a page in the place of a playlist has the entity tag of its origin or none`(
        _ tag: String?
    ) throws {
        let story = try MountedStory()
        let page: [WireHead.Field] = [("Content-Type", "text/html")]
        let fields: [WireHead.Field] = tag.map { [("ETag", $0)] } ?? []
        story.origin.answer("/o/l.m3u8", .respond(200, page + fields, Array("<p>page".utf8)))
        let answer = try story.ask("GET", "/l.m3u8")
        #expect(answer.status == 200 && answer.text == "<p>page" && answer["ETag"] == tag)
    }

    /// How a client requests the playlist that another one, with credentials, waits for.
    enum Way: Sendable, CaseIterable { case withOtherCredentials, without, byPlayback }

    @Test(arguments: Way.allCases, [200, 401])
    func `nobody gets what an origin sends to the credentials of another client`(
        _ way: Way, _ status: Int
    ) throws {
        let story = try MountedStory()
        let fields: [WireHead.Field] = [("Cache-Control", "max-age=60")]
        let both = Barrier("both are asked for")
        story.origin.answer(
            "/o/l.m3u8", .hold(until: both), .respond(status, fields, list("a")))
        story.origin.answer("/o/l.m3u8", .respond(200, fields, list("b")))
        let first = Background {
            try story.ask("GET", "/l.m3u8", [("Authorization", "Basic YTpi")])
        }
        #expect(eventually { story.origin.requestCount("/o/l.m3u8") == 1 })
        let second = Background { () throws -> PlayerResponse in
            switch way {
            case .withOtherCredentials:
                try story.ask("GET", "/l.m3u8", [("Authorization", "Basic Yzpk")])
            case .without: try story.ask("GET", "/l.m3u8")
            case .byPlayback: try story.player().get("/" + story.origin.url("/o/l.m3u8"))
            }
        }
        #expect(eventually { story.origin.requestCount("/o/l.m3u8") == 2 })
        both.arrive()
        let answers = try [first, second].map { try $0.value() }
        #expect((answers[0].status == 200) == (status == 200))
        #expect(answers[0].text.contains("/a.ts") == (status == 200))
        #expect(answers[1].status == 200 && answers[1].text.contains("/b.ts"))
        #expect(!answers[1].text.contains("/a.ts"))
        try story.origin.verify()
    }

    @Test func `a client learns how to authenticate for a playlist of a mount, not in playback`()
        throws
    {
        let story = try MountedStory()
        let basic = "Basic realm=\"r\""
        let digest = "Digest realm=\"r\", nonce=\"n\""
        let challenges: [WireHead.Field] = [
            ("WWW-Authenticate", digest), ("WWW-Authenticate", basic),
        ]
        for _ in 0..<4 { story.origin.answer("/o/l.m3u8", .respond(401, challenges)) }
        let answer = try story.ask("GET", "/l.m3u8")
        #expect(answer.status == 401)
        #expect(answer["WWW-Authenticate"] == "\(digest), \(basic)")
        let played = try story.player().get("/" + story.origin.url("/o/l.m3u8"))
        #expect(played.status == 401 && played["WWW-Authenticate"] == nil)
    }

    @Test func `a client's own cookies reach the origin, and the origin's are not kept for others`()
        throws
    {
        let story = try MountedStory()
        let fields: [WireHead.Field] = [
            ("Cache-Control", "max-age=1"), ("Age", "30"), ("ETag", "\"e\""),
            ("Set-Cookie", "sid=new"),
        ]
        for client in ["a", "b"] {
            story.origin.answer("/o/l.m3u8", .respond(200, fields, list(client)))
            _ = try story.ask("GET", "/l.m3u8", [("Cookie", "sid=\(client)")])
        }
        story.origin.answer("/o/l.m3u8", .respond(200, fields, list("c")))
        _ = try story.ask("GET", "/l.m3u8")
        try story.origin.verify()
        #expect(story.origin.requests.map { $0["Cookie"] } == ["sid=a", "sid=b", nil])
    }

    // RFC 9111 section 7.3.
    @Test(arguments: ["l.m3u8", "live"], ["max-age=60", "no-store"])
    func `a cookie of a playlist reaches no client, not even the first`(
        _ name: String, _ control: String
    ) throws {
        let story = try MountedStory()
        let fields: [WireHead.Field] = [("Cache-Control", control), ("Set-Cookie", "sid=1")]
        for _ in 0..<2 { story.origin.answer("/o/\(name)", .respond(200, fields, list("a"))) }
        for _ in 0..<2 {
            let answer = try story.ask("GET", "/\(name)")
            #expect(answer.text.contains("/a.ts") && answer["Set-Cookie"] == nil)
        }
    }

    @Test func `bearer credentials reach the origin unless they are the daemon's token`() throws {
        let story = try MountedStory(["--token", "secret-token"])
        for name in ["Bearer", "bearer"] {
            for (query, value) in [("?token=secret-token", "of-origin"), ("", "secret-token")] {
                story.origin.answer("/o/a", .respond(200, [("Cache-Control", "no-store")]))
                let fields: [WireHead.Field] = [("Authorization", "\(name) \(value)")]
                #expect(try story.ask("GET", "/a" + query, fields).status == 200)
                let got = story.origin.requests.last?["Authorization"]
                #expect(got == (value == "secret-token" ? nil : "\(name) \(value)"))
            }
        }
        try story.origin.verify()
    }

    @Test func `Basic credentials reach the origin unless their password is the daemon's token`()
        throws
    {
        let story = try MountedStory(["--token", "secret-token"])
        let ours = "Basic eDpzZWNyZXQtdG9rZW4=", theirs = "Basic YTpi"
        let token = "?token=secret-token"
        for (query, value) in [("", ours), (token, ours), (token, theirs)] {
            story.origin.answer("/o/a", .respond(200, [("Cache-Control", "no-store")]))
            let fields: [WireHead.Field] = [("Authorization", value)]
            #expect(try story.ask("GET", "/a" + query, fields).status == 200)
            #expect(
                story.origin.requests.last?["Authorization"] == (value == ours ? nil : theirs))
        }
        #expect(try story.ask("GET", "/a", [("Authorization", theirs)]).status == 401)
        try story.origin.verify()
    }
}
