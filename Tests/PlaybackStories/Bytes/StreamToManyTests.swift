import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Streaming: when the first byte reaches a player, and what slow readers cost the others.
extension Stories {
    @Suite(.tags(.timed, .threads)) struct StreamToManyTests {
        @Test func `the first body byte arrives before the segment is complete`() throws {
            let story = try Story()
            let path = segment("first", 2_000_000)
            story.cdn.hold(path, afterBytes: 100_000)
            let stream = try story.open(path)
            let begin = try stream.read(100_000)
            #expect(story.cdn.bytesSent(path) == 100_000)
            #expect(isContent(begin, of: path, count: 100_000))
            story.cdn.release(path)
            #expect(isContent(begin + (try stream.readRest()), of: path))
        }

        @Test(arguments: ["chunked=1", "eof=1"])
        func `a body without a length is streamed as it arrives and stored after a clean end`(
            framing: String
        ) throws {
            let story = try Story()
            let path = segment("open", 1_000_000)
            story.cdn.setBehaviour(Behaviour(query: framing), for: path)
            story.cdn.hold(path, afterBytes: 300_000)
            let stream = try story.open(path)
            #expect(try stream.readHead()["Transfer-Encoding"] == "chunked")
            // One byte less: the player looks for the next chunk as soon as one is read.
            let begin = try stream.read(299_999)
            story.cdn.release(path)
            #expect(isContent(begin + (try stream.readRest()), of: path))
            #expect(stream.broken == nil)
            story.cdn.stop()
            #expect(isContent(try story.get(path).body, of: path))
        }

        @Test
        func `the bytes that the origin has sent of a segment reach the player before the rest`()
            throws
        {
            let story = try Story()
            let path = segment("begun", 2_000_000)
            for count in [1, 1_000, 700_000] {
                story.cdn.hold(path, afterBytes: count)
                let stream = try story.open(path + "?\(count)")
                #expect(isContent(try stream.read(count), of: path, count: count))
                stream.abort()
            }
        }

        @Test func `a reader that reads nothing delays no other`() throws {
            let story = try Story()
            let path = segment("slow", 8_000_000)
            let slow = try story.open(path, receiveBuffer: 4_096)
            _ = try slow.read(1)
            let others = try inParallel(3) { _ in try story.get(path) }
            for other in others { #expect(isContent(other.body, of: path)) }
            #expect(story.cdn.requestCount(path) == 1)
            _ = try slow.read(500_000)
            slow.abort()
        }

        @Test func `two readers of a growing object at two speeds get exact bytes of one request`()
            throws
        {
            let story = try Story()
            let path = segment("pair", 3_000_000)
            story.cdn.setBehaviour("rate=3000000", for: path)
            let slow = Background {
                try story.open(path).readRest(bytesPerSecond: 1_500_000)
            }
            let fast = try story.get(path)
            #expect(isContent(fast.body, of: path))
            #expect(isContent(try slow.value(), of: path))
            #expect(story.cdn.requestCount(path) == 1)
        }

        @Test func `a range without an end joins no transfer whose first bytes are freed`() throws {
            let story = try Story(["--cache-size", "1MB", "--min-free", "0"])
            let path = segment("freed", 2_700_000)
            story.cdn.setBehaviour("noetag=1&chunked=1", for: path)
            story.cdn.hold(path, afterBytes: 1_600_000)
            let first = try story.open(path)
            let beginning = try first.read(1_500_000)
            // Of a body whose length is unknown, it gets the whole.
            let other = Background { try story.get(path, range: "bytes=2000000-") }
            #expect(eventually { story.cdn.requestCount(path) == 2 })
            story.cdn.release(path)
            let answer = try other.value()
            let start = answer.status == 206 ? 2_000_000 : 0
            #expect(answer.complete && isContent(answer.body, of: path, from: start))
            #expect(isContent(beginning + (try first.readRest()), of: path))
        }

        @Test(arguments: ["fb=0", "chunked=1", "status=204"])
        func `an empty segment is an empty response`(behaviour: String) throws {
            let story = try Story()
            let path = segment("empty", 0)
            story.cdn.setBehaviour(Behaviour(query: behaviour), for: path)
            for _ in 0..<2 {
                let answer = try story.get(path)
                #expect(answer.complete && answer.body.isEmpty)
                #expect(answer.status == (behaviour == "status=204" ? 204 : 200))
                #expect(try story.get(path, range: "bytes=0-1").complete)
            }
        }

        @Test func `the beginning of a body that ends empty meanwhile is that empty body`() throws {
            let story = try Story()
            story.cdn.setBehaviour("chunked=1", for: "/bytes/*")
            let statuses = try inParallel(4) { number in
                try (0..<60).map { index in
                    let path = segment("empty-\(number)-\(index)", 0)
                    #expect(try story.get(path).body.isEmpty)
                    return try story.get(path, range: "bytes=0-1").status
                }
            }
            #expect(Set(statuses.joined()) == [200])
        }

        @Test func `a thousand segments come over one player connection`() throws {
            let story = try Story()
            let player = story.player()
            for index in 0..<1000 {
                let answer = try player.get(story.url(segment("s\(index % 50)", 1_000)))
                #expect(answer.status == 200 && answer.reusedConnection == (index > 0))
            }
            #expect(story.cdn.requestCount() == 50)
        }
    }
}
