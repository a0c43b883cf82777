import FixtureCDN
import ScenarioSupport
import Testing

/// Playlists whose numbers leap out of range, through the daemon.
extension Stories {
    @Suite(.tags(.crowded)) struct LeapingNumberTests {}
}

/// A dated live window of two segments of 6 s, `<name>0.ts` and `<name>1.ts`, of 3000 bytes each.
private func window(_ first: String, _ name: String, head: [String] = []) -> String {
    var lines = ["#EXTM3U", "#EXT-X-VERSION:7", "#EXT-X-TARGETDURATION:6"]
    // Lists with parts are reloaded after half a part target, which shortens the test.
    lines += ["#EXT-X-PART-INF:PART-TARGET=0.1", "#EXT-X-MEDIA-SEQUENCE:\(first)"] + head
    lines.append("#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:00Z")
    for number in 0..<2 { lines += ["#EXTINF:6,", segment("\(name)\(number)", 3_000)] }
    return lines.joined(separator: "\n") + "\n"
}

extension Stories.LeapingNumberTests {
    @Test(arguments: ["8000000000000000", "18446744073709551615"])
    func `a recording continues when the media sequence number leaps, and after a restart`(
        number: String
    ) throws {
        let stream = try RecordedStream()
        let story = stream.story
        story.cdn.put("/leap.m3u8", text: window("0", "a"))
        try stream.record("/leap.m3u8")
        #expect(try stream.has(2))
        story.cdn.put("/leap.m3u8", text: window(number, "b"))
        #expect(try stream.has(4))
        try story.restart()
        story.cdn.put("/leap.m3u8", text: window("0", "c"))
        #expect(try stream.has(6))
        try story.restart()
        story.cdn.put("/leap.m3u8", text: window(number, "d"))
        #expect(try stream.has(8))
        let list = try stream.stop()
        let names = ["a0", "a1", "b0", "b1", "c0", "c1", "d0", "d1"]
        #expect(list.segmentNames == names)
        story.cdn.stop()
        for (name, link) in zip(names, uriLines(list.text)) {
            let isRight = isContent(try story.follow(link).body, of: segment(name, 3_000))
            #expect(isRight, "\(name)")
        }
    }

    @Test
    func `a longer window survives a leap of the discontinuity sequence, and a restart`() throws {
        let story = try Story()
        func list() throws -> PlayerResponse {
            try story.follow(story.entry("/leap.m3u8", "dvr=1h"))
        }
        func put(_ first: String, _ name: String, _ discontinuity: String) {
            let tag = "#EXT-X-DISCONTINUITY-SEQUENCE:\(discontinuity)"
            story.cdn.put("/leap.m3u8", text: window(first, name, head: [tag]))
        }
        put("0", "a", "0")
        for link in uriLines(try list().text) { _ = try story.follow(link) }
        put("2", "b", "5000000000000000")
        #expect(try eventually { try list().segmentNames == ["a0", "a1", "b0", "b1"] })
        for link in uriLines(try list().text) { #expect(try story.follow(link).status == 200) }
        try story.restart()
        put("4", "c", "0")
        #expect(try eventually { try list().segmentNames.suffix(2) == ["c0", "c1"] })
        let text = try list().text
        #expect(text.split(separator: "\n").count < 100, "\(text.utf8.count) bytes")
    }

    @Test(arguments: [Int.min, .max, -1])
    func `a player may request any number after an origin renumbers`(number: Int) throws {
        let story = try Story()
        let control = ["#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES"]
        let entry = story.entry("/leap.m3u8", "dvr=1h")
        for (first, name) in [("100", "a"), ("0", "b"), ("9007199254740000", "c"), ("0", "d")] {
            story.cdn.put("/leap.m3u8", text: window(first, name, head: control))
            #expect(
                try eventually { try story.follow(entry).segmentNames.suffix(1) == ["\(name)1"] })
            let answer = try story.follow(entry + "&_HLS_msn=\(number)")
            #expect([200, 400, 503].contains(answer.status), "\(answer.text)")
        }
        #expect(story.daemon.isRunning)
        #expect(try story.follow(entry).status == 200)
    }
}

extension Stories.LeapingNumberTests {
    /// The product of bandwidth and duration exceeds 64 bits.
    @Test(arguments: [("9223372036854775807", "10"), ("200000000000", "400000000")])
    func `a feed survives an item of absurd bandwidth, and a restart with it`(
        bandwidth: String, duration: String
    ) throws {
        let feed = try ShownFeed(items: 3)
        let story = feed.story
        let absurd = vod((0..<3).map { segment("x\($0)", 60_000) })
        story.cdn.put("/absurd.m3u8", text: absurd.replacing("4.0,", with: "\(duration),"))
        story.cdn.put(
            "/i0/v.m3u8",
            text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=\(bandwidth)\n/absurd.m3u8\n")
        #expect(try feed.put().status == 200)
        #expect(try feed.settles(1, "ready"))
        for _ in 0..<2 {
            try story.restart()
            #expect(try story.follow("/api/feeds").text.contains("\"name\":\"f\""))
            // The plan of the absurd item is made again.
            _ = try feed.move(to: 2)
            #expect(try feed.settles(2, "whole"))
            _ = try feed.move(to: 0)
            #expect(try feed.settles(1, "ready"))
            let list = try story.get("/i0/v.m3u8")
            #expect(list.status == 200 && list.text.contains("BANDWIDTH=\(bandwidth)"))
        }
        #expect(eventually { story.cdn.requestCount(segment("x0", 60_000)) > 0 })
    }
}
