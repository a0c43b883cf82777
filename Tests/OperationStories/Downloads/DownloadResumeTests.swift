import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Downloads that are interrupted by people, kills, the network, the clock or the disk.
extension Stories.Downloads {
    /// Orders a title whose fourth segment does not arrive, and waits until the first has.
    private func halfWay(_ stage: DownloadStage, segments: Int = 8) throws -> String {
        let url = stage.title(segments: segments)
        stage.cdn.hold("/bytes/film-v2-4/20000")
        let id = try stage.order(url, "&audio=none")
        let came = eventually { stage.cdn.requestCount("/bytes/film-v2-4/20000") > 0 }
        #expect(came)
        let isThere = try eventually { (Int(try stage.download(id)["pieces_done"]) ?? 0) >= 5 }
        #expect(isThere)
        // A kill may lose what arrived within the last tenth of a second; listings wait for the
        // commit.
        _ = try stage.ask("GET", "/api/titles")
        return id
    }

    @Test(arguments: [SIGKILL, SIGTERM])
    func `a download continues where it was after a restart`(signal: Int32) throws {
        let stage = try DownloadStage(["--concurrency", "fixed:2"])
        let id = try halfWay(stage)
        stage.story.stop(signal)
        stage.cdn.release("/bytes/film-v2-4/20000")
        try stage.story.restart()
        #expect(try stage.wait(id, for: "complete")["pieces"] == "10")
        #expect(stage.cdn.requestCount("/bytes/film-v2-0/20000") == 1)
        #expect(stage.cdn.requestCount("/bytes/film-v2-i/900") == 1)
    }

