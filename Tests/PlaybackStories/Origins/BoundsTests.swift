import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// What one player request may cost a permanently faulty origin: requests, connections and slots.
extension Stories {
    @Suite(.tags(.timed)) struct BoundsTests {
        @Test
        func `a player that joined a body continues when the first has spent its budget`() throws {
            let origin = try ScriptedOrigin()
            defer { origin.stop() }
            let body = FixtureCDN.syntheticBytes("pieces", 0..<30_000)
            func fields(_ start: Int) -> [WireHead.Field] {
                [("ETag", "\"one\""), ("Content-Range", "bytes \(start)-29999/30000")]
            }
            // A thousand bytes for each request, until the first player's budget allows one more.
            for piece in 0..<23 {
                let rest = Array(body[(piece * 1_000)...])
                origin.answer(
                    "/a.ts", .cut(afterBytes: 1_000),
                    .respond(piece == 0 ? 200 : 206, fields(piece * 1_000), rest))
            }
            let lastRequest = Barrier("the last request")
            origin.answer("/a.ts", .hold(until: lastRequest), .close)
            origin.answer("/a.ts", .respond(206, fields(23_000), Array(body[23_000...])))
            let story = try Story()
            let url = story.url(for: origin.url("/a.ts"))
            let first = Background { try story.player().get(url) }
            #expect(eventually(within: .seconds(20)) { origin.requestCount("/a.ts") == 24 })
            let second = try story.player().open(url)
            // It waits with the first one, for the last attempt that its budget allows.
            let start = try second.read(23_000)
            lastRequest.arrive()
            let isWhole = try start + second.readRest() == body
            #expect(isWhole)
            #expect(try first.value(within: .seconds(20)).status == 200)
            #expect(origin.requestCount("/a.ts") == 25)
        }

        @Test
        func `a player that waits with another is answered when the other's budget is spent`()
            throws
        {
            let story = try Story()
            let path = segment("far", 2_000)
            // Nine redirects before each response, of which the first two are failures.
            for hop in 0..<9 {
                let next = hop == 8 ? path : "/hop\(hop + 1).ts"
                story.cdn.setBehaviour(Behaviour(query: "location=\(next)"), for: "/hop\(hop).ts")
            }
            story.cdn.setBehaviour("status=503&fails=2&header=Retry-After:1", for: path)
            let first = Background { try story.get("/hop0.ts") }
            #expect(eventually { story.cdn.requestCount("/hop0.ts") >= 1 })
            let second = Background { try story.get("/hop0.ts") }
            let answers = try [first, second].map { try $0.value(within: .seconds(30)) }
            #expect(answers.map(\.status) == [502, 200])
            #expect(isContent(answers[1].body, of: path))
            #expect(story.cdn.requestCount() == 30)
        }

        @Test func `a request that comes while a refused one backs off waits with it`() throws {
            let origin = try ScriptedOrigin()
            defer { origin.stop() }
            origin.answer("/a.ts", .respond(503, [("Retry-After", "2")]))
            origin.answer("/a.ts", .respond(200, [], Array("media".utf8)))
            let story = try Story()
            let url = story.url(for: origin.url("/a.ts"))
            let first = Background { try story.player().get(url) }
            #expect(try story.settled("origin_retries_total") { $0 == 1 } == 1)
            let second = try story.player().get(url)
            #expect(second.status == 200 && second.text == "media")
            #expect(try first.value(within: .seconds(20)).text == "media")
            #expect(origin.requestCount("/a.ts") == 2)
        }

        @Test func `the origin gets no request once the player of a broken body has left`() throws {
            let story = try Story()
            let path = segment("left", 300_000)
            story.cdn.setBehaviour(Stories.CutBodyTests.cut, for: path)
            let stream = try story.open(path)
            _ = try stream.read(300_000)
            stream.abort()
            #expect(try story.settled("connections") { $0 == 1 } == 1)
            let count = story.cdn.requestCount(path)
            // An attempt may be on its way.
            #expect(!eventually(within: .seconds(2)) { story.cdn.requestCount(path) > count + 1 })
            let last = story.cdn.requestCount(path)
            #expect(!eventually(within: .seconds(1)) { story.cdn.requestCount(path) > last })
        }

        @Test func `a player that repeats a failed request at once causes one attempt each time`()
            throws
        {
            let story = try Story()
            let path = segment("again", 1_000)
            story.cdn.setBehaviour("status=503", for: path)
            #expect(try story.get(path).status == 502)
            let first = story.cdn.requestCount(path)
            #expect(first <= 5)
            for _ in 0..<10 { #expect(try story.get(path).status == 502) }
            #expect(story.cdn.requestCount(path) <= first + 10)
            story.cdn.setBehaviour(nil, for: path)
            #expect(isContent(try story.get(path).body, of: path))
        }

        @Test func `players that left bodies without end give their slots to those that stay`()
            throws
        {
            let story = try Story()
            story.cdn.setBehaviour("rate=1", for: "/bytes/1000/*")
            let streams = try (0..<32).map { try story.open(segment("drip\($0)", 1_000)) }
            for stream in streams { _ = try stream.read(1) }
            for stream in streams { stream.abort() }
            #expect(try story.settled("slots_in_use") { $0 == 0 } == 0)
            let next = segment("next", 2_000)
            #expect(isContent(try story.get(next).body, of: next))
        }

        @Test func `a waiting player gets the slot of a body that is only being finished`() throws {
            let story = try Story(["--slots", "1"])
            let left = segment("left", 4_000_000)
            story.cdn.hold(left, afterBytes: 3_900_000)
            let stream = try story.open(left)
            _ = try stream.read(3_900_000)
            let abortedAt = ContinuousClock.now
            stream.abort()
            #expect(try story.settled("connections") { $0 == 1 } == 1)
            // The grace time for a returning player is over; a body is finished for two seconds.
            let isOver = eventually(within: .milliseconds(500)) { story.cdn.activeRequests == 0 }
            #expect(!isOver || ContinuousClock.now - abortedAt > .seconds(2))
            let next = segment("next", 2_000)
            #expect(isContent(try story.get(next).body, of: next))
            story.cdn.release(left)
        }

        @Test func `sixty requests to an origin that refuses connections make few, and few lines`()
            throws
        {
            let story = try Story()
            story.cdn.stop()
            let begun = ContinuousClock.now
            let answers = try (0..<60).map { number in
                // The pace of the requests, and not a wait for a condition.
                usleep(50_000)
                return Background { try story.get(segment("r\(number)", 1_000)).status }
            }.map { try $0.value(within: .seconds(10)) }
            #expect(answers.allSatisfy { $0 == 502 || $0 == 504 })
            let asked = try story.stat("origin_requests_total")
            let probed = try story.stat("origin_probes_total")
            print("60 requests made \(asked) connections and \(probed) probes")
            // An origin that is down is asked twice a second: 25 in the three seconds that sixty
            // requests take at least, and more on a busy machine.
            let seconds = (ContinuousClock.now - begun) / .seconds(1)
            #expect(Double(asked + probed) <= 10 + 5 * seconds)
            let log = { story.daemon.standardError + story.daemon.standardOutput }
            #expect(log().components(of: "request failed") <= 10)
            #expect(eventually(within: .seconds(60)) { log().contains("repeated ") })
            try story.cdn.start()
            let path = segment("back", 1_000)
            #expect(isContent(try story.get(path).body, of: path))
        }

        @Test func `a range that is not stored gets the failure of the origin, once`() throws {
            let story = try Story(["--policy", "refresh"])
            let path = "/bytes/y/300000"
            #expect(try story.get(path, range: "bytes=0-999").status == 206)
            story.cdn.stop()
            // The stored part may be served stale, but has none of these bytes.
            let answer = Background { try story.get(path, range: "bytes=200000-200999").status }
            #expect([502, 504].contains(try answer.value(within: .seconds(20))))
            #expect(try story.stat("origin_requests_total") <= 6)
            #expect(try story.get(path, range: "bytes=0-999").status == 206)
        }

        @Test(arguments: [0..<1_000, 50_000_000..<50_001_000, 63_999_000..<64_000_000])
        func `a range of a body of unknown type costs the range and its first bytes`(
            range: Range<Int>
        ) throws {
            let story = try Story()
            let path = "/bytes/y/64000000"
            let answer = try story.get(
                path, range: "bytes=\(range.lowerBound)-\(range.upperBound - 1)")
            #expect(answer.status == 206 && answer.complete)
            #expect(answer.body == FixtureCDN.syntheticBytes("y", range))
            #expect(story.cdn.bytesSent(path) <= 3_000 && story.cdn.requestCount(path) <= 2)
        }

        @Test func `a range that the origin ignores does not bring the rest of the body`() throws {
            let story = try Story()
            let path = "/bytes/y/64000000"
            story.cdn.setBehaviour("norange=1", for: path)
            let answer = try story.get(path, range: "bytes=0-999")
            #expect(
                answer.status == 206 && answer.body == FixtureCDN.syntheticBytes("y", 0..<1_000))
            #expect(try story.settled("slots_in_use") { $0 == 0 } == 0)
            #expect(try story.stat("origin_bytes_total") <= 1_000_000)
        }

        @Test(arguments: ["bytes=5-20", "bytes=0-20", "bytes=-10"])
        func `a range of a playlist without a playlist's name is cut from the rewritten text`(
            range: String
        ) throws {
            let lines = (0..<400).map { "#EXTINF:4,\nsegment\($0).ts\n" }.joined()
            let story = try Story()
            let other = try Story()
            for each in [story, other] {
                each.cdn.put("/list", text: "#EXTM3U\n" + lines + "#EXT-X-ENDLIST\n")
            }
            let part = try story.get("/list", range: range)
            let whole = try story.get("/list")
            #expect(whole.status == 200 && whole.text.contains("#EXTM3U"))
            #expect(!whole.text.contains("\nsegment0.ts"))
            #expect(part.status == 206 || part.body == whole.body)
            if part.status == 206 { #expect(whole.text.contains(part.text)) }
        }

        @Test func `an unrequested 206 for a playlist is the origin's fault`() throws {
            let origin = try ScriptedOrigin()
            defer { origin.stop() }
            let list = Array("#EXTM3U\n#EXTINF:4,\na.ts\n#EXT-X-ENDLIST\n".utf8)
            let part: [WireHead.Field] = [("Content-Range", "bytes 0-19/\(list.count)")]
            for _ in 0..<8 { origin.answer("/l.m3u8", .respond(206, part, Array(list.prefix(20)))) }
            let story = try Story()
            let answer = try story.player().get(story.url(for: origin.url("/l.m3u8")))
            #expect(answer.status == 502 && answer.text.contains("206"))
            #expect(answer.text.hasPrefix("origin error:"))
            #expect(origin.requestCount("/l.m3u8") == 2)
            origin.answer("/m.m3u8", .respond(206, part, Array(list.prefix(20))))
            origin.answer("/m.m3u8", .respond(200, [], list))
            let next = try story.player().get(story.url(for: origin.url("/m.m3u8")))
            #expect(next.status == 200 && next.text.contains("#EXT-X-ENDLIST"))
        }
    }

    /// Bodies that are always cut, where requests and bytes are counted and no times.
    @Suite(.tags(.crowded)) struct CutBodyTests {
        /// Content-Length is 100 too large, and ranges are ignored: each attempt ends at the same
        /// byte.
        static let cut: Behaviour = "wronglength=100&norange=1"

        /// One request, its repetitions, and as many again by the reader of a body.
        static let mostRequests = 12

        @Test(arguments: [
            "wronglength=100&norange=1", "wronglength=100&norange=1&noetag=1&lastmod=",
        ])
        func `a segment that is always cut at the same byte is requested only a few times`(
            fault: String
        ) throws {
            let story = try Story()
            let path = segment("cut", 300_000)
            story.cdn.setBehaviour(Behaviour(query: fault), for: path)
            let answer = try story.get(path)
            #expect(!answer.complete)
            #expect(story.cdn.requestCount(path) <= Self.mostRequests)
            #expect(story.cdn.bytesSent(path) <= 3 * 300_000 + (1 << 20) + 300_000)
        }

        @Test func `a playlist that is always cut at the same byte is requested only a few times`()
            throws
        {
            let story = try Story()
            story.cdn.put("/cut.m3u8", text: "#EXTM3U\n#EXTINF:4,\na.ts\n#EXT-X-ENDLIST\n")
            story.cdn.setBehaviour(Self.cut, for: "/cut.m3u8")
            let answer = try story.get("/cut.m3u8")
            #expect(answer.status == 502)
            #expect(story.cdn.requestCount("/cut.m3u8") <= Self.mostRequests)
        }

        @Test(arguments: ["/cut.m3u8", "/bytes/300000/cut.ts"])
        func `a body under a mount that is always cut is requested only a few times`(path: String)
            throws
        {
            let origin = FixtureCDN()
            try origin.start()
            defer { origin.stop() }
            origin.put("/cut.m3u8", text: "#EXTM3U\n#EXTINF:4,\na.ts\n#EXT-X-ENDLIST\n")
            origin.setBehaviour(Self.cut, for: path)
            let story = try Story(["--mount", "/mt/=\(origin.url("/"))"])
            let answer = try story.player().get(story.daemon.baseURL + "/mt" + path)
            #expect(answer.status == 502 || !answer.complete)
            #expect(origin.requestCount(path) <= Self.mostRequests)
        }
    }
}

extension String {
    fileprivate func components(of part: String) -> Int { ranges(of: part).count }
}
