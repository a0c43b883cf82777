import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Daemons in a row: misses go to a parent, and to the origin if that fails.
extension Stories {
    @Suite(.tags(.crowded)) struct ParentTests {}
}

/// A daemon before its parent, which is another daemon.
final class Chain: Sendable {
    private let folder: TemporaryFolder
    let parent: DaemonProcess
    /// The child, and the CDN of both.
    let story: Story

    init(
        _ arguments: [String] = [], parentArguments: [String] = [], cdnFolder: String? = nil,
        option: String = "--parent", credentials: String = ""
    ) throws {
        folder = try TemporaryFolder()
        parent = try Story.serve(folder.makeFolder("parent"), parentArguments)
        let url = parent.baseURL.replacing("http://", with: "http://\(credentials)")
        story = try Story([option, url] + arguments, cdnFolder: cdnFolder)
    }

    deinit {
        parent.kill(SIGKILL)
        _ = try? parent.waitForExit()
    }

    /// Has both store `old`, for ten minutes.
    ///
    /// - Returns: its path at the CDN.
    func storeOld() throws -> String {
        let path = "/a.ts"
        story.cdn.setBehaviour("cc=max-age=600", for: path)
        story.cdn.put(path, text: "old")
        #expect(try story.get(path).text == "old")
        return path
    }

    /// A figure of the parent.
    func parentStat(_ name: String) throws -> Int {
        let text = try ScriptedPlayer(parent.baseURL).get("/api/stats").text
        guard let found = text.firstRange(of: "\"\(name)\":"),
            let number = Int(text[found.upperBound...].prefix { $0.isNumber })
        else { throw ScenarioFailure("no figure \(name)") }
        return number
    }
}

extension Stories.ParentTests {
    /// Everything that an entry refers to: the bodies that are not playlists, in the order of the
    /// lists.
    private func walk(_ story: Story, _ link: String, depth: Int = 0) throws -> [[UInt8]] {
        let answer = try story.follow(link)
        guard answer.status == 200 else { throw ScenarioFailure("\(answer.status) for \(link)") }
        guard depth < 4, answer.body.starts(with: Array("#EXTM3U".utf8)) else {
            return [answer.body]
        }
        return try links(answer.text).filter { $0.hasPrefix("/") }
            .flatMap { try walk(story, $0, depth: depth + 1) }
    }

    @Test(arguments: [
        "/ts/master.m3u8", "/fmp4/master.m3u8", "/byterange/master.m3u8", "/aes/master.m3u8",
        "/audio/master.m3u8", "/tags/master.m3u8", "/plain/clip.mp4",
    ])
    func `two daemons in a row give the same bytes as one, with one origin request`(
        _ path: String
    ) throws {
        let alone = try Story(playing: [])
        let expected = try walk(alone, alone.url(path))
        let chain = try Chain(cdnFolder: Fixture.path("media"))
        let found = try walk(chain.story, chain.story.url(path))
        #expect(found.count == expected.count && found.count > 0)
        #expect(zip(found, expected).allSatisfy { isSame($0, $1) })
        #expect(try chain.story.stat("parent_requests_total") > 0)
        #expect(try chain.story.stat("parent_failures_total") == 0)
        #expect(try chain.parentStat("client_errors_total") == 0)
        let asked = chain.story.cdn.requests.filter { $0.method == "GET" }.map {
            "\($0.target) \($0["Range"] ?? "")"
        }
        #expect(Set(asked).count == asked.count)
        #expect(asked.count == alone.cdn.requests.count { $0.method == "GET" })
    }

    @Test func `a range, a query and a name with blanks reach the origin unchanged`() throws {
        let chain = try Chain()
        let path = "/bytes/90000/a%20b.ts"
        let answer = try chain.story.get(path + "?x=a//b&y=%2F", range: "bytes=100-199")
        #expect(answer.status == 206 && answer.body.count == 100)
        #expect(chain.story.cdn.requests.last?.target == path + "?x=a//b&y=%2F")
        #expect(try chain.story.stat("parent_failures_total") == 0)
    }

