import FixtureCDN
import ScenarioSupport
import Testing

/// `sluice inspect`: its findings about playlists at an origin and in files.
extension Stories {
    @Suite(.tags(.crowded)) struct InspectTests {}
}

extension Stories.InspectTests {
    /// An origin with a multivariant playlist of two variants, one of them missing.
    static func origin() throws -> FixtureCDN {
        let cdn = FixtureCDN()
        try cdn.start()
        cdn.put(
            "/m.m3u8",
            text: """
                #EXTM3U
                #EXT-X-DEFINE:NAME="d",VALUE="low"
                #EXT-X-NEWS:1
                #EXT-X-STREAM-INF:BANDWIDTH=9
                {$d}.m3u8?token=secret
                #EXT-X-STREAM-INF:BANDWIDTH=7,CODECS="x"
                gone.m3u8

                """)
        cdn.put(
            "/low.m3u8",
            text: "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n#EXTINF:9,\nb.ts\n")
        return cdn
    }

    @Test func `a tree shows what exists, what is missing and what is wrong`() throws {
        let cdn = try Self.origin()
        defer { cdn.stop() }
        let result = try sluice("inspect", "--no-strict", cdn.url("/m.m3u8"))
        #expect(result.status == 0)
        for text in [
            "multivariant, version 1, 2 variants, 0 renditions",
            "unknown tag: EXT-X-NEWS, line 3, 1 times",
            "line 4 (EXT-X-STREAM-INF): has no CODECS [8216bis 4.4.6.2, should]",
            "variables: version 8 is needed, the list says 1 [8216bis 8, must]",
            "variant (9 bit/s): \(cdn.url("/low.m3u8"))?token=***",
            "live, 2 segments from sequence number 0, 13.000 s in all, 4.000 s to 9.000 s each",
            "line 5 (EXTINF): 9.0 seconds round to more than the target duration",
            "not read: the origin answered 404",
        ] {
            #expect(result.stdout.contains(text), "\(text)\n\(result.stdout)")
        }
        #expect(!result.stdout.contains("secret"))
    }

    @Test func `no control character of a playlist reaches the terminal`() throws {
        let cdn = try Self.origin()
        defer { cdn.stop() }
        cdn.put(
            "/c.m3u8",
            text: "#EXTM3U\n#EXT-X-A\u{9B}2J\u{1B}[31m\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n"
        )
        let result = try sluice("inspect", "--no-strict", cdn.url("/c.m3u8"))
        #expect(result.stdout.contains("EXT-X-A"))
        #expect(
            result.stdout.unicodeScalars.allSatisfy {
                $0 == "\n" || $0.properties.generalCategory != .control
            })
    }

    @Test func `whole URLs and segments are shown on request`() throws {
        let cdn = try Self.origin()
        defer { cdn.stop() }
        let result = try sluice("inspect", "--full-urls", "--segments", cdn.url("/m.m3u8"))
        #expect(result.stdout.contains("low.m3u8?token=secret"))
        #expect(result.stdout.contains("segment 1: 9.000 s, \(cdn.url("/b.ts"))"))
    }

    @Test func `JSON has the same tree for programs`() throws {
        let cdn = try Self.origin()
        defer { cdn.stop() }
        let result = try sluice("inspect", "--json", cdn.url("/low.m3u8"))
        #expect(result.status == 2)
        for text in [
            "\"kind\" : \"media\"", "\"section\" : \"4.4.3.1\"", "\"totalSeconds\" : 13",
            "\"line\" : 5",
        ] {
            #expect(result.stdout.contains(text), "\(text)")
        }
    }

    @Test func `headers are sent with every request`() throws {
        let cdn = try Self.origin()
        defer { cdn.stop() }
        _ = try sluice("inspect", "--header", "X-Key: 7", cdn.url("/m.m3u8"))
        #expect(cdn.requests.count == 3)
        #expect(cdn.requests.allSatisfy { $0["X-Key"] == "7" })
    }

    @Test func `only a violated MUST ends with 2`() throws {
        let cdn = try Self.origin()
        defer { cdn.stop() }
        #expect(try sluice("inspect", cdn.url("/low.m3u8")).status == 2)
        #expect(try sluice("inspect", "--no-strict", cdn.url("/low.m3u8")).status == 0)
        cdn.put("/good.m3u8", text: "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n")
        #expect(try sluice("inspect", cdn.url("/good.m3u8")).status == 0)
    }

    @Test func `a named playlist that cannot be read ends with 1`() throws {
        let cdn = try Self.origin()
        defer { cdn.stop() }
        cdn.put("/good.m3u8", text: "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n")
        let variant = "#EXT-X-STREAM-INF:BANDWIDTH=9,CODECS=\"x\"\n"
        cdn.put("/part.m3u8", text: "#EXTM3U\n\(variant)good.m3u8\n\(variant)gone.m3u8\n")
        let result = try sluice("inspect", cdn.url("/part.m3u8"))
        #expect(result.status == 1, "\(result.stdout)")
        #expect(result.stdout.contains("not read: the origin answered 404"))
        #expect(try sluice("inspect", "--no-strict", cdn.url("/part.m3u8")).status == 0)
    }

    @Test(arguments: ["ts", "fmp4", "aes", "byterange", "audio"])
    func `the sample files violate no MUST`(name: String) throws {
        let path = Fixture.repository + "/Fixtures/media/\(name)/master.m3u8"
        let result = try sluice("inspect", "--strict", path)
        #expect(result.status == 0, "\(result.stdout)")
    }

    @Test(arguments: [("/tmp", "is a folder"), ("/dev/zero", "is a device")])
    func `a folder or a device is named as such`(path: String, words: String) throws {
        let result = try sluice("inspect", path)
        #expect(result.status == 1)
        #expect((result.stdout + result.stderr).contains(words), "\(result)")
    }

    @Test func `a file that is not a playlist is an error`() throws {
        let cdn = try Self.origin()
        defer { cdn.stop() }
        cdn.put("/page.m3u8", text: "<html>Not here</html>")
        let page = try sluice("inspect", cdn.url("/page.m3u8"))
        #expect(page.status == 1 && page.stdout.contains("a page of markup, not a playlist"))
        let folder = try TemporaryFolder()
        try writeFile(folder.file("l.m3u8"), "seg.ts\n".utf8)
        let file = try sluice("inspect", folder.file("l.m3u8"))
        #expect(file.status == 1 && !file.stdout.contains("origin"), "\(file.stdout)")
        #expect(file.stdout.contains("not read: it does not start with #EXTM3U"))
        #expect(try sluice("inspect", "/nowhere/at/all.m3u8").status == 64)
        #expect(try sluice("inspect", "ftp://h/x").status == 64)
        let port = try sluice("inspect", "http://h:99999/x.m3u8")
        #expect(port.status == 64 && !port.stderr.contains("neither http"), "\(port.stderr)")
        let base = try sluice("inspect", folder.file("l.m3u8"), "--base", "h/x.m3u8")
        #expect(base.status == 64 && base.stderr.contains("--base is not usable as a URL"))
    }
}
