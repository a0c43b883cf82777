import FixtureCDN
import ScenarioSupport
import Testing

/// Entries: every form in which a person or a program may name a stream.
extension Stories {
    @Suite(.tags(.crowded)) struct EntryTests {}
}

extension Stories.EntryTests {
    @Test(arguments: [
        "/proxy?url=ENCODED", "/proxy/?url=ENCODED", "/proxy?url=RAW", "/RAW", "/ENCODED",
        "/proxy?x=1&url=ENCODED",
    ])
    func `every form of an entry asks for the same URL`(_ form: String) throws {
        let story = try Story()
        story.cdn.put("/v/l.m3u8", text: vod(["a.ts"]))
        let origin = story.cdn.url("/v/l.m3u8?token=a%26b&part=1")
        let entry = form.split(separator: "ENCODED", omittingEmptySubsequences: false)
            .joined(separator: percentEncoded(origin))
            .split(separator: "RAW", omittingEmptySubsequences: false).joined(separator: origin)
        let list = try story.follow(entry)
        #expect(list.status == 200)
        #expect(story.cdn.requests.last?.target == "/v/l.m3u8?token=a%26b&part=1")
        #expect(links(list.text)[0].hasPrefix("/s/"))
    }

    @Test
    func `a collapsed double slash after the scheme is repaired`() throws {
        let story = try Story()
        story.cdn.put("/l.m3u8", text: vod(["a.ts"]))
        #expect(try story.follow("/http:/127.0.0.1:\(story.cdn.port)/l.m3u8").status == 200)
    }

    @Test
    func `an entry may be a plain media file`() throws {
        let story = try Story(playing: [])
        let file = try Fixture.bytes("media/plain/clip.mp4")
        let whole = try story.get("/plain/clip.mp4")
        #expect(whole.body == file && whole["Content-Type"] == "video/mp4")
        let part = try story.get("/plain/clip.mp4", range: "bytes=100-199")
        #expect(part.status == 206 && part.body == Array(file[100..<200]))
        #expect(part["Content-Range"] == "bytes 100-199/\(file.count)")
    }

    @Test
    func `an entry without an extension is recognized by its first bytes`() throws {
        let story = try Story()
        story.cdn.put(
            "/stream", text: "\u{FEFF}\n#EXTM3U\n#EXTINF:1,\na.ts\n#EXT-X-ENDLIST\n",
            contentType: "video/mp4")
        story.cdn.put("/film", Array("no playlist at all".utf8), contentType: "text/html")
        #expect(uriLines(try story.get("/stream").text)[0].hasPrefix("/s/"))
        let film = try story.get("/film")
        #expect(film.text == "no playlist at all")
        #expect(film["Content-Type"]?.hasPrefix("text/html") == false)
    }

