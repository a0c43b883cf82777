import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// The end of the daemon at any instant, and what it finds afterwards.
extension Stories {
    @Suite(.tags(.timed, .threads)) struct RestartTests {
        @Test func `complete objects are served after a restart with the origin gone`() throws {
            let story = try Story()
            let paths = (0..<20).map { segment("kept\($0)", 300_000) }
            for path in paths { _ = try story.get(path) }
            try story.restart()
            story.cdn.stop()
            for path in paths {
                let answer = try story.get(path)
                #expect(answer.status == 200 && isContent(answer.body, of: path))
                #expect(answer["Cache-Status"]?.contains("hit") == true)
            }
        }

        @Test func `a killed daemon keeps committed bytes and mixes no versions`() throws {
            let story = try Story()
            let done = (0..<20).map { segment("done\($0)", 200_000) }
            for path in done { #expect(isContent(try story.get(path).body, of: path)) }
            // A listing waits until received bytes are committed.
            #expect(try story.player().get("/api/titles").status == 200)
            #expect(try story.stat("stored_objects") == 20)
            story.cdn.setBehaviour("rate=500000", for: "/bytes/*")
            let storm = (0..<24).map { segment("storm\($0)", 1_000_000) }
            let streams = try storm.map { try story.open($0) }
            for stream in streams { _ = try stream.read(750_000) }
            #expect(try story.player().get("/api/titles").status == 200)
            story.stop(SIGKILL)
            story.cdn.resetLog()
            story.cdn.setBehaviour(nil, for: "/bytes/*")
            try story.restart()
            for path in done + storm {
                let answer = try story.get(path)
                #expect(answer.complete && isContent(answer.body, of: path), "\(path)")
            }
            for path in done { #expect(story.cdn.requestCount(path) == 0, "\(path)") }
            let again = story.cdn.bytesSent()
            print("after the kill: \(again) of 24000000 bytes had to come again")
            // A growing object's header is updated every second.
            #expect(again <= 18_000_000)
            for path in storm { #expect(story.cdn.firstByteServedTwice(path) == nil) }
        }

        /// A kill may come between the name of an object and what was learned from its bytes.
        @Test func `a playlist without a name of one stays one after a kill at once`() throws {
            let story = try Story()
            for number in 1...6 {
                let path = "/live/user/\(number)"
                story.cdn.put(
                    path,
                    text: "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n/bytes/9000/s.ts\n",
                    contentType: "application/octet-stream")
                let first = try story.get(path).text
                try story.restart(SIGKILL)
                let second = try story.get(path)
                #expect(first.contains("/s/") && second.text == first)
                #expect(second["Content-Type"] == "application/vnd.apple.mpegurl")
            }
        }

        @Test func `repeated kills never leave anything wrong`() throws {
            let story = try Story()
            let paths = (0..<12).map { segment("round\($0)", 400_000) }
            story.cdn.setBehaviour("rate=1000000", for: "/bytes/*")
            for round in 0..<5 {
                let streams = try paths.map { try story.open($0) }
                for stream in streams { _ = try stream.read(40_000 * (round + 1)) }
                story.stop(SIGKILL)
                try story.restart()
            }
            story.cdn.setBehaviour(nil, for: "/bytes/*")
            for path in paths { #expect(isContent(try story.get(path).body, of: path), "\(path)") }
            #expect(try story.stat("damaged_objects_total") == 0)
            #expect(listFolder(story.cacheFolder + "/new").isEmpty)
            let before = story.cdn.requestCount()
            for path in paths { #expect(isContent(try story.get(path).body, of: path)) }
            #expect(story.cdn.requestCount() == before)
        }

        @Test func `a half that was stored before a restart is completed, not fetched again`()
            throws
        {
            let story = try Story()
            let path = segment("half", 4_000_000)
            try story.leave(path, after: 1_000_000)
            try story.restart()
            story.cdn.resetLog()
            #expect(isContent(try story.get(path).body, of: path))
            #expect(story.cdn.bytesServedRanges(path) == [1_000_000..<4_000_000])
        }

        @Test func `a garbage index loses nothing that is stored`() throws {
            let story = try Story()
            let path = segment("found", 100_000)
            _ = try story.get(path)
            story.stop()
            for suffix in ["-wal", "-shm"] { unlink(story.cacheFolder + "/index.sqlite" + suffix) }
            try writeFile(story.cacheFolder + "/index.sqlite", Array("this is no database".utf8))
            try story.restart()
            story.cdn.stop()
            #expect(isContent(try story.get(path).body, of: path))
        }

        @Test func `a damaged object is fetched again and never served`() throws {
            let story = try Story()
            let path = segment("rotten", 100_000)
            _ = try story.get(path)
            story.stop()
            let file = try #require(storedFiles(story.cacheFolder).first)
            #expect(truncate(file, 50_000) == 0)
            try story.restart()
            let answer = try story.get(path)
            #expect(answer.complete && isContent(answer.body, of: path))
        }

        @Test(arguments: ["#EXTM3U", "s1.ts"])
        func `a stored playlist that decayed is fetched again, and is no fault of the origin`(
            _ place: String
        ) throws {
            let story = try Story()
            let path = "/decayed/list.m3u8"
            story.cdn.put(path, text: vod(["s0.ts", "s1.ts"]))
            let links = try story.links(in: path)
            story.stop()
            for name in storedFiles(story.cacheFolder) {
                var bytes = try readFile(name)
                // The last one: the header of the object stands before its body.
                guard let range = bytes.ranges(of: Array(place.utf8)).last else { continue }
                bytes[range.lowerBound + 1] ^= 1
                try writeFile(name, bytes)
            }
            try story.restart()
            #expect(try story.links(in: path) == links)
            #expect(story.cdn.requestCount(path) == 2)
            #expect(!story.daemon.standardError.contains("bad playlist"))
        }

        @Test func `SIGTERM lets a running body complete`() throws {
            let story = try Story()
            let path = segment("finishing", 1_000_000)
            story.cdn.setBehaviour("rate=2000000", for: path)
            let stream = try story.open(path)
            let begin = try stream.read(100_000)
            story.daemon.kill(SIGTERM)
            #expect(isContent(begin + (try stream.readRest()), of: path))
            #expect(try story.daemon.waitForExit() == .code(0))
        }
    }
}
