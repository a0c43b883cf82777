import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Many players and one origin request: collapsing, late joins, and responses that must not be
/// shared.
extension Stories {
    @Suite(.tags(.timed, .threads)) struct SingleFlightTests {
        @Test func `fifty players of one missing segment cost one origin request`() throws {
            let story = try Story(["--stall-timeout", "60"])
            let path = segment("crowd", 1_000_000)
            story.cdn.hold(path)
            let known = try story.stat("requests_total")
            let streams = try (0..<50).map { _ in try story.open(path) }
            #expect(try story.haveArrived(50, since: known))
            // All have what the origin has sent, while the rest is still missing.
            story.cdn.hold(path, afterBytes: 100_000)
            let firsts = try streams.map { try $0.read(100_000) }
            story.cdn.release(path)
            for (first, stream) in zip(firsts, streams) {
                #expect(isContent(first + (try stream.readRest()), of: path))
            }
            #expect(story.cdn.requestCount(path) == 1)
        }

        @Test func `a player that joins late gets all stored bytes first`() throws {
            let story = try Story(["--stall-timeout", "60"])
            let path = segment("late", 4_000_000)
            story.cdn.hold(path, afterBytes: 1_000_000)
            let first = try story.open(path)
            let begin = try first.read(1_000_000)
            let late = try story.open(path)
            let head = try late.readHead()
            #expect(head["Cache-Status"] == "sluice; fwd=uri-miss; stored; collapsed")
            let same = try late.read(1_000_000)
            #expect(same == begin && isContent(same, of: path, count: 1_000_000))
            story.cdn.release(path)
            #expect(isContent(begin + (try late.readRest()), of: path))
            #expect(story.cdn.requestCount(path) == 1)
        }

        @Test func `a no-store response is sent to all waiting players and not stored`() throws {
            let story = try Story(["--stall-timeout", "60"])
            let path = segment("private", 3_000_000)
            story.cdn.setBehaviour("cc=no-store", for: path)
            story.cdn.hold(path, afterBytes: 1_000_000)
            let known = try story.stat("requests_total")
            let players = (0..<5).map { _ in Background { try story.get(path) } }
            #expect(try story.haveArrived(5, since: known))
            #expect(eventually { story.cdn.bytesSent(path) == 1_000_000 })
            story.cdn.release(path)
            for player in players { #expect(isContent(try player.value().body, of: path)) }
            #expect(try story.stat("stored_objects") == 0)
            #expect(storedFiles(story.cacheFolder).isEmpty)
            let before = story.cdn.requestCount(path)
            #expect(isContent(try story.get(path).body, of: path))
            #expect(story.cdn.requestCount(path) == before + 1)
        }

        @Test func `a player that joins a no-store body late starts immediately`() throws {
            let story = try Story()
            let path = segment("secret", 20_000_000)
            story.cdn.setBehaviour("cc=no-store", for: path)
            story.cdn.hold(path, afterBytes: 12_000_000)
            let first = try story.open(path)
            let begin = try first.read(12_000_000)
            let late = try story.open(path)
            let same = try late.read(1_000_000)
            story.cdn.release(path)
            #expect(isContent(same + (try late.readRest()), of: path))
            #expect(isContent(begin + (try first.readRest()), of: path))
        }

        @Test func `a no-store body gives its disk space back while it is read`() throws {
            let story = try Story()
            let path = segment("long", 24_000_000)
            story.cdn.setBehaviour("cc=no-store", for: path)
            let stream = try story.open(path)
            let begin = try stream.read(16_000_000)
            #expect(try story.settled("stored_bytes") { $0 < 12_000_000 } < 12_000_000)
            #expect(isContent(begin + (try stream.readRest()), of: path))
            #expect(try story.settled("stored_bytes") { $0 == 0 } == 0)
        }

        @Test func `players of a failing segment all get the error and cost one chain of requests`()
            throws
        {
            let story = try Story()
            let path = segment("gone", 1_000)
            story.cdn.setBehaviour("status=404", for: path)
            story.cdn.hold(path)
            let known = try story.stat("requests_total")
            let players = (0..<20).map { _ in Background { try story.get(path) } }
            #expect(try story.haveArrived(20, since: known))
            story.cdn.release(path)
            let answers = try players.map { try $0.value() }
            #expect(answers.count { $0.status == 404 && $0.complete } == 20)
            #expect(story.cdn.requestCount(path) == 1)
        }
    }
}
