import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Existing downloads are changed only by valid orders, and each byte is fetched once.
extension Stories.Downloads {
    @Test(arguments: [
        ("/bytes/1000000/a.mp4", 1), ("/bytes/a/1000000", 1), ("/bytes/10000000/b.mp4", 3),
        ("/bytes/b/10000000", 3), ("/bytes/c/10000000?norange=1", 3),
    ])
    func `a downloaded file costs the origin only its size`(path: String, parts: Int) throws {
        let stage = try DownloadStage()
        let done = try stage.wait(try stage.order(stage.cdn.url(path)), for: "complete")
        let size = path.contains("10000000") ? 10_000_000 : 1_000_000
        #expect(stage.cdn.bytesSent() == size)
        #expect(done["bytes"] == "\(size)")
        #expect(done["pieces"] == "\(parts)")
    }

    @Test(arguments: ["", "chunked=1"])
    func `a title with an empty segment is downloaded whole`(behaviour: String) throws {
        let stage = try DownloadStage()
        stage.cdn.put("/f/l.m3u8", text: vod(["a.ts", "empty.ts"]))
        stage.cdn.put("/f/a.ts", text: "bytes")
        stage.cdn.put("/f/empty.ts", [UInt8]())
        stage.cdn.setBehaviour(Behaviour(query: behaviour), for: "/f/empty.ts")
        let done = try stage.wait(try stage.order(stage.cdn.url("/f/l.m3u8")), for: "complete")
        #expect(done["pieces"] == "2")
    }

    @Test(arguments: ["", "norange=1", "chunked=1", "gzip=1"])
    func `a playlist whose URL does not say so is downloaded as a title`(behaviour: String) throws {
        let stage = try DownloadStage()
        _ = stage.title()
        stage.cdn.setBehaviour(Behaviour(query: behaviour + "&as=/film/high.m3u8"), for: "/film/x")
        stage.cdn.put("/film/x", text: "")
        let done = try stage.wait(try stage.order(stage.cdn.url("/film/x")), for: "complete")
        #expect(done["pieces"] == "8")
        #expect(done["streams"] == "[\"stream\"]")
    }

    @Test(arguments: ["&variant=999", "&audio=de", "&subtitles=xx", "&from=9:00:00"])
    func `an order that cannot be met leaves a complete download alone`(arguments: String) throws {
        let stage = try DownloadStage()
        let url = stage.title()
        let id = try stage.order(url)
        let before = try stage.wait(id, for: "complete")
        let path = "/api/downloads?url=\(DownloadStage.encoded(url))\(arguments)"
        let answer = try stage.ask("POST", path)
        #expect(answer.status == 409)
        #expect(answer.text.contains("left as it was"))
        #expect(try stage.download(id).text == before.text)
        try stage.story.restart(SIGKILL)
        #expect(try stage.download(id)["state"] == "complete")
    }

    @Test func `an order that cannot be met leaves a running download alone`() throws {
        let stage = try DownloadStage()
        let url = stage.title()
        stage.cdn.hold("/bytes/film-v2-4/20000")
        let id = try stage.order(url, "&audio=none")
        #expect(eventually { stage.cdn.requestCount("/bytes/film-v2-4/20000") > 0 })
        let path = "/api/downloads?url=\(DownloadStage.encoded(url))&variant=999"
        let answer = try stage.ask("POST", path)
        #expect(answer.status == 409)
        #expect(answer.text.contains("it has 360, 720"))
        stage.cdn.release("/bytes/film-v2-4/20000")
        #expect(try stage.wait(id, for: "complete")["streams"] == "[\"720p\"]")
        #expect(stage.cdn.requestCount("/bytes/film-v2-4/20000") == 1)
    }

    @Test func `an order that cannot be judged now leaves a complete download alone`() throws {
        let stage = try DownloadStage()
        let url = stage.title()
        let id = try stage.order(url)
        let before = try stage.wait(id, for: "complete")
        stage.cdn.stop()
        let path = "/api/downloads?url=\(DownloadStage.encoded(url))&variant=360"
        #expect(try stage.ask("POST", path).status == 502)
        #expect(try stage.download(id).text == before.text)
    }

