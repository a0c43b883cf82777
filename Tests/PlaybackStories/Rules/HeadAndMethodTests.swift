import FixtureCDN
import ScenarioSupport
import Testing

/// Requests that are not a plain GET: HEAD, probes, other methods, other versions.
extension Stories {
    @Suite(.tags(.crowded)) struct HeadAndMethodTests {}
}

extension Stories.HeadAndMethodTests {
    /// RFC 9110 section 15.5.6.
    @Test func `a 405 of the API lists the methods of the path, and so does OPTIONS`() throws {
        let story = try Story()
        for (method, path, allowed) in [
            ("POST", "/api/stats", "GET, HEAD"), ("POST", "/metrics", "GET, HEAD"),
            ("GET", "/api/session", "POST, DELETE"), ("POST", "/api/titles", "GET, HEAD"),
            ("GET", "/api/pin?url=http://h/x", "POST"), ("PUT", "/api/verify", "GET, HEAD, POST"),
            ("POST", "/api/titles/1/picture", "GET, HEAD"), ("GET", "/api/keys/forget", "POST"),
            ("POST", "/api/why?url=http://h/x", "GET, HEAD"),
            ("DELETE", "/api/downloads", "GET, HEAD, POST"),
            ("GET", "/api/downloads/dry-run", "POST"),
            ("POST", "/api/export", "GET, HEAD"), ("DELETE", "/api/feeds", "GET, HEAD"),
            ("POST", "/api/feeds/f", "GET, HEAD, PUT, DELETE"),
            ("GET", "/api/feeds/f/position", "POST"),
            ("PUT", "/api/recordings", "GET, HEAD, POST"),
            ("GET", "/api/recordings/0123456789ab/stop", "POST"),
            ("POST", "/console/app.mjs", "GET, HEAD"), ("PUT", "/console/", "GET, HEAD"),
        ] {
            let answer = try story.player().get(
                path, headers: [("Sluice-Request", "1")], method: method)
            #expect(answer.status == 405, "\(method) \(path): \(answer.text)")
            #expect(answer["Allow"] == allowed + ", OPTIONS", "\(method) \(path)")
            let options = try story.player().get(path, method: "OPTIONS")
            #expect(options.status == 204 && options["Allow"] == answer["Allow"], "\(path)")
        }
    }

    @Test func `a POST to what is only read gets 405 also without the proof of a change`() throws {
        let story = try Story()
        defer { story.stop() }
        let player = story.player()
        player.provesChanges = false
        for path in ["/metrics", "/api/stats", "/api/health", "/console/app.mjs", "/"] {
            let answer = try player.get(path, method: "POST")
            #expect(answer.status == 405, "\(path): \(answer.text)")
            #expect(answer["Allow"] == "GET, HEAD, OPTIONS", "\(path)")
        }
    }

    @Test(arguments: [false, true])
    func `HEAD has the fields of GET and no body`(_ isStored: Bool) throws {
        let story = try Story()
        story.cdn.put("/l.m3u8", text: vod(["a.ts"]))
        story.cdn.put("/a.ts", Array("bytes".utf8))
        for path in ["/l.m3u8", "/a.ts"] {
            if isStored { _ = try story.get(path) }
            let head = try story.get(path, method: "HEAD")
            let get = try story.get(path)
            #expect(head.status == 200 && head.body.isEmpty)
            for name in [
                "Content-Type", "Content-Length", "ETag", "Accept-Ranges", "Last-Modified",
            ] {
                #expect(head[name] == get[name], "\(path) \(name)")
            }
            #expect(get["Content-Length"] == "\(get.body.count)")
        }
    }

    @Test
    func `an origin is never sent HEAD, and not made to send a whole file for one`() throws {
        let story = try Story()
        let head = try story.get("/bytes/60000000/film.mp4", method: "HEAD")
        #expect(head["Content-Length"] == "60000000" && head["Content-Type"] == "video/mp4")
        #expect(story.cdn.requests.allSatisfy { $0.method == "GET" })
        #expect(story.cdn.bytesSent() < 1_000)
    }

    @Test
    func `a probe of two bytes costs the origin two bytes`() throws {
        let story = try Story()
        let probe = try story.get("/bytes/60000000/film.mp4", range: "bytes=0-1")
        #expect(probe.status == 206 && probe.body.count == 2)
        #expect(probe["Content-Range"] == "bytes 0-1/60000000" && probe["Content-Length"] == "2")
        #expect(story.cdn.bytesSent() == 2)
    }

