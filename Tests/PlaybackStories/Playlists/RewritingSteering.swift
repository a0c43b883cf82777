import FixtureCDN
import ScenarioSupport
import Testing

/// JSON texts that playlists refer to: steering manifests with cloned pathways, interstitials.
extension Stories {
    @Suite(.tags(.crowded)) struct SteeringTests {}
}

/// A stream with content steering whose second CDN only the steering manifest names.
private final class SteeredStream {
    let story: Story
    let other = FixtureCDN(address: "127.0.0.2")

    /// Both CDNs have the same playlist under the same path, with their own segments.
    init(_ replacement: (_ host: String) -> String, _ arguments: [String] = []) throws {
        story = try Story(arguments)
        try other.start()
        let tag = #"#EXT-X-CONTENT-STEERING:SERVER-URI="steer?id=7",PATHWAY-ID="a""#
        let variant = #"#EXT-X-STREAM-INF:BANDWIDTH=1,PATHWAY-ID="a",STABLE-VARIANT-ID="low""#
        story.cdn.put("/m.m3u8", text: "#EXTM3U\n\(tag)\n\(variant)\nv/l.m3u8?q=1\n")
        let clone =
            #"{"BASE-ID":"a","ID":"b","URI-REPLACEMENT":\#(replacement("127.0.0.2:\(other.port)"))}"#
        story.cdn.put(
            "/steer", text: #"{"VERSION":1,"TTL":300,"PATHWAY-CLONES":[\#(clone)]}"#)
        for (cdn, name) in [(story.cdn, "first"), (other, "second")] {
            cdn.put("/v/l.m3u8", text: vod(["s.ts"]))
            cdn.put("/v/s.ts", text: name)
        }
    }

    deinit { other.stop() }

    /// The rewritten manifest as a player parses it, and the variant's link.
    func play(from entry: String? = nil) throws -> (manifest: String, variant: String) {
        let master = try story.follow(entry ?? story.url("/m.m3u8")).text
        let steering = try #require(links(master).first { $0.hasPrefix("/j/") })
        let manifest = try story.follow(steering + "?_HLS_pathway=%22a%22&_HLS_throughput=90")
        return (manifest.text, try #require(uriLines(master).first))
    }

    /// The query from PARAMS of the clone, in the order of the manifest.
    static func parameters(_ manifest: String) throws -> String {
        let start = try #require(manifest.firstRange(of: #""PARAMS":{"#)).upperBound
        let members = manifest[start...].prefix { $0 != "}" }.split(separator: ",")
        return members.map { $0.filter { $0 != "\"" }.replacing(":", with: "=") }
            .joined(separator: "&")
    }
}

extension Stories.SteeringTests {
    @Test(arguments: [
        (#","PARAMS":{"tok":"x%2F"}"#, "/v/l.m3u8?q=1&tok=x%2F"), ("", "/v/l.m3u8?q=1"),
        (#","PARAMS":{"q":"2"}"#, "/v/l.m3u8?q=2"),
    ])
    func `a cloned pathway plays from its own host`(_ more: String, _ target: String) throws {
        let stream = try SteeredStream { #"{"HOST":"\#($0)"\#(more)}"# }
        let (manifest, variant) = try stream.play()
        #expect(!manifest.contains(#""HOST":"#))
        let query = try SteeredStream.parameters(manifest)
        let list = try stream.story.follow("\(variant)?\(query)")
        #expect(stream.other.requests.last?.target == target)
        #expect(try stream.story.follow(uriLines(list.text)[0]).text == "second")
        #expect(stream.story.cdn.requestCount("/v/l.m3u8") == 0)
    }

    @Test(arguments: [("HOST", "/v/l.m3u8?q=1&tok=x"), ("", "/v/l.m3u8?q=1&tok=x")])
    func `a cloned pathway plays through two daemons in a row`(
        _ host: String, _ target: String
    ) throws {
        let stream = try SteeredStream {
            host.isEmpty
                ? #"{"PARAMS":{"tok":"x"}}"# : #"{"HOST":"\#($0)","PARAMS":{"tok":"x"}}"#
        }
        let folder = try TemporaryFolder()
        let outer = try Story.serve(folder.path)
        let player = ScriptedPlayer(outer.baseURL)
        let master = try player.get("/" + stream.story.url("/m.m3u8")).text
        let steering = try #require(links(master).first { $0.hasPrefix("/j/") })
        let manifest = try player.get(steering + "?_HLS_pathway=%22a%22").text
        let query = try SteeredStream.parameters(manifest)
        let list = try player.get("\(try #require(uriLines(master).first))?\(query)")
        let cdn = host.isEmpty ? stream.story.cdn : stream.other
        #expect(list.status == 200 && cdn.requests.last?.target == target)
        let segment = try player.get(try #require(uriLines(list.text).first)).text
        #expect(segment == (host.isEmpty ? "first" : "second"))
    }

    @Test
    func `parameters of a clone reach the base pathway's host where it names none`() throws {
        let stream = try SteeredStream { _ in #"{"PARAMS":{"tok":"x"}}"# }
        let (manifest, variant) = try stream.play()
        let query = try SteeredStream.parameters(manifest)
        #expect(try stream.story.follow("\(variant)?\(query)&_HLS_msn=3").status == 200)
        #expect(stream.story.cdn.requests.last?.target == "/v/l.m3u8?q=1&tok=x&_HLS_msn=3")
    }

    @Test
    func `URIs given by a clone are rewritten as whole URLs`() throws {
        let stream = try SteeredStream {
            #"{"PER-VARIANT-URIS":{"low":"http://\#($0)/v/l.m3u8"}}"#
        }
        let link = try stream.play().manifest.split(separator: "\"").first {
            $0.hasPrefix("\(stream.story.daemon.baseURL)/p/")
        }
        let list = try stream.story.follow(String(try #require(link)))
        #expect(try stream.story.follow(uriLines(list.text)[0]).text == "second")
    }

    @Test
    func `a host named to another session, or never named, is rejected`() throws {
        let stream = try SteeredStream({ #"{"HOST":"\#($0)"}"# }, ["--token", "s3cret-token"])
        let story = stream.story
        let first = try stream.play(from: story.entry("/m.m3u8", "token=s3cret-token"))
        let arguments = "h_Referer=x&token=s3cret-token"
        let second = try stream.play(from: story.entry("/m.m3u8", arguments))
        let query = try SteeredStream.parameters(first.manifest)
        #expect(try story.follow("\(first.variant)?\(query)").status == 200)
        #expect(try story.follow("\(second.variant)?\(query)").status == 403)
        #expect(try story.follow("\(first.variant)?_sluice_host=AAAA").status != 200)
        #expect(stream.other.requestCount() == 1)
    }

    @Test
    func `a player's estimates are sent with every reload of the manifest`() throws {
        let story = try Story()
        story.cdn.put("/m.m3u8", text: "#EXTM3U\n#EXT-X-CONTENT-STEERING:SERVER-URI=\"/s?k=1\"\n")
        story.cdn.put("/s", text: #"{"VERSION":1,"TTL":1,"RELOAD-URI":"/s?k=2"}"#)
        var link = try story.links(in: "/m.m3u8")[0]
        for (round, key) in ["k=1", "k=2", "k=2"].enumerated() {
            let query = "_HLS_pathway=b&_HLS_throughput=\(round)"
            let manifest = try story.follow("\(link)?\(query)").text
            #expect(story.cdn.requests.last?.target == "/s?\(key)&\(query)")
            link = String(
                try #require(manifest.split(separator: "\"").last { $0.hasPrefix("/j/") }))
        }
    }

    @Test
    func `interstitials are played through the daemon with the player's parameters`() throws {
        let story = try Story()
        let range =
            #"#EXT-X-DATERANGE:ID="ad",CLASS="com.apple.hls.interstitial",START-DATE="2026-01-01T00:00:00Z","#
            + #"X-ASSET-LIST="/ads?pod=1",X-RESUME-OFFSET=0,X-RESTRICT="SKIP,JUMP",X-COM-URI="file:///x""#
        story.cdn.put("/l.m3u8", text: vod(["a.ts"], head: [range]))
        story.cdn.put("/ads", text: #"{"ASSETS":[{"URI":"ad.m3u8","DURATION":4.0}]}"#)
        story.cdn.put("/ad.m3u8", text: vod(["ad.ts"]))
        let line = try #require(
            try story.get("/l.m3u8").text.split(separator: "\n").first { $0.contains("DATERANGE") })
        #expect(line.hasSuffix(#"X-RESUME-OFFSET=0,X-RESTRICT="SKIP,JUMP",X-COM-URI="file:///x""#))
        let list = try #require(line.split(separator: "\"").first { $0.contains("/j/") })
        let query = "_HLS_primary_id=p&_HLS_start_offset=4.5"
        let assets = try story.follow("\(list)?\(query)").text
        #expect(story.cdn.requests.last?.target == "/ads?pod=1&\(query)")
        let asset = try #require(assets.split(separator: "\"").first { $0.contains("/p/") })
        let media = try story.follow("\(asset)?_HLS_interstitial_id=ad&_HLS_primary_id=p")
        #expect(
            story.cdn.requests.last?.target == "/ad.m3u8?_HLS_interstitial_id=ad&_HLS_primary_id=p")
        #expect(uriLines(media.text)[0].hasPrefix("/s/"))
    }

    @Test(arguments: [false, true])
    func `an interstitial plays without its origin, whatever playback asks`(
        wasOpenedPlainly: Bool
    ) throws {
        let story = try Story()
        let range =
            #"#EXT-X-DATERANGE:ID="1",START-DATE="2026-01-01T00:00:00Z",X-ASSET-URI="ad.m3u8","#
            + #"X-ASSET-LIST="ads""#
        story.cdn.put("/l.m3u8", text: vod(["a.ts"], head: [range]))
        story.cdn.put("/ads", text: #"{"ASSETS":[{"URI":"ad.m3u8","DURATION":4.0}]}"#)
        story.cdn.put("/ad.m3u8", text: vod(["ad.ts"]))
        story.cdn.put("/ad.ts", text: "ad")
        let line = try #require(
            try story.get("/l.m3u8").text.split(separator: "\n").first { $0.contains("DATERANGE") })
        let links = try ["/p/", "/j/"].map { role in
            String(try #require(line.split(separator: "\"").first { $0.contains(role) }))
        }
        // Each playback asks the origin, whatever another one has got.
        for query in wasOpenedPlainly ? [""] : ["?_HLS_primary_id=p", "?_HLS_primary_id=q"] {
            for link in links {
                #expect(try story.follow(link + query).status == 200)
                #expect(story.cdn.requests.last?.target.hasSuffix(query) == true)
            }
        }
        let query = wasOpenedPlainly ? "" : "?_HLS_primary_id=q"
        let segment = try #require(uriLines(try story.follow(links[0] + query).text).first)
        #expect(try story.follow(segment).text == "ad")
        story.cdn.stop()
        for link in links {
            #expect(try story.follow(link + "?_HLS_primary_id=r").status == 200)
        }
    }

    @Test
    func `an asset that is a file plays with its type, without its origin too`() throws {
        let story = try Story()
        let range = #"#EXT-X-DATERANGE:ID="1",X-ASSET-URI="ad.mp4",X-ASSET-LIST="ads""#
        story.cdn.put("/l.m3u8", text: vod(["a.ts"], head: [range]))
        story.cdn.put("/ads", text: #"{"ASSETS":[{"URI":"ad.mp4"},{"URI":"page.mp4"}]}"#)
        story.cdn.put("/ad.mp4", text: "advertisement")
        story.cdn.put("/page.mp4", text: "<html>log in</html>", contentType: "text/html")
        let line = try #require(
            try story.get("/l.m3u8").text.split(separator: "\n").first { $0.contains("DATERANGE") })
        let names = line.split(separator: "\"").map(String.init)
        let file = try #require(names.first { $0.contains("/f/") })
        let list = try #require(names.first { $0.contains("/j/") })
        #expect(file.hasSuffix("/ad.mp4"))
        let assets = try story.follow(list).text.split(separator: "\"").map(String.init)
            .filter { $0.contains("/f/") }
        #expect(assets.first?.hasSuffix("/ad.mp4") == true)
        let page = try #require(assets.last)
        #expect(page.hasSuffix("/page.mp4"))
        #expect(try story.follow(page).status == 502)
        let answer = try story.follow(file)
        #expect(answer.text == "advertisement" && answer["Content-Type"] == "video/mp4")
        story.cdn.stop()
        #expect(try story.follow(file).text == "advertisement")
    }

    @Test
    func `interstitials are absolute URLs with the host that each player used`() throws {
        let story = try Story()
        let range =
            #"#EXT-X-DATERANGE:ID="1",X-ASSET-URI="ad.m3u8",X-ASSET-LIST="list""#
        story.cdn.put("/l.m3u8", text: vod(["a.ts"], head: [range]))
        let port = story.daemon.baseURL.split(separator: ":").last ?? ""
        for host in ["127.0.0.1:\(port)", "localhost:\(port)", "127.0.0.1:\(port)"] {
            for coding in ["identity", "gzip"] {
                let answer = try story.get(
                    "/l.m3u8", headers: [("Host", host), ("Accept-Encoding", coding)])
                let text = answer.text
                guard coding == "identity" else { continue }
                #expect(text.contains("X-ASSET-URI=\"http://\(host)/p/"), "\(text)")
                #expect(text.contains("X-ASSET-LIST=\"http://\(host)/j/"), "\(text)")
                #expect(text.contains("\n/s/"))
            }
        }
    }

    @Test
    func `an asset list opened as an entry is rewritten, other JSON is not`() throws {
        let story = try Story()
        let list = #"{"ASSETS":[{"URI":"ad.m3u8","DURATION":4.0}]}"#
        let steering = #"{"VERSION":1,"TTL":300,"RELOAD-URI":"s","PATHWAY-PRIORITY":["a"]}"#
        let others = [
            #"{"URI":"ad.m3u8"}"#, #"{"x":{"ASSETS":[{"URI":"ad.m3u8"}]}}"#, #"[{"ASSETS":[]}]"#,
            #"{"ASSETS":{"URI":"ad.m3u8"}}"#, #"{"ASSETS":[{"URI":"ad.m3u8"}"#,
        ]
        for (index, framing) in ["", "chunked=1", "eof=1"].enumerated() {
            let json = Behaviour(query: "type=application/json&" + framing)
            let path = "/\(index)"
            story.cdn.put("\(path)/list", text: list)
            story.cdn.put("\(path)/steer", text: steering)
            for name in ["list", "steer"] { story.cdn.setBehaviour(json, for: "\(path)/\(name)") }
            for round in 0..<2 {
                let made = try story.get("\(path)/list").text
                #expect(
                    made.contains(#""URI":"\#(story.daemon.baseURL)/p/"#),
                    "\(framing) \(round): \(made)")
                #expect(made.hasSuffix(#"","DURATION":4.0}]}"#))
                let again = try story.follow(story.entry("\(path)/steer", "")).text
                #expect(again.contains(#""RELOAD-URI":"/j/"#), "\(again)")
            }
            for (number, other) in others.enumerated() {
                story.cdn.put("\(path)/\(number)", text: other)
                story.cdn.setBehaviour(json, for: "\(path)/\(number)")
                for _ in 0..<2 { #expect(try story.get("\(path)/\(number)").text == other) }
            }
        }
        story.cdn.put("/plain.txt", text: list)
        #expect(try story.get("/plain.txt").text == list)
    }
}
