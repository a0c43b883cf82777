import FixtureCDN
import ScenarioSupport
import Testing

/// Texts that are not plainly a playlist: encoded, mislabelled, JSON, or dependent on another.
extension Stories {
    @Suite(.tags(.crowded)) struct TextTests {}
}

extension Stories.TextTests {
    @Test(arguments: ["gzip=always", "gzip=1"])
    func `a gzipped playlist is decoded and sent with its own length`(_ coding: String) throws {
        let story = try Story()
        story.cdn.put("/l.m3u8", text: vod(["a.ts", "b.ts"]))
        story.cdn.setBehaviour(Behaviour(query: coding), for: "/l.m3u8")
        let list = try story.get("/l.m3u8", headers: [("Accept-Encoding", "gzip")])
        #expect(uriLines(list.text).count == 2)
        #expect(list["Content-Encoding"] == nil)
        #expect(list["Content-Length"] == "\(list.body.count)")
        #expect(list["ETag"]?.contains("-gzip") != true)
    }

    /// One list of two segments in the codings of RFC 9110 section 8.4.1 and RFC 7932.
    static let coded: [(name: String, bytes: String)] = [
        (
            "br",
            "1b5200a0e46dfb9edb4d0972b93568e44af0d6b8e50117273aac644a8a4fedc8bc62a658eed5"
                + "0308267e0296464eb25d587fa60f616a150efd27700b13cd35549800"
        ),
        (
            "deflate",
            "789c53768d08f1350ee552768d08d18dd00d710c72770d71090d720cf1f4f7b332018b7bfab9"
                + "5999e819e87025ea9514a38a24c1447423745dfd5c7c3c8343b8007f891529"
        ),
        (
            "deflate",
            "53768d08f1350ee552768d08d18dd00d710c72770d71090d720cf1f4f7b332018b7bfab95999"
                + "e819e87025ea9514a38a24c1447423745dfd5c7c3c8343b800"
        ),
        (
            "x-gzip",
            "1f8b080000000000000353768d08f1350ee552768d08d18dd00d710c72770d71090d720cf1f4"
                + "f7b332018b7bfab95999e819e87025ea9514a38a24c1447423745dfd5c7c3c8343b800de83407e"
                + "53000000"
        ),
    ]

    @Test(arguments: coded.indices)
    func `a playlist in any common coding is decoded, and kept decoded`(_ index: Int) throws {
        let story = try Story()
        let digits = Array(Self.coded[index].bytes)
        let body = stride(from: 0, to: digits.count, by: 2).compactMap {
            UInt8(String(digits[$0...$0 + 1]), radix: 16)
        }
        story.cdn.put(
            "/l.m3u8", body, extraHeaders: [("Content-Encoding", Self.coded[index].name)])
        let list = try story.get("/l.m3u8")
        #expect(list.status == 200 && uriLines(list.text).count == 2, "\(list.text)")
        #expect(list["Content-Encoding"] == nil && list["Content-Length"] == "\(list.body.count)")
        #expect(try story.get("/l.m3u8").body == list.body)
        #expect(story.cdn.requestCount("/l.m3u8") == 1)
    }

    @Test(arguments: ["br", "deflate", "gzip"])
    func `a body that is not in its declared coding is rejected and not stored`(
        _ coding: String
    ) throws {
        let story = try Story()
        story.cdn.put(
            "/l.m3u8", Array(vod(["a.ts"]).utf8), extraHeaders: [("Content-Encoding", coding)])
        let answer = try story.get("/l.m3u8")
        #expect(answer.status == 502 && answer.text.hasPrefix("origin error: "), "\(answer.text)")
        #expect(try story.stat("stored_objects") == 0)
    }

    @Test
    func `a segment in an unrequested coding is passed on with its coding`() throws {
        let story = try Story()
        story.cdn.put("/a.ts", Array("some bytes".utf8))
        story.cdn.setBehaviour("gzip=always", for: "/a.ts")
        for _ in 0..<2 {
            let answer = try story.get("/a.ts")
            #expect(answer["Content-Encoding"] == "gzip" && answer.body.starts(with: [0x1F, 0x8B]))
            #expect(answer["Content-Length"] == "\(answer.body.count)")
        }
        #expect(story.cdn.requests.allSatisfy { $0["Accept-Encoding"] == "identity" })
    }

