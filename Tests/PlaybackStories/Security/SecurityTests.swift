import FixtureCDN
import ScenarioSupport
import Testing

/// Attackers: whom the daemon answers, where it connects to, and what it keeps secret.
extension Stories {
    @Suite(.tags(.crowded)) struct SecurityTests {}
}

// MARK: Who may ask

extension Stories.SecurityTests {
    @Test(arguments: [
        "evil.example", "evil.example:9000", "127.0.0.1.evil.example", "localhost.evil.example", "",
    ])
    func `a request for a foreign Host is misdirected`(_ host: String) throws {
        let story = try Story()
        story.cdn.put("/a.ts", Array("bytes".utf8))
        let answer = try story.get("/a.ts", headers: [("Host", host)])
        #expect(answer.status == 421 || answer.status == 400, "\(answer.status)")
        if answer.status == 421 { #expect(answer.text.contains("start it with --host-name")) }
        #expect(story.cdn.requestCount() == 0)
        #expect(try story.follow("/api/stats", headers: [("Host", host)]).status == answer.status)
    }

    @Test
    func `loopback names and configured names are accepted`() throws {
        let story = try Story(["--host-name", "tv.example"])
        let port = story.daemon.baseURL.split(separator: ":")[2]
        for host in [
            "localhost:\(port)", "LOCALHOST:\(port)", "127.0.0.1:\(port)", "[::1]:\(port)",
            "tv.example", "TV.example:443", "localhost", "127.0.0.1:8080",
        ] {
            #expect(try story.follow("/api/health", headers: [("Host", host)]).status == 200)
        }
    }

    @Test
    func `a wider bind requires a token or explicit consent`() throws {
        let folder = try TemporaryFolder()
        let program = try DaemonProcess.builtBinary()
        for address in ["0.0.0.0", "::"] {
            let result = try Tool.run([
                program, "serve", "--port", "0", "--bind", address, "--cache-dir", folder.file("c"),
            ])
            #expect(result.status == 78 && result.stderr.contains("--token"))
        }
        for consent in [["--allow-remote"], ["--token", "correct horse"]] {
            let daemon = try Story.serve(
                folder.makeFolder("cache"), ["--bind", "0.0.0.0"] + consent)
            #expect(try daemon.terminate() == .code(0))
        }
    }

    @Test
    func `with a token entries require it, links are signed, and a forged one is forbidden`() throws
    {
        let story = try Story(["--token", "s3cret-token"])
        story.cdn.put("/l.m3u8", text: vod(["a.ts"]))
        story.cdn.put("/a.ts", Array("bytes".utf8))
        let unauthorized = try story.get("/l.m3u8")
        #expect(unauthorized.status == 401)
        #expect(unauthorized["WWW-Authenticate"] == "Bearer realm=\"sluice\"")
        #expect(try story.follow(story.entry("/l.m3u8", "token=wrong-token")).status == 401)
        #expect(
            try story.follow("/api/stats").status == 401 && story.follow("/metrics").status == 401)
        let list = try story.follow(story.entry("/l.m3u8", "token=s3cret-token"))
        let bearer = try story.get("/l.m3u8", headers: [("Authorization", "Bearer s3cret-token")])
        #expect(list.status == 200 && bearer.text == list.text && !list.text.contains("s3cret"))
        let link = uriLines(list.text)[0]
        #expect(try story.follow(link).text == "bytes")
        var bent = Array(link.utf8)
        bent[20] = bent[20] == 0x41 ? 0x42 : 0x41
        #expect(try story.follow(String(decoding: bent, as: UTF8.self)).status == 403)
        #expect(
            !story.cdn.requests.contains {
                $0.target.contains("token") || $0["Authorization"] != nil
            })
    }

    @Test
    func `an unsigned link is rejected where links are signed`() throws {
        let open = try Story()
        open.cdn.put("/l.m3u8", text: vod(["a.ts"]))
        let link = try open.links(in: "/l.m3u8")[0]
        let closed = try Story(["--token", "s3cret-token"])
        #expect(try closed.follow(link).status == 403)
        #expect(open.cdn.requestCount("/a.ts") == 0)
    }

    @Test
    func `pages of other sites may not change the cache`() throws {
        let story = try Story()
        let foreign = try story.follow(
            "/api/clear", headers: [("Origin", "https://evil.example")], method: "POST")
        #expect(foreign.status == 403)
        // A GET returns the progress of a clear, and starts none.
        #expect(try story.follow("/api/clear").text.contains("\"state\":\"none\""))
        #expect(
            try story.follow(
                "/api/clear", headers: [("Origin", story.daemon.baseURL)], method: "POST"
            ).status == 200)
    }
}

// MARK: Where it goes

