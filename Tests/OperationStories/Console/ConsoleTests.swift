import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// The console without a browser: access to the page, its events, sign-in and changes.
extension Stories {
    @Suite(.tags(.crowded)) struct ConsoleTests {}
}

extension Stories.ConsoleTests {
    private static let page = [("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")]
    private static let token = "acc3ss-token"
    private static let policy = """
        default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
        img-src 'self' data: blob:; media-src 'self' blob:; worker-src 'self' blob:; \
        frame-ancestors 'none'; base-uri 'none'; form-action 'self'
        """

    // MARK: Files

    @Test func `a browser gets the page at the root, and others the text`() throws {
        let story = try Story()
        let page = try story.follow("/", headers: Self.page)
        #expect(page.status == 200 && page["Content-Type"] == "text/html; charset=utf-8")
        #expect(page.text.hasPrefix("<!doctype html>"))
        #expect(page["Content-Security-Policy"] == Self.policy)
        #expect(page["X-Content-Type-Options"] == "nosniff")
        #expect(page["Referrer-Policy"] == "no-referrer")
        for accept in ["*/*", "application/json", "text/html;q=0"] {
            let text = try story.follow("/", headers: [("Accept", accept)])
            #expect(text["Content-Type"] == "text/plain; charset=utf-8", "\(accept)")
            #expect(text.text.hasPrefix("sluice "), "\(accept)")
        }
    }

    @Test func `every file that the page names exists, and together they are small`() throws {
        let story = try Story()
        var waiting = ["/"], known: Set<String> = [], bytes = 0
        while let path = waiting.popLast() {
            guard known.insert(path).inserted else { continue }
            let file = try story.follow(path, headers: Self.page)
            #expect(file.status == 200 && file["Content-Security-Policy"] == Self.policy, "\(path)")
            bytes += file.body.count
            // Imports of scripts, and links of the page.
            for part in file.text.split(separator: "\"") {
                if path == "/", part.hasPrefix("console/") { waiting.append("/\(part)") }
                if part.hasPrefix("./"), part != "./hls.mjs" {
                    waiting.append("/console/\(part.dropFirst(2))")
                }
            }
            for markup in ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval("] {
                #expect(!file.text.contains(markup), "\(path) makes markup of text: \(markup)")
            }
            #expect(!file.text.contains("https://cdn.jsdelivr"), "\(path)")
        }
        #expect(known.count == 15 && bytes < 150_000, "\(known.sorted()), \(bytes) bytes")
    }

    @Test func `a file that has not changed is not sent again`() throws {
        let story = try Story()
        for coding in ["identity", "gzip"] {
            let given = [("Accept-Encoding", coding)]
            let file = try story.follow("/console/app.mjs", headers: given)
            #expect(file["Content-Encoding"] == (coding == "gzip" ? "gzip" : nil))
            let tag = try #require(file["ETag"])
            let again = try story.follow(
                "/console/app.mjs", headers: given + [("If-None-Match", tag)])
            #expect(again.status == 304 && again.body.isEmpty && again["ETag"] == tag)
        }
        #expect(try story.follow("/console/none.mjs").status == 404)
        #expect(try story.follow("/console/../api/stats").status != 200)
    }

    @Test func `the player library comes from the configured file or is reported missing`()
        throws
    {
        let folder = try TemporaryFolder()
        let path = folder.file("hls.mjs")
        let story = try Story(["--console-player", path])
        let missing = try story.follow("/console/hls.mjs")
        #expect(missing.status == 404 && missing.text.contains("--console-player"))
        try writeFile(path, Array("export const Hls = 1;\n".utf8))
        let found = try story.follow("/console/hls.mjs")
        #expect(found.status == 200 && found.text == "export const Hls = 1;\n")
        #expect(found["Content-Type"] == "text/javascript; charset=utf-8")
        let tag = try #require(found["ETag"])
        let again = try story.follow("/console/hls.mjs", headers: [("If-None-Match", tag)])
        #expect(again.status == 304)
    }

    // MARK: Signing in

