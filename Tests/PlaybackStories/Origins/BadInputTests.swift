import FixtureCDN
import ScenarioSupport
import Testing

/// Origins that send wrong responses, are unreachable, or send nonsense.
///
/// The response says whose fault it is, nothing wrong is stored, and the daemon continues.
extension Stories {
    @Suite(.tags(.crowded)) struct BadInputTests {}
}

extension Stories.BadInputTests {
    @Test
    func `an unreachable origin is named as the cause`() throws {
        let story = try Story(["--connect-timeout", "1"])
        for url in [
            "http://127.0.0.1:1/a.m3u8", "http://no-such-host.invalid/a.m3u8",
            "https://\(story.cdn.baseURL.dropFirst(7))/a.m3u8",
        ] {
            let answer = try story.follow("/" + url)
            #expect(answer.status == 502 || answer.status == 504)
            #expect(answer.text.hasPrefix("origin error: "), "\(answer.text)")
            #expect(answer["Cache-Control"] == "no-store")
        }
    }

    @Test
    func `a silent origin is timed out`() throws {
        let story = try Story(["--first-byte-timeout", "1"])
        story.cdn.hold("/l.m3u8")
        let answer = try story.get("/l.m3u8")
        story.cdn.release("/l.m3u8")
        #expect(answer.status == 504 && answer.text.hasPrefix("origin error: "))
    }

    @Test(arguments: [400, 401, 403, 404, 405, 410, 451])
    func `an origin's refusal is passed on with its status and not kept`(_ status: Int) throws {
        let story = try Story()
        story.cdn.put("/a.ts", Array("bytes".utf8))
        story.cdn.setBehaviour(Behaviour(query: "status=\(status)&fails=1"), for: "/a.ts")
        let answer = try story.get("/a.ts")
        #expect(answer.status == status && answer.text.contains("the origin answered \(status)"))
        #expect(try story.get("/a.ts").text == "bytes")
    }

    @Test
    func `a permanently broken origin is a bad gateway, and not stored`() throws {
        let story = try Story()
        story.cdn.put("/a.ts", Array("bytes".utf8))
        story.cdn.setBehaviour("status=500", for: "/a.ts")
        let answer = try story.get("/a.ts")
        #expect(answer.status == 502 && answer.text.contains("the origin answered 500"))
        story.cdn.setBehaviour(nil, for: "/a.ts")
        #expect(try story.get("/a.ts").text == "bytes")
    }

    @Test
    func `an origin that fails once is retried unnoticed by the player`() throws {
        let story = try Story()
        story.cdn.put("/a.ts", Array("bytes".utf8))
        story.cdn.setBehaviour("status=503&fails=2", for: "/a.ts")
        #expect(try story.get("/a.ts").text == "bytes")
        #expect(story.cdn.requestCount("/a.ts") == 3)
    }

    static let nonsense = [
        "", "\r\n", "HTTP/9.9 200 OK\r\n\r\n", "HTTP/1.1 999999 X\r\n\r\n", "GARBAGE\r\n\r\n",
        "HTTP/1.1 206 Partial\r\nContent-Length: 5\r\n\r\nbytes",
        "HTTP/1.1 206 Partial\r\nContent-Range: bytes 7-11/20\r\nContent-Length: 5\r\n\r\nbytes",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nbytes",
        "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nbytes",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nbytes!",
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nbytes",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nbytes\r\n0\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\n\r\n", "HTTP/1.1 302 Found\r\n\r\n",
        "HTTP/1.1 302 Found\r\nLocation: ://\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
    ]

    @Test(arguments: nonsense)
    func `an origin that sends no HTTP is a bad gateway`(_ words: String) throws {
        let story = try Story()
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        for _ in 0..<8 {
            origin.connection(.expect("GET", "/l.m3u8"), .send(Array(words.utf8)), .close)
        }
        let answer = try story.follow("/" + origin.url("/l.m3u8"))
        #expect((300...599).contains(answer.status), "\(answer.status) \(answer.text)")
        #expect(
            answer.status == 304 || answer.text.hasPrefix("origin error: "),
            "\(answer.status) \(answer.text)")
        #expect(try story.stat("stored_objects") == 0)
    }

    static let badLists = [
        "", "#EXTM3", "not a list", "{\"error\":1}",
        "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nhttp://[bad/x\n",
        "#EXTM3U\n#EXTINF:1,\n{$undefined}/a.ts\n",
        "#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"gopher://h/\"\n",
        "#EXTM3U\n" + String(repeating: "x", count: 300_000),
    ]

    @Test(arguments: badLists.indices)
    func `a bad playlist is the origin's fault, says where, and is not kept`(_ index: Int) throws {
        let story = try Story()
        story.cdn.put("/l.m3u8", text: Self.badLists[index])
        let answer = try story.get("/l.m3u8")
        #expect(
            answer.status == 502 && answer.text.hasPrefix("origin error: "),
            "\(answer.status) \(answer.text.prefix(200))")
        #expect(answer.text.utf8.count < 1_000)
        story.cdn.put("/l.m3u8", text: vod(["a.ts"]))
        #expect(try story.get("/l.m3u8").status == 200)
    }

    @Test
    func `an empty playlist or one with odd tags is passed on`() throws {
        let story = try Story()
        for text in [
            "#EXTM3U\n", "#EXTM3U\n#EXT-X-TARGETDURATION:x\n#EXT-X-BYTERANGE:a@b\n#EXTINF:\na.ts\n",
            "#EXTM3U\n\n\n#\n##\n",
        ] {
            story.cdn.put("/\(text.utf8.count).m3u8", text: text)
            #expect(try story.get("/\(text.utf8.count).m3u8").status == 200)
        }
    }

    /// Its first URIs look like segments, and a later tag makes it a multivariant playlist.
    @Test
    func `a list that turns out to be a multivariant playlist may end in EXT-X-ENDLIST`() throws {
        let story = try Story()
        story.cdn.put(
            "/l.m3u8",
            text: "#EXTM3U\n#EXT-X-VERSION:3\ngood.ts\nhttp://[\n"
                + "#EXT-X-STREAM-INF:BANDWIDTH=1000\nv.m3u8\n#EXT-X-ENDLIST\n")
        for _ in 0..<2 { #expect(try story.get("/l.m3u8").text.contains("v.m3u8")) }
        #expect(story.daemon.isRunning)
    }

    @Test
    func `a segment longer than its Content-Length is cut there`() throws {
        let story = try Story()
        story.cdn.put("/a.ts", Array("0123456789".utf8))
        story.cdn.setBehaviour("wronglength=-4", for: "/a.ts")
        for _ in 0..<2 { #expect(try story.get("/a.ts").text == "012345") }
    }

    @Test
    func `unknown paths are not found, and the daemon keeps running`() throws {
        let story = try Story()
        for path in [
            "/nothing", "/api/none", "/favicon.ico", "/../../etc/passwd", "/%00", "/x/y/z",
        ] {
            let answer = try story.follow(path)
            #expect(
                [400, 404].contains(answer.status) && answer.text.hasPrefix("client error: "),
                "\(path)")
        }
        #expect(try story.follow("/api/purge", method: "POST").status == 400)
        #expect(try story.follow("/api/purge?url=nonsense", method: "POST").status == 400)
        #expect(try story.follow("/api/health").text == "{\"status\":\"ok\"}\n")
        #expect(story.daemon.isRunning)
    }
}
