import FixtureCDN
import ScenarioSupport
import Testing

/// Titles of which only the first segments are stored.
extension Stories {
    @Suite(.tags(.timed)) struct FeedHeadTests {
        private let names = (0..<6).map { "/bytes/50000/h\($0).ts" }

        /// Plays all of it twice.
        private func play(_ story: Story) throws -> [Int] {
            for _ in 0..<2 {
                for (number, link) in uriLines(try story.get("/v.m3u8").text).enumerated() {
                    let answer = try story.follow(link)
                    #expect(isContent(answer.body, of: names[number]))
                }
            }
            return names.map { story.cdn.requestCount($0) }
        }

        @Test func `the first segments are kept, and the rest is passed through`() throws {
            let story = try Story(["--keep-head", "2"])
            story.cdn.put("/v.m3u8", text: vod(names))
            #expect(try play(story) == [1, 1, 2, 2, 2, 2])
            let stored = try story.stat("stored_objects")
            #expect(stored == 3, "the list and two segments")
            // The origin did not forbid to store it.
            let passed = try story.follow(uriLines(try story.get("/v.m3u8").text)[2])
            #expect(passed["Cache-Status"]?.contains("detail=not-kept") == true)
        }

        @Test func `a range of a passed-through segment is answered as a range`() throws {
            let story = try Story(["--keep-head", "1"])
            story.cdn.put("/v.m3u8", text: vod(names))
            let link = uriLines(try story.get("/v.m3u8").text)[3]
            let answer = try story.follow(link, headers: [("Range", "bytes=100-299")])
            #expect(answer.status == 206)
            #expect(isContent(answer.body, of: names[3], from: 100, count: 200))
        }

        @Test func `the rest can be left to the origin`() throws {
            let story = try Story(["--keep-head", "2", "--beyond-head", "origin"])
            story.cdn.put("/v.m3u8", text: vod(names))
            let links = uriLines(try story.get("/v.m3u8").text)
            #expect(links[1].hasPrefix("/s/") && links[2] == story.cdn.url(names[2]))
        }

        @Test func `a range behind the head does not continue one of another link`() throws {
            let story = try Story(["--keep-head", "1"])
            let segments = ["100@50", "200", "300"].flatMap { range in
                ["#EXTINF:4,", "#EXT-X-BYTERANGE:\(range)", names[0]]
            }
            let lines = ["#EXTM3U", "#EXT-X-VERSION:4", "#EXT-X-TARGETDURATION:4"] + segments
            story.cdn.put(
                "/v.m3u8", text: (lines + ["#EXT-X-ENDLIST", ""]).joined(separator: "\n"))
            let list = try story.get("/v.m3u8").text
            #expect(Set(uriLines(list)).count == 2)
            let ranges = list.split(separator: "\n").filter { $0.hasPrefix("#EXT-X-BYTERANGE:") }
            #expect(ranges.map { $0.dropFirst(17) } == ["100@50", "200@150", "300@350"])
        }

        @Test func `one origin may be kept whole`() throws {
            let story = try Story([
                "--keep-head", "2", "--origin-keep-head", "127.0.0.1=1000000",
            ])
            story.cdn.put("/v.m3u8", text: vod(names))
            #expect(try play(story) == [1, 1, 1, 1, 1, 1])
        }

        @Test func `a growing stream is kept as usual`() throws {
            let story = try Story(["--keep-head", "1"])
            _ = story.cdn.live("/live.m3u8", liveWindow())
            #expect(try story.links(in: "/live.m3u8").allSatisfy { !$0.contains("keep=0") })
        }

        @Test func `nothing is preloaded that would not be stored`() throws {
            let story = try Story(["--keep-head", "2", "--look-ahead", "60"])
            story.cdn.put("/v.m3u8", text: vod(names))
            let links = uriLines(try story.get("/v.m3u8").text)
            _ = try story.follow(links[0])
            #expect(eventually { story.cdn.bytesSent(names[1]) == 50_000 })
            #expect(try story.settled("ahead_running") { $0 == 0 } == 0)
            #expect(names[2...].allSatisfy { story.cdn.requestCount($0) == 0 })
        }

        @Test(arguments: [
            ["--keep-head", "0"], ["--keep-head", "x"], ["--beyond-head", "cdn"],
            ["--origin-keep-head", "a=b"], ["--origin-keep-head", "2"], ["--look-ahead", "on"],
            ["--look-ahead", "0"], ["--origin-look-ahead", "a=fast"],
        ])
        func `invalid settings are refused with the valid form`(_ arguments: [String])
            throws
        {
            let serve = [try DaemonProcess.builtBinary(), "serve", "--port", "0"]
            let result = try Tool.run(serve + arguments)
            #expect(result.status == 78)
            #expect(result.stderr.contains("configuration error"), "\(result.stderr)")
        }
    }
}
