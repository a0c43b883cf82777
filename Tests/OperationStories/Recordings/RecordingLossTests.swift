import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// What recordings lose, or could lose, while they wait for their end, at it, or just after it.
extension Stories.RecordingTests {
    @Test(arguments: ["/l.m3u8", "/m.m3u8"])
    func `a recording that is done outlives a kill in the same moment`(path: String) throws {
        let stream = try RecordedStream()
        let story = stream.story
        stream.putEntry()
        try stream.record(path)
        #expect(try stream.has(path == "/m.m3u8" ? 6 : 3))
        _ = try story.api("recordings/\(stream.id)/stop", method: "POST")
        let ended = try stream.told { $0.contains("\"state\":\"done\"") }
        try story.restart(SIGKILL)
        story.cdn.stop()
        #expect(ended.contains("\"state\":\"done\""), "\(ended)")
        let entry = try stream.played()
        let lists =
            try path == "/m.m3u8" ? links(entry.text).map { try story.follow($0) } : [entry]
        #expect(lists.last?.segmentNames == ["s0", "s1", "s2"])
        for link in lists.flatMap({ uriLines($0.text) }) {
            #expect(try story.follow(link).status == 200, "\(link)")
        }
    }

    @Test func `a purged recording is listed as failed, and its link says why it does not play`()
        throws
    {
        let stream = try RecordedStream()
        let story = stream.story
        try stream.record()
        #expect(try stream.has(3))
        _ = try stream.stop()
        let done = try stream.told()
        let title = members("title", in: done).first ?? "none"
        #expect(try story.ask("purge", "--title", title).status == 0)
        let purged = try stream.told()
        #expect(purged.contains("\"state\":\"failed\"") && purged.contains("purged"), "\(purged)")
        #expect(members("segments", in: purged).first == "0")
        #expect(purged.contains("\"play\":null"))
        let answer = try story.follow(members("play", in: done).first ?? "/none")
        #expect(answer.status == 504 && answer.text.contains("purged"), "\(answer.text)")
        let list = try story.api("recordings")
        #expect(list.contains("\"state\":\"failed\""), "\(list)")
        _ = try story.api("recordings/\(stream.id)/forget", method: "POST")
        #expect(try !story.api("recordings").contains(stream.id))
    }

    @Test func `a late segment that the origin lists as missing at first is recorded`() throws {
        let stream = try RecordedStream()
        func put(_ gap: String) {
            let lines = (0...2).map { number in
                (number == 2 ? gap : "") + "#EXTINF:1,\n\(segment("s\(number)", 3_000))\n"
            }
            stream.story.cdn.put(
                "/late.m3u8", text: "#EXTM3U\n#EXT-X-TARGETDURATION:1\n\(lines.joined())")
        }
        put("#EXT-X-GAP\n")
        try stream.record("/late.m3u8")
        #expect(try stream.has(2))
        put("")
        #expect(try stream.has(3))
        #expect(try stream.stop().segmentNames == ["s0", "s1", "s2"])
        #expect(try members("lost", in: stream.told()) == ["0"])
    }

    @Test func `a segment that is lost while a recording waits for its end is not named`() throws {
        let stream = try RecordedStream()
        let (story, cdn) = (stream.story, stream.story.cdn)
        try stream.stopWithoutEntry()
        let waiting = try stream.told { $0.contains("finishing") && $0.contains("m.m3u8") }
        #expect(waiting.contains("\"state\":\"finishing\""), "\(waiting)")
        #expect(try story.ask("purge", cdn.url(segment("s1", 3_000))).status == 0)
        try cdn.start()
        let lists = links(try stream.played().text)
        let names = try lists.map { try story.follow($0).segmentNames }
        #expect(names.first == ["a0", "a1", "a2"])
        #expect(names.last?.contains("s0") == true && names.last?.contains("s1") == false)
        let ended = try stream.told()
        #expect(members("lost", in: ended).first == "1", "\(ended)")
    }

    @Test func `a window that the disk does not take at the end is saved later`() throws {
        let stream = try renumbered("/l.m3u8")
        let story = stream.story
        let folder = story.cacheFolder + "/recordings/windows"
        func saved() -> [String] { listFolder(folder).filter { !$0.hasSuffix(".new") } }
        #expect(eventually { !saved().isEmpty })
        // A folder in the place of the next file; the keeper may be writing one just now.
        let obstacle = "\(folder)/\(saved().first ?? "none").new"
        #expect(eventually { mkdir(obstacle, 0o755) == 0 })
        _ = try stream.stop()
        #expect(saved().count == 1)
        let line = "the window of an ended recording could not be saved"
        #expect(eventually { story.daemon.standardError.contains(line) })
        #expect(rmdir(obstacle) == 0)
        try story.restart()
        let bodies = try uriLines(stream.played().text).map { try story.follow($0).text }
        #expect(bodies == (0...5).map { "old \($0)" } + (0...2).map { "new \($0)" })
    }

    @Test func `a recording whose window cannot be read after a restart waits for it`() throws {
        let stream = try RecordedStream()
        let story = stream.story
        try stream.record()
        #expect(try stream.has(3))
        stream.window.advance(by: 3)
        #expect(try stream.has(6))
        story.stop()
        // Nothing can be read where a file takes the place of the folder.
        let windows = story.cacheFolder + "/recordings/windows"
        let away = story.cacheFolder + ".away"
        #expect(rename(windows, away) == 0)
        try writeFile(windows, "".utf8)
        try story.restart()
        let waiting = try stream.told { $0.contains("cannot be read now") }
        #expect(waiting.contains("\"state\":\"running\""), "\(waiting)")
        #expect(unlink(windows) == 0)
        #expect(rename(away, windows) == 0)
        #expect(try stream.has(6))
        #expect(try stream.stop().segmentNames == (0...5).map { "s\($0)" })
    }
}
