import FixtureCDN
import ScenarioSupport
import Testing

/// Complete downloads that are brought up to date.
extension Stories.Downloads {
    /// Downloads a list of two segments.
    private func keepTwo(_ stage: DownloadStage) throws -> String {
        stage.cdn.put("/v/l.m3u8", text: vod(["a.ts", "b.ts"]))
        stage.cdn.put("/v/a.ts", text: "a, first version")
        stage.cdn.put("/v/b.ts", text: "b, first version")
        let id = try stage.order(stage.cdn.url("/v/l.m3u8"))
        _ = try stage.wait(id, for: "complete")
        return id
    }

    /// Refreshes a download, and waits for the end of that.
    private func refresh(_ stage: DownloadStage, _ id: String) throws -> DownloadStage.Answer {
        #expect(try stage.ask("POST", "/api/downloads/\(id)/refresh").status == 200)
        return try waitForEnd(stage, id)
    }

    private func waitForEnd(_ stage: DownloadStage, _ id: String) throws -> DownloadStage.Answer {
        var last = try stage.download(id)
        let isOver = try eventually(within: .seconds(30)) {
            last = try stage.download(id)
            return last["refreshing"] == "null"
        }
        #expect(isOver, "\(last.text)")
        #expect(last["state"] == "complete" && last["refreshed"] != "null", "\(last.text)")
        return last
    }

    /// What an offline daemon plays of the list.
    private func played(_ stage: DownloadStage) throws -> [String] {
        let (player, daemon) = try stage.story.offline()
        defer { withExtendedLifetime(daemon) {} }
        let list = try player.get("/v/l.m3u8")
        #expect(list.text.contains("#EXT-X-ENDLIST"))
        return try uriLines(list.text).map { try player.player.get($0).text }
    }

    @Test func `a refreshed title plays offline as its second version`() throws {
        let stage = try DownloadStage()
        let id = try keepTwo(stage)
        stage.cdn.put("/v/l.m3u8", text: vod(["a.ts", "c.ts"]))
        stage.cdn.put("/v/a.ts", text: "a, second version")
        stage.cdn.put("/v/c.ts", text: "c, second version")
        let done = try refresh(stage, id)
        #expect(done["reason"] == "null" && done["pieces"] == "2", "\(done.text)")
        stage.cdn.stop()
        // The pin would have held it for ever.
        #expect(try stage.story.get("/v/b.ts").status != 200)
        #expect(try played(stage) == ["a, second version", "c, second version"])
    }

    @Test func `a title whose origin is down at its refresh plays as its first version`() throws {
        let stage = try DownloadStage()
        let id = try keepTwo(stage)
        stage.cdn.stop()
        let reason = try refresh(stage, id)["reason"]
        #expect(reason != "null" && !reason.isEmpty)
        try stage.story.restart()
        #expect(try stage.download(id)["reason"] == reason)
        #expect(try stage.download(id)["state"] == "complete")
        #expect(try played(stage) == ["a, first version", "b, first version"])
    }

    @Test func `a title keeps its playlist until all that the new one names is stored`() throws {
        let stage = try DownloadStage()
        let id = try keepTwo(stage)
        stage.cdn.put("/v/l.m3u8", text: vod(["a.ts", "c.ts"]))
        #expect(try refresh(stage, id)["reason"].contains("404"))
        stage.cdn.put("/v/c.ts", text: "c")
        #expect(try refresh(stage, id)["reason"] == "null")
        #expect(try played(stage) == ["a, first version", "c"])
    }

    @Test func `an origin that refuses the new version leaves the first one`() throws {
        let stage = try DownloadStage()
        let id = try keepTwo(stage)
        stage.cdn.put("/v/l.m3u8", text: vod(["a.ts", "c.ts"]))
        #expect(try refresh(stage, id)["reason"].contains("404"))
        #expect(try played(stage) == ["a, first version", "b, first version"])
    }