extension Stories.SecurityTests {
    private func guarded(_ arguments: [String] = []) throws -> (
        DaemonProcess, ScriptedPlayer, FixtureCDN, TemporaryFolder
    ) {
        let folder = try TemporaryFolder()
        let daemon = try DaemonProcess(
            ["serve", "--port", "0", "--cache-dir", folder.file("cache")] + arguments)
        let cdn = FixtureCDN()
        try cdn.start()
        return (daemon, ScriptedPlayer(daemon.baseURL), cdn, folder)
    }

    @Test(arguments: [
        "127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0.0.0.0", "[::1]",
        "[::ffff:127.0.0.1]", "10.0.0.1",
        "192.168.1.1", "172.16.0.1", "169.254.169.254", "100.64.0.1", "[fe80::1]", "[fd00::1]",
        "[64:ff9b::7f00:1]",
    ])
    func `private addresses are rejected in every form`(_ host: String) throws {
        let (daemon, player, cdn, folder) = try guarded(["--connect-timeout", "2"])
        defer { withExtendedLifetime((daemon, folder)) { cdn.stop() } }
        let answer = try player.get("/http://\(host):\(cdn.port)/a.ts")
        #expect([400, 403, 502].contains(answer.status), "\(answer.status) \(answer.text)")
        #expect(cdn.acceptedConnections == 0)
    }

    @Test
    func `an allowed host does not vouch for its redirects`() throws {
        let (daemon, player, cdn, folder) = try guarded(["--allow-host", "localhost"])
        defer { withExtendedLifetime((daemon, folder)) { cdn.stop() } }
        cdn.put("/secret.ts", Array("secret".utf8))
        cdn.setBehaviour(Behaviour(query: "location=\(cdn.url("/secret.ts"))"), for: "/a.ts")
        cdn.put("/l.m3u8", text: vod([cdn.url("/secret.ts")]))
        let here = "/http://localhost:\(cdn.port)"
        #expect(try player.get(here + "/a.ts").status == 403)
        let list = try player.get(here + "/l.m3u8")
        #expect(list.status == 200)
        #expect(try player.get(uriLines(list.text)[0]).status == 403)
        #expect(cdn.requestCount("/secret.ts") == 0)
    }

    @Test
    func `endless redirects give 502`() throws {
        let story = try Story()
        story.cdn.setBehaviour("location=/b.m3u8", for: "/a.m3u8")
        story.cdn.setBehaviour("location=/a.m3u8", for: "/b.m3u8")
        let answer = try story.get("/a.m3u8")
        #expect(answer.status == 502 && answer.text.hasPrefix("origin error: "))
        #expect(story.cdn.requestCount() <= 12)
    }

    @Test
    func `redirects to other schemes are not followed`() throws {
        let story = try Story()
        story.cdn.setBehaviour("location=file:///etc/passwd", for: "/a.ts")
        let answer = try story.get("/a.ts")
        #expect(answer.status == 502 && !answer.text.contains("root:"))
    }

    @Test
    func `a decompression bomb gives 502`() throws {
        let story = try Story()
        let bomb = "#EXTM3U\n" + String(repeating: "#", count: 20 << 20)
        story.cdn.put("/l.m3u8", text: bomb)
        story.cdn.setBehaviour("gzip=always", for: "/l.m3u8")
        #expect(try story.get("/l.m3u8").status == 502)
        #expect(story.daemon.rssBytes < 120 << 20)
    }
}

// MARK: What it keeps to itself

