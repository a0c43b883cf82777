import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// The ends of recordings: what they need, and what they must not lose.
extension Stories.RecordingTests {
    /// Records a stream with a separate audio rendition until three segments of each are stored.
    private func recorded() throws -> RecordedStream {
        let stream = try RecordedStream()
        stream.putEntry()
        try stream.record("/m.m3u8")
        #expect(try stream.has(6))
        return stream
    }

    /// Records more than the cache of a story takes; returns its state once it says so.
    private func overfilled(_ arguments: [String]) throws -> (RecordedStream, state: String) {
        let stream = try RecordedStream(arguments, size: 9_000_000)
        try stream.record()
        #expect(try stream.has(3))
        stream.window.advance(by: 2)
        #expect(try stream.has(5))
        stream.window.advance(by: 3)
        return (stream, try stream.told { $0.contains("no room left") })
    }

    @Test func `a recording without room keeps its segments`() throws {
        let (stream, state) = try overfilled(["--cache-size", "64MB"])
        #expect(state.contains("\"state\":\"running\""), "\(state)")
        _ = try stream.story.api("recordings/\(stream.id)/stop", method: "POST")
        let isDone = try eventually(within: .seconds(60)) {
            try stream.told().contains("\"state\":\"done\"")
        }
        #expect(isDone)
        let names = try stream.played().segmentNames
        #expect(names.starts(with: (0...4).map { "s\($0)" }))
    }