    @Test func `a response contains the Cache-Status of both caches`() throws {
        let chain = try Chain()
        let path = segment("a", 9_000)
        let answer = try chain.story.get(path)
        let said = answer.fields.filter { $0.name.lowercased() == "cache-status" }.map(\.value)
        #expect(said.count == 2 && said.allSatisfy { $0.contains("fwd=uri-miss") })
        #expect(try chain.story.get(path)["Age"] != nil)
        #expect(chain.story.cdn.requestCount(path) == 1)
    }

    @Test func `players of a low-latency list cost the origin one reload through two daemons`()
        throws
    {
        let chain = try Chain()
        let story = chain.story
        var settings = LowLatencyStream.Settings()
        // A stored list answers players that arrive late for half as long.
        settings.partDuration = 10
        let stream = story.cdn.lowLatency(
            "/ll", LowLatencyStream(segmentBytes: 94_000, settings: settings))
        let list = try #require(try story.links(in: "/ll/master.m3u8").first)
        for turn in 1...5 {
            let (segment, part) = stream.position
            let link = "\(list)?_HLS_msn=\(segment)&_HLS_part=\(part)"
            let base = story.daemon.baseURL
            let known = try story.stat("requests_total")
            let waiting = (0..<20).map { _ in Background { try ScriptedPlayer(base).get(link) } }
            #expect(try story.haveArrived(20, since: known))
            #expect(eventually { story.cdn.requestCount("/ll/video.m3u8") == turn })
            stream.advance()
            let lists = try waiting.map { try $0.value(within: .seconds(30)) }
            #expect(lists.allSatisfy { lastPart($0) == "s\(segment).p\(part).ts" })
            let body = try story.follow(try #require(lastPartLink(lists[0]))).body
            #expect(body == stream.bytes(ofPart: part, in: segment))
            #expect(story.cdn.requestCount("/ll/video.m3u8") == turn)
        }
        #expect(try story.stat("parent_failures_total") == 0)
    }

    @Test func `reloads that children of one parent make together cost the origin one request`()
        throws
    {
        let chain = try Chain()
        let cdn = chain.story.cdn
        let stream = cdn.lowLatency("/ll", LowLatencyStream(segmentBytes: 94_000))
        let base = chain.parent.baseURL
        for turn in 1...3 {
            let (segment, part) = stream.position
            let list = cdn.url("/ll/video.m3u8") + "?_HLS_msn=\(segment)&_HLS_part=\(part)"
            let known = try chain.parentStat("requests_total")
            let waiting = (1...5).map { child in
                Background {
                    try ScriptedPlayer(base).get(
                        "/o/p/" + list, headers: [("CDN-Loop", "child\(child)")])
                }
            }
            // Each look is a request, too.
            var looks = 0
            let haveArrived = try eventually {
                looks += 1
                return try chain.parentStat("requests_total") >= known + looks + 5
            }
            #expect(haveArrived)
            #expect(eventually { cdn.requestCount("/ll/video.m3u8") == turn })
            stream.advance()
            for child in waiting {
                let answer = try child.value(within: .seconds(30))
                #expect(answer.status == 200 && answer.text.contains("s\(segment).p\(part).ts"))
            }
            #expect(cdn.requestCount("/ll/video.m3u8") == turn)
        }
    }

    @Test func `a limit of the origin does not keep a parent from holding reloads`() throws {
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        let stream = cdn.lowLatency("/ll", LowLatencyStream(segmentBytes: 94_000))
        let host = cdn.baseURL.dropFirst("http://".count)
        let chain = try Chain(["--origin-limit", "\(host)=2"])
        let story = chain.story
        let master = try story.player().get(story.url(for: cdn.url("/ll/master.m3u8"))).text
        let list = try #require(uriLines(master).first)
        let (segment, part) = stream.position
        let base = story.daemon.baseURL
        let reload = Background {
            try ScriptedPlayer(base).get("\(list)?_HLS_msn=\(segment)&_HLS_part=\(part)")
        }
        #expect(eventually { cdn.requests.contains { $0.target.contains("_HLS_msn") } })
        stream.advance()
        #expect(lastPart(try reload.value()) == "s\(segment).p\(part).ts")
    }

    @Test func `a live window advances through two daemons`() throws {
        let chain = try Chain()
        let story = chain.story
        story.cdn.put("/live.m3u8", text: liveList(7, ["a.ts", "b.ts"]))
        for name in ["a", "b", "c"] { story.cdn.put("/\(name).ts", text: "segment \(name)") }
        let first = try story.get("/live.m3u8").text
        #expect(try story.follow(uriLines(first)[1]).text == "segment b")
        story.cdn.put("/live.m3u8", text: liveList(8, ["b.ts", "c.ts"]))
        var second = first
        #expect(
            try eventually {
                second = try story.get("/live.m3u8").text
                return second.contains("SEQUENCE:8")
            })
        #expect(uriLines(second)[0] == uriLines(first)[1])
        #expect(try story.follow(uriLines(second)[1]).text == "segment c")
    }

