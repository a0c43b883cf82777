import FixtureCDN
import ScenarioSupport
import Testing

/// Pages of other sites may play public streams, reach no private network, and change nothing.
extension Stories {
    @Suite(.tags(.crowded)) struct ForeignPageTests {}
}

/// The fields that a browser sends for a foreign page.
private let foreign: [[WireHead.Field]] = [
    [("Origin", "https://evil.example"), ("Sec-Fetch-Site", "cross-site")],
    [("Origin", "null")], [("Origin", "https://evil.example")],
    [("Origin", "http://localhost.evil.example")],
    [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors")],
]

extension Stories.ForeignPageTests {
    @Test(arguments: [["--allow-private"], ["--allow-host", "127.0.0.1"]])
    func `a page of another site reaches nothing of a private network`(_ opening: [String]) throws {
        let (daemon, cdn, folder) = try served(opening)
        defer { withExtendedLifetime((daemon, folder)) { cdn.stop() } }
        cdn.put("/l.m3u8", text: vod(["a.ts"]))
        cdn.put("/a.ts", Array("secret".utf8))
        let player = ScriptedPlayer(daemon.baseURL)
        let entry = "/" + cdn.url("/l.m3u8")
        for page in foreign {
            let answer = try player.get(entry, headers: page)
            #expect(answer.status == 403, "\(page)")
            #expect(answer["Access-Control-Allow-Origin"] == nil, "\(page)")
        }
        #expect(cdn.requestCount() == 0)
        // Nor may they reach stored responses, by entry or by link.
        let link = uriLines(try player.get(entry).text)[0]
        for _ in 0..<3 { #expect(try player.get(link).text == "secret") }
        for page in foreign {
            for path in [entry, link] {
                let answer = try player.get(path, headers: page)
                #expect(answer.status == 403 && !answer.text.contains("secret"), "\(page)")
            }
        }
        let question: [WireHead.Field] = [
            ("Origin", "https://evil.example"), ("Access-Control-Request-Method", "GET"),
            ("Access-Control-Request-Private-Network", "true"),
        ]
        let preflight = try player.get(link, headers: question, method: "OPTIONS")
        #expect(preflight["Access-Control-Allow-Origin"] == nil)
        #expect(preflight["Access-Control-Allow-Private-Network"] == nil)
    }

    @Test func `no redirect takes a page of another site to a private host`() throws {
        let (daemon, home, evil, folder) = try between()
        defer {
            withExtendedLifetime((daemon, folder)) {
                home.stop()
                evil.stop()
            }
        }
        home.put("/secret.bin", Array("secret".utf8))
        evil.setBehaviour(
            Behaviour(query: "location=\(home.url("/secret.bin"))"), for: "/r.bin")
        let player = ScriptedPlayer(daemon.baseURL)
        let entry = "/http://evil.example/r.bin"
        for page in foreign {
            let answer = try player.get(entry, headers: page)
            #expect(answer.status == 403, "\(page)")
            #expect(answer["Access-Control-Allow-Origin"] == nil, "\(page)")
        }
        #expect(evil.requestCount("/r.bin") == foreign.count)
        #expect(home.requestCount() == 0)
        // What a player's request has brought is no page's either.
        for _ in 0..<3 { #expect(try player.get(entry).text == "secret") }
        let asked = home.requestCount()
        for page in foreign {
            for method in ["GET", "HEAD", "GET"] {
                let answer = try player.get(entry, headers: page, method: method)
                #expect(answer.status == 403 && !answer.text.contains("secret"), "\(page)")
                #expect(answer["Access-Control-Allow-Origin"] == nil, "\(page)")
            }
        }
        #expect(home.requestCount() == asked)
        #expect(try player.get(entry).text == "secret")
    }

    @Test func `no body begun by a public host goes on with a private one's`() throws {
        let (daemon, home, evil, folder) = try between()
        defer {
            withExtendedLifetime((daemon, folder)) {
                home.stop()
                evil.stop()
            }
        }
        for (cdn, rest) in [(evil, "p"), (home, "s")] {
            cdn.put("/r.bin", text: "known" + String(repeating: rest, count: 90_000))
            cdn.setBehaviour(Behaviour(query: "etag=v1"), for: "/r.bin")
        }
        let player = ScriptedPlayer(daemon.baseURL)
        let entry = "/http://evil.example/r.bin"
        let start = [("Range", "bytes=0-4")]
        #expect(try player.get(entry, headers: start).text == "known")
        // The rest would be stored with the start, and be any page's.
        evil.setBehaviour(Behaviour(query: "location=\(home.url("/r.bin"))"), for: "/r.bin")
        // The one that was given the start may see the body break.
        _ = try player.get(entry)
        #expect(home.requestCount("/r.bin") > 0)
        #expect(try player.get(entry).text.hasSuffix("s"))
        for page in foreign {
            let answer = try player.get(entry, headers: page + [("Range", "bytes=1000-1009")])
            #expect(!answer.text.contains("ssssssssss"), "\(page)")
        }
    }

    @Test func `no link moves a page of another site to a private host`() throws {
        let (daemon, home, evil, folder) = try between()
        defer {
            withExtendedLifetime((daemon, folder)) {
                home.stop()
                evil.stop()
            }
        }
        let variants = ["x.m3u8", home.url("/x.m3u8")]
        evil.put(
            "/m.m3u8",
            text: "#EXTM3U\n"
                + variants.map { "#EXT-X-STREAM-INF:BANDWIDTH=1\n\($0)\n" }.joined())
        for cdn in [home, evil] { cdn.put("/x.m3u8", text: vod(["a.ts"])) }
        let player = ScriptedPlayer(daemon.baseURL)
        let links = uriLines(try player.get("/http://evil.example/m.m3u8").text)
        try #require(links.count == 2)
        // The handle of the private host is in the path of the link to it.
        let handle = try #require(links[1].split(separator: "/").dropLast().last)
        let moved = "\(links[0])?_sluice_host=\(handle)"
        for page in foreign {
            #expect(try player.get(links[0], headers: page).status == 200, "\(page)")
            let answer = try player.get(moved, headers: page)
            #expect(answer.status == 403, "\(page)")
            #expect(answer["Access-Control-Allow-Origin"] == nil, "\(page)")
        }
        #expect(home.requestCount() == 0)
        #expect(try player.get(moved).status == 200)
        #expect(home.requestCount("/x.m3u8") == 1)
    }

    @Test func `nothing is fetched ahead of a page of another site from a private host`() throws {
        let (daemon, home, evil, folder) = try between(lookAhead: "12")
        defer {
            withExtendedLifetime((daemon, folder)) {
                home.stop()
                evil.stop()
            }
        }
        evil.put("/l.m3u8", text: vod(["a.ts", home.url("/b.ts"), "c.ts"]))
        evil.put("/a.ts", Array("media".utf8))
        home.put("/b.ts", Array("media".utf8))
        evil.setBehaviour(Behaviour(query: "location=\(home.url("/b.ts"))"), for: "/c.ts")
        let player = ScriptedPlayer(daemon.baseURL)
        let list = try player.get("/http://evil.example/l.m3u8", headers: foreign[0])
        let links = uriLines(list.text)
        try #require(links.count == 3)
        #expect(try player.get(links[0], headers: foreign[0]).status == 200)
        #expect(eventually { evil.requestCount("/c.ts") == 1 })
        let hasEnded = try eventually {
            try figure("ahead_running", in: player.get("/api/stats").text) == 0
        }
        #expect(hasEnded)
        #expect(home.requestCount() == 0)
    }

    @Test func `no private host is asked whether it answers for a page of another site`() throws {
        let (daemon, home, evil, folder) = try between()
        defer {
            withExtendedLifetime((daemon, folder)) {
                home.stop()
                evil.stop()
            }
        }
        evil.put("/l.m3u8", text: vod(["a.ts", home.url("/b.ts")]))
        let player = ScriptedPlayer(daemon.baseURL)
        let entry = "/http://evil.example/l.m3u8"
        for _ in 0..<2 {
            #expect(try player.get(entry, headers: foreign[0]).status == 200)
        }
        #expect(home.requestCount() == 0)
        // Before a player is served a list that lacks something, it is.
        #expect(try player.get(entry).status == 200)
        #expect(eventually { home.requestCount() > 0 })
    }

    @Test func `a window for a page of another site takes nothing from a private host`() throws {
        let (daemon, home, evil, folder) = try between()
        defer {
            withExtendedLifetime((daemon, folder)) {
                home.stop()
                evil.stop()
            }
        }
        evil.put("/l.m3u8", text: liveList([home.url("/b.ts"), "a.ts"]))
        evil.put("/a.ts", Array("media".utf8))
        let player = ScriptedPlayer(daemon.baseURL)
        let entry = "/proxy?url=\(percentEncoded("http://evil.example/l.m3u8"))&dvr=60s"
        #expect(try player.get(entry, headers: foreign[0]).status == 200)
        #expect(eventually { evil.requestCount("/a.ts") == 1 })
        let hasEnded = try eventually {
            try figure("ahead_running", in: player.get("/api/stats").text) == 0
        }
        #expect(hasEnded && home.requestCount() == 0)
        // Nor does a redirect of the list lead there.
        evil.setBehaviour(Behaviour(query: "location=\(home.url("/l.m3u8"))"), for: "/l.m3u8")
        let reloads = evil.requestCount("/l.m3u8")
        #expect(eventually { evil.requestCount("/l.m3u8") > reloads + 2 })
        #expect(home.requestCount() == 0)
    }

    @Test func `a window that a page opened fetches for a player what it had given up`() throws {
        let (daemon, home, evil, folder) = try between()
        defer {
            withExtendedLifetime((daemon, folder)) {
                home.stop()
                evil.stop()
            }
        }
        home.put("/b.ts", Array("media".utf8))
        evil.put("/a.ts", Array("media".utf8))
        evil.put("/l.m3u8", text: liveList([home.url("/b.ts"), "a.ts"]))
        let player = ScriptedPlayer(daemon.baseURL)
        let entry = "/proxy?url=\(percentEncoded("http://evil.example/l.m3u8"))&dvr=60s"
        #expect(try player.get(entry, headers: foreign[0]).status == 200)
        // A segment is given up after some 16 seconds, and the list is reloaded twice a second.
        #expect(eventually(within: .seconds(90)) { evil.requestCount("/l.m3u8") > 40 })
        #expect(evil.requestCount("/a.ts") == 1 && home.requestCount() == 0)
        #expect(try player.get(entry).status == 200)
        #expect(eventually { home.requestCount("/b.ts") == 1 })
        #expect(evil.requestCount("/a.ts") == 1)
    }

    @Test func `no window shows a page of another site what a private host listed`() throws {
        let (daemon, home, evil, folder) = try between()
        defer {
            withExtendedLifetime((daemon, folder)) {
                home.stop()
                evil.stop()
            }
        }
        home.put("/l.m3u8", text: liveList(["secret.ts"]))
        // A window begins with a segment that can be had.
        home.put("/secret.ts", Array("media".utf8))
        evil.put("/l.m3u8", text: liveList(["open.ts"], from: 1))
        evil.setBehaviour(Behaviour(query: "location=\(home.url("/l.m3u8"))"), for: "/l.m3u8")
        let player = ScriptedPlayer(daemon.baseURL)
        let entry = "/proxy?url=\(percentEncoded("http://evil.example/l.m3u8"))&dvr=60s"
        #expect(try player.get(entry).text.contains("secret"))
        evil.setBehaviour(nil, for: "/l.m3u8")
        #expect(try eventually { try player.get(entry).text.contains("open") })
        #expect(try player.get(entry).text.contains("secret"))
        for page in foreign {
            for _ in 0..<2 {
                let answer = try player.get(entry, headers: page)
                #expect(answer.status == 403 && !answer.text.contains("secret"), "\(page)")
            }
        }
        // Without a longer window the list is any page's.
        let plain = try player.get("/http://evil.example/l.m3u8", headers: foreign[0])
        #expect(plain.status == 200 && plain.text.contains("open"))
    }

    @Test func `links that a person follows, and pages with consent, reach it`() throws {
        let story = try Story(["--cors-origin", "https://site.example"])
        story.cdn.put("/a.ts", Array("bytes".utf8))
        let pages: [[WireHead.Field]] = [
            [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")],
            [("Origin", "https://site.example"), ("Sec-Fetch-Site", "cross-site")],
            [("Origin", "http://localhost:8080")], [("Origin", story.daemon.baseURL)], [],
        ]
        for page in pages { #expect(try story.get("/a.ts", headers: page).text == "bytes") }
    }

    @Test func `a page of another site uses no mount's password and changes nothing`() throws {
        let (daemon, cdn, folder) = try mounted()
        defer { withExtendedLifetime((daemon, folder)) { cdn.stop() } }
        cdn.put("/l.m3u8", text: vod(["a.ts"]))
        cdn.put("/a.ts", Array("media".utf8))
        let player = ScriptedPlayer(daemon.baseURL)
        let link = uriLines(try player.get("/adm/l.m3u8").text)[0]
        #expect(cdn.requests.last?["Authorization"] != nil)
        let asked = cdn.requestCount()
        for page in foreign {
            for (method, path) in [
                ("GET", "/adm/l.m3u8"), ("HEAD", "/adm/a.ts"), ("POST", "/adm/a.ts"),
                ("DELETE", "/adm/a.ts"), ("GET", link), ("POST", "/open/a.ts"),
                ("DELETE", "/open/a.ts"),
            ] {
                let answer = try player.get(path, headers: page, method: method)
                #expect(answer.status == 403, "\(page) \(method) \(path)")
                #expect(answer["Access-Control-Allow-Origin"] == nil, "\(page) \(method) \(path)")
            }
        }
        let question: [WireHead.Field] = [
            ("Origin", "https://evil.example"), ("Access-Control-Request-Method", "DELETE"),
        ]
        let preflight = try player.get("/adm/a.ts", headers: question, method: "OPTIONS")
        #expect(preflight.status == 403)
        #expect(cdn.requestCount() == asked)
        for page in foreign {
            #expect(try player.get("/open/a.ts", headers: page).text == "media", "\(page)")
        }
        let known = [("Origin", "https://site.example"), ("Sec-Fetch-Site", "cross-site")]
        for path in ["/adm/l.m3u8", link] {
            #expect(try player.get(path, headers: known).status == 200)
        }
    }

    @Test func `a page of another site gets nothing that credentials of a user opened`() throws {
        let (daemon, cdn, folder) = try published("cdn.example")
        defer { withExtendedLifetime((daemon, folder)) { cdn.stop() } }
        cdn.put("/l.m3u8", text: vod(["a.ts", "shared.ts"]))
        cdn.put("/page.m3u8", text: vod(["a.ts"]))
        for name in ["/a.ts", "/shared.ts"] { cdn.put(name, text: "secret") }
        cdn.setBehaviour("needcookie=viewer=a", for: "/a.ts")
        cdn.setBehaviour("needcookie=viewer=a&cc=public", for: "/shared.ts")
        let player = ScriptedPlayer(daemon.baseURL)
        let entry =
            "/proxy?url=\(percentEncoded("http://cdn.example/l.m3u8"))&h_Cookie=viewer%3Da"
        for link in uriLines(try player.get(entry).text) {
            #expect(try player.get(link).text == "secret")
        }
        let direct = "/http://cdn.example/a.ts"
        // Sessions of this machine share segments.
        let others: [[WireHead.Field]] = [
            [], [("Origin", "http://localhost:1")], [("Origin", "https://site.example")],
        ]
        for other in others { #expect(try player.get(direct, headers: other).text == "secret") }
        // So do all sessions with the same credentials, whatever else is sent.
        let requests = cdn.requestCount("/a.ts")
        let page = percentEncoded("http://cdn.example/page.m3u8")
        let same = try player.get(
            "/proxy?url=\(page)&h_Cookie=viewer%3Da&h_User-Agent=other", headers: foreign[0]
        ).text
        let known = try #require(uriLines(same).first)
        #expect(try player.get(known, headers: foreign[0]).text == "secret")
        #expect(cdn.requestCount("/a.ts") == requests)
        let list = try player.get("/http://cdn.example/page.m3u8", headers: foreign[0]).text
        let link = try #require(uriLines(list).first)
        for page in foreign {
            for path in [direct, link] {
                for method in ["GET", "HEAD", "GET"] {
                    let answer = try player.get(path, headers: page, method: method)
                    #expect(answer.status == 403, "\(page) \(method) \(path)")
                    #expect(!answer.text.contains("secret"))
                }
            }
            let shared = try player.get("/http://cdn.example/shared.ts", headers: page)
            #expect(shared.text == "secret", "\(page)")
        }
        // Once the origin gives it to everybody, the page's session has a copy of its own.
        cdn.setBehaviour(nil, for: "/a.ts")
        let asked = cdn.requestCount("/a.ts")
        for _ in 0..<2 { #expect(try player.get(link, headers: foreign[0]).text == "secret") }
        #expect(cdn.requestCount("/a.ts") == asked + 1)
        // A failure of the origin opens nothing to another session.
        cdn.setBehaviour("status=503", for: "/a.ts")
        #expect(try player.get(direct, headers: foreign[0]).status == 502)
        #expect(try player.get(direct).text == "secret")
    }

    @Test func `a page of another site cannot look up names`() throws {
        let (daemon, cdn, folder) = try served(["--mount", "/gone/=http://no-such.invalid/"])
        defer { withExtendedLifetime((daemon, folder)) { cdn.stop() } }
        let player = ScriptedPlayer(daemon.baseURL)
        let known = "/http://localhost:\(cdn.port)/a.ts"
        let unknown = "/http://no-such.invalid/a.ts"
        var (texts, states): (Set<String>, Set<String>) = ([], [])
        for page in [foreign[0], foreign[4]] {
            for (method, path) in [("GET", known), ("GET", unknown), ("OPTIONS", "/gone/a.ts")] {
                let answer = try player.get(path, headers: page, method: method)
                #expect(answer.status == 502, "\(page) \(path)")
                #expect(answer["Access-Control-Allow-Origin"] == "*", "\(page) \(path)")
                #expect(answer["Proxy-Status"] == nil, "\(page) \(path)")
                texts.insert(answer.text)
                if method == "GET" { states.insert(answer["Cache-Status"] ?? "") }
            }
        }
        #expect(texts.count == 1 && states.count == 1)
        // Others are told what to mend.
        for other in [[], [("Origin", "http://localhost:1")]] as [[WireHead.Field]] {
            let refused = try player.get(known, headers: other)
            #expect(refused.status == 403 && refused.text.contains("localhost"))
            #expect(refused["Proxy-Status"] == "sluice; error=destination_ip_prohibited")
            #expect(try player.get(unknown, headers: other).status == 502)
        }
    }

    @Test func `documents are readable for pages with consent alone`() throws {
        let story = try Story(["--cors-origin", "https://site.example"])
        for (name, type) in [
            ("/x", "text/html; charset=utf-8"), ("/y.js", "text/javascript"),
            ("/z.xml", "application/xml"), ("/s.ts", "text/html"),
        ] {
            story.cdn.put(name, Array("<secret/>".utf8), contentType: type)
            let link = uriLines(try list(naming: name, story))[0]
            for path in ["/" + story.cdn.url(name), link, link] {
                let local = try story.follow(path, headers: [("Origin", "http://localhost:1")])
                #expect(local["Access-Control-Allow-Origin"] == nil, "\(path)")
                let known = try story.follow(path, headers: [("Origin", "https://site.example")])
                #expect(known["Access-Control-Allow-Origin"] == "https://site.example")
            }
        }
    }

    private func list(naming name: String, _ story: Story) throws -> String {
        let path = "/of\(name.dropFirst()).m3u8"
        story.cdn.put(path, text: vod([name]))
        return try story.get(path).text
    }

    @Test func `requests that change something come from no page of another site`() throws {
        let story = try Story()
        for page in foreign + [[("Sec-Fetch-Site", "same-site")]] {
            for (path, method) in [
                ("/api/clear", "POST"), ("/api/purge?host=h", "POST"), ("/api/feeds/f", "PUT"),
                ("/api/downloads?url=http%3A%2F%2Fh%2F", "POST"), ("/api/verify", "POST"),
                ("/api/keys/forget?origin=http://h", "POST"), ("/api/recordings?url=x", "POST"),
            ] {
                let answer = try story.follow(path, headers: page, method: method)
                #expect(answer.status == 403, "\(page) \(path)")
                #expect(answer["Access-Control-Allow-Origin"] == nil)
            }
        }
        let own = [("Sec-Fetch-Site", "same-origin"), ("Origin", story.daemon.baseURL)]
        #expect(try story.follow("/api/clear", headers: own, method: "POST").status == 200)
    }

    @Test func `a page of another site listens to no events`() throws {
        let story = try Story()
        let others: [[WireHead.Field]] = [
            [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")],
            [("Sec-Fetch-Site", "same-site")],
        ]
        for page in foreign + others {
            let stream = try story.player().open("/api/events", headers: page)
            #expect(try stream.readHead().status == 403, "\(page)")
        }
        let own: [[WireHead.Field]] = [
            [("Sec-Fetch-Site", "same-origin")], [("Sec-Fetch-Site", "none")], [],
        ]
        for page in own {
            let stream = try story.player().open("/api/events", headers: page)
            #expect(try stream.readHead().status == 200, "\(page)")
        }
    }

    @Test func `a page of another site has the daemon list nothing`() throws {
        let story = try Story()
        let frame: [WireHead.Field] = [
            ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"),
            ("Sec-Fetch-Dest", "iframe"),
        ]
        let paths = ["/api/titles", "/api/df", "/api/stats", "/api/why?url=http%3A%2F%2Fh%2F"]
        for path in paths {
            for page in foreign + [frame] {
                #expect(try story.follow(path, headers: page).status == 403, "\(page) \(path)")
            }
        }
        #expect(try story.follow("/api/health", headers: frame).status == 200)
        let own: [[WireHead.Field]] = [
            [("Sec-Fetch-Site", "same-origin")], [("Origin", story.daemon.baseURL)], [],
            // A link that a person follows.
            [
                ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"),
                ("Sec-Fetch-Dest", "document"),
            ],
        ]
        for page in own {
            #expect(try story.follow("/api/titles", headers: page).status == 200, "\(page)")
        }
    }

    @Test func `own pages are not opened to pages of other sites`() throws {
        let story = try Story()
        for path in ["/api/stats", "/api/origins", "/api/titles", "/metrics", "/"] {
            let answer = try story.follow(path, headers: [("Origin", "https://evil.example")])
            #expect(answer["Access-Control-Allow-Origin"] == nil, "\(path)")
            let question = [
                ("Origin", "https://evil.example"), ("Access-Control-Request-Method", "GET"),
            ]
            let preflight = try story.follow(path, headers: question, method: "OPTIONS")
            #expect(preflight["Access-Control-Allow-Origin"] == nil, "\(path)")
        }
    }

    /// A live list of these segments, with their URIs as titles; the first has number `start`.
    private func liveList(_ uris: [String], from start: Int = 0) -> String {
        // Lists with parts are reused for half a part target.
        let head = """
            #EXTM3U
            #EXT-X-TARGETDURATION:1
            #EXT-X-PART-INF:PART-TARGET=0.1
            #EXT-X-MEDIA-SEQUENCE:\(start)

            """
        return uris.reduce(head) { $0 + "#EXTINF:1,\($1)\n\($1)\n" }
    }

    /// A daemon, a host that it may reach on this machine, and the site of a page that has a public
    /// name.
    private func between(
        lookAhead: String = "off"
    ) throws -> (DaemonProcess, FixtureCDN, FixtureCDN, TemporaryFolder) {
        let evil = FixtureCDN()
        try evil.start()
        let (daemon, home, folder) = try served([
            "--allow-host", "127.0.0.1", "--look-ahead", lookAhead,
            "--origin-proxy", "evil.example=http://127.0.0.1:\(evil.port)",
        ])
        return (daemon, home, evil, folder)
    }

    /// A daemon that has two mounts of one public origin, one of them with a password.
    private func mounted() throws -> (DaemonProcess, FixtureCDN, TemporaryFolder) {
        try published(
            "adm.example",
            [
                "--mount", "/adm/=http://user:password@adm.example/",
                "--mount", "/open/=http://adm.example/",
            ])
    }

    /// A daemon, and an origin on this machine that a public host name leads to.
    private func published(
        _ host: String, _ arguments: [String] = []
    ) throws -> (DaemonProcess, FixtureCDN, TemporaryFolder) {
        let cdn = FixtureCDN()
        try cdn.start()
        let folder = try TemporaryFolder()
        let daemon = try DaemonProcess(
            [
                "serve", "--port", "0", "--cache-dir", folder.file("cache"), "--look-ahead", "off",
                "--cors-origin", "https://site.example",
                "--origin-proxy", "\(host)=http://127.0.0.1:\(cdn.port)",
            ] + arguments)
        return (daemon, cdn, folder)
    }

    /// A daemon without the options of `Story`, and an origin on this machine.
    private func served(_ arguments: [String]) throws -> (
        DaemonProcess, FixtureCDN, TemporaryFolder
    ) {
        let folder = try TemporaryFolder()
        let daemon = try DaemonProcess(
            ["serve", "--port", "0", "--cache-dir", folder.file("cache")] + arguments)
        let cdn = FixtureCDN()
        try cdn.start()
        return (daemon, cdn, folder)
    }
}

extension Stories.ForeignPageTests {
    @Test(arguments: [
        "..%2fsecret", "%2e%2e%2fsecret", "%2e%2e/secret", "..;/secret", "..;x=1/secret",
        "%2e%2e;/secret", "..%3b/secret", "..%5csecret", "..\\secret", "a/..%2f..%2fsecret",
        "%252e%252e%252fsecret", "..%252fsecret", "a%5c..%5c..%5csecret", "..%25252fsecret",
    ])
    func `a path that climbs out of a mount is refused however it is written`(_ path: String) throws
    {
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        let story = try Story(["--mount", "/demo/=\(cdn.url("/vod/"))"])
        #expect(try story.follow("/demo/\(path)").status == 400)
        #expect(cdn.requestCount() == 0)
    }

    @Test func `names with dots and percent signs stay what they are`() throws {
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        let story = try Story(["--mount", "/demo/=\(cdn.url("/vod/"))"])
        for name in ["a..b.ts", "...ts", "100%25.ts", "a;v=1.ts", "x%2Fy.ts"] {
            _ = try story.follow("/demo/\(name)")
        }
        #expect(cdn.requestCount() == 5)
    }
}
