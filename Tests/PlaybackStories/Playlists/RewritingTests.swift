import FixtureCDN
import ScenarioSupport
import Testing

/// Playlists: what the player gets, and what is then requested of the origin.
extension Stories {
    @Suite(.tags(.crowded)) struct RewritingTests {}
}

extension Stories.RewritingTests {
    @Test
    func `relative URIs resolve against the final URL, and a reload uses the first one`() throws {
        let story = try Story()
        let mirror = FixtureCDN(address: "127.0.0.2")
        try mirror.start()
        defer { mirror.stop() }
        _ = mirror.live("/real/deep/live.m3u8", liveWindow())
        mirror.put("/real/deep/s0.ts", Array("segment a".utf8))
        story.cdn.setBehaviour(
            Behaviour(query: "location=\(mirror.url("/real/deep/live.m3u8"))"), for: "/live.m3u8")
        let list = try story.get("/live.m3u8")
        #expect(try story.follow(uriLines(list.text)[0]).text == "segment a")
        let reloaded = try eventually {
            try story.get("/live.m3u8").status == 200 && story.cdn.requestCount("/live.m3u8") == 2
        }
        #expect(reloaded)
    }

    /// A multivariant playlist of `video.m3u8` with the subtitles `text.m3u8`.
    private static let withSubtitles = [
        "#EXTM3U",
        "#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"s\",NAME=\"n\",URI=\"text.m3u8\"",
        "#EXT-X-STREAM-INF:BANDWIDTH=1,SUBTITLES=\"s\"", "video.m3u8", "",
    ].joined(separator: "\n")

    @Test
    func `links of subtitles without an extension end in that of WebVTT`() throws {
        let story = try Story()
        story.cdn.put("/m.m3u8", text: Self.withSubtitles)
        story.cdn.put(
            "/text.m3u8",
            text: vod(
                ["t?id=1", "u.webvtt", "v.ts"], head: ["#EXT-X-PLAYLIST-TYPE:VOD"]))
        story.cdn.put("/video.m3u8", text: vod(["t?id=2"]))
        let lists = try story.links(in: "/m.m3u8").map { uriLines(try story.follow($0).text) }
        let names = lists.map { $0.map { path(of: $0).split(separator: "/").last ?? "" } }
        #expect(names == [["t.vtt", "u.webvtt", "v.ts"], ["t.ts"]])
        _ = try story.follow(lists[0][0])
        #expect(story.cdn.requests.last?.target == "/t?id=1")
    }

