import FixtureCDN
import ScenarioSupport
import Testing

/// Names that an origin reuses: bytes stored under their former meaning are never served for the
/// new one.
extension Stories {
    @Suite(.tags(.crowded)) struct LivePlaylistEpochs {}
}

/// A live list whose origin the test moves, with one segment of `content` under each name.
private final class Channel {
    let story: Story
    let path: String

    init(_ arguments: [String] = [], path: String = "/l.m3u8") throws {
        story = try Story(arguments)
        self.path = path
    }

    /// Puts a list and its segments, and waits until players get that list.
    ///
    /// - Returns: the links of the segments.
    @discardableResult
    func show(_ first: Int, _ names: [String], _ content: String, head: [String] = []) throws
        -> [String]
    {
        for name in names { story.cdn.put("/\(name)", text: "\(content) of \(name)") }
        let lines =
            ["#EXTM3U", "#EXT-X-TARGETDURATION:1", "#EXT-X-MEDIA-SEQUENCE:\(first)"] + head
            + names.flatMap { ["#EXTINF:1,", $0] }
        let text = lines.joined(separator: "\n") + "\n"
        story.cdn.put(path, text: text)
        let count = story.cdn.requestCount(path)
        var list = ""
        guard
            try eventually({
                let answer = try story.get(path)
                list = answer.text
                // A stored list that is sent while a fetch goes on has no status of the origin.
                return story.cdn.requestCount(path) > count
                    && answer["Cache-Status"]?.contains("fwd-status=") == true
            })
        else { throw ScenarioFailure("the list was not asked for") }
        return uriLines(list)
    }

    func play(_ links: [String]) throws -> [String] { try links.map { try story.follow($0).text } }
}

/// `s<number>.ts` for each number.
private func names(_ numbers: ClosedRange<Int>) -> [String] { numbers.map { "s\($0).ts" } }

extension Stories.LivePlaylistEpochs {
    @Test(arguments: [false, true])
    func `a stream that restarts its numbering serves no old byte, not even after a restart`(
        _ restarts: Bool
    ) throws {
        let channel = try Channel()
        let former = try channel.show(0, names(0...2), "first")
        #expect(try channel.play(former).last == "first of s2.ts")
        try channel.show(7, names(7...9), "first")
        if restarts { try channel.story.restart() }
        let links = try channel.show(0, names(0...2), "second")
        #expect(try channel.play(links) == names(0...2).map { "second of \($0)" })
        if restarts { return }
        // A player with the old list gets stored segments; the rest is gone.
        #expect(links != former)
        #expect(try channel.play([former[1]]) == ["first of s1.ts"])
        #expect(try channel.story.stat("live_epochs_total") == 1)
    }

    @Test
    func `an epoch survives a restart`() throws {
        let channel = try Channel()
        let first = try channel.show(0, names(0...2), "first")
        _ = try channel.play(first)
        try channel.show(17, names(17...19), "first")
        let second = try channel.show(0, names(0...2), "second")
        _ = try channel.play(second)
        try channel.story.restart()
        #expect(try channel.show(0, names(0...2), "second") == second)
        let bytes = channel.story.cdn.bytesSent("/s1.ts")
        #expect(try channel.play(second).last == "second of s2.ts")
        // Revalidated once, since the daemon did not see what the origin did meanwhile.
        #expect(channel.story.cdn.bytesSent("/s1.ts") == bytes)
    }

    @Test
    func `a list that was empty once keeps its links`() throws {
        let channel = try Channel()
        let links = try channel.show(95, names(95...101), "only")
        #expect(try channel.show(0, [], "none") == [])
        // Without its query, a link leads to its place in the window before.
        #expect(try channel.play([path(of: links[6])]) == ["only of s101.ts"])
        let next = try channel.show(96, names(96...102), "only")
        #expect(next.prefix(6) == links.suffix(6))
        #expect(try channel.story.stat("live_epochs_total") == 0)
    }

    @Test
    func `a reused name is revalidated when it returns`() throws {
        let channel = try Channel()
        _ = try channel.play(try channel.show(10, ["a.ts", "b.ts", "c.ts"], "first"))
        try channel.show(11, ["b.ts", "c.ts", "d.ts"], "first")
        let links = try channel.show(14, ["a.ts", "b.ts", "e.ts"], "second")
        #expect(try channel.play(links) == ["a", "b", "e"].map { "second of \($0).ts" })
    }

    @Test(arguments: ["header=X-None:1", "noetag=1&lastmod="])
    func `names with a new date refer to new segments`(_ validators: String) throws {
        let channel = try Channel()
        channel.story.cdn.setBehaviour(Behaviour(query: validators), for: "/s*")
        let date = "#EXT-X-PROGRAM-DATE-TIME:2026-01-01T10:00:"
        let first = try channel.show(5, names(5...7), "first", head: [date + "00Z"])
        _ = try channel.play(first)
        let second = try channel.show(5, names(5...7), "second", head: [date + "30Z"])
        #expect(try channel.play(second) == names(5...7).map { "second of \($0)" })
        #expect(try channel.story.stat("live_epochs_total") == 1)
    }

    @Test func `segments of a continuing playlist are not requested twice`() throws {
        let channel = try Channel()
        for first in 3...5 {
            let list = names(first...first + 2)
            _ = try channel.play(try channel.show(first, list, "only"))
        }
        // A cache on the origin's side that is one segment behind.
        _ = try channel.play(try channel.show(4, names(4...6), "only"))
        #expect(try channel.story.stat("live_epochs_total") == 0)
        for number in 3...7 {
            let requests = channel.story.cdn.requests.filter { $0.path == "/s\(number).ts" }
            #expect(requests.count { $0.status == 200 } == 1)
        }
        #expect(channel.story.cdn.requestCount("/s3.ts") == 1)
    }

    @Test
    func `an initialization section replaced at a discontinuity is revalidated`()
        throws
    {
        let channel = try Channel()
        let map = "#EXT-X-MAP:URI=\"init.mp4\""
        channel.story.cdn.put("/init.mp4", text: "first init")
        let list = channel.story
        try channel.show(5, ["5.m4s", "6.m4s"], "media", head: [map])
        let first = try #require(try list.links(in: channel.path).first)
        #expect(try list.follow(first).text == "first init")
        channel.story.cdn.put("/init.mp4", text: "second init")
        try channel.show(6, ["6.m4s"], "media", head: [map])
        let text =
            "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:6\n\(map)\n#EXTINF:1,\n"
            + "6.m4s\n#EXT-X-DISCONTINUITY\n\(map)\n#EXTINF:1,\n7.m4s\n"
        channel.story.cdn.put(channel.path, text: text)
        #expect(try eventually { try list.get(channel.path).text.contains("DISCONTINUITY") })
        #expect(try list.follow(first).text == "second init")
    }

    @Test
    func `playlists of different viewers share the segments that both name`() throws {
        let story = try Story()
        let list = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:4\n#EXTINF:1,\ns4.ts\n"
        for viewer in 1...3 { story.cdn.put("/v\(viewer).m3u8", text: list) }
        story.cdn.setBehaviour("cc=private,%20no-store", for: "/v*")
        story.cdn.put("/s4.ts", text: "shared")
        for viewer in 1...3 {
            let link = try #require(try story.links(in: "/v\(viewer).m3u8").first)
            #expect(try story.follow(link).text == "shared")
        }
        #expect(story.cdn.requestCount("/s4.ts") == 1)
    }
}
