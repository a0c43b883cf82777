import FixtureCDN
import ScenarioSupport
import Testing

/// Windows that reach farther back than the origin's.
extension Stories {
    @Suite(.tags(.timed, .threads)) struct TimeShiftTests {}
}

extension Stories.TimeShiftTests {
    @Test
    func `a window grows to its length and no further`() throws {
        let stream = try ShiftedStream("6s")
        try stream.watch(try stream.list())
        for _ in 0..<3 { try stream.watch(try stream.advance(by: 2)) }
        let list = try stream.advance(by: 2)
        #expect(list.segmentNames == (5...10).map { "s\($0)" })
        #expect(list.tag("#EXT-X-MEDIA-SEQUENCE") == "5")
        #expect(!list.text.contains("ENDLIST") && !list.text.contains("GAP"))
        // Segments outside of the window are released.
        #expect(try stream.story.settled("time_shift_dropped_total") { $0 == 5 } == 5)
    }

    @Test
    func `a window removes nothing that a saved one of another session names`() throws {
        let stream = try ShiftedStream("60s")
        let story = stream.story
        try stream.watch(try stream.list())
        for _ in 0..<2 { try stream.watch(try stream.advance(by: 2)) }
        try story.restart()
        // The window that begins with s4 to s6 drops them before the other is in memory again.
        let short = "/proxy?url=\(percentEncoded(story.cdn.url(stream.path)))&dvr=6s"
        try stream.watch(try story.follow(short))
        for newest in stride(from: 8, through: 16, by: 2) {
            stream.window.advance(by: 2)
            let isThere = try eventually {
                try story.follow(short).segmentNames.last == "s\(newest)"
            }
            #expect(isThere)
            try stream.watch(try story.follow(short))
        }
        // s7 to s10.
        #expect(try story.settled("time_shift_dropped_total") { $0 == 4 } == 4)
        let list = try stream.list()
        #expect(list.segmentNames.prefix(7) == ["s0", "s1", "s2", "s3", "s4", "s5", "s6"])
        for link in uriLines(list.text).prefix(7) {
            #expect(try story.follow(link)["Cache-Status"]?.contains("hit") == true)
        }
    }

    @Test
    func `seeking back plays what was watched without origin requests`() throws {
        let stream = try ShiftedStream("60s")
        try stream.watch(try stream.list())
        for _ in 0..<4 { try stream.watch(try stream.advance(by: 2)) }
        let list = try stream.advance(by: 2)
        #expect(list.segmentNames.first == "s0" && list.segmentNames.count == 13)
        let asked = stream.story.cdn.requestCount()
        for (number, link) in uriLines(list.text).prefix(8).enumerated() {
            let answer = try stream.story.follow(link)
            let isRight = isContent(answer.body, of: segment("s\(number)", ShiftedStream.size))
            #expect(isRight)
            #expect(answer["Cache-Status"]?.contains("hit") == true)
        }
        let paths = stream.story.cdn.requests.dropFirst(asked).map(\.target)
        #expect(!paths.contains { $0.hasPrefix("/bytes/") && !$0.contains("/s1") })
    }

    @Test func `why shows how far a longer window reaches`() throws {
        let stream = try ShiftedStream("60s")
        try stream.watch(try stream.list())
        _ = try stream.advance(by: 2)
        let entry = "/proxy?url=\(percentEncoded(stream.story.cdn.url(stream.path)))&dvr=60s"
        let url = percentEncoded(stream.story.daemon.baseURL + entry)
        let text = try stream.story.player().get("/api/why?url=\(url)").text
        #expect(text.contains("\"window\":{\"first\":0,\"segments\":5,\"behind-origin\":2"))
        let plain = percentEncoded(stream.story.cdn.url(stream.path))
        let other = try stream.story.player().get("/api/why?url=\(plain)").text
        #expect(other.contains("\"window\":null"))
    }

