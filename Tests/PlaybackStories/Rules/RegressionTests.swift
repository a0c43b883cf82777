import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// The faults of the proxy that this daemon replaces, each shown to be absent.
extension Stories {
    @Suite(.tags(.crowded)) struct RegressionTests {}
}

extension Stories.RegressionTests {
    @Test
    func `a URL is not truncated at an ampersand`() throws {
        let story = try Story()
        story.cdn.put("/l.m3u8", text: vod(["a.ts?x=1&y=2&z=3"]))
        _ = try story.follow("/proxy?url=\(percentEncoded(story.cdn.url("/l.m3u8?a=1&b=2&c=3")))")
        #expect(story.cdn.requests.last?.target == "/l.m3u8?a=1&b=2&c=3")
        _ = try story.follow(try story.links(in: "/l.m3u8")[0])
        #expect(story.cdn.requests.last?.target == "/a.ts?x=1&y=2&z=3")
    }

    @Test
    func `the second URI on a line is not lost`() throws {
        let story = try Story()
        let line =
            "#EXT-X-DATERANGE:ID=\"1\",X-ASSET-URI=\"ad.m3u8\",X-COM-URI=\"b\",X-ASSET-LIST=\"list\""
        story.cdn.put("/l.m3u8", text: vod(["a.ts"], head: [line]))
        let text = try story.get("/l.m3u8").text
        #expect(
            text.contains("X-ASSET-URI=\"\(story.daemon.baseURL)/p/")
                && text.contains("X-ASSET-LIST=\"\(story.daemon.baseURL)/j/"))
    }

    @Test
    func `relative URIs resolve against the redirect's target`() throws {
        let story = try Story()
        story.cdn.put("/real/l.m3u8", text: vod(["a.ts"]))
        story.cdn.setBehaviour("location=/real/l.m3u8", for: "/short.m3u8")
        _ = try story.follow(try story.links(in: "/short.m3u8")[0])
        #expect(story.cdn.requests.last?.target == "/real/a.ts")
    }

    @Test
    func `a live list does not freeze`() throws {
        let story = try Story()
        let window = story.cdn.live("/l.m3u8", liveWindow())
        for step in 0..<3 {
            let moved = try eventually {
                try story.get("/l.m3u8").text.contains("MEDIA-SEQUENCE:\(step)\n")
            }
            #expect(moved)
            window.advance()
        }
    }

    @Test(arguments: [403, 404, 500, 503])
    func `an error page is not kept`(_ status: Int) throws {
        let story = try Story()
        story.cdn.put("/a.ts", Array("bytes".utf8))
        story.cdn.setBehaviour(Behaviour(query: "status=\(status)"), for: "/a.ts")
        #expect(try story.get("/a.ts").status != 200)
        story.cdn.setBehaviour(nil, for: "/a.ts")
        #expect(try story.get("/a.ts").text == "bytes")
    }

    /// As a captive portal answers, until its user has signed in.
    @Test(arguments: ["text/html", "text/plain", "application/octet-stream", "video/mp2t"])
    func `a page sent with success in place of media is not kept`(_ type: String) throws {
        let story = try Story()
        let head = ["#EXT-X-KEY:METHOD=AES-128,URI=\"k.key\"", "#EXT-X-MAP:URI=\"i.mp4\""]
        let names = ["/k.key", "/i.mp4", "/a.ts", "/b.vtt"]
        story.cdn.put("/l.m3u8", text: vod(["a.ts", "b.vtt"], head: head))
        story.cdn.put("/portal", text: "<!DOCTYPE html><p>Sign in", contentType: type)
        for name in names { story.cdn.setBehaviour("location=/portal", for: name) }
        let found = links(try story.get("/l.m3u8").text)
        #expect(found.count == names.count)
        for link in found {
            let answer = try story.follow(link)
            #expect(answer.status == 502 && answer.text.contains("an HTML page"), "\(answer.text)")
        }
        for name in names {
            story.cdn.put(name, text: String(repeating: "k", count: 16))
            story.cdn.setBehaviour(nil, for: name)
        }
        for link in found { #expect(try story.follow(link).text.hasPrefix("kkk"), "\(link)") }
    }

    @Test func `a page in place of a file is not kept`() throws {
        let story = try Story()
        story.cdn.put("/film.mp4", Array(repeating: 7, count: 1_000))
        story.cdn.put("/portal", text: "<!DOCTYPE html><p>Sign in", contentType: "text/html")
        story.cdn.setBehaviour("location=/portal", for: "/film.mp4")
        #expect(try story.get("/film.mp4").status == 502)
        story.cdn.setBehaviour(nil, for: "/film.mp4")
        #expect(try story.get("/film.mp4").body == Array(repeating: 7, count: 1_000))
    }

    /// With a validator; and without one and without a length, where stored bytes are compared.
    @Test(arguments: [("", "norange=1"), ("noetag=1&lastmod=", "norange=1&chunked=1")])
    func `a page in answer to a missing range leaves what is stored`(
        _ film: String, _ portal: String
    ) throws {
        let story = try Story()
        let bytes = FixtureCDN.syntheticBytes("film", 0..<600_000)
        story.cdn.put("/film.mp4", bytes)
        story.cdn.setBehaviour(Behaviour(query: film), for: "/film.mp4")
        #expect(try story.get("/film.mp4", range: "bytes=0-99999").status == 206)
        story.cdn.put("/portal", text: "<!DOCTYPE html><p>Sign in", contentType: "text/html")
        story.cdn.setBehaviour(Behaviour(query: portal), for: "/portal")
        story.cdn.setBehaviour("location=/portal", for: "/film.mp4")
        #expect(try story.get("/film.mp4", range: "bytes=400000-499999").status == 502)
        story.cdn.stop()
        let stored = try story.get("/film.mp4", range: "bytes=0-99999")
        #expect(stored.status == 206 && stored.body == Array(bytes[..<100_000]))
    }

    @Test func `a page in place of a playlist leaves the stored one in use`() throws {
        let story = try Story()
        _ = story.cdn.live("/l.m3u8", liveWindow(target: 6))
        let list = try story.get("/l.m3u8").text
        story.cdn.put("/portal", text: "<!DOCTYPE html><p>Sign in", contentType: "text/html")
        story.cdn.setBehaviour("location=/portal", for: "/l.m3u8")
        var answer = try story.get("/l.m3u8")
        let isAsked = try eventually {
            answer = try story.get("/l.m3u8")
            return answer.text != list || story.cdn.requestCount("/portal") > 0
        }
        #expect(isAsked && answer.status == 200 && answer.text == list)
    }

    @Test(arguments: [false, true])
    func `a range is answered with 206, stored or not`(_ isStored: Bool) throws {
        let story = try Story()
        let path = segment("a", 10_000)
        if isStored { _ = try story.get(path) }
        let part = try story.get(path, range: "bytes=10-19")
        #expect(part.status == 206 && isContent(part.body, of: path, from: 10, count: 10))
        #expect(part["Content-Range"] == "bytes 10-19/10000" && part["Content-Length"] == "10")
        let open = try story.get(path, range: "bytes=0-")
        #expect(
            open.status == 206 && open["Content-Range"] == "bytes 0-9999/10000"
                && open.body.count == 10_000)
    }

    @Test
    func `an incomplete file is not served as complete`() throws {
        let story = try Story()
        let path = segment("a", 1_000_000)
        story.cdn.hold(path, afterBytes: 300_000)
        _ = try story.open(path).read(300_000)
        try story.restart(SIGKILL)
        story.cdn.release(path)
        let whole = try story.get(path)
        #expect(whole.status == 200 && whole.complete && isContent(whole.body, of: path))
    }

    @Test
    func `a second player neither writes a file twice nor removes the first one's`() throws {
        let story = try Story(["--stall-timeout", "60"])
        let path = segment("a", 1_000_000)
        story.cdn.hold(path, afterBytes: 300_000)
        let first = try story.open(path)
        let head = try first.read(300_000)
        let second = try story.open(path)
        #expect(isContent(try second.read(300_000), of: path, from: 0, count: 300_000))
        second.abort()
        story.cdn.release(path)
        #expect(isContent(head + (try first.readRest()), of: path))
        #expect(isContent(try story.get(path).body, of: path))
        #expect(story.cdn.requestCount(path) == 1)
    }

    @Test
    func `HEAD, OPTIONS and keep-alive work`() throws {
        let story = try Story()
        story.cdn.put("/a.ts", Array("bytes".utf8))
        let player = story.player()
        #expect(try player.get(story.url("/a.ts"), method: "HEAD").status == 200)
        #expect(try player.get(story.url("/a.ts"), method: "OPTIONS").status == 204)
        let last = try player.get(story.url("/a.ts"))
        #expect(last.reusedConnection && last.text == "bytes")
    }

    @Test(arguments: ["/l.m3u8", "/a.ts", "/a"])
    func `the declared content coding is the one that is sent`(_ path: String) throws {
        let story = try Story()
        story.cdn.put("/l.m3u8", text: vod(["a.ts"]))
        for name in ["/a.ts", "/a"] { story.cdn.put(name, Array("some bytes".utf8)) }
        story.cdn.setBehaviour("gzip=1", for: path)
        for _ in 0..<2 {
            let answer = try story.get(path, headers: [("Accept-Encoding", "gzip, br")])
            #expect(
                answer["Content-Encoding"] == nil
                    && answer.text.hasPrefix(path == "/l.m3u8" ? "#EXTM3U" : "some bytes"))
        }
    }

    @Test
    func `the daemon listens on loopback only`() throws {
        let story = try Story()
        let port = story.daemon.baseURL.split(separator: ":")[2]
        let hex = String(Int(port) ?? 0, radix: 16, uppercase: true)
        let padded = String(repeating: "0", count: 4 - hex.count) + hex
        let tables = try readFile("/proc/net/tcp") + readFile("/proc/net/tcp6")
        var listening: [Substring] = []
        for line in String(decoding: tables, as: UTF8.self).split(separator: "\n") {
            let columns = line.split(separator: " ")
            if columns.count > 3, columns[3] == "0A", columns[1].hasSuffix(":\(padded)") {
                listening.append(columns[1])
            }
        }
        #expect(
            !listening.isEmpty && listening.allSatisfy { $0.hasPrefix("0100007F:") }, "\(listening)"
        )
    }

    @Test
    func `recently used objects stay, although reads write nothing`() throws {
        let story = try Story(["--cache-size", "6MB", "--min-free", "0"])
        let paths = (0..<8).map { segment("s\($0)", 1_000_000) }
        for path in paths[..<4] { _ = try story.get(path) }
        for _ in 0..<3 { _ = try story.get(paths[0]) }
        for path in paths[4...] {
            _ = try story.get(path)
            _ = try story.get(paths[0])
        }
        let isWithin = try story.settled("stored_bytes") { $0 <= 6_000_000 }
        #expect(isWithin <= 6_000_000)
        #expect(story.cdn.requestCount(paths[0]) == 1)
    }

    @Test
    func `a body is not collected in memory`() throws {
        let story = try Story()
        let before = story.daemon.rssBytes
        let player = story.player()
        player.receiveBuffer = 65_536
        let stream = try player.open(story.url("/bytes/200000000/film.ts"))
        _ = try stream.read(1_000)
        #expect(try story.settled("read_ahead_pauses_total") { $0 >= 1 } >= 1)
        #expect(story.daemon.rssBytes - before < 30 << 20)
        stream.abort()
    }

    @Test
    func `waiting transfers delay only themselves`() throws {
        let story = try Story(["--slots", "2"])
        story.cdn.put("/l.m3u8", text: vod(["a.ts"]))
        let held = (0..<6).map { segment("h\($0)", 1_000) }
        for path in held { story.cdn.hold(path) }
        let streams = try held.map { try story.open($0) }
        _ = try story.settled("transfers_waiting") { $0 == 4 }
        #expect(try story.get("/l.m3u8").status == 200)
        #expect(try story.follow("/api/health").status == 200)
        for path in held { story.cdn.release(path) }
        for (path, stream) in zip(held, streams) {
            #expect(isContent(try stream.readRest(), of: path))
        }
    }

    @Test(arguments: [nil, "bytes=0-1"])
    func `a 404 is called Not Found, with a range too`(_ range: String?) throws {
        let story = try Story()
        let answer = try story.get("/missing.ts", range: range)
        #expect(answer.head.startLine == "HTTP/1.1 404 Not Found")
        #expect(answer["Content-Range"] == nil)
    }
}
