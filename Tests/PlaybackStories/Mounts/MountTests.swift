import FixtureCDN
import ScenarioSupport
import Testing

/// Mounts, the classic reverse proxy, and daemons behind another proxy.
extension Stories {
    @Suite(.tags(.crowded)) struct MountTests {}
}

extension Stories.MountTests {
    /// A daemon with `/demo/` mounted on the folder `/vod/` of a CDN.
    private func mounted(_ arguments: [String] = []) throws -> (
        FixtureCDN, DaemonProcess, TemporaryFolder
    ) {
        let cdn = FixtureCDN()
        try cdn.start()
        let folder = try TemporaryFolder()
        let mount = ["--mount", "/demo/=\(cdn.url("/vod/"))"]
        return (cdn, try Story.serve(folder.file("cache"), mount + arguments), folder)
    }

    @Test
    func `a mount passes paths and queries unchanged, and HTTP decides what is stored`() throws {
        let (cdn, daemon, folder) = try mounted()
        defer { withExtendedLifetime(folder) { cdn.stop() } }
        let player = ScriptedPlayer(daemon.baseURL)
        cdn.put("/vod/page.html", text: "<p>hello</p>", contentType: "text/html")
        cdn.put("/vod/a.ts", Array("bytes".utf8))
        cdn.setBehaviour("cc=max-age=100", for: "/vod/a.ts")
        cdn.setBehaviour("cc=no-store&header=X-Own:1", for: "/vod/page.html")
        for _ in 0..<2 {
            let page = try player.get("/demo/page.html")
            #expect(
                page.text == "<p>hello</p>" && page["Content-Type"] == "text/html"
                    && page["X-Own"] == "1")
            #expect(try player.get("/demo/a.ts").text == "bytes")
        }
        #expect(cdn.requestCount("/vod/page.html") == 2 && cdn.requestCount("/vod/a.ts") == 1)
        _ = try player.get("/demo/x%2Fy;z?a=1&b=%26+c")
        #expect(cdn.requests.last?.target == "/vod/x%2Fy;z?a=1&b=%26+c")
        #expect(cdn.requests.last?["Via"]?.contains("sluice") == true)
    }

    @Test(arguments: ["/", "/demo/"])
    func `the console's path without its slash leads to the console`(_ mount: String) throws {
        let folder = try TemporaryFolder()
        let daemon = try Story.serve(
            folder.file("cache"), ["--mount", "\(mount)=http://127.0.0.1:1/"])
        defer { withExtendedLifetime(folder) { daemon.kill(9) } }
        let player = ScriptedPlayer(daemon.baseURL)
        for method in ["GET", "HEAD"] {
            // Relative, so that it holds behind a base path too.
            let typed = try player.get("/console?a=b", method: method)
            #expect(typed.status == 308 && typed["Location"] == "console/?a=b", "\(method)")
        }
        #expect(try player.get("/console")["Location"] == "console/")
        #expect(try player.get("/console/").text.hasPrefix("<!doctype html>"))
        let posted = try player.get(
            "/console", headers: [("Sluice-Request", "1")], method: "POST")
        #expect(posted.status == 405)
        #expect(try player.get("/consoles").status != 308)
    }

    @Test
    func `a mount's path without its slash is redirected for clients with the token`() throws {
        let folder = try TemporaryFolder()
        let daemon = try Story.serve(
            folder.file("cache"),
            ["--mount", "/deep/tv/=http://127.0.0.1:1/", "--token", "acc3ss-token"])
        defer { withExtendedLifetime(folder) { daemon.kill(9) } }
        let player = ScriptedPlayer(daemon.baseURL)
        let token = [("Authorization", "Bearer acc3ss-token")]
        for method in ["GET", "HEAD"] {
            let typed = try player.get("/deep/tv?x=1", headers: token, method: method)
            #expect(typed.status == 308 && typed["Location"] == "./tv/?x=1", "\(method)")
        }
        #expect(try player.get("/deep/tv", headers: token)["Location"] == "./tv/")
        #expect(try player.get("/deep/tv").status == 401)
        let posted = try player.get(
            "/deep/tv", headers: token + [("Sluice-Request", "1")], method: "POST")
        #expect(posted.status == 405 && posted["Allow"] == "GET, HEAD, OPTIONS")
        for path in ["/deep", "/deep/", "/deep/tvs", "/tv"] {
            #expect(try player.get(path, headers: token).status == 404, "\(path)")
        }
    }

    @Test
    func `a playlist under a mount is played through the daemon`() throws {
        let (cdn, daemon, folder) = try mounted()
        defer { withExtendedLifetime(folder) { cdn.stop() } }
        let player = ScriptedPlayer(daemon.baseURL)
        cdn.put("/vod/deep/l.m3u8", text: vod(["../a.ts"]))
        cdn.put("/vod/a.ts", Array("bytes".utf8))
        let list = try player.get("/demo/deep/l.m3u8")
        #expect(list["Content-Type"] == "application/vnd.apple.mpegurl")
        #expect(try player.get(links(list.text)[0]).text == "bytes")
    }

    @Test(arguments: ["a.ts", "l.m3u8"])
    func `what a mount's user information opens is for its own clients`(_ name: String) throws {
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        let folder = try TemporaryFolder()
        let daemon = try Story.serve(
            folder.file("cache"),
            [
                "--mount", "/adm/=http://ann:s3cret@127.0.0.1:\(cdn.port)/vod/",
                "--mount", "/pub/=http://127.0.0.1:\(cdn.port)/vod/",
                "--mount", "/bob/=http://bob:s3cret@127.0.0.1:\(cdn.port)/vod/",
            ])
        defer { withExtendedLifetime(folder) { daemon.kill(9) } }
        cdn.put("/vod/a.ts", Array("bytes".utf8))
        cdn.put("/vod/l.m3u8", text: vod(["a.ts"]))
        // "Basic " and the Base64 of ann:s3cret
        cdn.setBehaviour(
            "cc=max-age=100&needheader=Authorization:Basic%20YW5uOnMzY3JldA==", for: "/*")
        let player = ScriptedPlayer(daemon.baseURL)
        for _ in 0..<2 { #expect(try player.get("/adm/\(name)").status == 200) }
        #expect(cdn.requestCount("/vod/\(name)") == 1)
        let others = ["/pub/\(name)", "/bob/\(name)", "/" + cdn.url("/vod/\(name)")]
        for path in others { #expect(try player.get(path).status == 403, "\(path)") }
        #expect(try player.get("/adm/\(name)").status == 200)
    }

    @Test
    func `a mount's user information is sent for whole playlists, and stands in no link`() throws {
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        let folder = try TemporaryFolder()
        let daemon = try Story.serve(
            folder.file("cache"),
            ["--mount", "/adm/=http://ann:s3cret@127.0.0.1:\(cdn.port)/vod/"])
        defer { withExtendedLifetime(folder) { daemon.kill(9) } }
        cdn.put("/vod/m.m3u8", text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nv/l.m3u8\n")
        cdn.put(
            "/vod/v/l.m3u8",
            text: vod(["../s.ts"], head: ["#EXT-X-KEY:METHOD=AES-128,URI=\"/k/key\""]))
        cdn.put("/vod/s.ts", Array("segment".utf8))
        cdn.put("/k/key", Array("0123456789abcdef".utf8))
        cdn.put("/vod/secret.ts", Array("secret".utf8))
        // "Basic " and the Base64 of ann:s3cret
        for path in ["/vod/*", "/k/*"] {
            cdn.setBehaviour("needheader=Authorization:Basic%20YW5uOnMzY3JldA==", for: path)
        }
        let player = ScriptedPlayer(daemon.baseURL)
        let master = try player.get("/adm/m.m3u8")
        let variant = try #require(uriLines(master.text).first)
        let media = try player.get(variant)
        #expect(links(media.text).count == 2)
        for link in links(media.text) { #expect(try player.get(link).status == 200) }
        for link in [variant] + links(media.text) {
            let url = try #require(origin(of: link))
            #expect(!url.contains("ann") && !url.contains("s3cret"), "\(url)")
        }
        // What stands in links in its place opens nothing that a client, or a list of his, names.
        let start = try #require(origin(of: variant)?.split(separator: "/vod/").first)
        #expect(try player.get("/\(start)/vod/secret.ts").status == 400)
        cdn.put("/list.m3u8", text: vod(["\(start)/vod/secret.ts"]))
        let list = try player.get("/" + cdn.url("/list.m3u8"))
        if list.status == 200 {
            for link in uriLines(list.text) { #expect(try player.get(link).status != 200) }
        }
        #expect(cdn.requestCount("/vod/secret.ts") == 0)
    }

    @Test(arguments: [[], ["--token", "s3cret-token"]])
    func `nobody but the daemon writes links that a mount's user information is sent for`(
        _ arguments: [String]
    ) throws {
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        let folder = try TemporaryFolder()
        let mount = ["--mount", "/adm/=http://ann:s3cret@127.0.0.1:\(cdn.port)/vod/"]
        let daemon = try Story.serve(folder.file("cache"), mount + arguments)
        defer { withExtendedLifetime(folder) { daemon.kill(9) } }
        cdn.put("/vod/l.m3u8", text: vod(["a.ts", "b.ts"]))
        for name in ["a.ts", "b.ts", "secret.ts"] { cdn.put("/vod/\(name)", Array("bytes".utf8)) }
        // "Basic " and the Base64 of ann:s3cret
        cdn.setBehaviour("needheader=Authorization:Basic%20YW5uOnMzY3JldA==", for: "/vod/*")
        let player = ScriptedPlayer(daemon.baseURL)
        let token = arguments.isEmpty ? "" : "?token=s3cret-token"
        let link = try #require(links(try player.get("/adm/l.m3u8\(token)").text).first)
        #expect(try player.get(link).text == "bytes")
        // "mount*", and the path of the mount
        let secret = "http://mount*%2Fadm%2F@127.0.0.1:\(cdn.port)/vod/secret.ts"
        let forged = [
            handMadeHandle(of: secret),
            handMadeHandle(of: secret, flags: 160, signature: Array(repeating: 7, count: 12)),
            handMadeHandle(of: secret, flags: 32, signature: Array(repeating: 7, count: 12)),
        ].map { "/s/\($0)/secret.ts" }
        for path in forged {
            #expect(try player.get(path).status == 403, "\(path)")
            let order = "/api/downloads?url=\(daemon.baseURL)\(path)&token=s3cret-token"
            #expect(try player.get(order, method: "POST").status == 400, "\(path)")
        }
        // A signature holds for its own URL and letter.
        #expect(try player.get("/k/\(link.dropFirst(3))").status == 403)
        #expect(cdn.requestCount("/vod/secret.ts") == 0)
        // Any daemon with the same mount takes the link, so this one after a restart too.
        let other = try Story.serve(folder.file("other"), mount + arguments)
        defer { other.kill(9) }
        #expect(try ScriptedPlayer(other.baseURL).get(link).text == "bytes")
    }

    @Test
    func `the header fields of a mount reach its origin, and no other host, client or log`() throws
    {
        let (cdn, other) = (FixtureCDN(), FixtureCDN())
        try cdn.start()
        defer { cdn.stop() }
        try other.start()
        defer { other.stop() }
        let folder = try TemporaryFolder()
        let log = folder.file("access.log")
        let daemon = try Story.serve(
            folder.file("cache"),
            [
                "--mount", "/own/=\(cdn.url("/vod/"))", "--mount", "/pub/=\(cdn.url("/vod/"))",
                "--mount-header", "/own/=X-Api-Key: s3cret", "--mount-header",
                "/own/=User-Agent: edge", "--access-log", log, "--log-level", "trace",
            ])
        defer { withExtendedLifetime(folder) { daemon.kill(9) } }
        cdn.put(
            "/vod/l.m3u8",
            text: vod(
                ["a.ts", "moved.ts", other.url("/b.ts")],
                head: ["#EXT-X-KEY:METHOD=AES-128,URI=\"key\""]))
        cdn.put("/vod/a.ts", Array("own".utf8))
        cdn.put("/vod/key", Array("0123456789abcdef".utf8))
        for name in ["b.ts", "c.ts"] { other.put("/\(name)", Array("other".utf8)) }
        cdn.setBehaviour("needheader=X-Api-Key:s3cret", for: "/vod/*")
        cdn.setBehaviour(Behaviour(query: "location=\(other.url("/c.ts"))"), for: "/vod/moved.ts")
        let player = ScriptedPlayer(daemon.baseURL)
        let headers: [WireHead.Field] = [("User-Agent", "player"), ("X-Api-Key", "guess")]
        let list = try player.get("/own/l.m3u8", headers: headers)
        #expect(list.status == 200 && !list.text.contains("s3cret"))
        let bodies = try links(list.text).map { try player.get($0, headers: headers).text }
        #expect(bodies == ["0123456789abcdef", "own", "other", "other"])
        #expect(try player.get("/own/a.ts", headers: headers).text == "own")
        #expect(try player.get("/own/a.ts", headers: headers, method: "POST").status == 405)
        #expect(
            Set(cdn.requests.map(\.path)) == [
                "/vod/l.m3u8", "/vod/key", "/vod/a.ts", "/vod/moved.ts",
            ])
        for request in cdn.requests {
            #expect(request["X-Api-Key"] == "s3cret", "\(request.target)")
            #expect(request["User-Agent"] == "edge", "\(request.target)")
        }
        #expect(Set(other.requests.map(\.path)) == ["/b.ts", "/c.ts"])
        for request in other.requests {
            #expect(request["X-Api-Key"] == nil && request["User-Agent"] == "player")
        }
        // What it opens is for the clients of the mount.
        for path in ["/pub/l.m3u8", "/pub/a.ts", "/" + cdn.url("/vod/l.m3u8")] {
            #expect(try player.get(path).status == 403, "\(path)")
        }
        #expect(try player.get("/api/settings").text.contains("/own/=X-Api-Key: ***"))
        let why = try player.get("/api/why?url=\(daemon.baseURL)/own/l.m3u8").text
        #expect(accessLines(log, 10).count >= 10)
        let texts = [
            try player.get("/api/settings").text, why, daemon.standardError,
            String(decoding: try readFile(log), as: UTF8.self),
        ]
        for text in texts { #expect(!text.contains("s3cret"), "\(text)") }
    }

    @Test
    func `an unsafe request takes out what other mounts of the origin have of the URL`() throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        let folder = try TemporaryFolder()
        let url = origin.url("/o/")
        let daemon = try Story.serve(
            folder.file("cache"),
            ["--mount", "/adm/=http://ann:pw@\(url.dropFirst(7))", "--mount", "/pub/=\(url)"])
        defer { withExtendedLifetime(folder) { daemon.kill(9) } }
        let player = ScriptedPlayer(daemon.baseURL)
        let fields: [WireHead.Field] = [("Cache-Control", "max-age=60")]
        for (writer, reader) in [("/adm/a", "/pub/a"), ("/pub/b", "/adm/b")] {
            let path = "/o/\(writer.suffix(1))"
            origin.answer(path, .respond(200, fields, Array("one".utf8)))
            for _ in 0..<2 { #expect(try player.get(reader).text == "one") }
            origin.answer(path, .respond(200))
            #expect(try player.get(writer, method: "PUT", body: Array("two".utf8)).status == 200)
            origin.answer(path, .respond(200, fields, Array("two".utf8)))
            #expect(try player.get(reader).text == "two")
        }
        try origin.verify()
    }

    @Test(arguments: [
        "/demo/../secret.ts", "/demo/x/../../secret.ts", "/demo/%2e%2e/secret.ts",
        "/demo/..%2Fsecret.ts",
    ])
    func `no path leaves its mount`(_ path: String) throws {
        let (cdn, daemon, folder) = try mounted()
        defer { withExtendedLifetime(folder) { cdn.stop() } }
        cdn.put("/secret.ts", Array("secret".utf8))
        let answer = try ScriptedPlayer(daemon.baseURL).get(path)
        #expect(
            [400, 404].contains(answer.status), "\(answer.status) \(cdn.requests.map(\.target))")
        #expect(cdn.requestCount("/secret.ts") == 0)
    }

    @Test
    func `errors, redirects and other methods keep their meaning under a mount`() throws {
        let (cdn, daemon, folder) = try mounted()
        defer { withExtendedLifetime(folder) { cdn.stop() } }
        let player = ScriptedPlayer(daemon.baseURL)
        #expect(try player.get("/demo/missing").status == 404)
        cdn.setBehaviour("location=/vod/b.ts", for: "/vod/a.ts")
        let led = try player.get("/demo/a.ts")
        #expect(led.status == 302 && led["Location"] == "/demo/b.ts")
        #expect(try player.get("/demo/a.ts", method: "POST").status == 405)
    }

    @Test
    func `a longer mount wins over a shorter one`() throws {
        let (cdn, daemon, folder) = try mounted()
        defer { withExtendedLifetime((folder, daemon)) { cdn.stop() } }
        let other = try TemporaryFolder()
        let second = try Story.serve(
            other.path,
            ["--mount", "/long/=\(cdn.url("/one/"))", "--mount", "/long/y/=\(cdn.url("/two/"))"])
        cdn.put("/two/a.ts", Array("two".utf8))
        #expect(try ScriptedPlayer(second.baseURL).get("/long/y/a.ts").text == "two")
    }

    @Test
    func `the access token does not reach a mounted origin`() throws {
        let (cdn, daemon, folder) = try mounted(["--token", "s3cret-token"])
        defer { withExtendedLifetime(folder) { cdn.stop() } }
        let player = ScriptedPlayer(daemon.baseURL)
        #expect(try player.get("/demo/a.ts").status == 401)
        _ = try player.get("/demo/a.ts?x=1&token=s3cret-token&y=2")
        #expect(cdn.requests.last?.target == "/vod/a.ts?x=1&y=2")
        _ = try player.get("/demo/b.ts?token=s3cret-token")
        #expect(cdn.requests.last?.target == "/vod/b.ts")
        _ = try player.get("/demo/c.ts", headers: [("Authorization", "Bearer s3cret-token")])
        #expect(
            cdn.requests.last?.target == "/vod/c.ts" && cdn.requests.last?["Authorization"] == nil)
    }
}

// MARK: Behind another proxy

extension Stories.MountTests {
    private func link(_ story: Story, _ headers: [WireHead.Field]) throws -> String {
        story.cdn.put("/l.m3u8", text: vod(["a.ts"]))
        return links(try story.get("/l.m3u8", headers: headers).text)[0]
    }

    private static let forwarded: [WireHead.Field] = [
        ("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "tv.example"),
        ("X-Forwarded-Prefix", "/hls/"),
    ]

    @Test
    func `links are relative to the root, so that any host name in front works`() throws {
        let story = try Story(["--host-name", "tv.example"])
        #expect(try link(story, [("Host", "tv.example")]).hasPrefix("/s/"))
        let based = try Story(["--base-path", "/hls"])
        #expect(try link(based, []).hasPrefix("/hls/s/"))
    }

    @Test
    func `forwarded names count only from trusted clients`() throws {
        #expect(
            try link(try Story(["--absolute-urls"]), Self.forwarded).hasPrefix("http://127.0.0.1:"))
        let trusting = try Story(["--absolute-urls", "--trust-forwarded"])
        #expect(try link(trusting, Self.forwarded).hasPrefix("https://tv.example/hls/s/"))
        #expect(try link(trusting, []).hasPrefix("http://127.0.0.1:"))
    }

    @Test(arguments: ["//evil.example", "javascript:x", "/a b", "/a\"b"])
    func `a forwarded prefix that is not a path is ignored`(_ prefix: String) throws {
        let story = try Story(["--trust-forwarded"])
        #expect(try link(story, [("X-Forwarded-Prefix", prefix)]).hasPrefix("/s/"))
    }

    @Test
    func `the page of URLs has the base path in front of each`() throws {
        func page(_ arguments: [String], _ headers: [WireHead.Field]) throws -> String {
            let story = try Story(arguments)
            return try story.player().get(story.daemon.baseURL + "/", headers: headers).text
        }
        #expect(
            try page(
                ["--base-path", "/hls", "--host-name", "tv.example"], [("Host", "tv.example")]
            )
            .contains("Play through it:  http://tv.example/hls/https://"))
        #expect(
            try page(["--trust-forwarded"], Self.forwarded)
                .contains("Figures:          https://tv.example/hls/api/stats"))
    }

    @Test
    func `redirects of a mount keep the prefix that a trusted proxy states`() throws {
        let (cdn, daemon, folder) = try mounted(["--trust-forwarded"])
        defer { withExtendedLifetime(folder) { cdn.stop() } }
        cdn.setBehaviour("location=/vod/to.ts", for: "/vod/from.ts")
        let player = ScriptedPlayer(daemon.baseURL)
        let moved = try player.get("/demo/from.ts", headers: Self.forwarded)
        #expect(moved["Location"] == "/hls/demo/to.ts")
    }

    @Test
    func `absolute links lead back to the daemon that wrote them`() throws {
        let story = try Story(["--absolute-urls"])
        story.cdn.put("/a.ts", Array("bytes".utf8))
        let absolute = try link(story, [])
        #expect(absolute.hasPrefix(story.daemon.baseURL + "/s/"))
        #expect(try story.follow(absolute).text == "bytes")
    }
}
