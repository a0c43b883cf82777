import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Ranges: exact parts of stored, growing and missing bodies.
extension Stories {
    @Suite(.tags(.timed)) struct RangeTests {
        static let big = segment("big", 64_000_000)

        @Test func `parts and the whole of a 64 MB object are exact, and no byte is fetched twice`()
            throws
        {
            let story = try Story()
            let size = 64_000_000
            let wishes: [(String, Range<Int>)] = [
                ("0-1", 0..<2), ("0-999", 0..<1000), ("1000-50000", 1000..<50_001),
                ("2000-3000", 2000..<3001), ("-1000", (size - 1000)..<size), ("0-", 0..<size),
            ]
            for (text, range) in wishes {
                let answer = try story.get(Self.big, range: "bytes=\(text)")
                #expect(answer.status == 206 && answer.complete, "bytes=\(text)")
                #expect(answer["Content-Range"] == contentRange(range, size))
                #expect(answer["Content-Length"] == "\(range.count)")
                let isExact = isContent(
                    answer.body, of: Self.big, from: range.lowerBound, count: range.count)
                #expect(isExact, "bytes=\(text)")
            }
            #expect(story.cdn.firstByteServedTwice(Self.big) == nil)
            #expect(story.cdn.bytesSent(Self.big) == size)
            story.cdn.stop()
            let whole = try story.get(Self.big)
            #expect(whole.status == 200 && isContent(whole.body, of: Self.big))
        }

        @Test func `a probe of two bytes does not fetch the object`() throws {
            let story = try Story()
            let answer = try story.get(Self.big, range: "bytes=0-1")
            #expect(answer["Content-Range"] == "bytes 0-1/64000000")
            #expect(story.cdn.bytesSent(Self.big) == 2)
        }

        /// The rest that is asked for at the end brings nothing new, and ends before its reply.
        @Test func `a body whose length the origin never states is read to its end`() throws {
            let story = try Story()
            for number in 0..<12 {
                let path = segment("open\(number)", 300_000)
                story.cdn.setBehaviour("nototal=1&noetag=1&lastmod=", for: path)
                _ = try story.get(path, range: "bytes=0-1")
                for _ in 0..<3 {
                    let answer = try story.get(path)
                    #expect(answer.complete && isContent(answer.body, of: path))
                }
                #expect(story.cdn.requestCount(path) <= 4)
            }
        }

        @Test func `a range far ahead of the watermark gets its own flight`() throws {
            let story = try Story(["--stall-timeout", "60"])
            story.cdn.hold(Self.big, afterBytes: 100_000)
            let first = try story.open(Self.big)
            _ = try first.read(100_000)
            let ahead = try story.open(Self.big, range: "bytes=40000000-40000999")
            let bytes = try ahead.readRest()
            #expect(isContent(bytes, of: Self.big, from: 40_000_000, count: 1000))
            #expect(story.cdn.requests.last?.range == "bytes=40000000-40000999")
            first.abort()
        }

        @Test func `a part that nothing shows to be of the body being received is unproven`()
            throws
        {
            let story = try Story(["--stall-timeout", "60"])
            story.cdn.setBehaviour("noetag=1&lastmod=", for: Self.big)
            story.cdn.hold(Self.big, afterBytes: 100_000)
            let whole = try story.open(Self.big)
            _ = try whole.read(100_000)
            let part = try story.get(Self.big, range: "bytes=40000000-40000999")
            #expect(part.status == 206)
            #expect(isContent(part.body, of: Self.big, from: 40_000_000, count: 1000))
            #expect(part["Cache-Status"]?.contains("detail=unproven") == true)
            whole.abort()
        }

        @Test func `a far range of a new version without a strong validator is a whole response`()
            throws
        {
            let site = try Story()
            let path = segment("weak", 8_000_000)
            let daemon = try site.succeed([
                "--stall-timeout", "60", "--mount", "/demo/=\(site.cdn.url("/"))",
            ])
            defer { daemon.kill(9) }
            let player = ScriptedPlayer(daemon.baseURL)
            site.cdn.setBehaviour("etag=W/a&lastmod=&cc=no-cache", for: path)
            #expect(isContent(try player.get("/demo\(path)").body, of: path))
            site.cdn.setBehaviour("etag=W/b&lastmod=&cc=no-cache", for: path)
            // The revalidation brings the first bytes of the new version, and no more.
            site.cdn.hold(path, afterBytes: 100_000)
            let part = try player.get(
                "/demo\(path)", headers: [("Range", "bytes=4000000-4000999")])
            #expect(part.status == 206 && part.complete)
            #expect(isContent(part.body, of: path, from: 4_000_000, count: 1000))
            #expect(site.cdn.requests.last?.range == "bytes=4000000-4000999")
        }

        @Test func `a fetch that reaches stored bytes stops and continues after them`() throws {
            let story = try Story(["--stall-timeout", "60"])
            let path = segment("meets", 8_000_000)
            // So far before the middle that nobody waits for this fetch there.
            story.cdn.hold(path, afterBytes: 1_900_000)
            let whole = try story.open(path)
            let begin = try whole.read(100_000)
            // Two parts, since a longer one would be held too.
            for first in [3_000_000, 4_500_000] {
                let part = try story.get(path, range: "bytes=\(first)-\(first + 1_499_999)")
                #expect(isContent(part.body, of: path, from: first, count: 1_500_000))
            }
            // Bytes in flight when the first fetch ends, however late the daemon notices.
            story.cdn.hold(path, afterBytes: 3_400_000)
            #expect(isContent(begin + (try whole.readRest()), of: path))
            #expect(eventually { story.cdn.activeRequests == 0 })
            #expect(story.cdn.bytesSent(path) < 8_800_000)
        }

        @Test func `a range a little ahead of the watermark waits for it`() throws {
            let story = try Story(["--stall-timeout", "60"])
            let path = segment("near", 2_000_000)
            story.cdn.hold(path, afterBytes: 500_000)
            let first = try story.open(path)
            _ = try first.read(500_000)
            let near = try story.open(path, range: "bytes=600000-600999")
            #expect(try near.readHead().status == 206)
            story.cdn.release(path)
            #expect(isContent(try near.readRest(), of: path, from: 600_000, count: 1000))
            #expect(try first.readRest().count == 1_500_000)
            #expect(story.cdn.requestCount(path) == 1)
        }

        @Test func `a part that the origin states without a length is sent as it arrives`() throws {
            let story = try Story(["--stall-timeout", "60"])
            let path = segment("stated", 300_000)
            story.cdn.setBehaviour("nototal=1", for: path)
            story.cdn.hold(path, afterBytes: 1_000)
            let part = try story.open(path, range: "bytes=5000-44999")
            #expect(try part.readHead().status == 206)
            #expect(isContent(try part.read(1_000), of: path, from: 5_000, count: 1_000))
            story.cdn.release(path)
            #expect(isContent(try part.readRest(), of: path, from: 6_000, count: 39_000))
            #expect(story.cdn.requestCount(path) == 1)
        }

        @Test(arguments: ["bytes=5000-", "bytes=1000-2000", "bytes=9999999999-"])
        func `a range beyond the end is a 416 with the length`(text: String) throws {
            let story = try Story()
            let path = segment("small", 1_000)
            for _ in 0..<2 {
                let answer = try story.get(path, range: text)
                #expect(answer.status == 416 && answer.complete)
                #expect(answer["Content-Range"] == "bytes */1000")
                #expect(try story.get(path).body.count == 1_000)
            }
        }

        @Test func `an error that a stored response gives says so in Cache-Status`() throws {
            let story = try Story()
            let path = segment("small", 1_000)
            let first = try story.get(path, range: "bytes=5000-")
            #expect(first.status == 416)
            #expect(first["Cache-Status"]?.hasPrefix("sluice; fwd=") == true)
            _ = try story.get(path)
            let beyond = try story.get(path, range: "bytes=5000-")
            #expect(beyond.status == 416)
            #expect(beyond["Cache-Status"]?.hasPrefix("sluice; hit") == true)
            let other = try story.get(path, headers: [("If-Match", "\"other\"")])
            #expect(other.status == 412)
            #expect(other["Cache-Status"]?.hasPrefix("sluice; hit") == true)
        }

        // RFC 9110 section 14.1.2.
        @Test(arguments: ["bytes=-5", "bytes=0-", "bytes=0-1023"])
        func `the first or last bytes of an empty body are all of it`(text: String) throws {
            let story = try Story()
            story.cdn.put("/empty.ts", [])
            for _ in 0..<2 {
                let answer = try story.get("/empty.ts", range: text)
                #expect(answer.status == 200 && answer.body.isEmpty && answer.complete)
                #expect(answer["Content-Range"] == nil)
                #expect(try story.get("/empty.ts", range: "bytes=1-").status == 416)
            }
        }

        @Test(arguments: [
            "bytes=5-2", "bytes=a-b", "bytes=", "bytes=--5", "octets=0-1", "bytes 0-1", "bytes=-",
        ])
        func `an invalid range is ignored`(text: String) throws {
            let story = try Story()
            let path = segment("small", 1_000)
            for _ in 0..<2 {
                let answer = try story.get(path, range: text)
                #expect(answer.status == 200 && isContent(answer.body, of: path))
                #expect(answer["Content-Range"] == nil)
            }
        }

        @Test func `several ranges at once are answered legally`() throws {
            let story = try Story()
            let path = segment("small", 10_000)
            for _ in 0..<2 {
                let answer = try story.get(path, range: "bytes=0-99,200-299")
                #expect(answer.complete)
                let isMultipart =
                    answer.status == 206
                    && answer["Content-Type"]?.hasPrefix("multipart/byteranges") == true
                #expect(isMultipart || answer.status == 200 && isContent(answer.body, of: path))
            }
        }

        @Test func `If-Range lets a range through only for the same representation`() throws {
            let story = try Story()
            let path = segment("guarded", 10_000)
            let tag = try #require(try story.get(path)["ETag"])
            let same = try story.get(path, range: "bytes=5-9", headers: [("If-Range", tag)])
            #expect(same.status == 206 && isContent(same.body, of: path, from: 5, count: 5))
            let other = try story.get(path, range: "bytes=5-9", headers: [("If-Range", "\"no\"")])
            #expect(other.status == 200 && isContent(other.body, of: path))
            let fresh = segment("fresh", 10_000)
            let miss = try story.get(fresh, range: "bytes=5-9", headers: [("If-Range", "\"no\"")])
            #expect(miss.status == 200 && isContent(miss.body, of: fresh))
        }

        @Test func `ranges are cut here if the origin does not support them`() throws {
            let story = try Story()
            let path = segment("plain", 3_000_000)
            story.cdn.setBehaviour("norange=1", for: path)
            let part = try story.get(path, range: "bytes=1000-50000")
            #expect(part.status == 206)
            #expect(part["Content-Range"] == contentRange(1000..<50_001, 3_000_000))
            #expect(isContent(part.body, of: path, from: 1000, count: 49_001))
            let tail = try story.get(path, range: "bytes=-1000")
            #expect(tail.status == 206)
            #expect(isContent(tail.body, of: path, from: 2_999_000, count: 1000))
            let whole = try story.get(path)
            #expect(whole.status == 200 && isContent(whole.body, of: path))
        }

        @Test func `a partial response of the origin is never the whole`() throws {
            let story = try Story()
            let path = segment("part", 100_000)
            _ = try story.get(path, range: "bytes=0-999")
            let whole = try story.get(path)
            #expect(whole.status == 200 && isContent(whole.body, of: path))
            #expect(whole["Content-Length"] == "100000")
        }

        @Test(arguments: ["bytes=1000-1999", "bytes=0-1", "bytes=-500", "bytes=2000-"])
        func `a range of a body of unknown length is exact`(text: String) throws {
            let story = try Story()
            let path = segment("unknown", 500_000)
            story.cdn.setBehaviour("chunked=1&norange=1", for: path)
            for _ in 0..<2 {
                let answer = try story.get(path, range: text)
                #expect(answer.complete)
                guard answer.status == 206 else {
                    #expect(answer.status == 200 && isContent(answer.body, of: path))
                    continue
                }
                let field = try #require(answer["Content-Range"])
                let first = Int(field.dropFirst(6).prefix { $0 != "-" }) ?? -1
                #expect(isContent(answer.body, of: path, from: first, count: answer.body.count))
            }
        }

        @Test func `HEAD has the fields of GET without a body, on a miss and on a hit`() throws {
            let story = try Story()
            let path = segment("head", 100_000)
            let names = ["Content-Length", "Content-Type", "ETag", "Accept-Ranges"]
            let miss = try story.get(path, method: "HEAD")
            #expect(story.cdn.bytesSent(path) <= 2)
            let got = try story.get(path)
            let hit = try story.get(path, method: "HEAD")
            for answer in [miss, hit] {
                #expect(answer.status == 200 && answer.body.isEmpty)
                for name in names { #expect(answer[name] == got[name], "\(name)") }
            }
            #expect(got["Content-Type"] == "video/mp2t")
        }

        private func contentRange(_ range: Range<Int>, _ size: Int) -> String {
            "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(size)"
        }
    }
}