    @Test(arguments: ["bytes=0-1", "bytes=5-", "bytes=-5", "bytes=99999-"])
    func `a range of a playlist is answered with the whole of it`(_ range: String) throws {
        let story = try Story()
        story.cdn.put("/l.m3u8", text: vod(["a.ts"]))
        for _ in 0..<2 {
            let list = try story.get("/l.m3u8", range: range)
            #expect(list.status == 200 && list.text.hasSuffix("#EXT-X-ENDLIST\n") && list.complete)
            #expect(list["Content-Range"] == nil && list["Content-Length"] == "\(list.body.count)")
        }
        #expect(story.cdn.requests.allSatisfy { $0.range == nil })
    }

    @Test
    func `an empty segment stays an empty segment`() throws {
        let story = try Story()
        story.cdn.put("/a.ts", [UInt8]())
        for _ in 0..<2 {
            let answer = try story.get("/a.ts")
            #expect(answer.status == 200 && answer["Content-Length"] == "0" && answer.complete)
        }
        // Its content may not be written yet.
        #expect(story.cdn.requestCount("/a.ts") == 2)
        #expect(try story.get("/a.ts", range: "bytes=0-").status == 200)
    }

    @Test
    func `a 204 is passed on and not stored`() throws {
        let story = try Story()
        story.cdn.setBehaviour("status=204", for: "/a.ts")
        for _ in 0..<2 {
            let answer = try story.get("/a.ts")
            #expect(answer.status == 204 && answer["Content-Length"] == nil && answer.complete)
        }
        #expect(story.cdn.requestCount("/a.ts") == 2)
        #expect(try story.stat("bypassed_total") == 2)
        #expect(try story.stat("origin_errors_total") == 0)
    }

    @Test
    func `gaps stay in the playlist`() throws {
        let story = try Story()
        story.cdn.put(
            "/l.m3u8",
            text: "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n#EXT-X-GAP\na.ts\n#EXT-X-ENDLIST\n"
        )
        #expect(try story.get("/l.m3u8").text.contains("#EXTINF:4,\n#EXT-X-GAP\n/s/"))
    }

    @Test(arguments: ["POST", "PUT", "DELETE", "PATCH", "TRACE", "FOO"])
    func `other methods are refused with Allow`(_ method: String) throws {
        let story = try Story()
        let answer = try story.get("/a.ts", method: method)
        #expect([405, 501].contains(answer.status), "\(answer.status)")
        #expect(answer.status == 501 || answer["Allow"] == "GET, HEAD, OPTIONS")
        #expect(story.cdn.requestCount() == 0)
    }

    @Test
    func `a thousand segments come over one connection`() throws {
        let story = try Story()
        story.cdn.put("/a.ts", Array("bytes".utf8))
        let player = story.player()
        for number in 0..<1_000 {
            let answer = try player.get(story.url("/a.ts"))
            #expect(answer.text == "bytes" && answer.reusedConnection == (number > 0))
        }
    }

    @Test
    func `HTTP 1_0 is answered and the connection closed`() throws {
        let story = try Story()
        story.cdn.put("/l.m3u8", text: vod(["a.ts"]))
        story.cdn.put("/a.ts", Array("bytes".utf8))
        for path in ["/l.m3u8", "/a.ts"] {
            let stream = try story.player().sendRaw(
                "GET /\(story.cdn.url(path)) HTTP/1.0\r\n\r\n".utf8)
            let head = try stream.readHead()
            let body = try stream.readRest()
            #expect(head.status == 200 && head["Transfer-Encoding"] == nil && !body.isEmpty)
            #expect(stream.waitForClose())
        }
    }

    @Test
    func `requests in one packet are answered in order`() throws {
        let story = try Story()
        story.cdn.setBehaviour("fb=150", for: "/slow.ts")
        for name in ["slow", "fast"] { story.cdn.put("/\(name).ts", Array(name.utf8)) }
        let host = story.daemon.baseURL.dropFirst(7)
        let requests = ["/slow.ts", "/fast.ts"].map {
            "GET /\(story.cdn.url($0)) HTTP/1.1\r\nHost: \(host)\r\n"
        }
        let text = requests[0] + "\r\n" + requests[1] + "Connection: close\r\n\r\n"
        let stream = try story.player().sendRaw(text.utf8)
        #expect(try stream.read(4) == Array("slow".utf8))
        #expect(stream.waitForClose())
    }
}

extension Stories.HeadAndMethodTests {
    @Test
    func `a player that has the current version gets a 304`() throws {
        let story = try Story()
        story.cdn.put("/a.ts", Array("bytes".utf8))
        let tag = try #require(try story.get("/a.ts")["ETag"])
        let answer = try story.get("/a.ts", headers: [("If-None-Match", tag)])
        #expect(answer.status == 304 && answer.body.isEmpty && answer["ETag"] == tag)
        #expect(try story.get("/a.ts", headers: [("If-None-Match", "\"other\"")]).text == "bytes")
    }
}