    @Test func `with a token the page is public and its data needs a sign-in`() throws {
        let story = try Story(["--token", Self.token])
        #expect(try story.follow("/", headers: Self.page).status == 200)
        #expect(try story.follow("/").status == 401)
        for path in ["/api/stats", "/api/events", "/api/titles"] {
            #expect(try story.follow(path, headers: Self.page).status == 401, "\(path)")
        }
        let wrong = [("Authorization", "Bearer not-the-token")]
        #expect(try story.follow("/api/session", headers: wrong, method: "POST").status == 401)
        let right = [("Authorization", "Bearer \(Self.token)")]
        let signedIn = try story.follow("/api/session", headers: right, method: "POST")
        let field = try #require(signedIn["Set-Cookie"])
        #expect(signedIn.status == 204 && field.contains("; HttpOnly; SameSite=Strict"))
        #expect(!field.contains(Self.token))
        let cookie = [("Cookie", String(field.prefix { $0 != ";" }))]
        #expect(try story.follow("/api/stats", headers: cookie).status == 200)
        // Another port of this host is the same site: requests of its pages carry the cookie.
        for foreign in [
            ("Sec-Fetch-Site", "same-site"), ("Sec-Fetch-Site", "cross-site"),
            ("Origin", "http://127.0.0.1:1"),
        ] {
            let answer = try story.follow("/api/stats", headers: cookie + [foreign])
            #expect(answer.status == 401, "\(foreign)")
        }
        let out = try story.follow("/api/session", headers: cookie, method: "DELETE")
        #expect(try #require(out["Set-Cookie"]).contains("Max-Age=0"))
    }

    @Test func `behind a trusted TLS proxy the page may change things, and its cookie is secure`()
        throws
    {
        let story = try Story(["--token", Self.token, "--trust-forwarded"])
        let front = [
            ("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "tv.example"),
            ("Origin", "https://tv.example"), ("Sec-Fetch-Site", "same-origin"),
        ]
        let right = front + [("Authorization", "Bearer \(Self.token)")]
        let signedIn = try story.follow("/api/session", headers: right, method: "POST")
        let field = try #require(signedIn["Set-Cookie"])
        #expect(signedIn.status == 204 && field.hasSuffix("; Secure"))
        let cookie = front + [("Cookie", String(field.prefix { $0 != ";" }))]
        let proof = cookie + [("Sluice-Request", "1")]
        let answer = try story.follow("/api/purge?older-than=30d", headers: proof, method: "POST")
        #expect(answer.status == 200, "\(answer.text)")
    }

    @Test func `streams play with the cookie, and origins never see it`() throws {
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        cdn.put("/vod/a.ts", Array("bytes".utf8))
        let story = try Story(["--token", Self.token, "--mount", "/demo/=\(cdn.url("/vod/"))"])
        story.cdn.put("/l.m3u8", text: vod(["a.ts"]))
        let right = [("Authorization", "Bearer \(Self.token)")]
        let field = try #require(
            try story.follow("/api/session", headers: right, method: "POST")["Set-Cookie"])
        let cookie = [("Cookie", "theirs=1; \(field.prefix { $0 != ";" })")]
        let url = story.cdn.url("/l.m3u8")
        #expect(try story.follow("/\(url)").status == 401)
        #expect(try story.follow("/\(url)", headers: cookie).status == 200)
        #expect(try story.follow("/demo/a.ts", headers: cookie).status == 200)
        let sent = (story.cdn.requests + cdn.requests).compactMap { $0["Cookie"] }
        #expect(sent == ["theirs=1"])
    }