    @Test
    func `links of subtitles are written again once their parent was read`() throws {
        let story = try Story()
        story.cdn.put("/m.m3u8", text: Self.withSubtitles)
        story.cdn.put(
            "/text.m3u8", text: vod(["t?id=1"], head: ["#EXT-X-PLAYLIST-TYPE:VOD"]))
        let list = try story.links(in: "/m.m3u8")[0]
        // A player goes on with the link that it has.
        try story.restart()
        func name() throws -> Substring? {
            let link = uriLines(try story.follow(list).text)[0]
            return path(of: link).split(separator: "/").last
        }
        for _ in 0..<3 { #expect(try name() == "t.ts") }
        _ = try story.get("/m.m3u8")
        for _ in 0..<3 { #expect(try name() == "t.vtt") }
        #expect(story.cdn.requestCount("/text.m3u8") == 1)
    }

    static let exactTargets = [
        ("seg.ts?a=1&b=2&amp=3", "/v/seg.ts?a=1&b=2&amp=3"),
        ("seg+1.ts?q=a+b", "/v/seg+1.ts?q=a+b"),
        ("a%2Fb.ts?u=http%3A%2F%2Fx%2F%3Fy%26z", "/v/a%2Fb.ts?u=http%3A%2F%2Fx%2F%3Fy%26z"),
        ("100%25.ts?p=%25", "/v/100%25.ts?p=%25"),
        ("seg;v=1.ts;p?x=1;y=2", "/v/seg;v=1.ts;p?x=1;y=2"),
        ("%7Etilde%41.ts?%41=%7e", "/v/%7Etilde%41.ts?%41=%7e"),
        ("two words.ts?t=a b", "/v/two%20words.ts?t=a%20b"),
        ("größe.ts?k=ü", "/v/gr%C3%B6%C3%9Fe.ts?k=%C3%BC"),
        ("a[1].ts?k[0]=(x)", "/v/a[1].ts?k[0]=(x)"),
        ("it's!$*,@:.ts?a='b'&c=", "/v/it's!$*,@:.ts?a='b'&c="),
        ("q.ts?a=1?b=2/c", "/v/q.ts?a=1?b=2/c"),
        ("hash.ts?a=%23b#fragment", "/v/hash.ts?a=%23b"),
        ("empty.ts?", "/v/empty.ts?"),
    ]

    @Test(arguments: exactTargets)
    func `a URI reaches the origin byte for byte`(_ uri: String, _ target: String) throws {
        let story = try Story()
        story.cdn.put("/v/list.m3u8", text: vod([uri]))
        let list = try story.get("/v/list.m3u8")
        _ = try story.follow(uriLines(list.text)[0])
        #expect(story.cdn.requests.last?.target == target)
    }

    @Test
    func `a daemon behind a daemon gives the same bytes`() throws {
        let inner = try Story(playing: [])
        let folder = try TemporaryFolder()
        let outer = try Story.serve(folder.path)
        let player = ScriptedPlayer(outer.baseURL)
        let master = try player.get("/" + inner.url("/ts/master.m3u8"))
        let media = try player.get(uriLines(master.text)[0])
        let segment = try player.get(uriLines(media.text)[0])
        let known = try Fixture.bytes("media/ts/160p/seg000.ts")
        let others = try ["240p", "360p"].map { try Fixture.bytes("media/ts/\($0)/seg000.ts") }
        #expect(([known] + others).contains(segment.body))
    }

    @Test
    func `a URL that refers to the daemon is rejected`() throws {
        let story = try Story()
        let port = story.daemon.baseURL.split(separator: ":").last ?? ""
        for host in ["127.0.0.1", "localhost", "127.1", "0x7f000001"] {
            #expect(try story.follow("/http://\(host):\(port)/http://cdn/a.m3u8").status == 508)
        }
        #expect(
            try story.follow("/proxy?url=\(percentEncoded(story.url("/a.m3u8")))").status == 508)
    }

    @Test
    func `an origin that redirects to the daemon causes no loop`() throws {
        let story = try Story()
        story.cdn.setBehaviour(
            Behaviour(query: "location=\(percentEncoded(story.url("/a.m3u8")))"), for: "/a.m3u8")
        let answer = try story.get("/a.m3u8")
        #expect(answer.status == 508 && answer.text.contains("508"), "\(answer.text)")
        #expect(story.cdn.requestCount("/a.m3u8") == 1)
    }

    @Test(arguments: [
        ("../up.ts", "/a/up.ts"), ("../../top.ts", "/top.ts"), ("../../../../over.ts", "/over.ts"),
        ("./here.ts", "/a/b/here.ts"), ("/root.ts", "/root.ts"),
        ("?only=query", "/a/b/list.m3u8?only=query"),
        ("c/./d/../e.ts", "/a/b/c/e.ts"), ("//127.0.0.1:PORT/host.ts", "/host.ts"),
    ])
    func `references are resolved by RFC 3986`(_ reference: String, _ target: String) throws {
        let story = try Story()
        let uri = reference.split(separator: "PORT", omittingEmptySubsequences: false).joined(
            separator: "\(story.cdn.port)")
        story.cdn.put("/a/b/list.m3u8", text: vod([uri]))
        _ = try story.follow(uriLines(try story.get("/a/b/list.m3u8").text)[0])
        #expect(story.cdn.requests.last?.target == target)
    }

    @Test(arguments: [
        ("seg", "ts", ""), ("seg.html", "ts", ""), ("seg.png", "ts", ""),
        ("seg.jpg?x=.m3u8", "ts", ""),
        ("seg.m4s", "m4s", ""), ("seg", "m4s", "#EXT-X-MAP:URI=\"init\""), ("a.aac", "aac", ""),
        ("a.vtt", "vtt", ""),
    ])
    func `a link has the extension of its role`(_ uri: String, _ ending: String, _ head: String)
        throws
    {
        let story = try Story()
        story.cdn.put("/list", text: vod([uri], head: head.isEmpty ? [] : [head]))
        let list = try story.get("/list").text
        #expect(uriLines(list)[0].hasSuffix("." + ending), "\(uriLines(list))")
    }

    @Test
    func `keys, sections and lists have their own extensions`() throws {
        let story = try Story()
        let head = ["#EXT-X-KEY:METHOD=AES-128,URI=\"k.php?id=1\"", "#EXT-X-MAP:URI=\"init.jpg\""]
        story.cdn.put("/media.m3u8", text: vod(["seg.m4s"], head: head))
        let found = links(try story.get("/media.m3u8").text)
        #expect(found[0].hasPrefix("/k/") && found[0].hasSuffix(".key"))
        #expect(found[1].hasPrefix("/i/") && found[1].hasSuffix(".mp4"))
    }

    @Test
    func `the position in the playlist makes a playlist, whatever its name`() throws {
        let story = try Story()
        story.cdn.put(
            "/master.m3u8",
            text: """
                #EXTM3U
                #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="A",URI="audio.html"
                #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI="iframes.ts"
                #EXT-X-STREAM-INF:BANDWIDTH=2,AUDIO="a"
                video.php?list=1

                """)
        let list = try story.get("/master.m3u8").text
        let found = links(list)
        #expect(found.count == 3)
        #expect(found.allSatisfy { $0.hasPrefix("/p/") && $0.hasSuffix(".m3u8") }, "\(found)")
    }

    @Test
    func `reports and interstitials refer to playlists`() throws {
        let story = try Story()
        let head = [
            "#EXT-X-RENDITION-REPORT:URI=\"../other\",LAST-MSN=3",
            "#EXT-X-DATERANGE:ID=\"ad\",START-DATE=\"2026-01-01T00:00:00Z\",X-ASSET-URI=\"ad\"",
        ]
        story.cdn.put("/x/media.m3u8", text: vod(["seg.ts"], head: head))
        let found = links(try story.get("/x/media.m3u8").text)
        #expect(found.count { $0.contains("/p/") } == 2, "\(found)")
    }

    /// Players take a report for a list whose URL begins with that of the report.
    @Test
    func `a report that lacks the query of its list has the link of the multivariant playlist`()
        throws
    {
        let story = try Story()
        let variants = ["a", "b"].flatMap {
            ["#EXT-X-STREAM-INF:BANDWIDTH=1", "\($0).m3u8?token=x"]
        }
        story.cdn.put(
            "/x/m.m3u8", text: (["#EXTM3U"] + variants).joined(separator: "\n") + "\n")
        // No playlist names the second list, and the third one has a query.
        let reports = ["b.m3u8", "c.m3u8", "b.m3u8?token=y"].map {
            "#EXT-X-RENDITION-REPORT:URI=\"\($0)\",LAST-MSN=3"
        }
        story.cdn.put("/x/a.m3u8", text: vod(["seg.ts"], head: reports))
        let lists = try story.links(in: "/x/m.m3u8")
        for directives in ["", "?_HLS_msn=0"] {
            let found = links(try story.follow(lists[0] + directives).text)
            #expect(found.count == 4 && found[0] == lists[1])
            let own = found[1...2].compactMap { origin(of: $0) }
            #expect(own == ["c.m3u8", "b.m3u8?token=y"].map { story.cdn.url("/x/\($0)") })
        }
    }

    @Test
    func `the rest of a line is copied byte for byte`() throws {
        let story = try Story()
        let key =
            "#EXT-X-KEY:METHOD=SAMPLE-AES , URI=\"k1\",KEYFORMAT=\"com.x\",NOTE=\"URI=k2\",X-URI2=\"k3\""
        let rest = [
            "#EXT-X-UNKNOWN:URI=stays,A=\"b\"", "# a comment, URI=\"stays\"?", "#EXT-X-ODD",
        ]
        story.cdn.put("/l.m3u8", text: vod(["s.ts"], head: [key] + rest))
        let lines = try story.get("/l.m3u8").text.split(separator: "\n").map(String.init)
        #expect(lines[3].hasPrefix("#EXT-X-KEY:METHOD=SAMPLE-AES , URI=\"/k/"), "\(lines[3])")
        #expect(
            lines[3].hasSuffix("\",KEYFORMAT=\"com.x\",NOTE=\"URI=k2\",X-URI2=\"k3\""),
            "\(lines[3])")
        #expect(Array(lines[4...6]) == rest)
    }