    @Test func `an outage between two new playlists leaves both of the first version`() throws {
        let stage = try DownloadStage()
        func put(bandwidth: Int, _ segments: [String]) {
            let stream = "#EXT-X-STREAM-INF:BANDWIDTH=\(bandwidth)\nl.m3u8\n"
            stage.cdn.put("/v/m.m3u8", text: "#EXTM3U\n\(stream)")
            stage.cdn.put("/v/l.m3u8", text: vod(segments))
        }
        put(bandwidth: 111_000, ["a.ts"])
        stage.cdn.put("/v/a.ts", text: "a")
        stage.cdn.put("/v/c.ts", text: "c")
        let id = try stage.order(stage.cdn.url("/v/m.m3u8"))
        _ = try stage.wait(id, for: "complete")
        put(bandwidth: 222_000, ["a.ts", "c.ts"])
        stage.cdn.hold("/v/c.ts")
        #expect(try stage.ask("POST", "/api/downloads/\(id)/refresh").status == 200)
        #expect(eventually { stage.cdn.requestCount("/v/c.ts") > 0 })
        // Both were read; the entry is stored first.
        stage.cdn.setBehaviour("status=404", for: "/v/l.m3u8")
        let entries = stage.cdn.requestCount("/v/m.m3u8")
        stage.cdn.release("/v/c.ts")
        #expect(try refresh(stage, id)["reason"] != "null")
        #expect(stage.cdn.requestCount("/v/m.m3u8") == entries + 1)
        stage.cdn.stop()
        let entry = try stage.story.get("/v/m.m3u8").text
        #expect(entry.contains("111000") && !entry.contains("222000"), "\(entry)")
        #expect(try played(stage) == ["a"])
    }

    /// Puts a title of a video list and `s.m3u8`, its sound.
    private func putTitle(_ stage: DownloadStage, video: String, sound: [String]) {
        let lines = [
            "#EXTM3U",
            "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"E\",DEFAULT=YES,URI=\"s.m3u8\"",
            "#EXT-X-STREAM-INF:BANDWIDTH=111000,AUDIO=\"a\"", video,
        ]
        stage.cdn.put("/v/m.m3u8", text: lines.joined(separator: "\n") + "\n")
        stage.cdn.put("/v/s.m3u8", text: vod(sound))
        for name in ["a.ts", "b.ts", "s.ts", "t.ts"] { stage.cdn.put("/v/\(name)", text: name) }
    }

    /// Has the second reading of the sound's list fail, after all that the first reading of the
    /// playlists named was fetched.
    private func failSecondReading(
        _ stage: DownloadStage, _ id: String, meanwhile: () -> Void = {}
    ) throws {
        stage.cdn.hold("/v/t.ts")
        #expect(try stage.ask("POST", "/api/downloads/\(id)/refresh").status == 200)
        #expect(eventually { stage.cdn.requestCount("/v/t.ts") > 0 })
        meanwhile()
        stage.cdn.setBehaviour("status=404", for: "/v/s.m3u8")
        stage.cdn.release("/v/t.ts")
        #expect(try waitForEnd(stage, id)["reason"] != "null")
    }

    @Test func `a playlist that changes between the two readings is of the first version too`()
        throws
    {
        let stage = try DownloadStage()
        stage.cdn.put("/v/l.m3u8", text: vod(["a.ts"]))
        putTitle(stage, video: "l.m3u8", sound: ["s.ts"])
        let id = try stage.order(stage.cdn.url("/v/m.m3u8"))
        _ = try stage.wait(id, for: "complete")
        putTitle(stage, video: "l.m3u8", sound: ["s.ts", "t.ts"])
        let readings = stage.cdn.requestCount("/v/l.m3u8")
        try failSecondReading(stage, id) { stage.cdn.put("/v/l.m3u8", text: vod(["b.ts"])) }
        #expect(stage.cdn.requestCount("/v/l.m3u8") == readings + 2)
        stage.cdn.stop()
        #expect(try played(stage) == ["a.ts"])
    }

