import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Recordings: a live stream stored without a player, and played as a film.
extension Stories {
    @Suite(.tags(.crowded)) struct RecordingTests {}
}

extension Stories.RecordingTests {
    @Test(.enabled(if: Tool.cCompiler != nil, "faults are made by a library built here"))
    func `a stop that a full disk does not take is refused, and it records on`() throws {
        let disk = try FullDisk()
        let stream = RecordedStream(on: disk.story)
        try stream.record()
        #expect(try stream.has(3))
        // The window is saved within a few seconds.
        let windows = disk.story.cacheFolder + "/recordings/windows"
        #expect(eventually { listFolder(windows).contains { !$0.hasSuffix(".new") } })
        try disk.fill()
        let refused = try disk.story.api("recordings/\(stream.id)/stop", method: "POST")
        #expect(refused.contains("is left as it was"))
        #expect(try stream.told().contains("\"state\":\"running\""))
        try disk.makeRoom()
        _ = try disk.story.api("recordings/\(stream.id)/stop", method: "POST")
        try disk.story.restart(SIGKILL)
        let end = try stream.told { $0.contains("\"state\":\"done\"") }
        #expect(end.contains("\"state\":\"done\"") && end.contains("it was stopped"), "\(end)")
    }

    @Test func `an ended recording is a film that plays with its origin gone`() throws {
        let stream = try RecordedStream()
        try stream.record("/l.m3u8", "for=1h&name=Evening%20news")
        #expect(try stream.has(3))
        stream.window.advance(by: 2)
        #expect(try stream.has(5))
        let list = try stream.stop()
        stream.story.cdn.stop()
        #expect(list.segmentNames == (0...4).map { "s\($0)" })
        #expect(list.text.contains("#EXT-X-PLAYLIST-TYPE:VOD") && list.text.contains("ENDLIST"))
        for (number, link) in uriLines(list.text).enumerated() {
            let body = try stream.story.follow(link).body
            let isRight = isContent(body, of: segment("s\(number)", 3_000))
            #expect(isRight)
        }
        let titles = try stream.story.api("titles")
        #expect(
            titles.contains("\"name\":\"Evening news\",") && titles.contains("\"kind\":\"vod\""))
        #expect(titles.contains("\"pinned\":true") && titles.contains("\"percent\":100"))
    }

    @Test func `a recording continues after a kill of the daemon`() throws {
        let stream = try RecordedStream()
        try stream.record()
        #expect(try stream.has(3))
        // State and window are saved within a few seconds; the stream is unchanged.
        let folder = stream.story.cacheFolder + "/recordings/windows"
        let isSaved = eventually { listFolder(folder).contains { !$0.hasSuffix(".new") } }
        try stream.story.restart(SIGKILL)
        stream.window.advance(by: 2)
        let goesOn = try stream.has(5)
        #expect(isSaved && goesOn)
        #expect(try stream.stop().segmentNames == (0...4).map { "s\($0)" })
        try stream.story.restart()
        #expect(try stream.played().segmentNames == (0...4).map { "s\($0)" })
    }

    /// A kill comes before the window is saved that has the restarted numbers, or just after it, but
    /// not before the state database has the epoch that they begin: that would be lost.
    @Test(arguments: [false, true])
    func `a recording continues after a kill that soon follows a restart of its origin`(
        isSaved: Bool
    ) throws {
        let story = try Story()
        func window() -> LiveWindow {
            LiveWindow(
                segments: (0..<50).map { .init(uri: "/r\($0).ts", duration: 1) },
                targetDuration: 1, windowSize: 3)
        }
        func put(_ word: String) {
            for number in 0..<9 { story.cdn.put("/r\(number).ts", text: "\(word) \(number)") }
        }
        func windowIsSaved(with text: String) -> Bool {
            let folder = story.cacheFolder + "/recordings/windows"
            return eventually {
                listFolder(folder).contains {
                    let bytes = try? readFile("\(folder)/\($0)")
                    return String(decoding: bytes ?? [], as: UTF8.self).contains(text)
                }
            }
        }
        func epochIsSaved() -> Bool {
            guard Tool.exists("sqlite3") else { return true }
            return eventually {
                let query = "SELECT COUNT(*) > 0 FROM live_lists WHERE epoch > 0"
                let database = story.cacheFolder + "/state.sqlite"
                return (try? Tool.run(["sqlite3", "-readonly", database, query]))?.stdout == "1\n"
            }
        }
        put("old")
        let stream = RecordedStream(on: story, window())
        try stream.record()
        #expect(try stream.has(3))
        stream.window.advance(by: 3)
        #expect(try stream.has(6))
        #expect(windowIsSaved(with: "/r5.ts"))
        put("new")
        let restarted = window()
        _ = story.cdn.live("/l.m3u8", restarted)
        #expect(try stream.has(9))
        #expect(epochIsSaved())
        if isSaved {
            #expect(windowIsSaved(with: "#SLUICE-SEGMENT:1,"))
            restarted.advance()
            #expect(try stream.has(10))
        }
        try story.restart(SIGKILL)
        // What a kill interrupts may have to be read again.
        #expect(try stream.has(isSaved ? 10 : 9))
        restarted.advance()
        #expect(try stream.has(isSaved ? 11 : 10))
        let list = try stream.stop()
        let texts = try uriLines(list.text).map { try story.follow($0).text }
        let end = isSaved ? 4 : 3
        #expect(texts == (0...5).map { "old \($0)" } + (0...end).map { "new \($0)" })
        #expect(list.text.contains("#EXT-X-DISCONTINUITY\n") && !list.text.contains("EXT-X-GAP"))
    }

    @Test
    func `what another title had fetched stays in a recording that a kill interrupted`() throws {
        let stream = try RecordedStream(["--cache-size", "1MB", "--min-free", "0"])
        for link in uriLines(try stream.story.get("/l.m3u8").text) {
            _ = try stream.story.follow(link)
        }
        try stream.record()
        #expect(try stream.has(3))
        let folder = stream.story.cacheFolder + "/recordings/windows"
        #expect(eventually { listFolder(folder).contains { !$0.hasSuffix(".new") } })
        try stream.story.restart(SIGKILL)
        #expect(try stream.has(3))
        let links = uriLines(try stream.stop().text)
        #expect(links.count == 3)
        for number in 0..<20 { _ = try stream.story.get(segment("other\(number)", 200_000)) }
        stream.story.cdn.stop()
        for (number, link) in links.enumerated() {
            let isStored = isContent(
                try stream.story.follow(link).body, of: segment("s\(number)", 3_000))
            #expect(isStored, "segment \(number)")
        }
    }

    @Test func `a recording ends with its stream, and after its time`() throws {
        // Side by side: both wait.
        let other = try RecordedStream()
        try other.record("/l.m3u8", "for=5s")
        let stream = try RecordedStream()
        try stream.record()
        #expect(try stream.has(3))
        stream.window.advance()
        stream.window.end()
        #expect(try stream.played().segmentNames == (0...3).map { "s\($0)" })
        #expect(try stream.told().contains("the origin ended it"))
        #expect(try other.played().segmentNames == ["s0", "s1", "s2"])
        #expect(try other.told().contains("its time is over"))
    }

    @Test func `a recording goes on under the token that its entry has by now`() throws {
        let stream = try RecordedStream()
        let cdn = stream.story.cdn
        func sign(_ number: Int) {
            let list = "/l.m3u8?\(signature(number))"
            cdn.put("/m.m3u8", text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n\(list)\n")
            cdn.setBehaviour(Behaviour(query: "need\(signature(number))"), for: "/l.m3u8")
        }
        sign(1)
        try stream.record("/m.m3u8")
        #expect(try stream.has(3))
        sign(2)
        stream.window.advance(by: 1)
        #expect(try stream.has(4))
        try stream.story.restart(SIGKILL)
        sign(3)
        stream.window.advance(by: 1)
        #expect(try stream.has(5))
        let entries = cdn.requestCount("/m.m3u8")
        #expect(entries <= 6)
        let variant = try #require(uriLines(try stream.stop().text).first)
        stream.story.cdn.stop()
        #expect(try stream.story.follow(variant).segmentNames == (0...4).map { "s\($0)" })
    }

    @Test(arguments: ["/l.m3u8", "/bytes/*"])
    func `a recording has the cookies of its entry also after a kill`(path: String) throws {
        let stream = try RecordedStream()
        let cdn = stream.story.cdn
        cdn.put("/m.m3u8", text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n/l.m3u8\n")
        cdn.setBehaviour(Behaviour(query: "cookie=t=1;%20Path=/"), for: "/m.m3u8")
        cdn.setBehaviour(Behaviour(query: "needcookie=t=1"), for: path)
        try stream.record("/m.m3u8")
        #expect(try stream.has(3))
        // The window is saved within a few seconds.
        let windows = stream.story.cacheFolder + "/recordings/windows"
        #expect(eventually { listFolder(windows).contains { !$0.hasSuffix(".new") } })
        try stream.story.restart(SIGKILL)
        stream.window.advance(by: 1)
        #expect(try stream.has(4))
        #expect(cdn.requestCount("/m.m3u8") <= 4)
    }

    @Test func `a segment that a kill cut short is fetched under its token of now`() throws {
        let story = try Story()
        func window(_ number: Int) -> LiveWindow {
            LiveWindow(
                segments: (0..<100).map {
                    .init(uri: segment("s\($0)", 3_000) + "?" + signature(number), duration: 1)
                }, targetDuration: 1, windowSize: 3)
        }
        let stream = RecordedStream(on: story, window(1))
        story.cdn.hold("/bytes/3000/s2.ts")
        try stream.record()
        #expect(eventually { story.cdn.requestCount("/bytes/3000/s2.ts") == 1 })
        _ = story.cdn.live("/l.m3u8", window(2))
        story.cdn.setBehaviour(Behaviour(query: "need\(signature(2))"), for: "/bytes/*")
        try story.restart(SIGKILL)
        story.cdn.release("/bytes/3000/s2.ts")
        let target = "/bytes/3000/s2.ts?" + signature(2)
        #expect(eventually { story.cdn.requests.contains { $0.target == target } })
        #expect(try stream.stop().segmentNames == ["s0", "s1", "s2"])
    }

    @Test func `a recording survives an outage of its origin, and keeps its segments`() throws {
        let stream = try RecordedStream()
        try stream.record()
        #expect(try stream.has(3))
        stream.story.cdn.stop()
        let isTold = try stream.told { !members("reason", in: $0)[0].isEmpty }
        #expect(isTold.contains("\"state\":\"running\""))
        #expect(try stream.stop().segmentNames == ["s0", "s1", "s2"])
    }

    @Test
    func `a recording has every range of initialization sections, and the keys of these`() throws {
        let story = try Story()
        func map(_ range: String) -> String {
            "#EXT-X-MAP:URI=\"/bytes/6000000/m.mp4\",BYTERANGE=\"\(range)\"\n"
        }
        func key(_ name: String) -> String {
            "#EXT-X-KEY:METHOD=AES-128,URI=\"/bytes/16/\(name).key\",IV=0x1\n"
        }
        let lines = [
            map("100@0"), map("200@5000000"),
            key("k1") + "#EXT-X-MAP:URI=\"/bytes/900/i.mp4\"\n" + key("k2"),
        ]
        let window = LiveWindow(
            segments: lines.enumerated().map {
                .init(uri: $1 + segment("s\($0)", 3_000), duration: 1)
            }, targetDuration: 1, windowSize: 3)
        let stream = RecordedStream(on: story, window)
        try stream.record()
        #expect(try stream.has(3))
        let list = try stream.stop()
        #expect(try members("lost", in: stream.told()) == ["0"])
        story.cdn.stop()
        let structure = list.text.split(separator: "\n")
            .filter { $0.hasPrefix("#EXT-X-MAP") || $0.hasPrefix("#EXT-X-KEY") }
            .flatMap { links(String($0)) }
        #expect(structure.count == 5)
        let ranges = ["bytes=0-99", "bytes=5000000-5000199", nil, nil, nil]
        for (link, range) in zip(structure, ranges) {
            let answer = try story.follow(link, headers: range.map { [("Range", $0)] } ?? [])
            #expect(answer.status == (range == nil ? 200 : 206), "\(link)")
        }
    }

    @Test func `the selected variant of a multivariant playlist is recorded with its audio`() throws
    {
        let stream = try RecordedStream()
        let story = stream.story
        _ = story.cdn.live("/low.m3u8", ShiftedStream.window(names: "low"))
        stream.putEntry(
            "#EXT-X-STREAM-INF:BANDWIDTH=100000,RESOLUTION=320x180,AUDIO=\"g\"\nlow.m3u8\n")
        try stream.record("/m.m3u8", "for=1h&variant=360")
        #expect(try stream.has(6))
        let entry = try stream.stop()
        story.cdn.stop()
        let lists = links(entry.text)
        #expect(lists.count == 2 && !entry.text.contains("320x180"))
        let names = try lists.map { try story.follow($0).segmentNames }
        #expect(names == [["a0", "a1", "a2"], ["s0", "s1", "s2"]])
        #expect(story.cdn.requestCount("/low.m3u8") == 0)
    }

    @Test func `a running recording can be watched from its start`() throws {
        let stream = try RecordedStream()
        let text = try stream.record()
        #expect(try stream.has(3))
        stream.window.advance(by: 2)
        #expect(try stream.has(5))
        let list = try stream.story.follow(members("play", in: text)[0])
        #expect(list.segmentNames == (0...4).map { "s\($0)" })
        #expect(!list.text.contains("ENDLIST"))
    }

    @Test func `an impossible recording is rejected with the reason`() throws {
        let story = try Story()
        let url = "url=http%3A%2F%2Fh%2Fa.m3u8"
        for (query, reason) in [
            ("for=1h", "argument url"), ("url=ftp%3A%2F%2Fh%2F&for=1h", "http"),
            (url, "argument for"), (url + "&for=forever", "up to 7d"),
            (url + "&for=1h&variant=huge", "variant is"),
            (url + "&for=1h&from=3", "no setting 'from'"),
        ] {
            let answer = try story.player().get("/api/recordings?\(query)", method: "POST")
            #expect(answer.status == 400 && answer.text.contains(reason), "\(answer.text)")
        }
    }

    @Test func `a URL that is not a live stream is rejected`() throws {
        let stream = try RecordedStream()
        stream.story.cdn.put("/f.m3u8", text: vod([segment("a", 2_000)]))
        try stream.record("/f.m3u8")
        #expect(try stream.told { $0.contains("failed") }.contains("download it instead"))
        try stream.record("/none.m3u8")
        #expect(try stream.told { $0.contains("failed") }.contains("404"))
    }

    @Test func `the command starts, lists, stops and removes recordings`() throws {
        let stream = try RecordedStream()
        let base = stream.story.daemon.baseURL
        let url = stream.story.cdn.url("/l.m3u8")
        let started = try sluice(
            "record", url, "--for", "1h", "--detach", "--name", "News", "--daemon", base)
        let id = String(started.stdout.split(separator: " ").last?.dropLast() ?? "")
        let isRunning = try eventually {
            try sluice("record", "--list", "--daemon", base).stdout.contains("3 segments")
        }
        #expect(started.status == 0 && isRunning)
        #expect(try sluice("record", "--stop", id, "--daemon", base).status == 0)
        let isDone = try eventually {
            try sluice("record", "--list", "--daemon", base).stdout.contains("News: done")
        }
        #expect(isDone)
        let again = try sluice("record", "--stop", id, "--daemon", base)
        #expect(again.status == 0 && again.stdout.hasPrefix("\(id) had already finished at 2"))
        #expect(again.stdout.contains("Z: done"), "\(again.stdout)")
        // It is listed after a restart, and does not continue.
        try stream.story.restart()
        let restarted = stream.story.daemon.baseURL
        let later = try sluice("record", "--stop", id, "--daemon", restarted)
        #expect(later.stdout == again.stdout && later.status == 0)
        let resumed = try sluice("record", "--resume", id, "--daemon", restarted)
        #expect(resumed.status == 1 && resumed.stderr.contains("is over"), "\(resumed.stderr)")
        #expect(try sluice("record", "--forget", id, "--daemon", restarted).status == 0)
        #expect(try sluice("record", "--list", "--daemon", restarted).stdout == "no recordings\n")
        #expect(try sluice("record", url, "--daemon", restarted).status == 64)
    }
}
