import FixtureCDN
import ScenarioSupport
import Testing

/// Stored content as titles: names, seconds and percentages by variant.
extension Stories {
    @Suite(.tags(.crowded)) struct TitlesTests {}
}

extension Story {
    /// The title that starts at a path of the CDN; empty while nothing of it is stored.
    func title(_ path: String) throws -> String {
        let text = try api("titles/" + percentEncoded(cdn.url(path)))
        return text.hasPrefix("{") ? text : ""
    }

    /// Waits until a title contains a text, because the index lags a moment behind; returns its
    /// last state.
    func title(_ path: String, until isExpected: (String) -> Bool) throws -> String {
        var text = ""
        _ = try eventually {
            text = try title(path)
            return isExpected(text)
        }
        return text
    }

    /// Plays a VOD media list of `/bytes` segments, the first `count` of them.
    func play(_ list: String, _ count: Int = .max) throws {
        for link in try links(in: list).prefix(count) { _ = try follow(link) }
    }

    /// Puts a VOD list of segments of 4 s and 100,000 bytes each.
    func putTitle(_ path: String, _ name: String, count: Int = 4, head: [String] = []) {
        let segments = (0..<count).map { segment("\(name)-\($0)", 100_000) }
        cdn.put(path, text: vod(segments, head: head))
    }
}

// MARK: How much is kept

extension Stories.TitlesTests {
    @Test
    func `a title played to its end is complete`() throws {
        let story = try Story()
        story.putTitle("/shows/harbour/s1e2/master.m3u8", "whole")
        try story.play("/shows/harbour/s1e2/master.m3u8")
        let text = try story.title("/shows/harbour/s1e2/master.m3u8") {
            members("percent", in: $0).first == "100"
        }
        #expect(members("name", in: text) == ["harbour/s1e2"])
        #expect(members("kind", in: text) == ["vod", "variant"])
        #expect(members("kept_seconds", in: text) == ["16", "16"])
        #expect(members("whole", in: text) == ["true", "true"])
        #expect(members("objects", in: text) == ["5"])
        #expect((400_000...450_000).contains(Int(members("bytes", in: text)[0]) ?? 0))
    }

    @Test
    func `half of a title is 50 percent, and a partial segment counts by its bytes`() throws {
        let story = try Story()
        story.putTitle("/half.m3u8", "half")
        try story.play("/half.m3u8", 2)
        let half = try story.title("/half.m3u8") { members("percent", in: $0).first == "50" }
        #expect(members("kept_seconds", in: half).first == "8", "\(half)")
        let third = try story.links(in: "/half.m3u8")[2]
        let part = try story.follow(third, headers: [("Range", "bytes=0-49999")])
        #expect(part.status == 206)
        let more = try story.title("/half.m3u8") { members("percent", in: $0).first == "62" }
        #expect(members("kept_seconds", in: more).first == "10", "\(more)")
    }

    @Test
    func `each variant and rendition has its own percentage`() throws {
        let story = try Story(playing: [])
        let lists = try story.links(in: "/ts/master.m3u8")
        let last = try story.follow(lists[4]).text
        for link in links(last) { _ = try story.follow(link) }
        let text = try story.title("/ts/master.m3u8") { members("percent", in: $0).first == "100" }
        #expect(
            members("kind", in: text) == [
                "vod", "audio", "subtitles", "variant", "variant", "variant",
            ])
        #expect(members("percent", in: text) == ["100", "0", "0", "0", "0", "100"])
        #expect(members("label", in: text).last == "640x360 400 kb/s")
        let lines = try sluice("ls", "--daemon", story.daemon.baseURL).stdout.split(separator: "\n")
        #expect(lines.count == 3 && lines[2].contains("variant 640x360 400 kb/s  "), "\(lines)")
    }

    @Test
    func `segments that are ranges of one file count by their ranges`() throws {
        let story = try Story(playing: [])
        let links = try story.links(in: "/byterange/index.m3u8")
        _ = try story.follow(links[1], headers: [("Range", "bytes=0-53110")])
        let text = try story.title("/byterange/index.m3u8") {
            members("percent", in: $0).first == "33"
        }
        #expect(members("kept_seconds", in: text).first == "4", "\(text)")
    }

    @Test
    func `keys and initialization sections are required for completeness`() throws {
        let story = try Story(playing: [])
        let lists = try story.links(in: "/aes/master.m3u8")
        let inner = links(try story.follow(lists[0]).text)
        for link in inner where !link.hasPrefix("/k/") { _ = try story.follow(link) }
        let without = try story.title("/aes/master.m3u8") {
            members("percent", in: $0).first == "99"
        }
        #expect(members("whole", in: without).first == "false")
        for link in inner where link.hasPrefix("/k/") { _ = try story.follow(link) }
        let whole = try story.title("/aes/master.m3u8") { members("whole", in: $0).first == "true" }
        #expect(members("percent", in: whole).first == "100")
    }

    @Test
    func `a single file has its name, whatever type the origin gives it`() throws {
        let story = try Story(playing: [])
        story.cdn.setBehaviour("type=application/octet-stream", for: "/plain/clip.mp4")
        _ = try story.get("/plain/clip.mp4")
        var text = ""
        let isWhole = try eventually {
            text = try story.api("titles")
            return members("percent", in: text).first == "100"
        }
        #expect(isWhole, "\(text)")
        #expect(members("name", in: text) == ["plain/clip.mp4"])
    }

    @Test
    func `a single file is a title of its own`() throws {
        let story = try Story(playing: [])
        let size = try Fixture.bytes("media/plain/clip.mp4").count
        _ = try story.get("/plain/clip.mp4", range: "bytes=0-\(size / 2)")
        let half = try story.title("/plain/clip.mp4") { members("percent", in: $0).first == "50" }
        #expect(members("kind", in: half) == ["file", "file"])
        #expect(members("name", in: half) == ["plain/clip.mp4"])
        _ = try story.get("/plain/clip.mp4")
        _ = try story.title("/plain/clip.mp4") { members("percent", in: $0).first == "100" }
        #expect(members("whole", in: try story.title("/plain/clip.mp4")).first == "true")
    }

    @Test
    func `a growing playlist is live`() throws {
        let story = try Story()
        _ = story.cdn.live("/live.m3u8", liveWindow())
        for index in 0..<3 { story.cdn.put("/s\(index).ts", Array("bytes".utf8)) }
        try story.play("/live.m3u8")
        let text = try story.title("/live.m3u8") { members("kind", in: $0).first == "live" }
        #expect(members("live", in: text) == ["true"])
    }
}