    @Test func `a new playlist that a failed refresh has stored is removed by the next one`()
        throws
    {
        let stage = try DownloadStage()
        stage.cdn.put("/v/l.m3u8", text: vod(["a.ts"]))
        stage.cdn.put("/v/n.m3u8", text: vod(["b.ts"]))
        putTitle(stage, video: "l.m3u8", sound: ["s.ts"])
        let id = try stage.order(stage.cdn.url("/v/m.m3u8"))
        _ = try stage.wait(id, for: "complete")
        putTitle(stage, video: "n.m3u8", sound: ["s.ts", "t.ts"])
        try failSecondReading(stage, id)
        #expect(stage.cdn.requestCount("/v/n.m3u8") == 2)
        stage.cdn.setBehaviour(nil, for: "/v/s.m3u8")
        putTitle(stage, video: "l.m3u8", sound: ["s.ts"])
        #expect(try refresh(stage, id)["reason"] == "null")
        stage.cdn.stop()
        #expect(try stage.story.get("/v/n.m3u8").status != 200)
        #expect(try played(stage) == ["a.ts"])
    }

    @Test func `what a failed refresh has stored is removed by one of a later run`() throws {
        // One segment after the other, so that one is stored before the next is refused.
        let stage = try DownloadStage(["--concurrency", "fixed:1"])
        let id = try keepTwo(stage)
        stage.cdn.put("/v/l.m3u8", text: vod(["a.ts", "c.ts", "d.ts"]))
        stage.cdn.put("/v/c.ts", text: "c")
        #expect(try refresh(stage, id)["reason"].contains("404"))
        #expect(try stage.story.get("/v/c.ts").text == "c")
        #expect(stage.cdn.requestCount("/v/c.ts") == 1)
        try stage.story.restart()
        stage.cdn.put("/v/l.m3u8", text: vod(["a.ts", "b.ts"]))
        #expect(try refresh(stage, id)["reason"] == "null")
        stage.cdn.stop()
        #expect(try stage.story.get("/v/c.ts").status != 200)
        #expect(try played(stage) == ["a, first version", "b, first version"])
    }

    @Test func `an unchanged title costs one conditional request for each playlist`() throws {
        let stage = try DownloadStage()
        let id = try stage.order(stage.title(), "&audio=none")
        _ = try stage.wait(id, for: "complete")
        let before = stage.cdn.requestCount()
        let done = try refresh(stage, id)
        #expect(done["reason"] == "null" && done["pieces"] == "8", "\(done.text)")
        let asked = stage.cdn.requests.dropFirst(before)
        #expect(asked.map(\.path).sorted() == ["/film/high.m3u8", "/film/master.m3u8"])
        #expect(asked.allSatisfy { $0.status == 304 })
    }

    @Test func `stored segments of a changed playlist are revalidated`() throws {
        let stage = try DownloadStage()
        let id = try keepTwo(stage)
        stage.cdn.put("/v/l.m3u8", text: vod(["a.ts", "b.ts"], head: ["#EXT-X-MEDIA-SEQUENCE:1"]))
        #expect(try refresh(stage, id)["reason"] == "null")
        for path in ["/v/a.ts", "/v/b.ts"] {
            let answers = stage.cdn.requests.filter { $0.path == path }.map(\.status)
            #expect(answers == [200, 304])
        }
    }

