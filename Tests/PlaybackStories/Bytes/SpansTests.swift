import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Objects with holes: any mix of ranges, seeks and generations on one object, and no byte fetched
/// twice.
extension Stories {
    @Suite(.tags(.timed, .threads)) struct SpansTests {
        private static let size = 3_000_000

        /// Ranges that overlap, touch and leave holes.
        private func ranges(_ count: Int, _ dice: inout SeededDice) -> [Range<Int>] {
            (0..<count).map { _ in
                let first = dice.roll(Self.size)
                return first..<min(Self.size, first + 1 + dice.roll(250_000))
            }
        }

        private func isExact(_ range: Range<Int>, of path: String, _ story: Story) throws -> Bool {
            let text = "bytes=\(range.lowerBound)-\(range.upperBound - 1)"
            let answer = try story.get(path, range: text)
            let place = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(Self.size)"
            return answer.status == 206 && answer["Content-Range"] == place
                && isContent(answer.body, of: path, from: range.lowerBound, count: range.count)
        }

        @Test(arguments: [1, 2, 3] as [UInt64])
        func `holes are filled without fetching present bytes, across a restart`(seed: UInt64)
            throws
        {
            let story = try Story()
            let path = segment("holes", Self.size)
            var dice = SeededDice(seed, 0)
            for round in 0..<2 {
                for range in ranges(15, &dice) { #expect(try isExact(range, of: path, story)) }
                #expect(story.cdn.firstByteServedTwice(path) == nil)
                if round == 0 { try story.restart() }
            }
            #expect(isContent(try story.get(path).body, of: path))
            #expect(story.cdn.firstByteServedTwice(path) == nil)
            #expect(story.cdn.bytesSent(path) == Self.size)
        }

        @Test(arguments: [4, 5] as [UInt64])
        func `many concurrent players in one object get exact bytes, most fetched once`(
            seed: UInt64
        )
            throws
        {
            let story = try Story()
            let path = segment("crowd", Self.size)
            story.cdn.setBehaviour("rate=20000000", for: path)
            let results = try inParallel(6) { player in
                var dice = SeededDice(seed, player)
                return try ranges(8, &dice).allSatisfy { try isExact($0, of: path, story) }
            }
            #expect(!results.contains(false))
            #expect(isContent(try story.get(path).body, of: path))
            // Bytes in flight of two flights when one met the other.
            #expect(story.cdn.bytesSent(path) < Self.size * 3 / 2)
        }

        @Test func `a far seek in a film of 2 GB moves and stores only what is asked for`() throws {
            let story = try Story()
            let path = segment("film", 2_000_000_000)
            for first in [0, 1_999_999_000, 1_000_000_000] {
                let answer = try story.get(path, range: "bytes=\(first)-\(first + 999)")
                #expect(answer["Content-Range"] == "bytes \(first)-\(first + 999)/2000000000")
                #expect(isContent(answer.body, of: path, from: first, count: 1000))
            }
            #expect(story.cdn.bytesSent(path) == 3000)
            #expect(try story.settled("stored_bytes") { $0 < 100_000 } < 100_000)
        }

        @Test func `old readers finish with their generation while new ones get the next`() throws {
            let story = try Story(["--policy", "refresh"])
            let path = segment("lively", Self.size)
            let other = "/bytes/\(Self.size - 1000)/next.ts"
            story.cdn.setBehaviour("etag=one", for: path)
            _ = try story.get(path)
            let old = try story.open(path, receiveBuffer: 4096)
            let begin = try old.read(100_000)
            let part = try story.open(path, range: "bytes=500000-", receiveBuffer: 4096)
            let beginOfPart = try part.read(1000)
            story.cdn.setBehaviour(Behaviour(query: "etag=two&as=\(other)"), for: path)
            let new = try story.get(path)
            #expect(isContent(new.body, of: other) && new["ETag"] == "\"two\"")
            let range = try story.get(path, range: "bytes=1000-1999")
            #expect(isContent(range.body, of: other, from: 1000, count: 1000))
            #expect(isContent(begin + (try old.readRest()), of: path))
            let rest = beginOfPart + (try part.readRest())
            #expect(isContent(rest, of: path, from: 500_000, count: Self.size - 500_000))
        }

        @Test(arguments: ["etag=two", "etag=&lastmod=Fri, 02 Jan 2026 00:00:00 GMT", "etag=one"])
        func `a hole of another generation discards the old spans`(validators: String) throws {
            let story = try Story()
            let path = segment("renewed", Self.size)
            let other = "/bytes/\(Self.size + 5000)/next.ts"
            story.cdn.setBehaviour("etag=one", for: path)
            #expect(try isExact(0..<500_000, of: path, story))
            // The last one is wrong: the tag is the same, only the length differs.
            story.cdn.setBehaviour(Behaviour(query: "\(validators)&as=\(other)"), for: path)
            let hole = try story.get(path, range: "bytes=1000000-1000999")
            #expect(isContent(hole.body, of: other, from: 1_000_000, count: 1000))
            #expect(hole["Content-Range"] == "bytes 1000000-1000999/\(Self.size + 5000)")
            let begin = try story.get(path, range: "bytes=0-999")
            #expect(isContent(begin.body, of: other, count: 1000))
            #expect(isContent(try story.get(path).body, of: other))
        }

        @Test(arguments: ["status=403", "reset=0"])
        func `a reader whose fetch fails does not wait for a flight far behind`(fault: String)
            throws
        {
            let story = try Story()
            let path = segment("behind", 50_000_000)
            story.cdn.setBehaviour("rate=500000", for: path)
            let first = try story.open(path)
            #expect(isContent(try first.read(10_000), of: path, count: 10_000))
            story.cdn.setBehaviour(nil, for: path)
            #expect(try story.get(path, range: "bytes=40000000-40999999").body.count == 1_000_000)
            story.cdn.setBehaviour(Behaviour(query: fault), for: path)
            let second = Background { try story.get(path, range: "bytes=40000000-") }
            let answer = try second.value()
            #expect(answer.status == 206 && !answer.complete)
            #expect(isContent(answer.body, of: path, from: 40_000_000, count: 1_000_000))
            // The flight from the first byte on still runs for its own reader.
            #expect(eventually { story.cdn.activeRequests == 1 })
            #expect(isContent(try first.read(10_000), of: path, from: 10_000, count: 10_000))
            #expect(story.cdn.requestCount(path) <= 10)
            first.abort()
        }

        @Test func `an unknown length stays open until it is known`() throws {
            let story = try Story()
            let origin = try ScriptedOrigin()
            defer { origin.stop() }
            let body = FixtureCDN.syntheticBytes("open.ts", 0..<1000)
            let fields = [("ETag", "\"v\""), ("Content-Type", "video/mp2t")]
            for (first, total) in [(0, "*"), (100, "1000")] {
                origin.answer(
                    "/open.ts",
                    .respond(
                        206, fields + [("Content-Range", "bytes \(first)-\(first + 99)/\(total)")],
                        Array(body[first..<first + 100])))
            }
            let url = story.url(for: origin.url("/open.ts"))
            for (first, total) in [(0, "*"), (100, "1000"), (0, "1000")] {
                let range = [("Range", "bytes=\(first)-\(first + 99)")]
                let answer = try story.player().get(url, headers: range)
                #expect(answer.status == 206 && answer.body == Array(body[first..<first + 100]))
                #expect(answer["Content-Range"] == "bytes \(first)-\(first + 99)/\(total)")
            }
            try origin.verify()
        }

        @Test func `ranges of a body that grows without a length are exact`() throws {
            let story = try Story()
            let path = segment("growing", Self.size)
            story.cdn.setBehaviour("chunked=1&norange=1&rate=3000000", for: path)
            let whole = try story.open(path)
            let begin = try whole.read(200_000)
            let near = try story.get(path, range: "bytes=100000-149999")
            #expect(isContent(near.body, of: path, from: 100_000, count: 50_000))
            let tail = try story.get(path, range: "bytes=-1000")
            let start = tail.status == 206 ? Self.size - 1000 : 0
            #expect(isContent(tail.body, of: path, from: start))
            #expect(isContent(begin + (try whole.readRest()), of: path))
            #expect(try isExact(2_000_000..<2_100_000, of: path, story))
            #expect(story.cdn.requestCount(path) == 1)
        }

        @Test func `the last bytes of a mounted body are kept although their transfer has no end`()
            throws
        {
            let origin = try ScriptedOrigin()
            defer { origin.stop() }
            let tail = Array(repeating: UInt8(0x61), count: 1_000)
            let head = [
                "HTTP/1.1 206 Part", "ETag: \"one\"", "Cache-Control: max-age=600",
                "Content-Range: bytes 9000-9999/10000", "Transfer-Encoding: chunked", "", "3e8", "",
            ].joined(separator: "\r\n")
            origin.answer("/a.ts", .send(Array(head.utf8) + tail), .stall)
            let story = try Story(["--mount", "/mt/=\(origin.url("/"))"])
            let url = story.daemon.baseURL + "/mt/a.ts"
            let range = [("Range", "bytes=9000-9999")]
            #expect(try story.player().get(url, headers: range).body == tail)
            // It has no readers any more, and the flight is cancelled.
            #expect(try story.settled("slots_in_use") { $0 == 0 } == 0)
            #expect(try story.player().get(url, headers: range).body == tail)
            #expect(origin.requestCount("/a.ts") == 1)
        }

        @Test
        func `a range of an object store that keeps the coding of an upload is one of its bytes`()
            throws
        {
            let story = try Story()
            let path = segment("uploaded", 100_000)
            story.cdn.setBehaviour("header=Content-Encoding:aws-chunked", for: path)
            for start in [1_000, 500] {
                let answer = try story.get(path, range: "bytes=\(start)-1999")
                #expect(answer.status == 206)
                #expect(isContent(answer.body, of: path, from: start, count: 2_000 - start))
            }
        }

        @Test(arguments: ["aws-chunked", "utf-8", "aws-chunked,utf-8", ","])
        func `a text with a coding that nobody knows is read as it is`(_ coding: String) throws {
            let story = try Story()
            story.cdn.put("/l.m3u8", text: vod(["/a.ts"]))
            story.cdn.setBehaviour(
                Behaviour(query: "header=Content-Encoding:\(coding)"), for: "/l.m3u8")
            for _ in 0..<2 {
                let answer = try story.get("/l.m3u8")
                #expect(answer.status == 200 && answer.text.contains("/a.ts"), "\(answer.text)")
                #expect(answer["Content-Encoding"] == nil)
            }
            #expect(story.cdn.requestCount("/l.m3u8") == (coding == "," ? 1 : 2))
        }

        @Test func `a range is requested without a coding that the player accepts`() throws {
            let story = try Story()
            let path = segment("coded", 100_000)
            story.cdn.setBehaviour("gzip=1", for: path)
            for _ in 0..<2 {
                let answer = try story.get(
                    path, range: "bytes=1000-1999", headers: [("Accept-Encoding", "gzip")])
                #expect(answer.status == 206 && answer["Content-Encoding"] == nil)
                #expect(isContent(answer.body, of: path, from: 1000, count: 1000))
            }
            let wishes = story.cdn.requests.map { $0["Accept-Encoding"] ?? "identity" }
            #expect(wishes.allSatisfy { $0 == "identity" })
        }

        @Test(arguments: ["bytes=0-1", "bytes=1000-1999", "bytes=-50"])
        func `a range of a body that is always encoded is one of its encoded bytes`(
            range: String
        ) throws {
            let story = try Story()
            let path = segment("always", 100_000)
            story.cdn.setBehaviour("gzip=always", for: path)
            let part = try story.get(path, range: range)
            let whole = try story.get(path)
            #expect(whole["Content-Encoding"] == "gzip" && whole.body.starts(with: [0x1F, 0x8B]))
            #expect(part.status == 206 && part["Content-Encoding"] == "gzip")
            guard case .part(let asked) = WireRange.parse(range, length: whole.body.count) else {
                return
            }
            #expect(part.body.elementsEqual(whole.body[asked]))
        }

        @Test func `HEAD is answered although each range of the body comes encoded`() throws {
            let story = try Story()
            let path = segment("head", 100_000)
            story.cdn.setBehaviour("gzip=always", for: path)
            let head = try story.get(path, method: "HEAD")
            #expect(head.status == 200)
            #expect(head["Content-Length"] == "\(try story.get(path).body.count)")
        }
    }
}