    /// Orders a title, and then for a variant whose playlist the origin holds; both wait.
    private func orderTwice(
        _ url: String, at stage: DownloadStage
    ) throws -> (id: String, second: Background<DownloadStage.Answer>) {
        stage.cdn.hold("/bytes/film-v2-4/20000")
        let id = try stage.order(url, "&audio=none")
        #expect(eventually { stage.cdn.requestCount("/bytes/film-v2-4/20000") == 1 })
        stage.cdn.hold("/film/low.m3u8")
        let path = "/api/downloads?url=\(DownloadStage.encoded(url))&audio=none&variant=360"
        let order = Background { try stage.ask("POST", path) }
        #expect(eventually { stage.cdn.requestCount("/film/low.m3u8") == 1 })
        return (id, order)
    }

    @Test func `a pause ends the check of an order for more`() throws {
        let stage = try DownloadStage(["--concurrency", "fixed:4"])
        let url = stage.title()
        let (id, order) = try orderTwice(url, at: stage)
        #expect(try stage.ask("POST", "/api/downloads/\(id)/pause").status == 200)
        let answer = try order.value()
        #expect(answer.status == 409 && answer.text.contains("it was paused meanwhile"))
        stage.cdn.release("/film/low.m3u8")
        #expect(eventually { stage.cdn.activeRequests == 0 })
        #expect(try stage.download(id)["state"] == "paused")
    }

    @Test func `a repeated order ends the check of one for more in between`() throws {
        let stage = try DownloadStage(["--concurrency", "fixed:4"])
        let url = stage.title()
        let (id, order) = try orderTwice(url, at: stage)
        #expect(try stage.order(url, "&audio=none") == id)
        stage.cdn.release("/film/low.m3u8")
        let answer = try order.value()
        #expect(answer.status == 409 && answer.text.contains("another order took its place"))
        stage.cdn.release("/bytes/film-v2-4/20000")
        #expect(try stage.wait(id, for: "complete")["streams"] == "[\"720p\"]")
    }

    @Test(arguments: [true, false])
    func `a cancelled download leaves the pin that there was before its order`(
        isPinned: Bool
    ) throws {
        let stage = try DownloadStage()
        let url = stage.title()
        if isPinned {
            let pin = try stage.ask("POST", "/api/pin?url=\(DownloadStage.encoded(url))")
            #expect(pin.status == 200)
        }
        let id = try stage.order(url, "&audio=none")
        _ = try stage.wait(id, for: "complete")
        #expect(try stage.order(url, "&audio=none&variant=360") == id)
        _ = try stage.wait(id, for: "complete")
        try stage.story.restart(SIGKILL)
        #expect(try stage.ask("POST", "/api/downloads/\(id)/cancel").status == 200)
        let titles = try stage.ask("GET", "/api/titles").text
        #expect(titles.contains("\"pinned\":true") == isPinned)
    }

    @Test(arguments: [true, false])
    func `a cancelled download leaves no pin that was removed since its order`(
        isResumed: Bool
    ) throws {
        let stage = try DownloadStage()
        let url = stage.title()
        let pin = try stage.ask("POST", "/api/pin?url=\(DownloadStage.encoded(url))")
        #expect(pin.status == 200)
        let id = try stage.order(url, "&audio=none")
        _ = try stage.wait(id, for: "complete")
        #expect(try stage.ask("POST", "/api/unpin?title=\(id)")["unpinned"] == "1")
        if isResumed {
            #expect(try stage.ask("POST", "/api/downloads/\(id)/resume").status == 200)
        } else {
            #expect(try stage.order(url, "&audio=none&variant=360") == id)
        }
        _ = try stage.wait(id, for: "complete")
        #expect(try stage.ask("GET", "/api/titles").text.contains("\"pinned\":true"))
        #expect(try stage.ask("POST", "/api/downloads/\(id)/cancel").status == 200)
        #expect(try !stage.ask("GET", "/api/titles").text.contains("\"pinned\":true"))
    }

    @Test func `a complete download takes an order for more, and fetches only that`() throws {
        let stage = try DownloadStage()
        let url = stage.title()
        let id = try stage.order(url, "&audio=none")
        _ = try stage.wait(id, for: "complete")
        #expect(try stage.order(url, "&audio=none&variant=all") == id)
        #expect(try stage.wait(id, for: "complete")["pieces"] == "16")
        #expect(stage.cdn.requestCount("/bytes/film-v2-3/20000") == 1)
        #expect(stage.cdn.requestCount("/bytes/film-v1-3/20000") == 1)
    }