    @Test func `stored byte ranges of a changed playlist are revalidated`() throws {
        let stage = try DownloadStage()
        // Nothing names the bytes between them: the file is never complete.
        let ranges = ["#EXT-X-BYTERANGE:10000@0\nfilm.ts", "#EXT-X-BYTERANGE:10000@30000\nfilm.ts"]
        let path = "/v/film.ts"
        let second = FixtureCDN.syntheticBytes("two", 0..<40_000)
        stage.cdn.put("/v/l.m3u8", text: vod(ranges))
        stage.cdn.put(path, FixtureCDN.syntheticBytes("one", 0..<40_000))
        let id = try stage.order(stage.cdn.url("/v/l.m3u8"))
        _ = try stage.wait(id, for: "complete")
        stage.cdn.put("/v/l.m3u8", text: vod(ranges, head: ["#EXT-X-MEDIA-SEQUENCE:1"]))
        #expect(try refresh(stage, id)["reason"] == "null")
        #expect(stage.cdn.requests.filter { $0.path == path }.last?.status == 304)
        stage.cdn.put("/v/l.m3u8", text: vod(ranges, head: ["#EXT-X-MEDIA-SEQUENCE:2"]))
        stage.cdn.put(path, second)
        #expect(try refresh(stage, id)["reason"] == "null")
        stage.cdn.stop()
        let after = try stage.story.get(path).body
        #expect(isSame(after, second))
    }

    @Test func `a new version that many byte ranges wait for is counted once`() throws {
        let stage = try DownloadStage()
        let ranges = (0..<4).map { "#EXT-X-BYTERANGE:10000@\($0 * 10_000)\nfilm.ts" }
        stage.cdn.put("/v/l.m3u8", text: vod(ranges))
        stage.cdn.put("/v/film.ts", FixtureCDN.syntheticBytes("one", 0..<40_000))
        let id = try stage.order(stage.cdn.url("/v/l.m3u8"))
        _ = try stage.wait(id, for: "complete")
        stage.cdn.put("/v/l.m3u8", text: vod(ranges, head: ["#EXT-X-MEDIA-SEQUENCE:1"]))
        stage.cdn.put("/v/film.ts", FixtureCDN.syntheticBytes("two", 0..<40_000))
        let done = try refresh(stage, id)
        #expect(done["reason"] == "null" && done["brought_bytes"] == "40000", "\(done.text)")
    }

    @Test func `a file stays until its new version is whole, however long that is`() throws {
        let stage = try DownloadStage(["--read-ahead", "1MB"])
        let path = "/v/film.mp4"
        let first = FixtureCDN.syntheticBytes("one", 0..<3_000_000)
        let second = FixtureCDN.syntheticBytes("two", 0..<2_500_000)
        stage.cdn.put(path, first)
        let id = try stage.order(stage.cdn.url(path))
        _ = try stage.wait(id, for: "complete")
        stage.cdn.put(path, second)
        stage.cdn.hold(path, afterBytes: 1_000_000)
        #expect(try stage.ask("POST", "/api/downloads/\(id)/refresh").status == 200)
        #expect(eventually { stage.cdn.bytesSent(path) >= 3_900_000 })
        let during = try stage.story.get(path).body
        #expect(isSame(during, first))
        #expect(try stage.download(id)["state"] == "complete")
        stage.cdn.release(path)
        let done = try refresh(stage, id)
        #expect(done["reason"] == "null" && done["bytes"] == "2500000", "\(done.text)")
        stage.cdn.stop()
        let after = try stage.story.get(path).body
        #expect(isSame(after, second))
    }

    @Test func `a pause ends a refresh and leaves the first version`() throws {
        let stage = try DownloadStage()
        let id = try keepTwo(stage)
        let pause = "/api/downloads/\(id)/pause"
        #expect(try stage.ask("POST", pause).status == 409)
        stage.cdn.put("/v/l.m3u8", text: vod(["a.ts", "c.ts"]))
        stage.cdn.put("/v/c.ts", text: "c")
        stage.cdn.hold("/v/c.ts")
        #expect(try stage.ask("POST", "/api/downloads/\(id)/refresh").status == 200)
        #expect(eventually { stage.cdn.requestCount("/v/c.ts") > 0 })
        let paused = try stage.ask("POST", pause)
        #expect(paused.status == 200 && paused["state"] == "complete", "\(paused.text)")
        #expect(paused["refreshing"] == "null" && paused["reason"] == "it was stopped")
        stage.cdn.release("/v/c.ts")
        #expect(try played(stage) == ["a, first version", "b, first version"])
    }

