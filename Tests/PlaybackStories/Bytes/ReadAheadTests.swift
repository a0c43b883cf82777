import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Read-ahead: of a film of gigabytes, disk and origin see a window that moves with the player.
extension Stories {
    @Suite(.tags(.timed, .threads)) struct ReadAheadTests {
        /// The default of 32 MB, and what sockets and libcurl buffer.
        static let window = 32_000_000 + 16_000_000

        @Test func `a paused film of 2 GB takes a window of disk and transfer, not its size`()
            throws
        {
            let story = try Story()
            let film = segment("film", 2_000_000_000)
            let player = try story.open(film)
            let seen = try player.read(1_000_000)
            #expect(isContent(seen, of: film, from: 0, count: 1_000_000))
            #expect(eventually { (try? story.stat("read_ahead_pauses_total")) ?? 0 >= 1 })
            let sent = story.cdn.bytesSent(film)
            #expect(sent < Self.window + 1_000_000)
            #expect(diskBytes(story.cacheFolder) < Self.window + 1_000_000)
            player.abort()
        }

        @Test func `a player that reads in bursts gets every byte once`() throws {
            let story = try Story()
            let film = segment("bursts", 150_000_000)
            let player = try story.open(film)
            var offset = 0
            for burst in [1_000_000, 60_000_000, 20_000_000] {
                let bytes = try player.read(burst)
                #expect(isContent(bytes, of: film, from: offset, count: bytes.count))
                offset += bytes.count
                let pauses = try story.stat("read_ahead_pauses_total")
                _ = eventually(within: .milliseconds(300)) {
                    ((try? story.stat("read_ahead_pauses_total")) ?? 0) > pauses
                }
            }
            let rest = try player.readRest()
            #expect(isContent(rest, of: film, from: offset, count: 150_000_000 - offset))
            #expect(story.cdn.firstByteServedTwice(film) == nil)
        }

        @Test func `a paused player holds up no seek, although the origin ignores ranges`() throws {
            let story = try Story(["--read-ahead", "1000000"])
            let film = segment("seek", 40_000_000)
            story.cdn.setBehaviour("norange=1", for: film)
            let player = try story.open(film, receiveBuffer: 4096)
            #expect(isContent(try player.read(100_000), of: film, count: 100_000))
            let pauses = try story.settled("read_ahead_pauses_total") { $0 >= 1 }
            // The first seek gets a flight that begins at the first byte; the second one joins it
            // while it is paused for the first player.
            for first in [30_000_000, 36_000_000] {
                let range = "bytes=\(first)-\(first + 999)"
                let seek = Background { try story.get(film, range: range) }
                let answer = try seek.value(within: .seconds(20))
                #expect(answer.status == 206 && answer.complete)
                #expect(isContent(answer.body, of: film, from: first, count: 1_000))
                #expect(try story.settled("read_ahead_pauses_total") { $0 > pauses } > pauses)
            }
            #expect(story.cdn.requestCount(film) == 2)
            player.abort()
        }
    }

    /// Read-ahead where no times, memory or disk are measured.
    @Suite(.tags(.crowded, .threads)) struct ReadAheadPauseTests {
        @Test
        func `after a long pause the origin's connection is closed, and the rest still arrives`()
            throws
        {
            let story = try Story()
            let film = segment("pause", 120_000_000)
            let player = try story.open(film)
            let begin = try player.read(1_000_000)
            #expect(eventually(within: .seconds(20)) { story.cdn.activeRequests == 0 })
            let rest = try player.readRest()
            #expect(isContent(begin + rest, of: film))
            // Only bytes in the sockets when the connection was closed are fetched twice.
            let requests = story.cdn.requestCount(film)
            #expect(requests >= 2)
            #expect(
                story.cdn.bytesSent(film) <= 120_000_000 + (requests - 1) * mostInSockets())
        }

        @Test(arguments: ["--slots", "--host-limit"])
        func `paused viewers of long films make room for another viewer at once`(limit: String)
            throws
        {
            // The patience with a paused viewer, 10 s, exceeds the wait for a slot.
            let story = try Story([
                limit, "2", "--slot-timeout", "5", "--read-ahead", "1000000",
            ])
            let films = ["a", "b"].map { segment("film-\($0)", 40_000_000) }
            let viewers = try films.map { try story.open($0, receiveBuffer: 64 << 10) }
            let begins = try viewers.map { try $0.read(100_000) }
            #expect(films.map { story.cdn.requestCount($0) } == [1, 1])
            let other = segment("other", 200_000)
            let answer = try story.get(other)
            #expect(answer.status == 200 && isContent(answer.body, of: other), "\(answer.text)")
            for (index, film) in films.enumerated() {
                #expect(isContent(begins[index] + (try viewers[index].readRest()), of: film))
            }
            let repeated = films.reduce(-2) { $0 + story.cdn.requestCount($1) }
            #expect(repeated >= 1)
            // Only bytes in the sockets when a connection was closed are fetched twice.
            let sent = films.reduce(0) { $0 + story.cdn.bytesSent($1) }
            #expect(sent <= 80_000_000 + repeated * mostInSockets())
        }
    }
}

/// The most bytes that the kernel buffers between a sender and a receiver, in both sockets
/// (tcp(7)).
private func mostInSockets() -> Int {
    ["tcp_rmem", "tcp_wmem"].reduce(0) { sum, name in
        let text = (try? readFile("/proc/sys/net/ipv4/\(name)")) ?? []
        let limits = String(decoding: text, as: UTF8.self).split { $0.isWhitespace }
        return sum + (limits.last.flatMap { Int($0) } ?? 6 << 20)
    }
}