    @Test(arguments: [
        "skd://license/1", "data:text/plain;base64,AAAA", "urn:x:1",
        "com.apple.streamingkeydelivery:x",
    ])
    func `opaque key URIs are unchanged`(_ uri: String) throws {
        let story = try Story()
        story.cdn.put(
            "/l.m3u8", text: vod(["s.ts"], head: ["#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"\(uri)\""]))
        #expect(links(try story.get("/l.m3u8").text)[0] == uri)
    }

    @Test(arguments: [
        "file:///etc/passwd", "ftp://h/x", "concat:a|b", "tcp://127.0.0.1:1",
        "subfile,,:/etc/passwd",
    ])
    func `schemes that bypass the daemon are rejected`(_ uri: String) throws {
        let story = try Story()
        story.cdn.put("/l.m3u8", text: vod([uri]))
        let answer = try story.get("/l.m3u8")
        let isHarmless =
            answer.status == 200 && uriLines(answer.text).allSatisfy { $0.hasPrefix("/s/") }
        #expect(answer.status == 502 || isHarmless, "\(answer.text)")
    }

    @Test
    func `odd line ends and a byte order mark are normalized`() throws {
        let story = try Story()
        let body =
            "\u{FEFF}# before\r\n#EXTM3U\r\n#EXTINF:4,\r\n#EXT-X-BYTERANGE:5@0\r\n#X\r\n a.ts \r\n#EXT-X-ENDLIST"
        story.cdn.put("/l.m3u8", text: body)
        let text = try story.get("/l.m3u8").text
        #expect(text.hasPrefix("#EXTM3U\n"))
        #expect(!text.contains("\r"))
        _ = try story.follow(uriLines(text)[0])
        #expect(story.cdn.requests.last?.target == "/a.ts")
    }