    @Test func `an order does not end a refresh that is storing its playlists`() throws {
        let stage = try DownloadStage()
        stage.cdn.put("/v/l.m3u8", text: vod(["a.ts"]))
        putTitle(stage, video: "l.m3u8", sound: ["s.ts"])
        let url = stage.cdn.url("/v/m.m3u8")
        let id = try stage.order(url)
        _ = try stage.wait(id, for: "complete")
        putTitle(stage, video: "l.m3u8", sound: ["s.ts", "t.ts"])
        stage.cdn.hold("/v/t.ts")
        #expect(try stage.ask("POST", "/api/downloads/\(id)/refresh").status == 200)
        #expect(eventually { stage.cdn.requestCount("/v/t.ts") > 0 })
        let readings = stage.cdn.requestCount("/v/s.m3u8")
        stage.cdn.hold("/v/s.m3u8")
        stage.cdn.release("/v/t.ts")
        #expect(eventually { stage.cdn.requestCount("/v/s.m3u8") > readings })
        let again = "/api/downloads?url=\(DownloadStage.encoded(url))"
        #expect(try stage.ask("POST", again).status == 409)
        stage.cdn.release("/v/s.m3u8")
        let done = try waitForEnd(stage, id)
        #expect(done["reason"] == "null" && done["pieces"] == "3", "\(done.text)")
    }

    @Test func `the listing names the limit of the host of a refresh`() throws {
        let stage = try DownloadStage(["--origin-limit", "127.0.0.1=2"])
        let id = try keepTwo(stage)
        #expect(try stage.ask("GET", "/api/downloads").text.contains("\"host_limits\":{}"))
        stage.cdn.put("/v/l.m3u8", text: vod(["a.ts", "c.ts"]))
        stage.cdn.put("/v/c.ts", text: "c")
        stage.cdn.hold("/v/c.ts")
        #expect(try stage.ask("POST", "/api/downloads/\(id)/refresh").status == 200)
        #expect(eventually { stage.cdn.requestCount("/v/c.ts") > 0 })
        let text = try stage.ask("GET", "/api/downloads").text
        #expect(text.contains("\"host_limits\":{\"127.0.0.1\":2}"), "\(text)")
        stage.cdn.release("/v/c.ts")
        #expect(try waitForEnd(stage, id)["reason"] == "null")
    }

    @Test func `only a complete download is refreshed`() throws {
        let stage = try DownloadStage()
        let url = stage.title()
        stage.cdn.hold("/bytes/film-v2-4/20000")
        let id = try stage.order(url, "&audio=none")
        #expect(eventually { stage.cdn.requestCount("/bytes/film-v2-4/20000") > 0 })
        let answer = try stage.ask("POST", "/api/downloads/\(id)/refresh")
        #expect(answer.status == 409 && answer.text.contains("is not complete"))
        stage.cdn.release("/bytes/film-v2-4/20000")
        _ = try stage.wait(id, for: "complete")
    }

    @Test func `the command waits for the end of a refresh and tells its result`() throws {
        let stage = try DownloadStage()
        let id = try keepTwo(stage)
        let words = ["download", "refresh", id, "--watch", "--daemon", stage.story.daemon.baseURL]
        let program = try DaemonProcess.builtBinary()
        stage.cdn.put("/v/l.m3u8", text: vod(["b.ts"]))
        let done = try Tool.run([program] + words)
        #expect(done.status == 0 && done.stdout.contains("is up to date: 1 part"), "\(done)")
        stage.cdn.stop()
        let failed = try Tool.run([program] + words)
        #expect(failed.status == 1 && failed.stderr.contains("the refresh failed"), "\(failed)")
    }
}
