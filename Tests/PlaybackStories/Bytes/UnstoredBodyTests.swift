import FixtureCDN
import ScenarioSupport
import Testing

extension Stories {
    /// Players of one body that is not stored, far apart.
    @Suite(.tags(.timed, .threads)) struct UnstoredBodyTests {
        private let film = segment("unstored", 80_000_000)

        private func makeStory(
            _ film: String, _ behaviour: String, readAhead: String = "1000000"
        ) throws -> Story {
            let story = try Story([
                "--read-ahead", readAhead, "--cache-size", "64000000", "--min-free", "0",
            ])
            story.cdn.setBehaviour(Behaviour(stringLiteral: "cc=no-store" + behaviour), for: film)
            // Until both players have joined the transfer.
            story.cdn.hold(film, afterBytes: 500_000)
            return story
        }

        /// Without a validator, a comparison of the bytes before it proves the rest.
        @Test(arguments: ["", "&noetag=1&lastmod="])
        func `a slow player neither evicts the cache nor holds up a fast one`(
            _ validators: String
        ) throws {
            let story = try makeStory(film, validators)
            let kept = segment("kept", 20_000_000)
            #expect(isContent(try story.get(kept).body, of: kept))
            let slow = try story.open(film, receiveBuffer: 64 << 10)
            let begin = try slow.read(100_000)
            let fast = try story.open(film)
            let first = try fast.read(100_000)
            #expect(story.cdn.requestCount(film) == 1)
            story.cdn.release(film)
            #expect(isContent(first + (try fast.readRest()), of: film))
            // The kept file, and a few windows of 9 MB.
            #expect(try story.settled("stored_bytes") { $0 < 65_000_000 } < 65_000_000)
            #expect(try story.stat("evictions_total") == 0)
            #expect(isContent(begin + (try slow.readRest()), of: film))
            #expect(story.cdn.requestCount(film) >= 2)
        }

        @Test func `where nothing proves the rest, a fast player waits for a slow one`() throws {
            let film = segment("unproven", 160_000_000)
            // The fast player stays well within this distance, so that no transfer pauses for it.
            let story = try makeStory(
                film, "&noetag=1&lastmod=&norange=1", readAhead: "40000000")
            let slow = try story.open(film, receiveBuffer: 64 << 10)
            let begin = try slow.read(100_000)
            let hasJoined = Barrier("the fast player has joined")
            let fast = Background {
                let stream = try story.open(film)
                let first = try stream.read(100_000)
                hasJoined.arrive()
                return first + (try stream.readRest())
            }
            #expect(eventually { hasJoined.isOpen })
            #expect(story.cdn.requestCount(film) == 1)
            story.cdn.release(film)
            #expect(try story.settled("read_ahead_pauses_total") { $0 > 0 } > 0)
            // Two windows of 48 MB, and what sockets and libcurl buffer.
            #expect(story.cdn.bytesSent(film) < 140_000_000)
            #expect(isContent(begin + (try slow.readRest()), of: film))
            #expect(isContent(try fast.value(within: .seconds(30)), of: film))
            #expect(story.cdn.requestCount(film) == 1)
        }
    }
}