    @Test
    func `bytes that are not UTF-8 are passed on`() throws {
        let story = try Story()
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        let line: [UInt8] = Array("#EXTINF:4,caf".utf8) + [0xE9]
        let name: [UInt8] = Array("caf".utf8) + [0xE9] + Array(".ts".utf8)
        let body = [Array("#EXTM3U".utf8), line, name, Array("#EXT-X-ENDLIST".utf8)].joined(
            separator: [0x0A])
        origin.answer("/l.m3u8", .respond(200, [], Array(body)))
        origin.answer("/caf%E9.ts", .respond(200, [], Array("bytes".utf8)))
        let list = try story.follow("/" + origin.url("/l.m3u8"))
        #expect(list.body.split(separator: 0x0A)[1] == line[...])
        #expect(try story.follow(uriLines(list.text)[0]).text == "bytes")
        try origin.verify()
    }

    @Test
    func `a media playlist works without its multivariant playlist`() throws {
        let story = try Story(playing: [])
        let list = try story.get("/ts/160p/index.m3u8")
        let first = try story.follow(uriLines(list.text)[0])
        #expect(first.body == (try Fixture.bytes("media/ts/160p/seg000.ts")))
        #expect(story.cdn.requestCount("/ts/master.m3u8") == 0)
    }
}