    @Test func `a download that is complete outlives a kill in the same moment`() throws {
        let stage = try DownloadStage()
        let files = (0..<4).map { "/bytes/film-\($0)/20000" }
        for file in files {
            _ = try stage.wait(try stage.order(stage.cdn.url(file)), for: "complete")
            try stage.story.restart(SIGKILL)
        }
        stage.cdn.stop()
        for file in files { #expect(try stage.story.get(file).status == 200, "\(file)") }
    }

    @Test func `a download waits for an unreachable CDN, and fetches nothing twice`() throws {
        let stage = try DownloadStage(["--concurrency", "fixed:2"])
        let id = try halfWay(stage)
        stage.cdn.stop()
        #expect(try stage.wait(id, for: "waiting")["reason"] != "null")
        stage.cdn.release("/bytes/film-v2-4/20000")
        try stage.cdn.start()
        _ = try stage.ask("POST", "/api/downloads/\(id)/resume")
        _ = try stage.wait(id, for: "complete")
        #expect(stage.cdn.requestCount("/bytes/film-v2-0/20000") == 1)
    }

    @Test func `a paused download asks for nothing until it is resumed`() throws {
        let stage = try DownloadStage(["--concurrency", "fixed:2"])
        let id = try halfWay(stage)
        #expect(try stage.ask("POST", "/api/downloads/\(id)/pause")["state"] == "paused")
        var asked = -1
        let isQuiet = eventually {
            let before = asked
            asked = stage.cdn.requestCount()
            return stage.cdn.activeRequests == 0 && asked == before
        }
        #expect(isQuiet)
        stage.cdn.release("/bytes/film-v2-4/20000")
        try stage.story.restart()
        #expect(try stage.download(id)["state"] == "paused")
        #expect(stage.cdn.requestCount() == asked)
        _ = try stage.ask("POST", "/api/downloads/\(id)/resume")
        _ = try stage.wait(id, for: "complete")
    }

    @Test func `a cancelled download is removed, and its fetched bytes stay`() throws {
        let stage = try DownloadStage(["--concurrency", "fixed:2"])
        let id = try halfWay(stage)
        #expect(try stage.ask("POST", "/api/downloads/\(id)/cancel").status == 200)
        #expect(try stage.download(id).status == 404)
        stage.cdn.stop()
        #expect(try stage.story.get("/bytes/film-v2-0/20000").status == 200)
        try stage.story.restart()
        #expect(try stage.download(id).status == 404)
    }

    @Test func `a missing segment fails the download by name, and the rest is stored`() throws {
        let stage = try DownloadStage()
        let url = stage.title()
        stage.cdn.setBehaviour("status=404", for: "/bytes/film-v2-3/20000")
        let id = try stage.order(url, "&audio=none")
        let answer = try stage.wait(id, for: "failed")
        #expect(answer["reason"].contains("one of 8 parts"))
        #expect(answer["reason"].contains("404"))
        #expect(stage.cdn.requestCount("/bytes/film-v2-5/20000") == 1)
        stage.cdn.setBehaviour(nil, for: "/bytes/film-v2-3/20000")
        _ = try stage.ask("POST", "/api/downloads/\(id)/resume")
        _ = try stage.wait(id, for: "complete")
        #expect(stage.cdn.requestCount("/bytes/film-v2-5/20000") == 1)
    }

    @Test(arguments: [false, true], [false, true])
    func `a complete download that lost a part fetches it again when it is resumed`(
        isRestarted: Bool, isPinned: Bool
    ) throws {
        let stage = try DownloadStage()
        let id = try stage.order(stage.title(), "&audio=none")
        _ = try stage.wait(id, for: "complete")
        if !isPinned {
            #expect(try stage.ask("POST", "/api/unpin?title=\(id)").status == 200)
        }
        let lost = "/bytes/film-v2-3/20000"
        let url = DownloadStage.encoded(stage.cdn.url(lost))
        #expect(try stage.ask("POST", "/api/purge?url=\(url)").status / 100 == 2)
        let isGone = try eventually { try stage.ask("GET", "/api/purge")["state"] == "done" }
        #expect(isGone)
        for isLater in [false, true] where !isLater || isRestarted {
            if isLater { try stage.story.restart() }
            let told = try stage.download(id)
            #expect(told["state"] == "failed" && told["reason"].contains("removed"))
            #expect(told["pieces_done"] == "7", "\(told.text)")
        }
        #expect(try stage.ask("POST", "/api/downloads/\(id)/resume").status == 200)
        #expect(try stage.wait(id, for: "complete")["pieces"] == "8")
        #expect(stage.cdn.requestCount(lost) == 2)
        #expect(stage.cdn.requestCount("/bytes/film-v2-2/20000") == 1)
        #expect(try stage.ask("POST", "/api/downloads/\(id)/resume").status == 409)
    }

    @Test(arguments: [false, true], [false, true])
    func `a complete download that is unpinned and cleared has failed`(
        isLater: Bool, isOffline: Bool
    ) throws {
        let stage = try DownloadStage()
        let id = try stage.order(stage.title(), "&audio=none")
        let other = try stage.order(stage.title("other"), "&audio=none")
        for id in [id, other] { _ = try stage.wait(id, for: "complete") }
        // Later, its parts are no longer in memory.
        if isLater { try stage.story.restart() }
        #expect(try stage.ask("POST", "/api/unpin?title=\(id)").status == 200)
        if isOffline {
            stage.story.stop()
            let result = try Tool.run([
                DaemonProcess.builtBinary(), "clear", "--cache-dir", stage.story.cacheFolder,
            ])
            #expect(result.status == 0, "\(result)")
            try stage.story.restart()
        } else {
            #expect(try stage.ask("POST", "/api/clear").status == 200)
        }
        let told = try stage.wait(id, for: "failed")
        #expect(told["pieces_done"] == "0", "\(told.text)")
        #expect(try stage.download(other)["state"] == "complete")
        #expect(try stage.ask("POST", "/api/downloads/\(id)/resume").status == 200)
        _ = try stage.wait(id, for: "complete")
    }

    @Test(arguments: [["purge"], ["clear", "--pinned"]])
    func `a complete download that loses parts while no daemon runs has failed in the next run`(
        _ command: [String]
    ) throws {
        let stage = try DownloadStage()
        let id = try stage.order(stage.title(), "&audio=none")
        let other = try stage.order(stage.title("other"), "&audio=none")
        for id in [id, other] { _ = try stage.wait(id, for: "complete") }
        stage.story.stop()
        let isPurge = command == ["purge"]
        let url = isPurge ? [stage.cdn.url("/bytes/film-v2-3/20000")] : []
        let result = try Tool.run(
            [DaemonProcess.builtBinary()] + command + url
                + ["--cache-dir", stage.story.cacheFolder])
        #expect(result.status == 0, "\(result)")
        try stage.story.restart()
        let told = try stage.download(id)
        #expect(told["state"] == "failed" && told["reason"].contains("removed"), "\(told.text)")
        #expect(told["pieces_done"] == (isPurge ? "7" : "0"), "\(told.text)")
        #expect(try stage.download(other)["state"] == (isPurge ? "complete" : "failed"))
        #expect(try stage.ask("POST", "/api/downloads/\(id)/resume").status == 200)
        _ = try stage.wait(id, for: "complete")
    }

    @Test(arguments: [false, true])
    func `a complete download whose media is not in a restored backup has failed`(
        isOpenedBefore: Bool
    ) throws {
        let stage = try DownloadStage()
        let id = try stage.order(stage.title(), "&audio=none")
        _ = try stage.wait(id, for: "complete")
        stage.story.stop()
        let kept = ["format", "state.sqlite"].flatMap { ["!", "-name", $0] }
        let removed = try Tool.run(
            ["find", stage.story.cacheFolder, "-mindepth", "1", "-maxdepth", "1"] + kept
                + ["-exec", "rm", "-rf", "{}", "+"])
        #expect(removed.status == 0 && listFolder(stage.story.cacheFolder).count == 2)
        if isOpenedBefore {
            // Makes an index, and ends without looking for what was lost.
            let listed = try sluice("ls", "--cache-dir", stage.story.cacheFolder)
            #expect(listed.status == 0, "\(listed.stderr)")
        }
        try stage.story.restart()
        try expectLoss(of: id, in: stage)
    }

    @Test(arguments: [false, true])
    func `a complete download whose files are deleted, or whose folder is replaced, has failed`(
        isRunning: Bool
    ) throws {
        let stage = try DownloadStage()
        let id = try stage.order(stage.title(), "&audio=none")
        _ = try stage.wait(id, for: "complete")
        let folder = stage.story.cacheFolder
        if isRunning {
            #expect(try Tool.run(["rm", "-rf", folder]).status == 0)
            #expect(mkdir(folder, 0o700) == 0)
            // The folder is looked for while there is work.
            var count = 0
            let isTold = try eventually(pausing: .milliseconds(100)) {
                count += 1
                _ = try stage.story.get(segment("new\(count)", 1_000))
                return try stage.download(id)["state"] == "failed"
            }
            #expect(isTold)
        } else {
            stage.story.stop()
            let deleted = try Tool.run(["find", folder + "/objects", "-type", "f", "-delete"])
            #expect(deleted.status == 0)
            try stage.story.restart()
        }
        try expectLoss(of: id, in: stage)
    }

    /// Waits until a download is known to be lost as a whole, and resumes it.
    private func expectLoss(of id: String, in stage: DownloadStage) throws {
        let told = try stage.wait(id, for: "failed")
        #expect(told["reason"].contains("removed"), "\(told.text)")
        #expect(told["pieces_done"] == "0", "\(told.text)")
        #expect(try stage.ask("POST", "/api/downloads/\(id)/resume").status == 200)
        _ = try stage.wait(id, for: "complete")
    }

    /// The start and the end of hours around this one.
    private func hoursAroundNow() -> [String] {
        var now = time(nil)
        var parts = tm()
        localtime_r(&now, &parts)
        return [23, 2].map { "\((Int(parts.tm_hour) + $0) % 24):00" }
    }

    @Test func `a complete download is complete until quiet hours let it be checked`() throws {
        let folder = try TemporaryFolder()
        let file = folder.file("sluice.json")
        try writeFile(file, "{}".utf8)
        let stage = try DownloadStage(["--config", file])
        let id = try stage.order(stage.title(), "&audio=none")
        _ = try stage.wait(id, for: "complete")
        #expect(try stage.ask("POST", "/api/unpin?title=\(id)")["unpinned"] == "1")
        let hours = hoursAroundNow().joined(separator: "-")
        try writeFile(file, #"{"quiet-hours": "\#(hours)"}"#.utf8)
        try stage.story.restart()
        let answer = try stage.ask("POST", "/api/downloads/\(id)/resume")
        #expect(answer.status == 200 && answer["state"] == "complete", "\(answer.text)")
        try stage.story.restart(SIGKILL)
        // The check is not forgotten.
        _ = try stage.wait(id, for: "waiting")
        #expect(try !stage.ask("GET", "/api/titles").text.contains("\"pinned\":true"))
        try writeFile(file, "{}".utf8)
        stage.story.daemon.kill(SIGHUP)
        let isPinned = try eventually {
            try stage.ask("GET", "/api/titles").text.contains("\"pinned\":true")
        }
        #expect(isPinned)
        _ = try stage.wait(id, for: "complete")
    }

    @Test func `quiet hours hold every download`() throws {
        let hours = hoursAroundNow()
        let stage = try DownloadStage(["--quiet-hours", hours.joined(separator: "-")])
        let answer = try stage.wait(try stage.order(stage.title()), for: "waiting")
        #expect(answer["reason"] == "quiet hours last until \(hours[1])")
        #expect(stage.cdn.requestCount() == 0)
    }

    @Test func `a download that is changed in quiet hours waits for their end, too`() throws {
        let hours = hoursAroundNow()
        let stage = try DownloadStage(["--quiet-hours", hours.joined(separator: "-")])
        let url = stage.title(segments: 40)
        let id = try stage.order(url, "&audio=none")
        _ = try stage.wait(id, for: "waiting")
        let path = "/api/downloads?url=\(DownloadStage.encoded(url))&audio=none&variant=360"
        #expect(try stage.ask("POST", path).status < 300)
        let answer = try stage.wait(id, for: "waiting")
        #expect(answer["reason"] == "quiet hours last until \(hours[1])")
        #expect(answer["streams"] == "[\"360p\"]", "\(answer.text)")
        // The order is judged by the playlists.
        #expect(stage.cdn.requestCount("/film/low.m3u8") == 1)
        #expect(stage.cdn.requestCount() == 2)
    }

    @Test func `what one run has used up of the day's budget counts in the next`() throws {
        let stage = try DownloadStage(
            ["--download-budget", "100KB", "--concurrency", "fixed:1"])
        let id = try stage.order(stage.title(segments: 40), "&audio=none")
        #expect(try stage.wait(id, for: "waiting")["reason"].contains("budget"))
        // Fetches that were begun before are cancelled, or have ended.
        var asked = -1
        _ = eventually {
            let before = asked
            asked = stage.cdn.requestCount()
            return stage.cdn.activeRequests == 0 && asked == before
        }
        #expect(stage.cdn.requestCount("/bytes/film-v2-39/20000") == 0)
        for signal in [SIGTERM, SIGKILL] {
            try stage.story.restart(signal)
            #expect(try stage.wait(id, for: "waiting")["reason"].contains("budget"))
            #expect(stage.cdn.requestCount() == asked)
        }
    }

    @Test func `downloads of an origin that is away leave their places to others`() throws {
        let stage = try DownloadStage()
        let gone = FixtureCDN()
        try gone.start()
        gone.stop()
        for number in 0..<4 {
            let id = try stage.order(gone.url("/\(number)/film.m3u8"))
            _ = try stage.wait(id, for: "waiting")
        }
        _ = try stage.wait(try stage.order(stage.title()), for: "complete")
    }

    @Test func `a cache that is too small is reported, and fetched bytes are kept`() throws {
        let stage = try DownloadStage(["--cache-size", "1MB", "--concurrency", "fixed:2"])
        let id = try stage.order(stage.title(segments: 12, bytes: 200_000), "&audio=none")
        let answer = try stage.wait(id, for: "waiting")
        #expect(answer["reason"].contains("no room"))
        #expect(try stage.story.get("/bytes/film-v2-0/200000").status == 200)
    }
}
