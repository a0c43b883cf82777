import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// The slots for origins: never exceeded, and playlists do not wait for one.
extension Stories {
    @Suite(.tags(.timed)) struct SlotTests {
        @Test func `250 segments at once take 32 slots, and a playlist passes them all`() throws {
            let story = try Story(["--stall-timeout", "60"])
            story.cdn.put("/a.m3u8", text: "#EXTM3U\n#EXTINF:4,\na.ts\n#EXT-X-ENDLIST\n")
            story.cdn.setBehaviour("as=/a.m3u8", for: "/list*")
            let paths = (0..<250).map { segment("feed\($0 / 50)-\($0 % 50)", 40_000) }
            for path in paths { story.cdn.hold(path, afterBytes: 1_000) }
            let feeds = paths.map { path in
                Background {
                    let answer = try story.get(path)
                    return answer.status == 200 && isContent(answer.body, of: path)
                }
            }
            #expect(try story.settled("slots_in_use") { $0 == 32 } == 32)
            #expect(try story.settled("transfers_waiting") { $0 == 218 } == 218)
            for index in 0..<3 { #expect(try story.get("/list\(index).m3u8").status == 200) }
            #expect(try story.stat("transfers_waiting") == 218)
            for path in paths { story.cdn.release(path) }
            #expect(try feeds.count { try $0.value(within: .seconds(30)) } == 250)
            #expect(try story.stat("peak_slots_in_use") == 32)
            #expect(story.cdn.peakConcurrentRequests <= 33)
            #expect(story.cdn.requestCount() == 253)
        }

        @Test func `a slow host that holds all slots delays no other host`() throws {
            let story = try Story(["--stall-timeout", "60"])
            let other = FixtureCDN(address: "127.0.0.2")
            try other.start()
            defer { other.stop() }
            let paths = (0..<48).map { segment("slow\($0)", 40_000) }
            for path in paths { story.cdn.hold(path, afterBytes: 1_000) }
            let slow = try paths.map { try story.open($0) }
            #expect(try story.settled("slots_in_use") { $0 == 32 } == 32)
            #expect(try story.settled("transfers_waiting") { $0 == 16 } == 16)
            let path = segment("s", 1_000)
            #expect(isContent(try story.player().get("/" + other.url(path)).body, of: path))
            other.put("/l.m3u8", text: vod([segment("t", 1_000)]))
            #expect(try story.player().get("/" + other.url("/l.m3u8")).status == 200)
            #expect(try story.stat("peak_slots_in_use") == 33)
            #expect(try story.stat("transfers_waiting") == 16)
            for stream in slow { stream.abort() }
            #expect(try story.settled("slots_in_use") { $0 == 0 } == 0)
        }

        @Test func `waiting players that leave release their place and their slot`() throws {
            let story = try Story(["--slots", "2"])
            story.cdn.hold(segment("a", 1_000_000), afterBytes: 1_000)
            story.cdn.hold(segment("b", 1_000_000), afterBytes: 1_000)
            let running = try ["a", "b"].map { try story.open(segment($0, 1_000_000)) }
            for stream in running { _ = try stream.read(1_000) }
            let waiting = try (0..<20).map { try story.open(segment("w\($0)", 1_000)) }
            #expect(try story.settled("transfers_waiting") { $0 == 20 } == 20)
            for stream in waiting { stream.abort() }
            #expect(try story.settled("transfers_waiting") { $0 == 0 } == 0)
            for stream in running { stream.abort() }
            #expect(try story.settled("slots_in_use") { $0 == 0 } == 0)
            let next = segment("next", 1_000)
            #expect(isContent(try story.get(next).body, of: next))
            #expect(story.cdn.requestCount() == 3)
        }

        @Test(arguments: ["--slots", "--host-limit"])
        func `a player that finds all slots taken for long is told which option changes that`(
            option: String
        ) throws {
            let story = try Story([option, "1", "--slot-timeout", "1", "--stall-timeout", "60"])
            let endless = segment("endless", 1_000_000)
            story.cdn.hold(endless, afterBytes: 1_000)
            let running = try story.open(endless)
            _ = try running.read(1_000)
            let answer = try story.get(segment("waits", 1_000))
            #expect(answer.status == 503 && answer["Retry-After"] == "5", "\(answer.text)")
            #expect(answer.text.hasPrefix("daemon error: "), "\(answer.text)")
            #expect(answer.text.contains(option) && answer.text.contains("--slot-timeout"))
            #expect(answer["Proxy-Status"]?.contains("connection_limit_reached") == true)
            #expect(story.cdn.requestCount(segment("waits", 1_000)) == 0)
            #expect(try story.stat("transfers_waiting") == 0)
            // The origin is not at fault: it is requested as soon as there is room.
            running.abort()
            let next = segment("waits", 1_000)
            #expect(try eventually { try story.get(next).status == 200 })
        }

        @Test func `playlists get a slot while all slots are taken`() throws {
            let story = try Story(["--slots", "1", "--slot-timeout", "1", "--stall-timeout", "60"])
            let endless = segment("endless", 1_000_000)
            story.cdn.hold(endless, afterBytes: 1_000)
            _ = try story.open(endless).read(1_000)
            story.cdn.put("/l.m3u8", text: vod([segment("s", 1_000)]))
            #expect(try story.get("/l.m3u8").status == 200)
        }

        @Test func `a playlist waits for its host no longer than other requests`() throws {
            let story = try Story([
                "--host-limit", "1", "--slot-timeout", "1", "--stall-timeout", "60",
            ])
            story.cdn.put("/l.m3u8", text: vod([segment("s", 1_000)]))
            let endless = segment("endless", 1_000_000)
            story.cdn.hold(endless, afterBytes: 1_000)
            let running = try story.open(endless)
            _ = try running.read(1_000)
            let answer = try story.get("/l.m3u8")
            #expect(answer.status == 503 && answer["Retry-After"] == "5", "\(answer.text)")
            #expect(answer.text.contains("--host-limit"), "\(answer.text)")
            #expect(story.cdn.requestCount("/l.m3u8") == 0)
        }

        @Test func `a host limit of one is never exceeded`() throws {
            let story = try Story(["--host-limit", "1"])
            story.cdn.setBehaviour("fb=20", for: "/bytes/*")
            let answers = try inParallel(12) { try story.get(segment("h\($0)", 5_000)) }
            #expect(answers.count { $0.status == 200 && $0.body.count == 5_000 } == 12)
            #expect(story.cdn.peakConcurrentRequests == 1)
        }

        @Test func `fixed slots are released by every way a transfer can end`() throws {
            let story = try Story(["--slots", "4"])
            let ends = ["status=404", "reset=1000", "status=503&fails=1", "trunc=10&fails=1", ""]
            for (index, end) in ends.enumerated() {
                story.cdn.setBehaviour(Behaviour(query: end), for: "/bytes/5000/end\(index)*")
            }
            _ = try inParallel(60) { index in
                // Some of these end in a broken connection before a head, as expected here.
                _ = try? story.get(segment("end\(index % 5)-\(index)", 5_000))
            }
            #expect(try story.settled("slots_in_use") { $0 == 0 } == 0)
            #expect(try story.stat("transfers_waiting") == 0)
            #expect(try story.stat("peak_slots_in_use") <= 4)
        }
    }
}