extension Stories.SecurityTests {
    @Test
    func `no log, figure or error contains secrets`() throws {
        let story = try Story(["--log-level", "trace", "--token", "acc3ss-token"])
        let secret = "hunter2"
        story.cdn.put("/l.m3u8", text: vod(["a.ts?sig=\(secret)", "gone.ts?sig=\(secret)"]))
        story.cdn.put("/a.ts", Array("bytes".utf8))
        story.cdn.setBehaviour(Behaviour(query: "cookie=sid=\(secret)"), for: "/l.m3u8")
        story.cdn.setBehaviour("status=503", for: "/down.ts")
        story.cdn.put("/page.m3u8", text: "<html>")
        story.cdn.put(
            "/bad.m3u8", text: vod(["file:///x?sig=\(secret)", "http://u:\(secret)@[x/"]))
        let extra = "token=acc3ss-token&h_Cookie=s%3D\(secret)&h_Authorization=Bearer%20\(secret)"
        var errors = ""
        for path in ["/l.m3u8", "/gone.ts", "/down.ts", "/page.m3u8", "/bad.m3u8", "/a.ts"] {
            let entry =
                "/proxy?url=\(percentEncoded(story.cdn.url("\(path)?sig=\(secret)")))&\(extra)"
            let answer = try story.follow(entry)
            if answer.status != 200 { errors += answer.text }
            if path == "/l.m3u8" {
                for link in uriLines(answer.text) { errors += try story.follow(link).text }
            }
        }
        errors += try story.follow(
            "/proxy?url=http%3A%2F%2Fu%3A\(secret)%40127.0.0.1%3A1%2Fx%3Fsig%3D\(secret)&\(extra)"
        ).text
        errors += try story.follow("/proxy?url=http%3A%2F%2Fu%3A\(secret)%40%5Bx&\(extra)").text
        for page in ["/api/stats", "/api/origins", "/metrics", "/"] {
            errors += try story.follow("\(page)?token=acc3ss-token").text
        }
        story.stop()
        let all = errors + story.daemon.standardError + story.daemon.standardOutput
        #expect(
            !all.contains(secret), "\(all.split(separator: "\n").filter { $0.contains(secret) })")
        #expect(!all.contains("acc3ss-token"))
        #expect(story.daemon.standardError.contains("/gone.ts"))
    }

    @Test(arguments: [
        "http://127.0.0.1:1/x?sig=hunter2", "http://u:hunter2@127.0.0.1:1/x",
        "http://no-such.invalid/hunter2?sig=hunter2",
        "ftp://h/x?sig=hunter2", "http://[bad?sig=hunter2", "/again?sig=hunter2",
        "http://169.254.1.1/x?sig=hunter2",
    ])
    func `the target of a redirect is shown without secrets`(_ location: String) throws {
        let story = try Story(["--log-level", "trace", "--connect-timeout", "1"])
        for path in ["/a.ts", "/again"] {
            story.cdn.setBehaviour(
                Behaviour(query: "location=\(percentEncoded(location))"), for: path)
        }
        let answer = try story.get("/a.ts")
        #expect([403, 502, 504].contains(answer.status))
        story.stop()
        let said = (answer.text + story.daemon.standardError).split(separator: "\n").filter {
            $0.contains("sig=hunter2") || $0.contains(":hunter2")
        }
        #expect(said.isEmpty, "\(said)")
    }

    @Test
    func `a request in absolute form is for its own host only`() throws {
        let story = try Story()
        let host = story.daemon.baseURL.dropFirst(7)
        for (target, status) in [
            ("http://\(host)/api/health", 200), ("http://evil.example/api/health", 421),
        ] {
            let text =
                "GET \(target) HTTP/1.1\r\nHost: \(target.dropFirst(7).prefix { $0 != "/" })\r\n\r\n"
            #expect(try story.player().sendRaw(text.utf8).readHead().status == status)
        }
        let connect = "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n"
        #expect((400..<600).contains(try story.player().sendRaw(connect.utf8).readHead().status))
    }

    @Test
    func `ambiguous requests are rejected`() throws {
        let story = try Story()
        let host = "Host: \(story.daemon.baseURL.dropFirst(7))\r\n"
        let both =
            "GET / HTTP/1.1\r\n\(host)Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        for text in [
            both, "GET / HTTP/1.1\r\n\(host)\(host)\r\n",
            "GET / HTTP/1.1\r\n\(host)Content-Length: 1, 2\r\n\r\n",
            "GET / HTTP/1.1\r\n\(host)X : y\r\n\r\n",
            "GET / HTTP/1.1\r\n\(host)A: b\r\n folded\r\n\r\n",
            "GET /a b HTTP/1.1\r\n\(host)\r\n", "GET / HTTP/1.1\r\n\(host)X: a\u{0}b\r\n\r\n",
            "nonsense\r\n\r\n",
        ] {
            let stream = try story.player().sendRaw(text.utf8)
            #expect(try stream.readHead().status == 400, "\(text)")
        }
        let long = try story.player().sendRaw(
            "GET / HTTP/1.1\r\n\(host)X: \(String(repeating: "x", count: 200_000))\r\n\r\n".utf8)
        #expect([400, 431].contains(try long.readHead().status))
    }

    @Test
    func `a head that never ends is timed out`() throws {
        let story = try Story(["--head-timeout", "1"])
        let stream = try story.player().sendRaw("GET / HTTP/1.1\r\nHo".utf8)
        #expect([0, 408].contains((try? stream.readHead().status) ?? 0))
        #expect(stream.waitForClose())
    }

    @Test
    func `line breaks in a decoded URL reach no origin as such`() throws {
        let story = try Story()
        for target in ["/a.ts?x=%0D%0AX-Evil:%201", "/a%0d%0aX-Evil:1"] {
            _ = try story.follow("/" + story.cdn.url(target))
            _ = try story.follow("/proxy?url=\(percentEncoded(story.cdn.url(target)))")
        }
        #expect(story.cdn.requests.allSatisfy { $0["X-Evil"] == nil })
        let twice = percentEncoded(story.cdn.url("/a.ts")) + "%0D%0AX-Evil:%201"
        #expect(try story.follow("/proxy?url=\(twice)").status == 400)
    }
}
