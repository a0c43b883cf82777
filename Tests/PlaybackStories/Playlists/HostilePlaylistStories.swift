import FixtureCDN
import ScenarioSupport
import Testing

/// Malicious playlists through the daemon: passed on or rejected by rule, with a message, in
/// bounded time and memory.
extension Stories {
    @Suite(.tags(.crowded)) struct HostilePlaylistStories {}
}

/// A list under test, and the text expected in the response.
struct Hostile: Sendable, CustomStringConvertible {
    let description: String
    let text: String
    /// In the message of a rejection, or in the list that the player gets.
    let expected: String

    init(_ name: String, _ text: String, _ expected: String) {
        description = name
        self.text = text
        self.expected = expected
    }
}

extension Stories.HostilePlaylistStories {
    static let refused = [
        Hostile("a line of a megabyte", vod([String(repeating: "x", count: 1 << 20)]), "line 5"),
        Hostile(
            "an attribute of a megabyte",
            vod(["a.ts"], head: ["#EXT-X-KEY:URI=\"\(String(repeating: "k", count: 1 << 20))\""]),
            "line 4"),
        Hostile("a zero byte in a URI", vod(["a\u{0}b.ts"]), "line 5"),
        Hostile(
            "a variable that is nowhere defined", vod(["{$ghost}/a.ts"]), "variable 'ghost'"),
        Hostile(
            "variables multiplied into megabytes",
            vod(
                [String(repeating: "{$v}", count: 9)],
                head: [
                    "#EXT-X-DEFINE:NAME=\"v\",VALUE=\"\(String(repeating: "v", count: 60_000))\""
                ]
            ), "line 6"),
        Hostile(
            "variables that name each other",
            vod(["{$a}.ts"], head: ["#EXT-X-DEFINE:NAME=\"a\",VALUE=\"{$b}\""]), "variable 'b'"),
        Hostile(
            "a variable that is defined twice",
            vod(
                ["{$a}.ts"],
                head: (1...2).map { "#EXT-X-DEFINE:NAME=\"a\",VALUE=\"\($0)\"" }),
            "line 5 (EXT-X-DEFINE): variable 'a' is defined twice"),
        Hostile("too many lines", "#EXTM3U\n" + String(repeating: "\n", count: 600_000), "lines"),
        Hostile("a host with a backslash", vod(["http://a\\@b/x.ts"]), "line 5"),
        Hostile("a port that is none", vod(["http://a:99999/x.ts"]), "line 5"),
    ]

    @Test
    func `a playlist that cannot be passed on is refused and not stored`() throws {
        let story = try Story()
        for list in Self.refused {
            story.cdn.put("/l.m3u8", text: list.text)
            let answer = try story.get("/l.m3u8")
            #expect(answer.status == 502 && answer.text.hasPrefix("origin error: "), "\(list)")
            #expect(answer.text.contains(list.expected), "\(list): \(answer.text.prefix(300))")
            #expect(answer.text.utf8.count < 1_000)
        }
        #expect(try story.stat("stored_objects") == 0)
    }

    static let passed = [
        Hostile(
            "a quote that never ends", vod(["a.ts"], head: ["#EXT-X-KEY:METHOD=AES-128,URI=\"k"]),
            "#EXT-X-KEY:METHOD=AES-128,URI=\"/k/"),
        Hostile(
            "a zero byte in a comment", vod(["a.ts"], head: ["#x\u{0}y"]), "#x\u{0}y"),
        Hostile(
            "ten thousand attributes",
            vod(
                ["a.ts"],
                head: ["#EXT-X-MEDIA:" + (0..<5_000).map { "A\($0)=1" }.joined(separator: ",")]),
            "A4999=1"),
        Hostile(
            "numbers beyond any", vod(["a.ts"], head: ["#EXT-X-MEDIA-SEQUENCE:\(UInt64.max)"]),
            "\(UInt64.max)"),
    ]

    @Test
    func `a playlist that is merely odd is passed on, and plays`() throws {
        let story = try Story()
        for (number, list) in Self.passed.enumerated() {
            story.cdn.put("/\(number).m3u8", text: list.text)
            let answer = try story.get("/\(number).m3u8")
            #expect(answer.status == 200, "\(list): \(answer.text)")
            #expect(answer.text.contains(list.expected), "\(list): \(answer.text.prefix(300))")
            #expect(uriLines(answer.text).allSatisfy { $0.hasPrefix("/s/") }, "\(list)")
        }
    }

    /// Tags that a player needs, and others that it may ignore, with a URI of a scheme that players
    /// open by themselves.
    static let needed = [
        "%", "#EXT-X-KEY:METHOD=AES-128,URI=\"%\"", "#EXT-X-MAP:URI=\"%\"", "#EXT-X-PART:URI=\"%\"",
        "#EXT-X-MEDIA:TYPE=AUDIO,URI=\"%\"", "#EXT-X-STREAM-INF:BANDWIDTH=1\n%",
    ]
    static let optional = [
        "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"%\"", "#EXT-X-RENDITION-REPORT:URI=\"%\"",
        "#EXT-X-DATERANGE:ID=\"1\",X-ASSET-URI=\"%\"", "#EXT-X-PREFETCH:%",
        "#EXT-X-I-FRAME-STREAM-INF:URI=\"%\"", "#EXT-X-IMAGE-STREAM-INF:URI=\"%\"",
        "#EXT-X-SESSION-KEY:METHOD=AES-128,URI=\"%\"",
        "#EXT-X-SESSION-DATA:DATA-ID=\"x\",URI=\"%\"", "#EXT-X-CONTENT-STEERING:SERVER-URI=\"%\"",
    ]
    static let schemes = [
        "file:///etc/passwd", "javascript:alert(1)", "concat:http://a|http://b",
    ]