    @Test func `a recording that has room again in time goes on`() throws {
        let folder = try TemporaryFolder()
        let file = folder.file("sluice.json")
        try writeFile(file, #"{"cache-size": "64MB"}"#.utf8)
        let (stream, state) = try overfilled(["--config", file])
        #expect(state.contains("\"state\":\"running\""), "\(state)")
        try writeFile(file, #"{"cache-size": "1GB"}"#.utf8)
        stream.story.daemon.kill(SIGHUP)
        #expect(try stream.has(8))
        let later = try stream.told { !$0.contains("no room") }
        #expect(later.contains("\"state\":\"running\""), "\(later)")
        #expect(try stream.stop().segmentNames == (0...7).map { "s\($0)" })
    }

    @Test func `a playlist that cannot be recorded is named at once, and at the end`() throws {
        // More key formats than are kept for a segment.
        let keys = (0..<33).map {
            "#EXT-X-KEY:METHOD=SAMPLE-AES,KEYFORMAT=\"f\($0)\",URI=\"skd://\($0)\""
        }
        let window = LiveWindow(
            segments: (0..<100).map { .init(uri: segment("s\($0)", 3_000), duration: 1) },
            targetDuration: 1, windowSize: 3, header: keys)
        let stream = RecordedStream(on: try Story(), window)
        try stream.record()
        let running = try stream.told { $0.contains("KEYFORMATs") }
        #expect(running.contains("\"state\":\"running\""), "\(running)")
        #expect(running.contains("more than 32 KEYFORMATs"), "\(running)")
        _ = try stream.story.api("recordings/\(stream.id)/stop", method: "POST")
        let ended = try stream.told { $0.contains("failed") }
        #expect(ended.contains("nothing was recorded") && ended.contains("KEYFORMATs"), "\(ended)")
    }

    @Test func `an origin that forbids to store its segments is named at once, and at the end`()
        throws
    {
        let stream = try RecordedStream()
        let cdn = stream.story.cdn
        cdn.setBehaviour("cc=no-store", for: "/bytes/*")
        try stream.record()
        let running = try stream.told { $0.contains("no-store") }
        #expect(running.contains("\"state\":\"running\""), "\(running)")
        // The newest one is requested only after the failed fetches of those before it.
        stream.window.advance(by: 6)
        #expect(eventually { cdn.requestCount(segment("s8", 3_000)) == 1 })
        _ = try stream.story.api("recordings/\(stream.id)/stop", method: "POST")
        let ended = try stream.told { $0.contains("failed") }
        #expect(ended.contains("nothing was recorded") && ended.contains("no-store"), "\(ended)")
        for number in [0, 1, 2, 6, 7, 8] {
            #expect(cdn.requestCount(segment("s\(number)", 3_000)) == 1, "\(number)")
        }
    }

    @Test func `an entry that was purged, and an origin that is away, cost no recording`() throws {
        let stream = try recorded()
        _ = try stream.story.ask("purge", stream.story.cdn.url("/m.m3u8"))
        stream.story.cdn.stop()
        let entry = try stream.stop()
        let lists = links(entry.text)
        let names = try lists.map { try stream.story.follow($0).segmentNames }
        #expect(names == [["a0", "a1", "a2"], ["s0", "s1", "s2"]])
    }

    @Test func `a recording without its entry waits for the origin, also over a restart`() throws {
        let stream = try recorded()
        try stream.story.restart()
        _ = try stream.story.ask("purge", stream.story.cdn.url("/m.m3u8"))
        stream.story.cdn.stop()
        _ = try stream.story.api("recordings/\(stream.id)/stop", method: "POST")
        let waiting = try stream.told { $0.contains("finishing") && $0.contains("m.m3u8") }
        #expect(waiting.contains("\"state\":\"finishing\""))
        #expect(try stream.story.api("titles").contains("\"pinned\":true"))
        try stream.story.restart()
        try stream.story.cdn.start()
        let entry = try stream.played()
        #expect(links(entry.text).count == 2)
    }

    @Test func `a recording that waits for its end is not resumed, and can be forgotten`() throws {
        let stream = try recorded()
        let story = stream.story
        try story.restart()
        _ = try story.ask("purge", story.cdn.url("/m.m3u8"))
        story.cdn.stop()
        let path = "/api/recordings/\(stream.id)"
        _ = try story.player().get("\(path)/stop", method: "POST")
        let waiting = try stream.told { $0.contains("finishing") && $0.contains("m.m3u8") }
        #expect(waiting.contains("\"state\":\"finishing\""), "\(waiting)")
        let resumed = try story.player().get("\(path)/resume", method: "POST")
        #expect(resumed.status == 409 && resumed.text.contains("is being finished"))
        let forgotten = try story.player().get("\(path)/forget", method: "POST")
        #expect(forgotten.status == 200, "\(forgotten.text)")
        #expect(try story.player().get(path).status == 404)
        #expect(try eventually { try story.api("titles").contains("\"total\":0") })
        try story.restart()
        #expect(try story.player().get(path).status == 404)
    }

    @Test func `a recording keeps what it has in common with one that is forgotten`() throws {
        let stream = try RecordedStream()
        let story = stream.story
        try stream.record()
        #expect(try stream.has(3))
        let first = stream.id
        try stream.record()
        #expect(stream.id != first)
        #expect(try stream.has(3))
        let links = uriLines(try stream.stop().text)
        #expect(links.count == 3)
        let left = members("title", in: try story.api("recordings/\(first)")).first ?? ""
        try forget(first, of: story)
        // What it has left is no title of its own.
        #expect(members("total", in: try story.api("titles")).first == "1")
        story.cdn.stop()
        try expectSegments(links, of: story)
        // Nor does a purge of what the first one has left take it away.
        #expect(try story.ask("purge", "--title", left).status == 0)
        try expectSegments(links, of: story)
        // The last one that needs it takes it away.
        try forget(stream.id, of: story)
        #expect(try story.api("titles").contains("\"total\":0"))
    }

    @Test(arguments: [false, true])
    func `what a recording had not pinned before a restart outlives the title that fetched it`(
        isPurged: Bool
    ) throws {
        let stream = try RecordedStream()
        let story = stream.story
        try stream.record()
        #expect(try stream.has(3))
        let first = stream.id
        try stream.record()
        #expect(try stream.has(3))
        // The first segments leave what the next run asks for again.
        for count in [6, 9, 12, 15] {
            stream.window.advance(by: 3)
            #expect(try stream.has(count))
        }
        let title = members("title", in: try stream.told()).first ?? ""
        let unpinned = try story.api("unpin?title=\(title)", method: "POST")
        #expect(unpinned.contains("\"unpinned\":1"), "\(unpinned)")
        try story.restart()
        if isPurged {
            #expect(try stream.has(15))
            let other = members("title", in: try story.api("recordings/\(first)")).first ?? ""
            #expect(try story.ask("purge", "--title", other).status == 0)
        } else {
            try forget(first, of: story)
        }
        let links = uriLines(try stream.stop().text)
        #expect(links.count == 15)
        story.cdn.stop()
        try expectSegments(links, of: story)
    }

    @Test func `only the first purge of a run has a paused recording pin what it needs`() throws {
        let stream = try RecordedStream()
        let story = stream.story
        try stream.record()
        for _ in 0..<2 {
            #expect(try stream.has(3))
            try story.restart(SIGKILL)
        }
        let state = try stream.told { $0.contains("\"state\":\"paused\"") }
        #expect(state.contains("crashed 2 times"), "\(state)")
        let title = members("title", in: state).first ?? ""
        func unpin() throws -> String {
            try story.api("unpin?title=\(title)", method: "POST")
        }
        #expect(try unpin().contains("\"unpinned\":1"))
        story.cdn.put("/other.m3u8", text: vod(["a.ts"]))
        // The first purge pins it, whoever has unpinned it; the next ones open none of its files.
        for unpinned in ["1", "0", "0"] {
            #expect(try story.get("/other.m3u8").status == 200)
            let other = story.cdn.url("/other.m3u8")
            #expect(try story.ask("purge", "--title", other).status == 0)
            let answer = try unpin()
            #expect(answer.contains("\"unpinned\":\(unpinned)"), "\(answer)")
        }
    }

    /// Stops a recording, and forgets it once it has ended.
    private func forget(_ id: String, of story: Story) throws {
        _ = try story.api("recordings/\(id)/stop", method: "POST")
        let isDone = try eventually(within: .seconds(30)) {
            try story.api("recordings/\(id)").contains("\"state\":\"done\"")
        }
        #expect(isDone)
        _ = try story.api("recordings/\(id)/forget", method: "POST")
        // The purge ends after the removal, which the same thread has begun before.
        #expect(try story.ask("purge", "--older-than", "1h").status == 0)
    }

    private func expectSegments(_ links: [String], of story: Story) throws {
        for (number, link) in links.enumerated() {
            let body = try story.follow(link).body
            let isRight = isContent(body, of: segment("s\(number)", 3_000))
            #expect(isRight, "segment \(number)")
        }
    }

    /// Records a stream that begins again after six segments, with the numbers and names of the
    /// first ones, until nine are stored.
    func renumbered(_ path: String) throws -> RecordedStream {
        let story = try Story()
        func window() -> LiveWindow {
            LiveWindow(
                segments: (0..<50).map { .init(uri: "/r\($0).ts", duration: 1) },
                targetDuration: 1, windowSize: 3)
        }
        func put(_ word: String) {
            for number in 0..<9 { story.cdn.put("/r\(number).ts", text: "\(word) \(number)") }
        }
        put("old")
        story.cdn.put("/m.m3u8", text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nl.m3u8\n")
        let stream = RecordedStream(on: story, window())
        try stream.record(path)
        #expect(try stream.has(3))
        stream.window.advance(by: 3)
        #expect(try stream.has(6))
        put("new")
        _ = story.cdn.live("/l.m3u8", window())
        #expect(try stream.has(9))
        return stream
    }

    @Test func `an export of a recording has what each name meant at its time`() throws {
        let stream = try renumbered("/l.m3u8")
        let story = stream.story
        _ = try stream.stop()
        let title = members("title", in: try stream.told()).first ?? ""
        func exported() throws -> [String] {
            let sources = members("source", in: try story.api("export?title=\(title)"))
            return try sources.filter { !$0.isEmpty }.map { try story.follow($0).text }
        }
        let whole = try exported()
        #expect(whole == (0...5).map { "old \($0)" } + (0...2).map { "new \($0)" })
        // Behind a hole the segments of the export have other numbers than in the recording.
        #expect(try story.ask("purge", story.cdn.url("/r1.ts")).status == 0)
        let rest = try exported()
        #expect(rest == whole.filter { !$0.hasSuffix("1") })
    }

    /// Records three segments of a stream that has used their names before.
    private func reused(on story: Story) throws -> RecordedStream {
        func window() -> LiveWindow {
            LiveWindow(
                segments: (0..<50).map { .init(uri: "/r\($0).ts", duration: 1) },
                targetDuration: 1, windowSize: 3)
        }
        func isListed(_ numbers: ClosedRange<Int>) throws -> Bool {
            try eventually {
                try story.get("/l.m3u8").segmentNames == numbers.map { "r\($0)" }
            }
        }
        for number in 0..<6 { story.cdn.put("/r\(number).ts", text: "\(number)") }
        let stream = RecordedStream(on: story, window())
        #expect(try isListed(0...2))
        stream.window.advance(by: 3)
        #expect(try isListed(3...5))
        _ = story.cdn.live("/l.m3u8", window())
        #expect(try isListed(0...2))
        try stream.record()
        #expect(try stream.has(3))
        #expect(try stream.stop().segmentNames == ["r0", "r1", "r2"])
        return stream
    }

    @Test func `a recording of names that had been used before is whole`() throws {
        let story = try Story()
        let stream = try reused(on: story)
        let title = members("title", in: try stream.told()).first ?? ""
        let told = try story.api("titles/\(title)")
        #expect(members("percent", in: told).first == "100", "\(told)")
    }

    @Test func `a recording of names that had been used before has a picture of its own`() throws {
        let folder = try TemporaryFolder()
        let program = folder.file("ffmpeg")
        // A program that takes the first segment, and prints the markers of a JPEG file.
        let script = """
            #!/bin/sh
            read -r line
            test "$line" = 0 && printf '\\377\\330\\377\\340\\377\\331'

            """
        try writeFile(program, script.utf8)
        #expect(chmod(program, 0o755) == 0)
        let story = try Story(
            ["--title-pictures", "on"], environment: [("PATH", folder.path)])
        let stream = try reused(on: story)
        let title = members("title", in: try stream.told()).first ?? ""
        // Titles are read once the index has everything.
        _ = try story.api("titles/\(title)")
        let picture = try story.follow("/api/titles/\(title)/picture")
        #expect(picture.status == 200, "\(picture.text)")
        #expect(picture.body == [0xFF, 0xD8, 0xFF, 0xE0, 0xFF, 0xD9])
    }

    @Test func `a player adds nothing to a recording that waits for its last segment`() throws {
        let stream = try RecordedStream()
        let (story, cdn) = (stream.story, stream.story.cdn)
        try stream.record()
        #expect(try stream.has(3))
        let last = segment("s3", 3_000)
        cdn.hold(last)
        stream.window.advance()
        #expect(eventually { cdn.requestCount(last) > 0 })
        _ = try story.api("recordings/\(stream.id)/stop", method: "POST")
        stream.window.advance(by: 3)
        let link = members("play", in: try stream.told()).first ?? "/none"
        let reloads = cdn.requestCount("/l.m3u8")
        // The last but one is stored when the last one is requested.
        let isReloaded = try eventually {
            _ = try story.follow(link)
            return cdn.requestCount("/l.m3u8") > reloads + 1
        }
        #expect(isReloaded)
        let waiting = try story.follow(link).segmentNames
        cdn.release(last)
        let names = (0...3).map { "s\($0)" }
        #expect(waiting == names)
        #expect(try stream.played().segmentNames == names)
    }

    @Test func `a restart while a recording waits for its end adds nothing to it`() throws {
        let stream = try renumbered("/m.m3u8")
        let story = stream.story
        try story.restart()
        #expect(try stream.has(9))
        _ = try story.ask("purge", story.cdn.url("/m.m3u8"))
        story.cdn.stop()
        _ = try story.api("recordings/\(stream.id)/stop", method: "POST")
        // Its list is stored, and the reason is that of the entry.
        let waiting = try stream.told { members("reason", in: $0).first != "it was stopped" }
        #expect(waiting.contains("\"state\":\"finishing\""), "\(waiting)")
        try story.restart()
        try story.cdn.start()
        let variant = try #require(uriLines(try stream.played().text).first)
        let names = try story.follow(variant).segmentNames
        #expect(names == (0...5).map { "r\($0)" } + (0...2).map { "r\($0)" })
    }

    @Test func `the playlist of audio that is removed with its stream does not keep it running`()
        throws
    {
        let stream = try recorded()
        stream.window.end()
        stream.story.cdn.remove("/a.m3u8")
        stream.story.cdn.setBehaviour("status=404", for: "/a.m3u8")
        #expect(try stream.told { $0.contains("\"done\"") }.contains("the origin ended it"))
    }

    @Test func `a segment that the origin does not have is counted as lost, the others play`()
        throws
    {
        let stream = try RecordedStream()
        stream.story.cdn.setBehaviour("status=404", for: segment("s3", 3_000))
        try stream.record()
        #expect(try stream.has(3))
        stream.window.advance(by: 3)
        #expect(try stream.has(5))
        stream.window.advance(by: 3)
        #expect(try stream.has(8))
        let list = try stream.stop()
        let told = try stream.told()
        #expect(members("lost", in: told) == ["1"] && members("segments", in: told) == ["8"])
        let others = [0, 1, 2, 4, 5, 6, 7, 8].map { "s\($0)" }
        #expect(Set(others).isSubset(of: list.segmentNames))
    }

    @Test(arguments: [
        ("", "/p/x/l.m3u8", "play it:  BASE/p/x/l.m3u8\n"),
        ("/tv", "/tv/p/x/l.m3u8", "play it:  BASE/tv/p/x/l.m3u8\n"),
        ("", "/tv/p/x/l.m3u8", "play it:  /tv/p/x/l.m3u8 at the proxy in front of the daemon\n"),
    ])
    func `the command prints a link that plays, with the base path once`(
        _ named: String, _ play: String, _ line: String
    ) throws {
        let report =
            "{\"id\":\"a1\",\"name\":\"News\",\"state\":\"done\",\"reason\":\"\",\"seconds\":3.5,"
            + "\"segments\":3,\"lost\":0,\"bytes\":9000,\"play\":\"\(play)\"}"
        let api = try AnsweringOrigin { _, _ in
            .response(200, [("Content-Type", "application/json")], Array(report.utf8))
        }
        defer { api.stop() }
        let result = try sluice(
            "record", "http://cdn.example/l.m3u8", "--for", "1h", "--daemon", api.baseURL + named)
        let printed = line.replacing("BASE", with: api.baseURL)
        #expect(result.status == 0 && result.stdout.hasSuffix(printed), "\(result.stdout)")
    }
}
