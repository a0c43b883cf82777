import FixtureCDN
import ScenarioSupport
import Testing

/// Keys of longer windows that their origin has dropped.
extension Stories.TimeShiftTests {
    /// Nothing lets a cache use the keys without asking their origin.
    @Test(arguments: [404, 410], ["max-age=0", "private, no-cache"])
    func `a key that left the origin's window opens the segments of a longer one`(
        status: Int, control: String
    ) throws {
        let story = try Story()
        let keys = ["one", "two"].map { "/bytes/16/\($0).key" }
        let plain = Behaviour(query: "noetag=1&lastmod=&cc=\(percentEncoded(control))")
        for key in keys { story.cdn.setBehaviour(plain, for: key) }
        func put(_ first: Int, _ key: String) {
            let segments = (first..<(first + 3)).map { "#EXTINF:1,\n\(segment("s\($0)", 1_000))\n" }
            story.cdn.put(
                "/l.m3u8",
                text: "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-PART-INF:PART-TARGET=0.1\n"
                    + "#EXT-X-MEDIA-SEQUENCE:\(first)\n#EXT-X-KEY:METHOD=AES-128,URI=\"\(key)\"\n"
                    + segments.joined())
        }
        put(0, keys[0])
        let entry = story.entry("/l.m3u8", "dvr=1m")
        _ = try story.follow(entry)
        #expect(try story.settled("time_shift_fetched_total") { $0 == 4 } == 4)
        put(3, keys[1])
        let hasChanged = try eventually { try story.follow(entry).segmentNames.count == 6 }
        #expect(hasChanged)
        #expect(try story.settled("time_shift_fetched_total") { $0 == 8 } == 8)
        let named = links(try story.follow(entry).text).filter { $0.hasPrefix("/k/") }
        try #require(named.count == 2)
        let gone = Behaviour(query: "status=\(status)")
        for key in keys { story.cdn.setBehaviour(gone, for: key) }
        let answer = try story.follow(named[0])
        let isKey = isContent(answer.body, of: keys[0])
        #expect(answer.status == 200 && isKey)
        // The list still shows the second one, which may be another key by now.
        #expect(try story.follow(named[1]).status == status)
        // Whether a viewer may have a key is the origin's to say.
        story.cdn.setBehaviour("status=403", for: keys[0])
        #expect(try story.follow(named[0]).status == 403)
    }
}