// MARK: Names and sharing

extension Stories.TitlesTests {
    @Test
    func `a playlist with a title is listed by it`() throws {
        let story = try Story()
        story.putTitle("/v/index.m3u8", "named")
        let name = "#EXT-X-SESSION-DATA:DATA-ID=\"com.apple.hls.title\",VALUE=\"Das Mädchen\""
        story.cdn.put(
            "/m.m3u8", text: "#EXTM3U\n\(name)\n#EXT-X-STREAM-INF:BANDWIDTH=1\nv/index.m3u8\n")
        _ = try story.get("/m.m3u8")
        let text = try story.title("/m.m3u8") { !$0.isEmpty }
        #expect(members("name", in: text) == ["Das Mädchen"])
        #expect(try sluice("ls", "--daemon", story.daemon.baseURL).stdout.contains("Das Mädchen"))
    }

    @Test
    func `shared bytes are counted once and shown for both titles`() throws {
        let story = try Story()
        for name in ["/a.m3u8", "/b.m3u8"] { story.putTitle(name, "shared") }
        try story.play("/a.m3u8")
        _ = try story.get("/b.m3u8")
        let second = try story.title("/b.m3u8") { members("percent", in: $0).first == "100" }
        #expect(Int(members("shared_bytes", in: second)[0]) ?? 0 >= 400_000, "\(second)")
        #expect(Int(members("bytes", in: second)[0]) ?? .max < 20_000)
        #expect(members("shared_bytes", in: try story.title("/a.m3u8")) == ["0"])
    }

    @Test(arguments: [
        "b=2&a=1",
        "Expires=1900000000&Key-Pair-Id=APKA2KEXAMPLE&Signature="
            + String(repeating: "sign", count: 40),
    ])
    func `a file whose key is not its URL is a file without a type of media too`(
        _ query: String
    ) throws {
        let story = try Story()
        story.cdn.put("/object.bin", Array("bytes".utf8), contentType: "binary/octet-stream")
        #expect(try story.get("/object.bin?\(query)").status == 200)
        var text = ""
        let isFile = try eventually {
            text = try story.api("titles")
            return members("kind", in: text) == ["file", "file"]
        }
        #expect(isFile, "\(text)")
        #expect(members("percent", in: text).first == "100", "\(text)")
    }

    @Test
    func `a listing shows no secret of a URL`() throws {
        let story = try Story()
        story.putTitle("/t.m3u8", "secret")
        let path = "/t.m3u8?ticket=swordfish"
        _ = try story.get(path)
        let isListed = try eventually { try story.api("titles").contains("ticket=***") }
        #expect(isListed)
        #expect(!(try story.api("titles").contains("swordfish")))
    }
}

extension Stories.TitlesTests {
    @Test
    func `a title tells that its URL lacks the headers or the password of its player`() throws {
        let story = try Story()
        for name in ["plain", "referer", "password"] { story.putTitle("/\(name).m3u8", name) }
        #expect(try story.get("/plain.m3u8").status == 200)
        let referer = story.entry("/referer.m3u8", "h_Referer=http%3A%2F%2Fsite.test%2F")
        #expect(try story.follow(referer).status == 200)
        let password = "http://user:pa55word@\(story.cdn.url("/password.m3u8").dropFirst(7))"
        #expect(try story.follow("/proxy?url=\(percentEncoded(password))").status == 200)
        let wanted: [Substring: String] = [
            "plain.m3u8": "false", "referer.m3u8": "true", "password.m3u8": "true",
        ]
        var all = ""
        let isMarked = try eventually {
            all = try story.api("titles")
            let names = members("url", in: all).map { $0.split(separator: "/").last ?? "" }
            let marks = zip(names, members("has_headers", in: all))
            return Dictionary(marks, uniquingKeysWith: { $1 }) == wanted
        }
        #expect(isMarked, "\(all)")
        #expect(!all.contains("pa55word") && !all.contains("site.test"))
    }

