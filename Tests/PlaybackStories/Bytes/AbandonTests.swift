import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// When a player hangs up, the fetch ends soon, unless it is nearly complete.
extension Stories {
    @Suite(.tags(.timed)) struct AbandonTests {
        @Test func `the fetch ends when its only player has left`() throws {
            let story = try Story(["--log-level", "debug"])
            let path = segment("left", 20_000_000)
            story.cdn.hold(path, afterBytes: 100_000)
            let stream = try story.open(path)
            _ = try stream.read(100_000)
            stream.abort()
            #expect(eventually { story.cdn.activeRequests == 0 })
            #expect(try story.stat("flights_abandoned_total") == 1)
            #expect(
                eventually {
                    story.daemon.standardError.contains("a fetch without a reader is ended")
                        && story.daemon.standardError.contains("nobody has returned")
                })
            #expect(try story.settled("slots_in_use") { $0 == 0 } == 0)
        }

        @Test func `a player that seeks far ahead does not keep its old fetch alive`() throws {
            let story = try Story()
            let path = segment("film", 30_000_000)
            story.cdn.setBehaviour("rate=1000000", for: path)
            let before = try story.open(path)
            _ = try before.read(100_000)
            let after = try story.open(path, range: "bytes=20000000-")
            _ = try after.read(10_000)
            #expect(story.cdn.activeRequests == 2)
            before.abort()
            #expect(eventually { story.cdn.activeRequests == 1 })
            #expect(try after.read(100_000).count == 100_000)
        }

        @Test func `bytes received before the hang-up are served to the next player`() throws {
            let story = try Story()
            let path = segment("again", 4_000_000)
            try story.leave(path, after: 1_000_000)
            #expect(isContent(try story.get(path).body, of: path))
            #expect(story.cdn.bytesServedRanges(path) == [0..<1_000_000, 1_000_000..<4_000_000])
        }

        @Test func `a fetch that is more than half done is finished`() throws {
            let story = try Story(["--log-level", "debug"])
            let path = segment("nearly", 4_000_000)
            // The rest takes 0.75 s, longer than the grace time and shorter than the limit of 2 s.
            story.cdn.setBehaviour("rate=2000000", for: path)
            let stream = try story.open(path)
            _ = try stream.read(2_500_000)
            stream.abort()
            #expect(try story.settled("connections") { $0 == 1 } == 1)
            #expect(eventually { story.cdn.bytesSent(path) == 4_000_000 })
            #expect(eventually { story.cdn.activeRequests == 0 })
            #expect(
                eventually {
                    story.daemon.standardError.contains("a fetch is finished without a reader")
                })
            story.cdn.stop()
            #expect(isContent(try story.get(path).body, of: path))
        }

        @Test func `a half-fetched film is not finished without players`() throws {
            let story = try Story()
            let path = segment("film", 40_000_000)
            story.cdn.hold(path, afterBytes: 25_000_000)
            let stream = try story.open(path)
            _ = try stream.read(25_000_000)
            stream.abort()
            #expect(eventually { story.cdn.activeRequests == 0 })
            #expect(story.cdn.bytesSent(path) == 25_000_000)
        }

        @Test func `the fetch goes on while one of two players stays`() throws {
            let story = try Story()
            let path = segment("stays", 4_000_000)
            story.cdn.hold(path, afterBytes: 500_000)
            let streams = try (0..<2).map { _ in try story.open(path) }
            for stream in streams { _ = try stream.read(500_000) }
            streams[0].abort()
            #expect(try story.settled("connections") { $0 == 2 } == 2)
            story.cdn.release(path)
            #expect(try streams[1].readRest().count == 3_500_000)
            #expect(story.cdn.requestCount(path) == 1)
        }

        @Test func `a player that leaves before the origin answers leaves nothing behind`() throws {
            let story = try Story()
            let path = segment("early", 1_000)
            story.cdn.hold(path)
            let stream = try story.open(path)
            #expect(eventually { story.cdn.activeRequests == 1 })
            stream.abort()
            #expect(eventually { story.cdn.activeRequests == 0 })
            #expect(try story.settled("slots_in_use") { $0 == 0 } == 0)
        }

        @Test func `a player that hangs up and asks again is served first`() throws {
            let story = try Story()
            // It has 300 ms, which a busy machine may exceed occasionally, but not every time.
            let requests = try (0..<5).map { turn in
                let path = segment("again\(turn)", 1_000)
                story.cdn.hold(path)
                let stream = try story.open(path)
                #expect(eventually { story.cdn.requestCount(path) == 1 })
                stream.abort()
                #expect(try story.settled("connections") { $0 == 1 } == 1)
                let again = try story.open(path)
                story.cdn.release(path)
                #expect(try again.readRest().count == 1_000)
                return story.cdn.requestCount(path)
            }
            #expect(requests.contains(1), "\(requests)")
        }

        @Test(arguments: [0, 100_000])
        func `with one connection the next channel does not wait for the previous one`(_ held: Int)
            throws
        {
            let story = try Story(["--host-limit", "1"])
            let leave = { (turn: Int) in
                let former = segment("former\(turn)", 20_000_000)
                story.cdn.hold(former, afterBytes: held)
                let stream = try story.open(former)
                if held > 0 { _ = try stream.read(held) }
                #expect(eventually { story.cdn.requestCount(former) == 1 })
                stream.abort()
            }
            // How long a player waits for the next channel, and how long the former fetch lives by
            // itself.
            let waits = try (0..<5).map { turn in
                try leave(turn)
                return try story.get(segment("next\(turn)", 1_000)).timeToFirstByte
            }
            let lives = try (5..<8).map { turn in
                try leave(turn)
                let left = ContinuousClock.now
                #expect(eventually { story.cdn.activeRequests == 0 })
                return ContinuousClock.now - left
            }
            #expect(try #require(waits.min()) < (try #require(lives.min())), "\(waits) \(lives)")
        }
    }
}
