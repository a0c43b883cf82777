import FixtureCDN
import ScenarioSupport
import Testing

/// A longer window belongs to a list, whatever signature or token its URL carries.
extension Stories {
    @Suite(.tags(.crowded)) struct TimeShiftNameTests {}
}

/// A live list that a multivariant playlist names under several URLs.
private final class TokenedStream {
    let stream: ShiftedStream
    private var links: [String]

    var story: Story { stream.story }

    /// Starts both; each URL has one of the queries, and `arguments` are added to `serve`.
    init(_ queries: [String], _ arguments: [String] = []) throws {
        stream = try ShiftedStream("60s", arguments)
        let variants = queries.enumerated().map {
            "#EXT-X-STREAM-INF:BANDWIDTH=\($0.offset + 1)\nl.m3u8?\($0.element)\n"
        }
        stream.story.cdn.put("/m.m3u8", text: "#EXTM3U\n" + variants.joined())
        links = []
        links = try lists()
    }

    /// The links to the list in a session with the given headers.
    func lists(_ headers: String = "") throws -> [String] {
        uriLines(try story.follow(story.entry("/m.m3u8", "dvr=60s" + headers)).text)
    }

    /// The list under one of its URLs.
    func list(_ url: Int) throws -> PlayerResponse { try story.follow(links[url]) }

    /// Requests the list under one of its URLs until it ends with a segment.
    func list(_ url: Int, endingWith segment: String) throws -> [String] {
        var names = try list(url).segmentNames
        _ = try eventually {
            if names.last == segment { return true }
            names = try list(url).segmentNames
            return false
        }
        return names
    }

    /// Plays the list under one of its URLs until it reaches back to `s0` from `s5`.
    func play(_ url: Int) throws {
        _ = try list(url)
        #expect(try story.settled("time_shift_fetched_total") { $0 >= 3 } >= 3)
        stream.window.advance(by: 3)
        #expect(try list(url, endingWith: "s5") == Self.names(0...5))
        #expect(try story.settled("time_shift_fetched_total") { $0 >= 6 } >= 6)
    }

    static func names(_ numbers: ClosedRange<Int>) -> [String] { numbers.map { "s\($0)" } }
}

extension Stories.TimeShiftNameTests {
    private static let signatures = [signature(1), signature(2)]

    @Test(arguments: [false, true])
    func `a list under another signature continues its window`(isRestarted: Bool) throws {
        let tokened = try TokenedStream(Self.signatures)
        try tokened.play(0)
        if isRestarted { try tokened.story.restart() }
        #expect(try tokened.list(1).segmentNames == TokenedStream.names(0...5))
        tokened.stream.window.advance(by: 2)
        #expect(try tokened.list(1, endingWith: "s7") == TokenedStream.names(0...7))
        #expect(try tokened.list(0).segmentNames == TokenedStream.names(0...7))
    }

    @Test
    func `a list is followed under the URL that players used last`() throws {
        let tokened = try TokenedStream(Self.signatures)
        try tokened.play(0)
        _ = try tokened.list(1)
        func asked() -> [String] {
            tokened.story.cdn.requests.map(\.target).filter { $0.hasPrefix("/l.m3u8") }
        }
        let before = asked().count
        // One may have been under way.
        #expect(eventually { asked().count >= before + 4 })
        #expect(Set(asked().dropFirst(before + 1)) == ["/l.m3u8?\(signature(2))"])
    }

    @Test(arguments: [["q=1", "q=2"], ["token=1", "token=2"]])
    func `lists whose URLs differ in other than a signature have windows of their own`(
        queries: [String]
    ) throws {
        let tokened = try TokenedStream(queries)
        try tokened.play(0)
        #expect(try tokened.list(1).segmentNames == TokenedStream.names(3...5))
    }

    @Test
    func `without key rules each URL has a window of its own`() throws {
        let tokened = try TokenedStream(Self.signatures, ["--keys", "off"])
        try tokened.play(0)
        #expect(try tokened.list(1).segmentNames == TokenedStream.names(3...5))
    }

    @Test
    func `a window that was saved under its URL is found, and goes on under its key`() throws {
        let folder = try TemporaryFolder()
        let file = folder.file("sluice.json")
        try writeFile(file, Array(#"{"keys": "off"}"#.utf8))
        let tokened = try TokenedStream(Self.signatures, ["--config", file])
        try tokened.play(0)
        try writeFile(file, Array("{}".utf8))
        try tokened.story.restart()
        #expect(try tokened.list(0).segmentNames == TokenedStream.names(0...5))
        #expect(try tokened.list(1).segmentNames == TokenedStream.names(0...5))
        try tokened.story.restart()
        #expect(try tokened.list(1).segmentNames == TokenedStream.names(0...5))
    }

    @Test
    func `sessions have windows of their own`() throws {
        let tokened = try TokenedStream(Self.signatures)
        try tokened.play(0)
        for headers in ["&h_Authorization=a", "&h_Authorization=b", "&h_X-Viewer=c"] {
            let list = try tokened.story.follow(tokened.lists(headers)[1])
            #expect(list.segmentNames == TokenedStream.names(3...5), "\(headers)")
        }
    }

    /// Teaches the daemon that `sess` selects no content.
    private func teach(_ story: Story) throws {
        for visit in 1...4 {
            for name in ["a", "b", "c"] {
                _ = try story.get("\(segment(name, 20_000))?sess=\(visit)")
            }
        }
        let isLearned = try eventually {
            try story.player().get("/api/keys").text.contains("\"state\":\"applied\"")
        }
        #expect(isLearned)
    }

    @Test(arguments: [false, true])
    func `windows of one list are joined once its token is learned`(isRestarted: Bool) throws {
        let tokened = try TokenedStream(
            ["sess=1", "sess=2", "sess=3"], ["--keys", "auto"])
        try tokened.play(0)
        #expect(try tokened.list(1).segmentNames == TokenedStream.names(3...5))
        tokened.stream.window.advance(by: 1)
        #expect(try tokened.list(1, endingWith: "s6") == TokenedStream.names(3...6))
        try teach(tokened.story)
        #expect(try eventually { try tokened.list(1).segmentNames.first == "s0" })
        if isRestarted { try tokened.story.restart() }
        for url in 0...2 {
            #expect(try tokened.list(url).segmentNames == TokenedStream.names(0...6))
        }
    }

    @Test
    func `a window keeps to its URL when the merging of keys is barred`() throws {
        let tokened = try TokenedStream(Self.signatures)
        try tokened.play(0)
        #expect(try tokened.list(1).segmentNames == TokenedStream.names(0...5))
        // Answers that must not be stored bar all merging at this origin.
        let path = segment("n", 5_000)
        tokened.story.cdn.setBehaviour("cc=no-store", for: "/x.m3u8")
        tokened.story.cdn.put("/x.m3u8", text: vod([path]))
        _ = try tokened.story.get("/x.m3u8?\(signature(1))")
        #expect(
            try eventually { try tokened.story.stat("key_vetoes_total") > 0 })
        #expect(
            try eventually {
                try tokened.list(0).segmentNames == TokenedStream.names(3...5)
            })
        #expect(try tokened.list(1).segmentNames == TokenedStream.names(0...5))
    }
}