    @Test
    func `no tag leads a player past the daemon`() throws {
        let story = try Story()
        for (place, scheme) in Self.needed.flatMap({ place in Self.schemes.map { (place, $0) } }) {
            let line = place.replacing("%", with: scheme)
            story.cdn.put("/l.m3u8", text: "#EXTM3U\n\(line)\n")
            let answer = try story.get("/l.m3u8")
            let name = scheme.prefix { $0 != ":" }
            #expect(answer.status == 502 && answer.text.contains("'\(name)'"), "\(line)")
        }
        for (place, scheme) in Self.optional.flatMap({ place in Self.schemes.map { (place, $0) } })
        {
            let line = place.replacing("%", with: scheme)
            story.cdn.put("/l.m3u8", text: "#EXTM3U\n\(line)\n#EXTINF:1,\na.ts\n")
            let answer = try story.get("/l.m3u8?\(percentEncoded(line))")
            #expect(answer.status == 200 && !answer.text.contains(scheme), "\(line)")
        }
    }

    @Test
    func `a URI that players must not get affects only itself, and is logged once`() throws {
        let story = try Story()
        let head = [#"#EXT-X-DATERANGE:ID="a",X-ASSET-URI="file:///x",X-ASSET-LIST="app:y""#]
        story.cdn.put(
            "/l.m3u8", text: vod(["a.ts", #"http://h\@evil/b.ts"#, "c.ts"], head: head))
        for round in 0..<3 {
            let text = try story.get("/l.m3u8?token=\(round)").text
            #expect(text.contains(#"#EXT-X-DATERANGE:ID="a",X-ASSET-LIST="app:y""#))
            #expect(uriLines(text).map { $0.suffix(5) } == ["/a.ts", "/c.ts"])
            #expect(text.contains("#EXT-X-DISCONTINUITY\n#EXTINF:4.0,\n/s/"))
        }
        let reports = story.daemon.standardError.split(separator: "\n").filter {
            $0.contains("not passed to players")
        }
        #expect(reports.count == 1 && reports[0].contains("count=2"), "\(reports)")
    }

    @Test
    func `a list whose variable needs an absent query parameter says whose fault it is`()
        throws
    {
        let story = try Story()
        let text = vod(["s.ts?t={$token}"], head: [#"#EXT-X-DEFINE:QUERYPARAM="token""#])
        story.cdn.put("/l.m3u8", text: text)
        let entry = try story.get("/l.m3u8")
        #expect(entry.status == 400 && entry.text.hasPrefix("client error: "), "\(entry.text)")
        #expect(entry.text.contains("'token'"))
        story.cdn.put("/m.m3u8", text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nl.m3u8\n")
        let named = try story.follow(story.links(in: "/m.m3u8")[0])
        #expect(named.status == 502 && named.text.hasPrefix("origin error: "), "\(named.text)")
        #expect(try story.get("/l.m3u8?token=x").status == 200)
    }

    @Test
    func `a playlist of fifty megabytes is refused in bounded memory, announced or not`() throws {
        let story = try Story()
        _ = try story.get("/nothing.m3u8")
        let before = story.daemon.rssBytes
        let body = Array(vod(["a.ts"]).utf8) + [UInt8](repeating: 0x0A, count: 50 << 20)
        story.cdn.put("/l.m3u8", body)
        for behaviour in ["", "eof=1", "chunked=1"] {
            story.cdn.setBehaviour(Behaviour(query: behaviour), for: "/l.m3u8")
            let answer = try story.get("/l.m3u8")
            #expect(answer.status == 502 && answer.text.contains("limit"), "\(answer.text)")
        }
        #expect(story.daemon.rssBytes - before < 48 << 20)
        #expect(try story.stat("stored_objects") == 0)
    }

    @Test
    func `a playlist that names the daemon is not rewritten twice`() throws {
        let story = try Story()
        story.cdn.put("/l.m3u8", text: vod(["a.ts"]))
        story.cdn.put(
            "/m.m3u8", text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n\(story.url("/l.m3u8"))\n")
        let link = try story.links(in: "/m.m3u8")[0]
        #expect(link == story.url("/l.m3u8"))
        #expect(uriLines(try story.follow(link).text)[0].hasPrefix("/s/"))
    }

    @Test
    func `a playlist that names itself costs one request per step`() throws {
        let story = try Story()
        story.cdn.put("/m.m3u8", text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nm.m3u8?x=1\n")
        var link = story.url("/m.m3u8")
        for _ in 0..<20 { link = try #require(uriLines(try story.follow(link).text).first) }
        #expect(link.utf8.count < 1_500)
        #expect(story.cdn.requestCount("/m.m3u8") == 2)
    }

    @Test
    func `an endless tree is inspected up to a limit`() throws {
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        for level in 0..<60 {
            let next = "#EXT-X-STREAM-INF:BANDWIDTH=1\n\(level + 1).m3u8\n"
            cdn.put("/\(level).m3u8", text: "#EXTM3U\n\(next)\(next)")
        }
        let result = try sluice("inspect", cdn.url("/0.m3u8"))
        #expect(result.status == 0, "\(result.stderr)")
        #expect(cdn.requestCount() < 60, "\(cdn.requestCount())")
    }
}