    @Test(.enabled(if: Tool.cCompiler != nil, "faults are made by a library built here"))
    func `an order that a full disk does not take is refused, and nothing of it is kept`() throws {
        let disk = try FullDisk()
        let stage = DownloadStage(on: disk.story)
        let order = "/api/downloads?url=\(DownloadStage.encoded(stage.title()))"
        try disk.fill()
        let answer = try stage.ask("POST", order)
        #expect(answer.status == 507)
        #expect(answer.text.contains("order it again"))
        #expect(!(try stage.ask("GET", "/api/downloads")).text.contains("\"id\""))
        try disk.makeRoom()
        let id = try stage.order(stage.cdn.url("/film/master.m3u8"))
        try disk.story.restart(SIGKILL)
        #expect(try stage.wait(id, for: "complete")["state"] == "complete")
    }

    @Test(arguments: ["pause", "resume", "cancel"])
    func `a confirmed change is found after a kill`(_ verb: String) throws {
        let stage = try DownloadStage()
        let url = stage.title()
        stage.cdn.hold("/bytes/film-v2-4/20000")
        let id = try stage.order(url, "&audio=none")
        if verb == "resume" {
            #expect(try stage.ask("POST", "/api/downloads/\(id)/pause").status == 200)
        }
        #expect(try stage.ask("POST", "/api/downloads/\(id)/\(verb)").status == 200)
        try stage.story.restart(SIGKILL)
        let found = try stage.download(id)
        switch verb {
        case "pause": #expect(found["state"] == "paused")
        case "cancel":
            #expect(found.status == 404)
            #expect(!(try stage.ask("GET", "/api/titles")).text.contains("\"pinned\":true"))
        default:
            stage.cdn.release("/bytes/film-v2-4/20000")
            _ = try stage.wait(id, for: "complete")
        }
    }

    @Test(
        .enabled(if: Tool.cCompiler != nil, "faults are made by a library built here"),
        arguments: ["pause", "resume", "cancel"])
    func `a change that a full disk does not take is refused, and not made`(
        _ verb: String
    ) throws {
        let disk = try FullDisk()
        let stage = DownloadStage(on: disk.story)
        let url = stage.title()
        stage.cdn.hold("/bytes/film-v2-4/20000")
        let id = try stage.order(url, "&audio=none")
        #expect(eventually { stage.cdn.requestCount("/bytes/film-v2-4/20000") > 0 })
        if verb == "resume" {
            #expect(try stage.ask("POST", "/api/downloads/\(id)/pause").status == 200)
        }
        try disk.fill()
        let answer = try stage.ask("POST", "/api/downloads/\(id)/\(verb)")
        #expect(answer.status == 507)
        #expect(answer.text.contains("is left as it was") && answer.text.contains("ask again"))
        #expect(answer.text.hasPrefix("daemon error"))
        #expect(try disk.story.stat("own_errors_total") == 1)
        // A running one may wait for the disk.
        let isPaused = try stage.download(id)["state"] == "paused"
        #expect(isPaused == (verb == "resume"))
        try disk.makeRoom()
        try disk.story.restart(SIGKILL)
        let found = try stage.download(id)
        #expect(found.status == 200)
        #expect((found["state"] == "paused") == (verb == "resume"))
        #expect(try stage.ask("POST", "/api/downloads/\(id)/\(verb)").status == 200)
    }

    @Test func `a complete download is neither paused nor resumed`() throws {
        let stage = try DownloadStage()
        let id = try stage.order(stage.title())
        let before = try stage.wait(id, for: "complete")
        let program = try DaemonProcess.builtBinary()
        for verb in ["pause", "resume"] {
            let words = [program, "download", verb, id, "--daemon", stage.story.daemon.baseURL]
            let done = try Tool.run(words)
            #expect(done.status == 1)
            #expect(done.stderr.contains("is complete"))
        }
        #expect(try stage.download(id).text == before.text)
    }

    @Test func `the bytes of running transfers are reported`() throws {
        let stage = try DownloadStage()
        let path = "/bytes/3000000/film.mp4"
        stage.cdn.hold(path, afterBytes: 1_500_000)
        let id = try stage.order(stage.cdn.url(path))
        #expect(try eventually { Int(try stage.download(id)["bytes"]) ?? 0 >= 1_400_000 })
        let now = try stage.download(id)
        #expect(now["state"] == "running" && now["pieces_done"] == "0")
        #expect((40...60).contains(Int(now["percent"]) ?? 0))
        stage.cdn.release(path)
        _ = try stage.wait(id, for: "complete")
    }
}