    @Test func `a change needs a header that no form of another site can send`() throws {
        let story = try Story()
        let player = story.player()
        player.provesChanges = false
        for path in ["/api/purge?older-than=1s", "/api/clear", "/api/verify", "/api/session"] {
            let plain = try player.get(path, method: "POST")
            #expect(plain.status == 403 && plain.text.contains("Sluice-Request"), "\(path)")
            for type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
                let form = try player.get(path, headers: [("Content-Type", type)], method: "POST")
                #expect(form.status == 403, "\(path) \(type)")
            }
        }
        let proof = [("Sluice-Request", "1")]
        #expect(try player.get("/api/clear", headers: proof, method: "POST").status == 200)
        let json = [("Content-Type", "application/json; charset=utf-8")]
        #expect(try player.get("/api/clear", headers: json, method: "POST").status == 200)
        let foreign = proof + [("Sec-Fetch-Site", "cross-site")]
        #expect(try player.get("/api/clear", headers: foreign, method: "POST").status == 403)
        let command = try Tool.run([
            try DaemonProcess.builtBinary(), "clear", "--daemon", story.daemon.baseURL,
        ])
        #expect(command.status == 0, "\(command.stderr)")
    }

    @Test func `a day's history survives a restart`() throws {
        let story = try Story()
        let path = segment("a", 50_000)
        for _ in 0..<2 { #expect(try story.get(path).status == 200) }
        let points = "\"points\":[["
        // Counters of bytes are updated after the last byte.
        #expect(
            try eventually {
                try story.follow("/api/history").text.contains(",100000,50000,2,1,0]")
            })
        try story.restart()
        let kept = try story.follow("/api/history").text
        #expect(kept.contains(points) && kept.contains(",100000,50000,2,1,0]"), "\(kept)")
        try story.restart(SIGKILL)
        #expect(try story.follow("/api/history").text.contains(",100000,50000,2,1,0]"))
    }

    @Test func `settings are shown as given, without secrets`() throws {
        let story = try Story([
            "--token", Self.token, "--slots", "7",
            "--origin-proxy", "*.example=http://user:pa55word@127.0.0.1:1",
            "--mount", "/demo/=http://127.0.0.1:1/vod/", "--mount", "/other/=http://127.0.0.1:1/b/",
        ])
        let right = [("Authorization", "Bearer \(Self.token)")]
        #expect(try story.follow("/api/settings").status == 401)
        let text = try story.follow("/api/settings", headers: right).text
        for row in [
            #"{"name":"slots","values":["7"],"source":"flag","reload":false}"#,
            #"{"name":"token","values":["***"],"source":"flag","reload":false}"#,
            #"{"name":"drain-timeout","values":["10"],"source":"default","reload":true}"#,
            #"["*.example=http://***@127.0.0.1:1"]"#,
            #"["/demo/=http://127.0.0.1:1/vod/","/other/=http://127.0.0.1:1/b/"]"#,
        ] {
            #expect(text.contains(row), "\(row) in \(text)")
        }
        #expect(!text.contains("pa55word") && !text.contains(Self.token))
    }

    @Test func `a stored playlist is inspected without an origin request`() throws {
        let story = try Story()
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:9.5,\na.ts?t=\(Self.secret)\n"
        story.cdn.put("/l.m3u8", text: text)
        let question = "/api/inspect?url=\(percentEncoded(story.cdn.url("/l.m3u8")))"
        #expect(try story.follow(question).status == 404)
        #expect(story.cdn.requestCount("/l.m3u8") == 0)
        #expect(try story.get("/l.m3u8").status == 200)
        let answer = try story.follow(question)
        for part in [
            #""kind":"media""#, #""live":true"#, #""segments":1"#, #""line":3,"tag":"EXTINF""#,
            #""level":"must""#, #""cut":false"#, #"\n#EXTINF:9.5,\n"#,
        ] {
            #expect(answer.text.contains(part), "\(part) in \(answer.text)")
        }
        #expect(story.cdn.requestCount("/l.m3u8") == 1)
        #expect(try story.follow("/api/inspect").status == 400)
        #expect(try story.follow("/api/inspect?url=nonsense").status == 400)
        let media = segment("a", 1_000)
        #expect(try story.get(media).status == 200)
        let other = try story.follow("/api/inspect?url=\(percentEncoded(story.cdn.url(media)))")
        #expect(other.status == 422 && other.text.contains("no playlist"))
    }

    @Test func `the text of a long playlist is truncated, but all of it is parsed`() throws {
        let story = try Story()
        let names = (0..<20_000).map { "/bytes/1000/segment-with-a-long-name-\($0).ts" }
        story.cdn.put("/long.m3u8", text: vod(names) + "#EXTINF:99,\n/last.ts\n")
        #expect(try story.get("/long.m3u8").status == 200)
        let answer = try story.follow(
            "/api/inspect?url=\(percentEncoded(story.cdn.url("/long.m3u8")))")
        #expect(answer.status == 200 && answer.body.count < 1 << 20)
        #expect(answer.text.contains(#""cut":true"#) && !answer.text.contains("/last.ts"))
        #expect(answer.text.contains(#""segments":20001"#))
    }

    // MARK: Events

    /// Reads events until one matches; throws at the deadline.
    ///
    /// `text` holds the part of the stream that was read and not examined yet.
    private func event(
        _ stream: PlayerStream, _ text: inout String, _ fits: (String) -> Bool
    ) throws -> String {
        let end = ContinuousClock.now + patience
        var seen = 0
        while ContinuousClock.now < end {
            if let border = text.firstRange(of: "\n\n") {
                let event = String(text[..<border.lowerBound])
                text.removeSubrange(..<border.upperBound)
                #expect(!event.contains("\"outcome\":\"own\""), "the console tells of itself")
                #expect(!event.contains(Self.secret), "a secret is told")
                if fits(event) { return event }
                seen += 1
            } else {
                text += String(decoding: try stream.read(32), as: UTF8.self)
            }
        }
        throw ScenarioFailure("none of \(seen) events fits")
    }

    private static let secret = "5ecret-5ignature"

    @Test func `events have a version, and requests appear without secrets`() throws {
        let story = try Story()
        story.cdn.put("/l.m3u8", text: vod(["a.ts"]))
        let stream = try story.player().open("/api/events")
        let head = try stream.readHead()
        #expect(head.status == 200 && head["Content-Type"] == "text/event-stream")
        #expect(head["Cache-Control"] == "no-store")
        var text = ""
        let hello = try event(stream, &text) { $0.hasPrefix("event: hello\n") }
        #expect(hello.contains("data: {\"v\":1,\"version\":"))
        // Several threads answer these, so they arrive in any order.
        var found: [String: String] = [:]
        _ = try event(stream, &text) { event in
            for name in ["figures", "origins", "downloads", "disk"]
            where event.hasPrefix("event: \(name)\n") { found[name] = event }
            return found.count == 4
        }
        let figures = try #require(found["figures"])
        for member in ["\"requests_total\":", "\"waiting_by_lane\":", "\"outages\":[]"] {
            #expect(figures.contains(member), "\(member)")
        }
        let url = story.cdn.url("/l.m3u8?token=\(Self.secret)")
        let report: [WireHead.Field] = [("CMCD-Request", "bl=1200,sid=\"\(Self.secret)\"")]
        #expect(try story.player().get(story.url(for: url), headers: report).status == 200)
        let miss = try event(stream, &text) { $0.hasPrefix("event: request\n") }
        for member in [
            "\"outcome\":\"miss\"", "\"status\":200", "\"role\":", "\"first_byte_ms\":",
            "/l.m3u8", "\"tries\":1", "\"player\":{\"bl\":1200,\"bs\":false,\"mtp\":null}",
        ] {
            #expect(miss.contains(member), "\(member) in \(miss)")
        }
    }

    @Test func `fetches ahead of players are reported`() throws {
        let story = try Story(["--look-ahead", "30"])
        let names = (0..<6).map { segment("s\($0)", 1_000) }
        story.cdn.put("/l.m3u8", text: vod(names))
        let stream = try story.player().open("/api/events")
        _ = try stream.readHead()
        let list = try story.get("/l.m3u8").text
        let link = try #require(list.split(separator: "\n").first { $0.hasPrefix("/s/") })
        _ = try story.follow(String(link))
        var text = ""
        let ahead = try event(stream, &text) { $0.contains("\"outcome\":\"ahead\"") }
        for member in ["\"status\":200", "\"bytes\":1000", "\"role\":\"s\"", "\"first_byte_ms\":"] {
            #expect(ahead.contains(member), "\(member) in \(ahead)")
        }
    }

    @Test func `a ninth listener is turned away until one leaves`() throws {
        let story = try Story()
        var streams: [PlayerStream] = []
        for _ in 0..<8 {
            let stream = try story.player().open("/api/events")
            #expect(try stream.readHead().status == 200)
            streams.append(stream)
        }
        let ninth = try story.player().get("/api/events")
        #expect(ninth.status == 503 && ninth["Retry-After"] != nil)
        streams.removeLast()
        #expect(
            try eventually {
                let stream = try story.player().open("/api/events")
                return try stream.readHead().status == 200
            })
    }

    @Test func `a listener that reads nothing takes bounded memory and learns how much it missed`()
        throws
    {
        let story = try Story()
        let path = segment("short", 100)
        #expect(try story.get(path).status == 200)
        let player = story.player()
        player.receiveBuffer = 4_096
        let stream = try player.open("/api/events")
        #expect(try stream.readHead().status == 200)
        let before = story.daemon.anonymousBytes
        let asking = story.player()
        // Events of 700 bytes, more than the buffers of the sockets and the daemon hold.
        let argument = String(repeating: "n", count: 32) + "=1"
        let query = Array(repeating: argument, count: 8).joined(separator: "&")
        for _ in 0..<12_000 { _ = try asking.get(story.url("\(path)?\(query)")) }
        #expect(story.daemon.anonymousBytes - before < 3 << 20)
        var text = ""
        let lost = try event(stream, &text) { $0.hasPrefix("event: lost\n") }
        #expect(lost.contains("\"v\":1,\"events\":"))
    }

    @Test func `an open stream of events does not hold up a stop`() throws {
        let story = try Story(["--drain-timeout", "60"])
        let stream = try story.player().open("/api/events")
        #expect(try stream.readHead().status == 200)
        story.daemon.kill(SIGTERM)
        // Far less than the time limit of running responses.
        #expect(try story.daemon.waitForExit(within: .seconds(30)) == .code(0))
        #expect(try stream.readRest().isEmpty == false)
    }

    @Test func `an outage is reported while it lasts`() throws {
        let story = try Story()
        let path = segment("a", 1_000)
        let port = story.cdn.port
        #expect(try story.get(path).status == 200)
        let stream = try story.player().open("/api/events")
        _ = try stream.readHead()
        story.cdn.stop()
        _ = try story.get(segment("b", 1_000))
        var text = ""
        let outage = try event(stream, &text) { $0.contains("\"outages\":[{") }
        #expect(outage.contains("\"origin\":\"http://127.0.0.1:\(port)\""), "\(outage)")
        try story.cdn.start()
        text = ""
        _ = try event(stream, &text) { $0.contains("\"outages\":[]") }
    }
}
