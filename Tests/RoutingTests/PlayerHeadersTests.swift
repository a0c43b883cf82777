import Routing
import Testing

@Suite struct `Headers that players write beside a URL` {
    private static func split(_ text: String) -> (String, [String])? {
        PlayerHeaders.split(Array(text.utf8)).map { split in
            (
                String(decoding: split.url, as: UTF8.self),
                split.headers.map { "\($0.name): \($0.value)" }
            )
        }
    }

    @Test(arguments: [
        ("http://h/a|User-Agent=A%20B", ["User-Agent: A B"]),
        ("http://h/a|X-A=1&X-B=2%26", ["X-A: 1", "X-B: 2&"]),
        ("http://h/a|x=a=b+c", ["x: a=b+c"]),
        ("http://h/a|seekable=0&!seekable=1", ["seekable: 1"]),
        ("http://h/a|verifypeer=false", []),
        ("http://h/a%7cReferer=b", ["Referer: b"]),
        ("http://h/a| X-A=1& X-B=2", ["X-A: 1", "X-B: 2"]),
        ("http://h/a|%20User-Agent=A", ["User-Agent: A"]),
    ])
    func `a suffix of headers is removed from the URL and parsed`(text: String, headers: [String])
        throws
    {
        let found = try #require(Self.split(text))
        #expect(found.0 == "http://h/a" && found.1 == headers)
    }

    @Test(arguments: [
        "http://h/a", "http://h/a|", "http://h/a|b", "http://h/a|b c=d", "http://h/a|=d",
        "http://h/a%7Cb=c", "http://h/a?q=%7C", "%7", "",
    ])
    func `text that is not a suffix of headers belongs to the URL`(text: String) {
        #expect(Self.split(text) == nil)
    }

    @Test func `number and size of headers are limited`() throws {
        let many = "http://h/a|" + (0..<10_000).map { "x\($0)=1" }.joined(separator: "&")
        let long = "http://h/a|x=" + String(repeating: "y", count: 9_000)
        for text in [many, long] {
            let split = try #require(PlayerHeaders.split(Array(text.utf8)))
            #expect(split.headers.count <= PlayerHeaders.most + 1)
            #expect(PlayerHeaders.fault(of: split.headers) != nil)
        }
    }

    // RFC 8586 section 2.
    @Test(arguments: ["CDN-Loop", "cdn-loop", "Via"])
    func `the marks of a loop cannot be replaced`(_ name: String) {
        #expect(PlayerHeaders.fault(of: [.init(name: name, value: "x")]) != nil)
    }

    private static func channels(_ text: String) -> ChannelHeaders? {
        ChannelHeaders(Array(text.utf8))
    }

    @Test func `a channel list without headers is unchanged`() {
        #expect(Self.channels("#EXTM3U\n#EXTINF:4,\na.ts\n") == nil)
        #expect(Self.channels("#EXTM3U\n#EXTINF:4,a|b\na|b=c.ts\n#KODIPROP:x=y\n") == nil)
        #expect(Self.channels("") == nil)
        let film = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\nhttp://h/a.ts|b=c\n"
        #expect(Self.channels(film) == nil)
    }

    @Test func `headers apply to the next entry, and the last of each name counts`() throws {
        let list = try #require(
            Self.channels(
                "#EXTM3U\r\n#EXTVLCOPT:http-user-agent=A\r\n#EXTINF:-1,x\r\nhttp://h/1|User-Agent=B\r\nhttp://h/2"
            ))
        #expect(list.byLine.keys.sorted() == [4])
        #expect(list.byLine[4]?.map(\.value) == ["B"])
        #expect(list.text.suffix(21) == Array("http://h/1\nhttp://h/2".utf8)[...])
    }

    @Test(arguments: [
        ("ch/1|User-Agent=A", "ch/1"), ("//h/1|Referer=A", "//h/1"), ("/1%7Ccookie=A", "/1"),
        ("http://h/1%7CUser-Agent=A", "http://h/1"), ("HTTP://h/1|X-A=A", "HTTP://h/1"),
    ])
    func `a suffix is found behind relative references and encoded bars`(
        line: String, url: String
    ) throws {
        let list = try #require(Self.channels("#EXTM3U\n#EXTINF:-1,x\n\(line)\n"))
        #expect(list.byLine[3]?.map(\.value) == ["A"])
        #expect(String(decoding: list.text, as: UTF8.self).hasSuffix("x\n\(url)\n"))
    }

    @Test(arguments: ["mpd", "ISM"])
    func `a manifest of another kind keeps its suffix, and its type is for one entry`(
        type: String
    ) throws {
        let text = """
            #EXTM3U
            #KODIPROP:inputstream.adaptive.manifest_type=\(type)
            #EXTINF:-1,x
            http://h/1|User-Agent=A
            #EXTINF:-1,y
            http://h/a.mpd?b|User-Agent=A
            #EXTINF:-1,w
            http://h/a.mpd%7CUser-Agent=A
            #KODIPROP:inputstream.adaptive.manifest_type=hls
            #EXTINF:-1,z
            http://h/2

            """
        let list = try #require(Self.channels(text))
        #expect(list.foreignManifests == [4] && list.byLine.isEmpty)
        #expect(list.text == Array(text.utf8))
    }

    @Test func `a bar before another name belongs to a relative reference`() {
        #expect(Self.channels("#EXTM3U\n#EXTINF:-1,x\na|X-A=1.ts\nb%7Cc=d.ts\n") == nil)
    }

    @Test(arguments: [
        ("#EXTVLCOPT:http-cookie=a=b; c=d", ["Cookie: a=b; c=d"]),
        (#"#EXTHTTP:{"cookie":"a=\u0062"}"#, ["cookie: a=b"]),
        (
            #"#EXTHTTP: { "cookie" : "a\"b" , "n": 1, "Referer":"r" } "#,
            ["cookie: a\"b", "Referer: r"]
        ),
    ])
    func `cookies of an entry are understood`(line: String, headers: [String]) throws {
        let list = try #require(Self.channels("#EXTM3U\n\(line)\n#EXTINF:-1,x\nhttp://h/1\n"))
        #expect(list.byLine[4]?.map { "\($0.name): \($0.value)" } == headers)
    }

    @Test(arguments: [
        "", "{", "{}", #"{"a"}"#, #"{"a":"b""#, #"{"a":"b\"#, #"{"a":{"b":"c"}}"#, #"{"a":"b"}x"#,
        #"["a"]"#, #"{"a":"b",}"#,
    ])
    func `an object that cannot be read sets no headers`(text: String) {
        #expect(Self.channels("#EXTM3U\n#EXTHTTP:\(text)\n#EXTINF:-1,x\nhttp://h/1\n") == nil)
    }

    @Test func `unsafe headers are dropped and counted, and sets are limited`() throws {
        let unsafe = try #require(
            Self.channels("#EXTVLCOPT:http-user-agent=a\u{1}b\nhttp://h/1|Host=x\n"))
        #expect(unsafe.byLine.isEmpty && unsafe.refused == 2)
        let lines = (0..<200).map { "http://h/\($0)|X-A=\($0 % 100)\n" }.joined()
        let list = try #require(Self.channels(lines))
        #expect(Set(list.byLine.values).count == ChannelHeaders.mostSets)
        #expect(list.byLine.count == 2 * ChannelHeaders.mostSets && list.refused == 72)
    }
}