    @Test
    func `a title with its own headers is found by its URL`() throws {
        let story = try Story()
        story.putTitle("/auth.m3u8", "auth")
        let list = try story.follow(story.entry("/auth.m3u8", "h_Authorization=Basic%20eDp5"))
        for link in links(list.text) { _ = try story.follow(link) }
        let text = try story.title("/auth.m3u8") { members("percent", in: $0).first == "100" }
        #expect(members("objects", in: text) == ["5"])
        story.stop()
        let listed = try story.onFolder("ls").stdout
        #expect(listed.contains("auth") && listed.contains("100 %"), "\(listed)")
    }

    @Test(arguments: [true, false])
    func `a daemon's URL with headers names the title of its session alone`(
        _ isRunning: Bool
    ) throws {
        let story = try Story()
        story.putTitle("/two.m3u8", "two")
        try story.play("/two.m3u8")
        let pinned = try story.ask("pin", story.cdn.url("/two.m3u8"))
        #expect(pinned.status == 0, "\(pinned)")
        let own = story.entry("/two.m3u8", "h_Authorization=Bearer%20xyz")
        #expect(try story.follow(own).status == 200)
        let areKept = try eventually {
            members("total", in: try story.api("titles")) == ["2"]
        }
        #expect(areKept)
        if !isRunning { story.stop() }
        func tell(_ arguments: String...) throws -> Tool.Result {
            try Tool.run(
                [DaemonProcess.builtBinary()] + arguments
                    + (isRunning
                        ? ["--daemon", story.daemon.baseURL] : ["--cache-dir", story.cacheFolder]))
        }
        #expect(try tell("unpin", own).stdout == "it was not pinned\n")
        #expect(try tell("purge", "--title", own).status == 0)
        let listed = try tell("ls", "--json").stdout
        #expect(members("pinned", in: listed) == ["true"], "\(listed)")
        #expect(members("percent", in: listed).first == "100", "\(listed)")
    }

    @Test
    func `a title is found and pinned by a URL with another signature`() throws {
        let story = try Story()
        story.putTitle("/signed.m3u8", "signed")
        let sign = { (text: String) in
            "/signed.m3u8?Expires=1900000000&Key-Pair-Id=APKA2KEXAMPLE"
                + "&Signature=\(String(repeating: text, count: 40))"
        }
        try story.play(sign("first"))
        let text = try story.title(sign("second")) { members("percent", in: $0).first == "100" }
        #expect(members("shared_bytes", in: text) == ["0"], "\(text)")
        #expect(try story.ask("pin", story.cdn.url(sign("third"))).status == 0)
        let all = try story.api("titles")
        #expect(members("pinned", in: all) == ["true"] && members("total", in: all) == ["1"])
    }
}

// MARK: Many titles

extension Stories.TitlesTests {
    @Test
    func `a listing is paged, the last played first`() throws {
        let story = try Story()
        for index in 0..<5 {
            story.putTitle("/t\(index).m3u8", "page\(index)", count: 1)
            try story.play("/t\(index).m3u8")
        }
        #expect(try eventually { members("total", in: try story.api("titles")) == ["5"] })
        var names: [String] = []
        var next = ""
        for _ in 0..<3 {
            let page = try story.api("titles?limit=2" + (next.isEmpty ? "" : "&after=\(next)"))
            names += members("name", in: page)
            next = members("next", in: page)[0]
        }
        #expect(next == "null")
        #expect(Set(names).count == 5 && names.count == 5, "\(names)")
        let all = try sluice("ls", "--json", "--daemon", story.daemon.baseURL).stdout
        #expect(members("name", in: all) == names)
    }

    @Test
    func `a long listing delays no player`() throws {
        let story = try Story()
        for index in 0..<150 {
            story.putTitle("/many\(index).m3u8", "many\(index)", count: 40)
            _ = try story.get("/many\(index).m3u8")
        }
        let path = segment("played", 10_000)
        _ = try story.get(path)
        // A title that is used while pages are read moves to the front, unseen by the reader.
        #expect(try eventually { members("total", in: try story.api("titles?limit=1")) == ["151"] })
        let listing = Background {
            try sluice("ls", "--json", "--daemon", story.daemon.baseURL)
        }
        var answers = 0
        repeat {
            #expect(isContent(try story.get(path).body, of: path))
            answers += 1
        } while !listing.isDone
        #expect(members("id", in: try listing.value().stdout).count >= 150)
        #expect(answers >= 5)
    }
}