    @Test(arguments: ["text/html", "text/plain", "application/octet-stream", ""])
    func `a playlist of a wrong type is recognized by its first line`(_ type: String) throws {
        let story = try Story()
        story.cdn.put("/watch", text: vod(["a.ts"]))
        story.cdn.setBehaviour(Behaviour(query: "type=\(type)"), for: "/watch")
        let list = try story.get("/watch")
        #expect(list["Content-Type"] == "application/vnd.apple.mpegurl")
        #expect(uriLines(list.text)[0].hasPrefix("/s/"))
    }

    @Test
    func `a page under a playlist's name gives 502 and is not stored`() throws {
        let story = try Story()
        story.cdn.put("/l.m3u8", text: "<!DOCTYPE html><html><body>Sign in</body></html>")
        let first = try story.get("/l.m3u8")
        #expect(first.status == 502)
        #expect(first.text.hasPrefix("origin error:") && !first.text.contains("Sign in"))
        story.cdn.put("/l.m3u8", text: vod(["a.ts"]))
        #expect(try story.get("/l.m3u8").status == 200)
        #expect(
            story.daemon.standardError.contains("origin-status=200"),
            "\(story.daemon.standardError)")
    }

    @Test
    func `a steering manifest refers to the daemon`() throws {
        let story = try Story()
        story.cdn.put(
            "/m/master.m3u8",
            text: """
                #EXTM3U
                #EXT-X-CONTENT-STEERING:SERVER-URI="steer.json?v=1",PATHWAY-ID="a"
                #EXT-X-STREAM-INF:BANDWIDTH=1,PATHWAY-ID="a"
                v.m3u8

                """)
        let manifest = #"{"VERSION":1,"TTL":300,"RELOAD-URI":"next?s=1","PATHWAY-PRIORITY":["a"]}"#
        story.cdn.put("/m/steer.json", text: manifest)
        story.cdn.put("/m/next", text: manifest)
        let link = try #require(try story.links(in: "/m/master.m3u8").first { $0.hasPrefix("/j/") })
        let steering = try story.follow(link + "?_HLS_pathway=a&_HLS_throughput=5")
        #expect(steering["Content-Type"] == "application/json")
        #expect(
            story.cdn.requests.last?.target == "/m/steer.json?v=1&_HLS_pathway=a&_HLS_throughput=5")
        #expect(steering.text.hasPrefix(#"{"VERSION":1,"TTL":300,"RELOAD-URI":"/j/"#))
        let next = String(steering.text.split(separator: "\"")[7])
        #expect(try story.follow(next).status == 200)
        #expect(story.cdn.requests.last?.target == "/m/next?s=1")
    }

    @Test
    func `an asset list refers to rewritten playlists, and errors are the origin's`() throws {
        let story = try Story()
        let range =
            "#EXT-X-DATERANGE:ID=\"1\",START-DATE=\"2026-01-01T00:00:00Z\",X-ASSET-LIST=\"ads\""
        story.cdn.put("/l.m3u8", text: vod(["a.ts"], head: [range]))
        story.cdn.put("/ads", text: #"{"ASSETS":[{"URI":"ad1/master.m3u8","DURATION":15.0}]}"#)
        let line = try #require(
            try story.get("/l.m3u8").text.split(separator: "\n").first { $0.contains("DATERANGE") })
        let link = try #require(line.split(separator: "\"").first { $0.contains("/j/") })
        let assets = try story.follow(String(link))
        #expect(
            assets.text.contains(#"{"ASSETS":[{"URI":"\#(story.daemon.baseURL)/p/"#),
            "\(assets.text)")
        story.cdn.put("/ads", text: "<html>busy</html>")
        // Not stored under another query, of which nothing can be served instead.
        #expect(try story.follow(link + "?_HLS_pathway=x").status == 502)
    }

    @Test
    func `a manifest is stored no longer than HTTP allows, and used when the origin is gone`()
        throws
    {
        let story = try Story()
        story.cdn.put(
            "/m.m3u8",
            text:
                "#EXTM3U\n#EXT-X-CONTENT-STEERING:SERVER-URI=\"s\"\n#EXT-X-STREAM-INF:BANDWIDTH=1\nv\n"
        )
        story.cdn.put("/s", text: #"{"VERSION":1}"#)
        story.cdn.setBehaviour("cc=max-age=0", for: "/s")
        let link = try #require(try story.links(in: "/m.m3u8").first { $0.hasPrefix("/j/") })
        for _ in 0..<2 { _ = try story.follow(link) }
        #expect(story.cdn.requestCount("/s") == 2)
        story.cdn.stop()
        #expect(try story.follow(link).text == #"{"VERSION":1}"#)
    }

    @Test
    func `variables are taken from the list, its parent and the final URL`() throws {
        let story = try Story()
        story.cdn.put(
            "/m.m3u8",
            text: """
                #EXTM3U
                #EXT-X-DEFINE:NAME="host",VALUE="\(story.cdn.baseURL)"
                #EXT-X-DEFINE:QUERYPARAM="tok"
                #EXT-X-STREAM-INF:BANDWIDTH=1
                {$host}/v.m3u8?t={$tok}

                """)
        story.cdn.put(
            "/v.m3u8", text: vod(["{$host}/seg.ts"], head: ["#EXT-X-DEFINE:IMPORT=\"host\""]))
        story.cdn.setBehaviour("location=/m.m3u8?tok=secret", for: "/old.m3u8")
        let variant = try story.follow(try story.links(in: "/old.m3u8")[0])
        #expect(story.cdn.requests.last?.target == "/v.m3u8?t=secret")
        _ = try story.follow(uriLines(variant.text)[0])
        #expect(story.cdn.requests.last?.target == "/seg.ts")
    }

    @Test
    func `a list that imports variables of its parent is read after a restart`() throws {
        let story = try Story()
        story.cdn.put(
            "/m.m3u8",
            text:
                "#EXTM3U\n#EXT-X-DEFINE:NAME=\"d\",VALUE=\"x\"\n#EXT-X-STREAM-INF:BANDWIDTH=1\nv.m3u8\n"
        )
        story.cdn.put("/v.m3u8", text: vod(["{$d}/a.ts"], head: ["#EXT-X-DEFINE:IMPORT=\"d\""]))
        let variant = try story.links(in: "/m.m3u8")[0]
        story.cdn.put("/x/a.ts", text: "bytes")
        let text = try story.follow(variant).text
        _ = try story.follow(uriLines(text)[0])
        let daemon = try story.succeed(["--policy", "offline"])
        #expect(try ScriptedPlayer(daemon.baseURL).get(variant).text == text)
    }

    /// An interstitial's, for instance.
    @Test(arguments: ["", "#EXT-X-DEFINE:NAME=\"d\",VALUE=\"other\"\n"])
    func `another multivariant playlist of the session takes no variable away`(
        _ definition: String
    ) throws {
        let story = try Story()
        let variant = "#EXT-X-STREAM-INF:BANDWIDTH=1\n"
        story.cdn.put(
            "/m.m3u8",
            text:
                "#EXTM3U\n#EXT-X-DEFINE:NAME=\"d\",VALUE=\"x\"\n\(variant)v.m3u8\n\(variant)ad.m3u8\n"
        )
        story.cdn.put("/ad.m3u8", text: "#EXTM3U\n\(definition)\(variant)w.m3u8\n")
        story.cdn.put("/v.m3u8", text: vod(["{$d}/a.ts"], head: ["#EXT-X-DEFINE:IMPORT=\"d\""]))
        story.cdn.put("/x/a.ts", text: "bytes")
        let links = try story.links(in: "/m.m3u8")
        for link in links.reversed() { #expect(try story.follow(link).status == 200) }
        let list = try story.follow(links[0])
        #expect(try story.follow(uriLines(list.text)[0]).text == "bytes")
    }

    /// A multivariant playlist whose variable `d` is the name of a folder with one segment.
    private func put(_ name: String, _ folder: String, _ variants: [String], on cdn: FixtureCDN) {
        let definition = "#EXT-X-DEFINE:NAME=\"d\",VALUE=\"\(folder)\""
        let lines = variants.flatMap { ["#EXT-X-STREAM-INF:BANDWIDTH=1", "\($0).m3u8"] }
        let text = (["#EXTM3U", definition] + lines + [""]).joined(separator: "\n")
        cdn.put("/\(name).m3u8", text: text)
        cdn.put("/\(folder)/a.ts", text: folder)
    }

    @Test
    func `a list imports the variables of the multivariant playlist that names it`() throws {
        let story = try Story()
        put("m", "x", ["v", "other"], on: story.cdn)
        put("other", "y", ["w"], on: story.cdn)
        for name in ["v", "w"] {
            let list = vod(["{$d}/a.ts"], head: ["#EXT-X-DEFINE:IMPORT=\"d\""])
            story.cdn.put("/\(name).m3u8", text: list)
        }
        let outer = try story.links(in: "/m.m3u8")
        let inner = uriLines(try story.follow(outer[1]).text)
        for (link, folder) in [(outer[0], "x"), (inner[0], "y")] {
            let list = try story.follow(link)
            #expect(try story.follow(uriLines(list.text)[0]).text == folder)
        }
    }

    @Test
    func `a list that another playlist names is rewritten again with the variables of that`() throws
    {
        let story = try Story()
        put("m", "x", ["v", "other"], on: story.cdn)
        put("other", "y", ["v"], on: story.cdn)
        story.cdn.put("/v.m3u8", text: vod(["{$d}/a.ts"], head: ["#EXT-X-DEFINE:IMPORT=\"d\""]))
        let links = try story.links(in: "/m.m3u8")
        func content() throws -> String {
            try story.follow(uriLines(try story.follow(links[0]).text)[0]).text
        }
        for _ in 0..<3 { #expect(try content() == "x") }
        #expect(try story.follow(links[1]).status == 200)
        for _ in 0..<3 { #expect(try content() == "y") }
        #expect(story.cdn.requestCount("/v.m3u8") == 1)
    }

    @Test
    func `a list that one session cannot read stays stored for the others`() throws {
        let story = try Story()
        put("m", "x", ["v"], on: story.cdn)
        story.cdn.put("/v.m3u8", text: vod(["{$d}/a.ts"], head: ["#EXT-X-DEFINE:IMPORT=\"d\""]))
        let link = try story.links(in: "/m.m3u8")[0]
        #expect(try story.follow(link).status == 200)
        // Opened by itself, it is in a session that knows no `d`.
        #expect(try story.get("/v.m3u8").status == 502)
        let count = story.cdn.requestCount("/v.m3u8")
        #expect(try story.follow(link).status == 200)
        #expect(story.cdn.requestCount("/v.m3u8") == count)
    }

    @Test
    func `a delta update keeps the extensions of the full list`() throws {
        let story = try Story()
        let head = ["#EXT-X-SERVER-CONTROL:CAN-SKIP-UNTIL=24"]
        story.cdn.put("/l.m3u8", text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nv.m3u8\n")
        let full = vod(["a", "b"], head: head + ["#EXT-X-MAP:URI=\"i\""])
        story.cdn.put("/v.m3u8", text: full)
        let link = try story.links(in: "/l.m3u8")[0]
        _ = try story.follow(link)
        story.cdn.put("/v.m3u8", text: vod(["b"], head: head + ["#EXT-X-SKIP:SKIPPED-SEGMENTS=1"]))
        let delta = try story.follow(link + "?_HLS_skip=YES")
        #expect(uriLines(delta.text)[0].hasSuffix(".m4s"))
        #expect(links(try story.follow(link).text).count == 3)
    }
}
