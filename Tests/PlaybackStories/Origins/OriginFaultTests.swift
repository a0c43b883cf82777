import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Origins that fail, send wrong data or are slow: what the player sees, and what the cache stores.
extension Stories {
    @Suite(.tags(.timed)) struct OriginFaultTests {
        /// How an origin fails after the first of two megabytes.
        static let breaks = [
            "reset=1000000", "trunc=1000000", "stall=1000000", "reset=1000000&chunked=1",
            "trunc=1000000&chunked=1", "stall=1000000&chunked=1",
        ]

        @Test(arguments: breaks)
        func `a single failure within a body is resumed unnoticed`(
            fault: String
        ) throws {
            let story = try Story(fault.hasPrefix("stall") ? ["--stall-timeout", "1"] : [])
            let path = segment("broken", 2_000_000)
            story.cdn.setBehaviour(Behaviour(query: fault + "&fails=1"), for: path)
            let answer = try story.get(path)
            #expect(answer.complete && isContent(answer.body, of: path))
            #expect(story.cdn.requestCount(path) == 2)
            #expect(story.cdn.bytesSent(path) <= 2_100_000)
            // A probe of the silent origin may be the last request.
            #expect(story.cdn.requests.last { $0.path == path }?["If-Range"] != nil)
            #expect(isContent(try story.get(path).body, of: path))
            #expect(story.cdn.requestCount(path) == 2)
        }

        @Test func `responses with an error leave their connection to the next request`() throws {
            let story = try Story()
            for number in 0..<6 {
                let path = "/gone\(number).ts"
                story.cdn.setBehaviour("status=404", for: path)
                #expect(try story.get(path).status == 404)
            }
            // A request may come before the rest of the former response: two are in use by turns.
            #expect(story.cdn.requestCount() == 6 && story.cdn.acceptedConnections <= 2)
        }

        @Test(arguments: [true, false])
        func `an unexpected 304 fails a resumed body, and is not a response`(isMounted: Bool) throws
        {
            let origin = try ScriptedOrigin()
            defer { origin.stop() }
            let body = FixtureCDN.syntheticBytes("a", 0..<5_000)
            let tag: [WireHead.Field] = [("ETag", "\"one\"")]
            origin.answer("/a.ts", .cut(afterBytes: 1_000), .respond(200, tag, body))
            for path in ["/a.ts", "/a.ts", "/a.ts", "/b.ts"] { origin.answer(path, .respond(304)) }
            let story = try Story(["--mount", "/mt/=\(origin.url("/"))"])
            func url(_ path: String) -> String {
                isMounted ? story.daemon.baseURL + "/mt" + path : story.url(for: origin.url(path))
            }
            // Throws if the player waits in vain.
            let broken = try story.player().get(url("/a.ts"))
            #expect(broken.status == 200 && !broken.complete)
            #expect(broken.body == Array(body.prefix(broken.body.count)))
            let unasked = try story.player().get(url("/b.ts"))
            #expect(unasked.status == 502 && unasked.text.contains("304"), "\(unasked.text)")
        }

        @Test(arguments: ["trunc=1000000&chunked=1&noetag=1", "reset=1000000&eof=1&noetag=1"])
        func `without validator and length an incomplete body is visibly cut and not stored`(
            fault: String
        ) throws {
            let story = try Story()
            let path = segment("blind", 2_000_000)
            story.cdn.setBehaviour(Behaviour(query: fault + "&lastmod=&fails=1"), for: path)
            let answer = try story.get(path)
            #expect(!answer.complete)
            #expect(isContent(answer.body, of: path, count: answer.body.count))
            #expect(isContent(try story.get(path).body, of: path))
            #expect(story.cdn.requests.last?.range == nil)
        }

        @Test(arguments: [
            // Transport streams without a length might be live: another type.
            ("type=video/mp4&eof=1&noetag=1&lastmod=", false), ("eof=1", true),
            ("noetag=1&lastmod=", true),
        ])
        func `a body is called stored only if something tells that it is whole`(
            behaviour: String, isStored: Bool
        ) throws {
            let story = try Story()
            let path = segment("whole", 20_000)
            story.cdn.setBehaviour(Behaviour(query: behaviour), for: path)
            for isFirst in [true, false] {
                let answer = try story.get(path)
                #expect(isContent(answer.body, of: path))
                let status = answer["Cache-Status"] ?? ""
                #expect(status.contains("hit") == (isStored && !isFirst), "\(status)")
                #expect(status.contains("stored") == (isStored && isFirst), "\(status)")
                #expect(status.contains("no-length") == !isStored, "\(status)")
            }
        }

        @Test(arguments: ["", "&chunked=1"])
        func `halves of two versions are never mixed`(framing: String) throws {
            let story = try Story()
            let path = segment("changing", 2_000_000)
            story.cdn.setBehaviour(
                Behaviour(query: "reset=1000000&etag=one" + framing), for: path)
            story.cdn.hold(path, afterBytes: 900_000)
            let stream = try story.open(path)
            let begin = try stream.read(890_000)
            story.cdn.setBehaviour("etag=two&as=/bytes/2000000/other.ts", for: path)
            story.cdn.release(path)
            let rest = try stream.readRest()
            #expect(stream.broken != nil)
            #expect(isContent(begin + rest, of: path, count: 1_000_000))
            let again = try story.get(path)
            #expect(isContent(again.body, of: "/bytes/2000000/other.ts"))
            #expect(again["ETag"] == "\"two\"")
        }

        @Test(arguments: [false, true])
        func `a multivariant playlist that may have been cut is soon requested again`(
            isCoded: Bool
        ) throws {
            let origin = try ScriptedOrigin()
            defer { origin.stop() }
            let lines = (1...4).map { "#EXT-X-STREAM-INF:BANDWIDTH=\($0)\nv\($0).m3u8\n" }
            let whole = Array(("#EXTM3U\n" + lines.joined()).utf8)
            let cut = whole.dropLast("\nv4.m3u8\n".utf8.count)
            let fields: [WireHead.Field] = [
                ("Content-Type", "application/vnd.apple.mpegurl"), ("ETag", "\"one\""),
            ]
            if isCoded {
                // A gzip stream that ends within a stored block (RFC 1951 section 3.2.4).
                let count = UInt8(whole.count)
                let gzip: [UInt8] =
                    [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF, 1, count, 0, ~count, 0xFF] + cut
                origin.answer(
                    "/m.m3u8", .respond(200, fields + [("Content-Encoding", "gzip")], gzip))
            } else {
                let head =
                    "HTTP/1.1 200 OK\r\nConnection: close\r\n"
                    + fields.map { "\($0.name): \($0.value)\r\n" }.joined() + "\r\n"
                origin.answer("/m.m3u8", .send(Array(head.utf8) + cut), .close)
            }
            origin.answer("/m.m3u8", .respond(200, fields, whole))
            let story = try Story()
            let url = story.url(for: origin.url("/m.m3u8"))
            func variants() throws -> Int {
                let answer = try story.player().get(url)
                #expect(answer.status == 200, "\(answer.text)")
                return answer.text.split(separator: "\n").count { !$0.hasPrefix("#") }
            }
            #expect(try variants() == 3)
            #expect(try eventually { try variants() == 4 })
            // The validators are those of the whole, which the origin would confirm.
            #expect(origin.requests.allSatisfy { $0["If-None-Match"] == nil })
            // What is whole is kept.
            #expect(try variants() == 4)
            // Before a list of what is not stored the daemon also asks whether the origin answers.
            #expect(origin.requestCount("/m.m3u8") == 2)
        }

        @Test func `a body shorter than announced is never complete`() throws {
            let story = try Story()
            let path = segment("short", 500_000)
            story.cdn.setBehaviour("wronglength=1000&noetag=1&lastmod=", for: path)
            let answer = try story.get(path)
            #expect(!answer.complete)
            #expect(try !story.get(path).complete)
        }

        @Test func `a part longer than its Content-Range is rejected`()
            throws
        {
            let origin = try ScriptedOrigin()
            let part = [
                ("Content-Type", "video/mp2t"), ("Content-Range", "bytes 0-99/100"),
                ("Content-Length", "200"), ("Connection", "close"),
            ]
            let head = part.map { "\($0.0): \($0.1)\r\n" }.joined()
            let bytes = [UInt8](repeating: 7, count: 100)
            let answer = Array("HTTP/1.1 206 Partial Content\r\n\(head)\r\n".utf8) + bytes
            for _ in 0..<10 { origin.answer("/long.ts", .send(answer), .close) }
            let story = try Story()
            let link = story.url(for: origin.baseURL + "/long.ts")
            for _ in 0..<2 {
                let answer = try story.player().get(link, headers: [("Range", "bytes=0-99")])
                #expect(answer.status == 502)
            }
            origin.stop()
        }

        @Test func `an origin that announces bytes and sends none fails after a few attempts`()
            throws
        {
            let origin = try ScriptedOrigin()
            let fields = [("ETag", "\"x\""), ("Content-Type", "video/mp2t")]
            let part = [("Content-Range", "bytes 100-999/1000"), ("Transfer-Encoding", "chunked")]
            origin.answer(
                "/lies.ts", .cut(afterBytes: 100),
                .respond(200, fields, [UInt8](repeating: 7, count: 1000)))
            for _ in 0..<50 {
                let head = (fields + part).map { "\($0.0): \($0.1)\r\n" }.joined()
                let empty = "HTTP/1.1 206 Partial Content\r\n\(head)\r\n0\r\n\r\n"
                origin.answer("/lies.ts", .send(Array(empty.utf8)))
            }
            let story = try Story()
            let answer = try story.player().get(story.url(for: origin.baseURL + "/lies.ts"))
            #expect(!answer.complete && answer.body.count == 100)
            #expect(origin.requestCount("/lies.ts") <= 12)
            origin.stop()
        }

        @Test
        func `two 503s before a 200 are not visible`() throws {
            let story = try Story()
            let path = segment("busy", 100_000)
            story.cdn.setBehaviour("status=503&fails=2", for: path)
            let answer = try story.get(path)
            #expect(answer.status == 200 && isContent(answer.body, of: path))
            #expect(story.cdn.requestCount(path) == 3)
        }

        @Test func `a permanent 503 is reported as the origin's fault and not stored`() throws {
            let story = try Story()
            let path = segment("out", 100_000)
            story.cdn.setBehaviour("status=503", for: path)
            let answer = try story.get(path)
            #expect(answer.status == 502 && answer.text.hasPrefix("origin error:"))
            #expect(answer["Cache-Status"]?.contains("fwd-status=503") == true)
            #expect(story.cdn.requestCount(path) <= 5)
            story.cdn.setBehaviour(nil, for: path)
            #expect(isContent(try story.get(path).body, of: path))
        }

        @Test(arguments: [404, 403, 410, 401])
        func `an error of the origin is passed on and not stored`(status: Int) throws {
            let story = try Story()
            let path = segment("refused", 100_000)
            story.cdn.setBehaviour(Behaviour(query: "status=\(status)"), for: path)
            #expect(try story.get(path).status == status)
            #expect(try story.get(path, range: "bytes=0-1").status == status)
            #expect(story.cdn.requestCount(path) == 2)
            story.cdn.setBehaviour(nil, for: path)
            #expect(isContent(try story.get(path).body, of: path))
        }

        @Test
        func `Retry-After is awaited, and passed on to the player if it is too long`() throws {
            let story = try Story()
            let soon = segment("soon", 10_000)
            story.cdn.setBehaviour("status=503&fails=1&header=Retry-After:1", for: soon)
            let answer = try story.get(soon)
            #expect(answer.status == 200 && answer.duration >= .milliseconds(900))
            let later = segment("later", 10_000)
            story.cdn.setBehaviour("status=503&header=Retry-After:3600", for: later)
            let refused = try story.get(later)
            #expect(refused.status == 502)
            #expect(refused["Retry-After"] == "3600")
            #expect(story.cdn.requestCount(later) == 1)
        }

        @Test func `an origin that asks for a pause is left alone until it is over`() throws {
            let origin = try ScriptedOrigin()
            defer { origin.stop() }
            let story = try Story()
            let list = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n"
            origin.answer("/a.ts", .respond(429, [("Retry-After", "120")]))
            origin.answer("/l.m3u8", .respond(200, [], Array(list.utf8)))
            origin.answer("/l.m3u8", .respond(503, [("Retry-After", "30")]))
            func ask(_ path: String) throws -> PlayerResponse {
                try story.player().get(story.url(for: origin.url(path)))
            }
            #expect(try ask("/l.m3u8").status == 200)
            for _ in 0..<3 {
                let answer = try ask("/a.ts")
                #expect(answer.status == 429, "\(answer.text)")
                let seconds = answer["Retry-After"].flatMap { Int($0) } ?? 0
                #expect((110...120).contains(seconds), "\(seconds)")
            }
            #expect(origin.requestCount("/a.ts") == 1)
            // Half a target duration after the first reading.
            let isRead = try eventually(pausing: .milliseconds(100)) {
                let status = try ask("/l.m3u8").status
                #expect(status == 200)
                return origin.requestCount("/l.m3u8") == 2
            }
            #expect(isRead)
            for _ in 0..<3 { #expect(try ask("/l.m3u8").status == 200) }
            #expect(origin.requestCount("/l.m3u8") == 2)
        }

        @Test func `a request that hangs is sent once more while its player waits`() throws {
            let origin = try ScriptedOrigin()
            defer { origin.stop() }
            let story = try Story()
            origin.answer("/a.ts", .stall)
            origin.answer("/a.ts", .respond(200, [], [1, 2, 3]))
            let begin = ContinuousClock.now
            let answer = try story.player().get(story.url(for: origin.url("/a.ts")))
            #expect(answer.status == 200 && answer.body == [1, 2, 3])
            #expect(ContinuousClock.now - begin < .seconds(8))
            #expect(origin.requestCount("/a.ts") == 2)
        }

        @Test func `the repetition of a request that hangs has a connection of its own`() throws {
            let origin = try ScriptedOrigin()
            defer { origin.stop() }
            let story = try Story()
            let both = Barrier("two connections are open")
            origin.connection(
                .expect("GET", "/a.ts"), .hold(until: both), .respond(200, [], [1]), .stall)
            origin.connection(.expect("GET", "/b.ts"), .respond(200, [], [2]), .stall)
            origin.connection(.expect("GET", "/c.ts"), .respond(200, [], [3]))
            @Sendable func ask(_ path: String) throws -> [UInt8] {
                try story.player().get(story.url(for: origin.url(path))).body
            }
            let first = Background { try ask("/a.ts") }
            #expect(eventually { origin.requestCount("/a.ts") == 1 })
            #expect(try ask("/b.ts") == [2])
            both.arrive()
            #expect(try first.value(within: .seconds(10)) == [1])
            // Both kept connections lead nowhere.
            #expect(try ask("/c.ts") == [3])
            try origin.verify()
        }

        @Test func `an unreachable origin gives 502, and works later`() throws {
            let story = try Story()
            let path = segment("dead", 10_000)
            story.cdn.stop()
            let answer = try story.get(path)
            #expect(answer.status == 502 && answer.complete)
            try story.cdn.start()
            #expect(isContent(try story.get(path).body, of: path))
        }
    }

    /// Failures that wait for constants of the daemon, and whose times are not measured.
    @Suite(.tags(.crowded)) struct OriginPatienceTests {
        @Test func `a stall longer than the daemon's patience is resumed once`() throws {
            let story = try Story(["--stall-timeout", "8"])
            let path = segment("patience", 2_000_000)
            story.cdn.setBehaviour("stall=1000000&fails=1", for: path)
            let player = ScriptedPlayer(story.daemon.baseURL, deadline: .seconds(20))
            #expect(isContent(try player.get(story.url(path)).body, of: path))
        }

        @Test(arguments: ["reset=1000000", "trunc=1000000", "trunc=1000000&chunked=1"])
        func `an origin that stays down gives an incomplete body, and the stored half is used`(
            fault: String
        ) throws {
            let story = try Story()
            let path = segment("down", 2_000_000)
            story.cdn.setBehaviour(Behaviour(query: fault), for: path)
            story.cdn.hold(path, afterBytes: 900_000)
            let stream = try story.open(path)
            // Not all that is sent: a player reads on to the size of the next chunk.
            _ = try stream.read(890_000)
            story.cdn.setBehaviour("status=503", for: path)
            story.cdn.release(path)
            _ = try stream.readRest()
            #expect(stream.broken != nil)
            story.cdn.resetLog()
            story.cdn.setBehaviour(nil, for: path)
            #expect(isContent(try story.get(path).body, of: path))
            #expect(story.cdn.bytesServedRanges(path) == [1_000_000..<2_000_000])
        }

        /// Without a validator, the page is compared with what is stored of the file.
        @Test func `a page whose first byte comes alone leaves the stored part of a file`() throws {
            let portal = try AnsweringOrigin { _, _ in
                let page = "1\r\n<\r\ne\r\n!DOCTYPE html>\r\n0\r\n\r\n"
                return .response(200, [("Transfer-Encoding", "chunked")], Array(page.utf8))
            }
            defer { portal.stop() }
            let story = try Story()
            let bytes = FixtureCDN.syntheticBytes("film", 0..<200_000)
            story.cdn.put("/film.mp4", bytes)
            story.cdn.setBehaviour("noetag=1&lastmod=", for: "/film.mp4")
            #expect(try story.get("/film.mp4", range: "bytes=0-99999").status == 206)
            let redirect = Behaviour(query: "location=\(portal.baseURL)/")
            story.cdn.setBehaviour(redirect, for: "/film.mp4")
            #expect(try story.get("/film.mp4", range: "bytes=100000-").status == 502)
            let stored = try story.get("/film.mp4", range: "bytes=0-99999")
            #expect(stored.status == 206 && stored.body == Array(bytes[..<100_000]))
        }
    }
}