    @Test(arguments: ["bytes=0-1", "bytes=5-", "bytes=-7"])
    func `a player that probes such an entry by a range gets a playlist all the same`(
        _ range: String
    ) throws {
        let story = try Story()
        story.cdn.put("/stream", text: vod(["a.ts"]))
        for _ in 0..<2 {
            let list = try story.get("/stream", range: range)
            #expect(
                list.status == 200 && links(list.text)[0].hasPrefix("/s/"),
                "\(list.status) \(list.text)")
        }
        #expect(links(try story.get("/stream").text)[0].hasPrefix("/s/"))
    }

    @Test
    func `an entry is stored whatever the query of its own URL says`() throws {
        let story = try Story()
        story.cdn.put("/film.ts", Array("bytes".utf8))
        for _ in 0..<2 { #expect(try story.get("/film.ts?keep=0&id=5").text == "bytes") }
        #expect(story.cdn.requests.map(\.target) == ["/film.ts?keep=0&id=5"])
    }

    @Test
    func `a range of a media entry without an extension is still a range`() throws {
        let story = try Story()
        let bytes = FixtureCDN.syntheticBytes("film", 0..<5_000_000)
        story.cdn.put("/film", bytes, contentType: "video/mp4")
        let part = try story.get("/film", range: "bytes=4000000-4000009")
        #expect(part.status == 206 && part.body == Array(bytes[4_000_000..<4_000_010]))
        #expect(part["Content-Range"] == "bytes 4000000-4000009/5000000")
    }

    @Test
    func `links work without their query or with another one`() throws {
        let story = try Story()
        story.cdn.put("/l.m3u8", text: vod(["a.ts?sig=1&x=2"]))
        let link = try story.links(in: "/l.m3u8")[0]
        #expect(!link.contains("?"))
        for tail in ["", "?", "?sluice=1", "?a=b&c"] { _ = try story.follow(link + tail) }
        #expect(story.cdn.requests.dropFirst().allSatisfy { $0.target == "/a.ts?sig=1&x=2" })
    }

    @Test
    func `a URL of four kilobytes has a short link that outlives a restart`() throws {
        let story = try Story()
        let query = String(repeating: "0123456789abcdef", count: 256)
        story.cdn.put("/l.m3u8", text: vod(["a.ts?sig=\(query)"]))
        let link = try story.links(in: "/l.m3u8")[0]
        #expect(link.utf8.count < 2_000)
        try story.restart()
        _ = try story.follow(link)
        #expect(story.cdn.requests.last?.target == "/a.ts?sig=\(query)")
    }

    @Test
    func `an explicit default port and the host's case make no second object`() throws {
        let story = try Story()
        story.cdn.put("/a.ts", Array("bytes".utf8))
        let port = story.cdn.port
        for host in ["localhost", "LOCALHOST", "LocalHost"] {
            #expect(try story.follow("/http://\(host):\(port)/a.ts").text == "bytes")
        }
        #expect(story.cdn.requestCount("/a.ts") == 1)
    }

    @Test
    func `user information becomes Authorization for the whole tree and is shown nowhere`() throws {
        let story = try Story(["--log-level", "trace"])
        story.cdn.put("/l.m3u8", text: vod(["a.ts"]))
        story.cdn.put("/a.ts", Array("bytes".utf8))
        // "Basic " and the Base64 of ann:s3cret
        story.cdn.setBehaviour("needheader=Authorization:Basic%20YW5uOnMzY3JldA==", for: "/*")
        let entry = "/http://ann:s3cret@127.0.0.1:\(story.cdn.port)/l.m3u8"
        let list = try story.follow(entry)
        #expect(list.status == 200)
        #expect(try story.follow(uriLines(list.text)[0]).text == "bytes")
        #expect(try story.get("/l.m3u8").status == 403)
        let said = story.daemon.standardError
        #expect(!said.contains("s3cret") && !said.contains("YW5uOnMzY3JldA"))
    }

    @Test(arguments: [
        "/proxy", "/proxy?url=", "/proxy?url=ftp%3A%2F%2Fh%2Fx", "/proxy?url=nonsense", "/http://",
        "/https://:80/x",
        "/http://host:99999/x", "/proxy?url=http%3A%2F%2Fh%2Fx&h_Host=evil",
        "/proxy?url=http%3A%2F%2Fh%2Fx&h_A%0D%0AB=c",
        "/proxy?url=http%3A%2F%2Fh%2Fx&h_A=b%0D%0AC:%20d", "/http://h%0D%0A/x",
    ])
    func `an entry without a URL is the client's fault`(_ entry: String) throws {
        let story = try Story()
        let answer = try story.follow(entry)
        #expect(answer.status == 400, "\(answer.text)")
        #expect(answer.text.hasPrefix("client error: "))
    }

    @Test
    func `a link that was tampered with is not found`() throws {
        let story = try Story()
        for link in ["/s/x/a.ts", "/s/AAAA/a.ts", "/p//x.m3u8", "/s/%2e%2e/a.ts"] {
            #expect(try story.follow(link).status == 404)
        }
    }
}