    @Test
    func `segments never seen become gaps, which cost no origin request`() throws {
        let stream = try ShiftedStream("60s")
        try stream.watch(try stream.list())
        let list = try stream.advance(by: 5)
        #expect(list.tag("#EXT-X-MEDIA-SEQUENCE") == "0")
        #expect(
            list.text.split(separator: "#EXT-X-GAP", omittingEmptySubsequences: false).count == 3)
        #expect(list.segmentNames == ["s0", "s1", "s2", "3", "4", "s5", "s6", "s7"])
        let asked = stream.story.cdn.requestCount()
        let answer = try stream.story.follow(uriLines(list.text)[3])
        #expect(answer.status == 200 && answer.body.isEmpty)
        #expect(answer["Cache-Status"]?.contains("gap") == true)
        // The daemon follows the list by itself.
        let paths = stream.story.cdn.requests.dropFirst(asked).map(\.path)
        #expect(!paths.contains { $0.contains("/s3") || $0.contains("/s4") })
        #expect(try stream.story.stat("time_shift_missed_total") == 2)
    }

    @Test
    func `discontinuities still count when they have left the window`() throws {
        let stream = try ShiftedStream("5s", loop: 4)
        for _ in 0..<5 { try stream.watch(try stream.advance()) }
        let list = try stream.advance(by: 2)
        // The ninth segment, number 8, begins the third round.
        #expect(list.tag("#EXT-X-MEDIA-SEQUENCE") == "5")
        #expect(list.tag("#EXT-X-DISCONTINUITY-SEQUENCE") == "1")
        #expect(list.segmentNames == ["s1", "s2", "s3", "s0", "s1"])
        #expect(list.text.contains("#EXT-X-DISCONTINUITY\n#EXTINF"))
    }

    @Test
    func `an origin that restarts its numbering continues after a discontinuity`() throws {
        let stream = try ShiftedStream("60s")
        try stream.watch(try stream.list())
        for _ in 0..<2 { try stream.watch(try stream.advance(by: 2)) }
        let before = try stream.list().text
        stream.reset(to: ShiftedStream.window(names: "t"))
        let list = try stream.changed(from: before)
        #expect(list.tag("#EXT-X-MEDIA-SEQUENCE") == "0")
        #expect(list.segmentNames == (0...6).map { "s\($0)" } + ["t0", "t1", "t2"])
        #expect(list.text.contains("#EXT-X-DISCONTINUITY\n"))
        #expect(try stream.advance().segmentNames.last == "t3")
        #expect(try stream.story.stat("time_shift_epochs_total") == 1)
    }

    @Test(arguments: [true, false])
    func `a restart keeps the window, with the origin there or gone`(_ isThere: Bool) throws {
        let stream = try ShiftedStream("60s")
        try stream.watch(try stream.list())
        for _ in 0..<3 { try stream.watch(try stream.advance(by: 2)) }
        let before = try stream.list()
        if !isThere { stream.story.cdn.stop() }
        try stream.story.restart()
        let list = try stream.list()
        #expect(list.status == 200 && list.segmentNames == before.segmentNames)
        #expect(uriLines(list.text) == uriLines(before.text))
        let first = try stream.story.follow(uriLines(list.text)[0])
        let isFirst = isContent(first.body, of: segment("s0", ShiftedStream.size))
        #expect(isFirst)
        guard isThere else { return }
        #expect(try stream.advance().segmentNames == before.segmentNames + ["s9"])
    }

    @Test
    func `segments of the last window before a restart play after their origin removed them`()
        throws
    {
        let stream = try ShiftedStream("60s")
        let story = stream.story
        // The long target duration allows for any time from the segments to the last list.
        stream.reset(to: ShiftedStream.window(target: 10))
        try stream.watch(try stream.list())
        try stream.watch(try stream.advance(by: 2))
        #expect(try stream.list().segmentNames == (0...4).map { "s\($0)" })
        story.stop()
        stream.window.advance(by: 3)
        let gone = (0...4).map { segment("s\($0)", ShiftedStream.size) }
        for path in gone { story.cdn.setBehaviour("status=404", for: path) }
        story.cdn.resetLog()
        try story.restart()
        var list = try stream.list()
        let hasAdvanced = try eventually {
            list = try stream.list()
            return list.segmentNames.last == "s7"
        }
        #expect(hasAdvanced && list.segmentNames == (0...7).map { "s\($0)" })
        for (link, path) in zip(uriLines(list.text), gone) {
            let answer = try story.follow(link)
            let isKept = isContent(answer.body, of: path)
            #expect(answer.status == 200 && isKept, "\(path): \(answer.status)")
        }
        // Its place has left the origin's window: what the name means there now is not asked.
        #expect(story.cdn.requestCount(gone[2]) == 0)
    }

    @Test
    func `segments of a list whose text a crash has lost play after their origin removed them`()
        throws
    {
        let stream = try ShiftedStream("60s")
        let story = stream.story
        try stream.watch(try stream.list())
        try stream.watch(try stream.advance(by: 2))
        story.stop()
        let purge = try story.onFolder("purge", story.cdn.url(stream.path))
        #expect(purge.stdout.hasPrefix("removed 1 object"), "\(purge)")
        story.cdn.resetLog()
        try story.restart()
        // Nothing shows since when the list has shown these names: they are revalidated in time.
        let shown = (2...4).map { segment("s\($0)", ShiftedStream.size) }
        #expect(try stream.list().segmentNames == (0...4).map { "s\($0)" })
        let areRevalidated = eventually { shown.allSatisfy { story.cdn.requestCount($0) == 1 } }
        #expect(areRevalidated)
        for path in shown { story.cdn.setBehaviour("status=404", for: path) }
        var list = try stream.advance(by: 3)
        let isListed = try eventually {
            list = try stream.list()
            return list.segmentNames == (0...7).map { "s\($0)" }
        }
        #expect(isListed)
        for (link, path) in zip(uriLines(list.text).dropFirst(2), shown) {
            let answer = try story.follow(link)
            let isKept = isContent(answer.body, of: path)
            #expect(answer.status == 200 && isKept, "\(path): \(answer.status)")
            #expect(story.cdn.requestCount(path) == 1)
        }
    }

    @Test(arguments: [false, true])
    func `what players had stored is revalidated once, and only if their list lagged since`(
        lags: Bool
    ) throws {
        let stream = try ShiftedStream("60s")
        let story = stream.story
        let shown = (2...4).map { segment("s\($0)", ShiftedStream.size) }
        func ends(with name: String) throws -> Bool {
            try eventually { try story.get(stream.path).segmentNames.last == name }
        }
        stream.window.advance(by: 2)
        #expect(try ends(with: "s4"))
        try stream.watch(try story.get(stream.path))
        let counts = Array(repeating: lags ? 2 : 1, count: 3)
        if lags {
            stream.window.advance(by: -1)
            #expect(try ends(with: "s3"))
            stream.window.advance()
            #expect(try ends(with: "s4"))
        }
        _ = try stream.list()
        #expect(try story.settled("time_shift_fetched_total") { $0 == 3 } == 3)
        #expect(shown.map { story.cdn.requestCount($0) } == counts)
        // The window of another session asks for the same.
        _ = try story.follow("/proxy?url=\(percentEncoded(story.cdn.url(stream.path)))&dvr=50s")
        #expect(try story.settled("time_shift_fetched_total") { $0 == 6 } == 6)
        #expect(shown.map { story.cdn.requestCount($0) } == counts)
    }

    /// A window whose list takes 60 kB a segment.
    private static func wordy(_ size: Int) -> LiveWindow {
        let comment = "#" + String(repeating: "x", count: 60_000) + "\n"
        return LiveWindow(
            segments: (0..<2 * size).map {
                .init(uri: comment + segment("s\($0)", ShiftedStream.size), duration: 1)
            }, targetDuration: 4, windowSize: size)
    }

    @Test
    func `a longer list than any origin's is played, as a window and as a recording`() throws {
        let stream = try ShiftedStream("1h")
        stream.reset(to: Self.wordy(150))
        let url = percentEncoded(stream.story.cdn.url(stream.path))
        let order = try stream.story.api("recordings?url=\(url)&for=1h", method: "POST")
        let id = members("id", in: order).first ?? ""
        func recorded(_ isExpected: (String) -> Bool) throws -> Bool {
            try eventually(within: .seconds(60)) {
                isExpected(try stream.story.api("recordings/\(id)"))
            }
        }
        #expect(try recorded { members("segments", in: $0).first == "150" })
        #expect(uriLines(try stream.list().text).count == 150)
        stream.window.advance(by: 150)
        #expect(try recorded { members("segments", in: $0).first == "300" })
        let isLonger = try eventually(within: .seconds(60)) {
            let list = try stream.list()
            return list.status == 200 && list.body.count > 16 << 20
                && uriLines(list.text).count == 300
        }
        #expect(isLonger)
        _ = try stream.story.api("recordings/\(id)/stop", method: "POST")
        #expect(try recorded { $0.contains("\"state\":\"done\"") })
        let play = members("play", in: try stream.story.api("recordings/\(id)")).first ?? ""
        let list = try stream.story.follow(play)
        #expect(list.status == 200 && uriLines(list.text).count == 300)
    }

    @Test
    func `the list is served while its origin is gone`() throws {
        let stream = try ShiftedStream("60s")
        try stream.watch(try stream.list())
        for _ in 0..<2 { try stream.watch(try stream.advance(by: 2)) }
        let before = try stream.list()
        let ordinary = stream.story.url("/l.m3u8")
        _ = try stream.story.player().get(ordinary)
        stream.story.cdn.stop()
        // An ordinary session gets an ended list after three target durations.
        let isOver = try eventually {
            let list = try stream.story.player().get(ordinary)
            return list.status != 200 || list.text.contains("ENDLIST")
        }
        let list = try stream.list()
        #expect(isOver && list.status == 200 && list.segmentNames == before.segmentNames)
        #expect(!list.text.contains("ENDLIST"))
        #expect(list["Cache-Status"]?.contains("origin-unreachable") == true)
    }

    @Test
    func `segments that the player skipped are fetched behind it`() throws {
        let stream = try ShiftedStream("60s")
        _ = try stream.list()
        #expect(try stream.story.settled("time_shift_fetched_total") { $0 == 3 } == 3)
        let list = try stream.advance(by: 3)
        #expect(list.segmentNames.first == "s0" && !list.text.contains("GAP"))
    }

    @Test
    func `both forms of an entry give one session, and its links keep the window`() throws {
        let stream = try ShiftedStream("60s")
        stream.story.cdn.put(
            "/m.m3u8", text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nl.m3u8\n")
        let origin = stream.story.cdn.url("/m.m3u8")
        let link = try links(stream.story.follow("/dvr=60s/\(origin)").text)[0]
        let other = stream.story.entry("/m.m3u8", "dvr=1m")
        #expect(try links(stream.story.follow(other).text) == [link])
        _ = try stream.story.follow(link)
        stream.window.advance(by: 3)
        let isLonger = try eventually {
            try stream.story.follow(link).segmentNames.count == 6
        }
        #expect(isLonger)
    }

    @Test
    func `an invalid length is refused with the reason`() throws {
        let story = try Story()
        _ = story.cdn.live("/l.m3u8", liveWindow())
        let url = story.cdn.url("/l.m3u8")
        for length in ["0", "-1", "2x", "1h1h", "25h", "1000000000000h", "", "h"] {
            for form in [story.entry("/l.m3u8", "dvr=\(length)"), "/dvr=\(length)/\(url)"] {
                let answer = try story.follow(form)
                #expect(answer.status == 400 && answer.text.contains("up to 24h"), "\(form)")
            }
        }
        #expect(story.cdn.requestCount() == 0)
    }

    @Test
    func `a film and a plain file are unaffected by the length`() throws {
        let story = try Story()
        story.cdn.put("/f.m3u8", text: vod([segment("a", 2_000), segment("b", 2_000)]))
        let film = try story.follow(story.entry("/f.m3u8", "dvr=2h"))
        #expect(film.segmentNames == ["a", "b"] && film.text.contains("ENDLIST"))
        #expect(film.head.all("Cache-Status").contains { $0.contains("dvr ignored") })
        let file = try story.follow(story.entry(segment("c", 5_000), "dvr=2h"))
        let isFile = isContent(file.body, of: segment("c", 5_000))
        #expect(isFile)
        let page = try story.follow(story.entry("/missing.m3u8", "dvr=2h"))
        #expect(page.status == 404)
    }

    @Test
    func `variants are aligned, whichever was watched first`() throws {
        let stream = try ShiftedStream("60s")
        let story = stream.story
        let second = ShiftedStream.window(names: "low")
        _ = story.cdn.live("/low.m3u8", second)
        story.cdn.put(
            "/m.m3u8",
            text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=2\nl.m3u8\n"
                + "#EXT-X-STREAM-INF:BANDWIDTH=1\nlow.m3u8\n")
        let lists = links(try story.follow(story.entry("/m.m3u8", "dvr=1m")).text)
        _ = try story.follow(lists[0])
        stream.window.advance(by: 2)
        second.advance(by: 2)
        _ = try eventually { try story.follow(lists[0]).segmentNames.count == 5 }
        // Both restart before the second was ever requested.
        stream.reset(to: ShiftedStream.window(names: "t"))
        _ = story.cdn.live("/low.m3u8", ShiftedStream.window(names: "u"))
        let isAnew = try eventually { try story.follow(lists[0]).segmentNames.last == "t2" }
        let other = try story.follow(lists[1])
        #expect(isAnew && other.segmentNames == ["u0", "u1", "u2"])
        #expect(other.tag("#EXT-X-MEDIA-SEQUENCE") == "5")
        #expect(other.tag("#EXT-X-DISCONTINUITY-SEQUENCE") == "1")
    }

    @Test
    func `a key that rotates stays with the segments that need it`() throws {
        let story = try Story()
        func put(_ first: Int, _ key: String) {
            let segments = (first..<(first + 3)).map { "#EXTINF:1,\n\(segment("s\($0)", 1_000))\n" }
            story.cdn.put(
                "/l.m3u8",
                text: "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-PART-INF:PART-TARGET=0.1\n"
                    + "#EXT-X-MEDIA-SEQUENCE:\(first)\n#EXT-X-KEY:METHOD=AES-128,URI=\"/bytes/16/\(key).key\"\n"
                    + segments.joined())
        }
        put(0, "one")
        let entry = story.entry("/l.m3u8", "dvr=1m")
        _ = try story.follow(entry)
        #expect(try story.settled("time_shift_fetched_total") { $0 == 4 } == 4)
        put(3, "two")
        let hasChanged = try eventually { try story.follow(entry).segmentNames.count == 6 }
        let text = try story.follow(entry).text
        #expect(hasChanged, "\(text)")
        let keys = links(text).filter { $0.hasPrefix("/k/") }
        #expect(keys.count == 2)
        let answer = try story.follow(keys[0])
        let isKey = isContent(answer.body, of: "/bytes/16/one.key")
        #expect(isKey)
        #expect(answer["Cache-Status"]?.contains("hit") == true)
    }

    @Test
    func `reused names refer to their meaning at their position`() throws {
        let stream = try ShiftedStream("60s")
        let story = stream.story
        func window() -> LiveWindow {
            LiveWindow(
                segments: (0..<50).map { .init(uri: "/r\($0).ts", duration: 1) },
                targetDuration: 1, windowSize: 3, header: ["#EXT-X-PART-INF:PART-TARGET=0.1"])
        }
        func put(_ word: String) {
            for number in 0..<9 { story.cdn.put("/r\(number).ts", text: "\(word) \(number)") }
        }
        put("old")
        stream.reset(to: window())
        for _ in 0..<3 { try stream.watch(try stream.advance(by: 2)) }
        let before = try stream.list().text
        put("new")
        stream.reset(to: window())
        let list = try stream.changed(from: before)
        #expect(list.segmentNames == (Array(0...8) + [0, 1, 2]).map { "r\($0)" })
        let texts = try uriLines(list.text).map { try story.follow($0).text }
        #expect(texts == (0...8).map { "old \($0)" } + (0...2).map { "new \($0)" })
    }
}