    /// A live list with segments of one second.
    func liveList(_ first: Int, _ names: [String]) -> String {
        let segments = names.map { "#EXTINF:1,\n\($0)\n" }.joined()
        return "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:\(first)\n\(segments)"
    }

    @Test func `the child follows a redirect, and names in the list resolve against its target`()
        throws
    {
        let chain = try Chain()
        chain.story.cdn.setBehaviour("location=/deep/l.m3u8", for: "/l.m3u8")
        chain.story.cdn.put("/deep/l.m3u8", text: vod(["s.ts"]))
        chain.story.cdn.put("/deep/s.ts", text: "deep")
        let list = try chain.story.get("/l.m3u8").text
        #expect(try chain.story.follow(uriLines(list)[0]).text == "deep")
        #expect(try chain.story.stat("parent_failures_total") == 0)
    }

    @Test func `a parent gives no stale list as fresh while the origin is gone`() throws {
        let chain = try Chain()
        let story = chain.story
        story.cdn.put("/live.m3u8", text: liveList(7, ["a.ts", "b.ts"]))
        let first = try story.get("/live.m3u8")
        story.cdn.stop()
        #expect(
            try eventually {
                let said = try story.get("/live.m3u8").fields.map(\.value)
                return said.contains { $0.contains("origin-unreachable") }
            })
        #expect(first.status == 200)
    }

    @Test func `resources under a mount are requested from the parent too, and stored in both`()
        throws
    {
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        let chain = try Chain(["--mount", "/site/=\(cdn.baseURL)/"])
        cdn.put("/page.txt", text: "a page")
        cdn.setBehaviour("cc=max-age=60", for: "/page.txt")
        for _ in 0..<2 { #expect(try chain.story.follow("/site/page.txt").text == "a page") }
        #expect(cdn.requestCount("/page.txt") == 1)
        #expect(try chain.story.stat("parent_requests_total") == 1)
        cdn.setBehaviour("needheader=Authorization:secret", for: "/own.txt")
        cdn.put("/own.txt", text: "mine")
        let own = try chain.story.follow("/site/own.txt", headers: [("Authorization", "secret")])
        #expect(own.text == "mine")
        #expect(try chain.story.stat("parent_requests_total") == 1)
    }

    @Test(arguments: ["url", "title", "host", "prefix"])
    func `what was purged is not taken from what the parent has stored`(_ subject: String) throws {
        let chain = try Chain()
        let story = chain.story
        let path = try chain.storeOld()
        story.cdn.put(path, text: "new")
        let name = percentEncoded(subject == "host" ? story.cdn.baseURL : story.cdn.url(path))
        _ = try story.api("purge?\(subject)=\(name)", method: "POST")
        #expect(try story.get(path).text == "new")
    }

    @Test func `what was purged does not come back from a parent whose origin fails`() throws {
        let chain = try Chain()
        let story = chain.story
        let path = try chain.storeOld()
        story.cdn.put(path, text: "new")
        story.cdn.setBehaviour("status=503", for: path)
        _ = try story.api("purge?url=\(percentEncoded(story.cdn.url(path)))", method: "POST")
        #expect(try story.get(path).status >= 500)
        story.cdn.setBehaviour("cc=max-age=600", for: path)
        #expect(try story.get(path).text == "new")
    }

    @Test func `a title that only the parent has stored is purged at the child`() throws {
        let chain = try Chain()
        let story = chain.story
        let path = try chain.storeOld()
        _ = try story.api("clear", method: "POST")
        story.cdn.put(path, text: "new")
        let title = percentEncoded(story.cdn.url(path))
        let purge = try story.api("purge?title=\(title)", method: "POST")
        #expect(purge.contains("\"note\":\"nothing of it is kept here"), "\(purge)")
        #expect(try story.get(path).text == "new")
    }

    @Test func `what an unsafe request has changed is not taken from what the parent has stored`()
        throws
    {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        let chain = try Chain(["--mount", "/site/=\(origin.url("/o/"))"])
        let story = chain.story
        func answer(_ text: String) {
            origin.answer(
                "/o/a", .respond(200, [("Cache-Control", "max-age=3600")], Array(text.utf8)))
        }
        answer("first")
        #expect(try story.follow("/site/a").text == "first")
        origin.answer("/o/a", .respond(200, [], Array("done".utf8)))
        let put = try story.player().get("/site/a", method: "PUT", body: [1])
        #expect(put.text == "done")
        answer("second")
        #expect(try story.follow("/site/a").text == "second")
        // The response names another URL.
        origin.answer("/o/form", .respond(201, [("Location", "/o/a")], Array("made".utf8)))
        let post = try story.player().get("/site/form", method: "POST", body: [1])
        #expect(post.text == "made")
        answer("third")
        #expect(try story.follow("/site/a").text == "third")
        #expect(try story.stat("parent_requests_total") == 3)
    }

    // MARK: Parents that fail

    @Test func `the origin is requested while a parent refuses connections`() throws {
        let chain = try Chain()
        chain.parent.kill(SIGKILL)
        _ = try chain.parent.waitForExit()
        for number in 0..<5 {
            let path = segment("s\(number)", 9_000)
            #expect(isContent(try chain.story.get(path).body, of: path))
        }
        // The first one failed; the others skipped the parent, except those that arrived during the
        // second request.
        #expect(try chain.story.stat("parent_failures_total") <= 2)
        #expect(try chain.story.stat("origin_errors_total") == 0)
    }

    @Test(arguments: ["status=503", "reset=4000", "trunc=4000", "status=502"])
    func `the origin is requested if a parent fails`(_ fault: String) throws {
        let parent = FixtureCDN()
        try parent.start()
        defer { parent.stop() }
        let story = try Story(["--parent", parent.baseURL + "/{scheme}/{host}{path}"])
        let path = segment("a", 90_000)
        let place = "/http/127.0.0.1:\(story.cdn.port)\(path)"
        parent.put(place, FixtureCDN.syntheticBytes("a.ts", 0..<90_000))
        parent.setBehaviour(Behaviour(stringLiteral: fault + "&etag=same"), for: place)
        story.cdn.setBehaviour("etag=same", for: path)
        let answer = try story.get(path)
        #expect(answer.status == 200 && isContent(answer.body, of: path))
        #expect(parent.requestCount(place) == 1)
        #expect(try story.stat("parent_failures_total") == 1)
    }

    @Test func `an error of the origin itself is passed on without another request`() throws {
        let chain = try Chain()
        chain.story.cdn.setBehaviour("status=404", for: "/gone.ts")
        #expect(try chain.story.get("/gone.ts").status == 404)
        #expect(chain.story.cdn.requestCount("/gone.ts") == 1)
        #expect(try chain.story.stat("parent_failures_total") == 0)
    }

    @Test func `daemons that are each other's parents report the loop`() throws {
        let probe = FixtureCDN()
        try probe.start()
        let port = probe.port
        probe.stop()
        let story = try Story(["--port", "\(port)", "--parent", "http://127.0.0.1:\(port)"])
        let answer = try story.get(segment("a", 9_000))
        #expect(answer.status == 508 && answer.text.contains("correct --parent"))
        #expect(answer["Proxy-Status"]?.contains("proxy_loop_detected") == true)
        #expect(story.cdn.requests.isEmpty)
    }

    // MARK: Secrets

    @Test func `headers of a session are not sent to an untrusted parent`() throws {
        let chain = try Chain()
        let story = chain.story
        story.cdn.setBehaviour("needheader=X-Key:s3cret", for: "/l.m3u8")
        story.cdn.put("/l.m3u8", text: vod(["s.ts"]))
        story.cdn.put("/s.ts", text: "private")
        let list = try story.follow(story.entry("/l.m3u8", "h_X-Key=s3cret"))
        #expect(try story.follow(uriLines(list.text)[0]).text == "private")
        #expect(try story.stat("parent_requests_total") == 0)
    }

    @Test func `cookies of a session are not sent to an untrusted parent`() throws {
        let chain = try Chain()
        let story = chain.story
        story.cdn.setBehaviour("cookie=id%3D7", for: "/l.m3u8")
        story.cdn.setBehaviour("needcookie=id=7", for: "/s.ts")
        story.cdn.put("/l.m3u8", text: vod(["s.ts"]))
        story.cdn.put("/s.ts", text: "private")
        let list = try story.get("/l.m3u8")
        #expect(try story.follow(uriLines(list.text)[0]).text == "private")
        #expect(try story.stat("parent_requests_total") == 1)
    }

    @Test func `a trusted parent forwards headers and cookies of sessions`() throws {
        let chain = try Chain(option: "--trusted-parent")
        let story = chain.story
        story.cdn.setBehaviour("cookie=id%3D7&needheader=X-Key:s3cret", for: "/l.m3u8")
        story.cdn.setBehaviour("needcookie=id=7&needheader=X-Key:s3cret", for: "/s.ts")
        story.cdn.put("/l.m3u8", text: vod(["s.ts"]))
        story.cdn.put("/s.ts", text: "private")
        let list = try story.follow(story.entry("/l.m3u8", "h_X-Key=s3cret"))
        #expect(try story.follow(uriLines(list.text)[0]).text == "private")
        #expect(try story.stat("parent_requests_total") == 2)
        #expect(try story.stat("parent_failures_total") == 0)
    }

    @Test func `a parent with an access token serves children that have it`() throws {
        let path = segment("a", 9_000)
        for (credentials, failures) in [(":s3cret-token@", 0), (":another-one@", 1), ("", 1)] {
            let chain = try Chain(
                parentArguments: ["--token", "s3cret-token"], credentials: credentials)
            #expect(isContent(try chain.story.get(path).body, of: path))
            #expect(try chain.story.stat("parent_failures_total") == failures)
            #expect(!chain.story.daemon.standardError.contains("s3cret"))
        }
    }

    @Test func `a parent with another token is left out, and the log says what to do`() throws {
        let chain = try Chain(
            parentArguments: ["--token", "s3cret-token"], credentials: ":another-one@")
        for number in 0..<3 {
            let path = segment("s\(number)", 9_000)
            #expect(isContent(try chain.story.get(path).body, of: path))
        }
        let log = { chain.story.daemon.standardError }
        #expect(eventually { log().contains("--parent http://:TOKEN@HOST:PORT") })
        let asked = try chain.story.stat("parent_requests_total")
        for number in 3..<6 { _ = try chain.story.get(segment("s\(number)", 9_000)) }
        #expect(try chain.story.stat("parent_requests_total") == asked)
        #expect(try chain.story.api("origins").contains("\"state\":\"down\""))
        #expect(log().ranges(of: "a parent does not answer").count == 1)
    }

    @Test func `browsers get no content in the form for children`() throws {
        let story = try Story()
        story.cdn.put("/x.html", text: "<script>alert(1)</script>", contentType: "text/html")
        let refusal = try story.follow("/o/f/" + story.cdn.url("/x.html"))
        #expect(refusal.status == 400 && refusal.text.contains("--parent"))
        #expect(story.cdn.requests.isEmpty)
    }

    // MARK: Other caches

    @Test func `settings of parents are validated`() throws {
        for text in ["", "cdn:80", "http://h/{what}", "http://h/{host}", "http://h/?q"] {
            let check = try sluice("check", "--parent", text)
            #expect(check.status != 0 && check.stderr.contains("a parent is wrong"), "\(text)")
        }
        let check = try sluice(
            "check", "--parent", "http://:s3cret@127.0.0.1:1", "--trusted-parent",
            "http://127.0.0.1:2/{url}")
        #expect(check.status == 0 && !check.stdout.contains("s3cret"))
    }
}
