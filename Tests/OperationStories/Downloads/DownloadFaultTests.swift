import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Downloads with faults: whose fault is reported, and what is kept.
extension Stories {
    @Suite(.tags(.crowded, .threads)) struct DownloadFaultTests {}
}

extension Stories.DownloadFaultTests {
    @Test(.enabled(if: geteuid() == 0, "mounting needs root"))
    func `a download waits while the disk is full, and keeps what it has`() throws {
        let disk = try MountedDisk(megabytes: 16)
        let stage = try DownloadStage(
            ["--concurrency", "fixed:2", "--min-free", "0"], cacheFolder: disk.path)
        let id = try stage.order(stage.title(segments: 24, bytes: 1_000_000), "&audio=none")
        let answer = try stage.wait(id, for: "waiting")
        #expect(answer["reason"].contains("no room"))
        #expect(answer["reason"].contains("sluice purge"))
        #expect(Int(answer["pieces_done"]) ?? 0 > 5)
        try disk.remount("size=64m")
        _ = try stage.ask("POST", "/api/downloads/\(id)/resume")
        _ = try stage.wait(id, for: "complete")
        #expect(stage.cdn.requestCount("/bytes/film-v2-0/1000000") == 1)
        stage.story.stop()
    }

    @Test(.enabled(if: Tool.cCompiler != nil, "faults are made by a library built here"))
    func `a download whose playlists found no room is complete once they are stored`() throws {
        let folder = try TemporaryFolder()
        let recorder = try DiskRecorder()
        let path = folder.makeFolder("cache")
        let story = try Story(
            ["--min-free", "0"], cacheFolder: path,
            environment: recorder.environment(path, isLogged: false))
        let stage = DownloadStage(on: story)
        try recorder.fail(.create, with: ENOSPC)
        let id = try stage.order(stage.title())
        #expect(try stage.wait(id, for: "waiting")["reason"].contains("no room"))
        #expect(stage.cdn.requestCount("/film/master.m3u8") > 0)
        try recorder.fail(.create, with: 0)
        _ = try stage.wait(id, for: "complete")
        stage.cdn.stop()
        for path in ["/film/master.m3u8", "/film/high.m3u8", "/film/en.m3u8"] {
            #expect(try stage.story.get(path).status == 200)
        }
    }

    @Test func `a download whose playlist is purged meanwhile reads it again`() throws {
        let stage = try DownloadStage()
        stage.cdn.hold("/bytes/film-v2-4/20000")
        let id = try stage.order(stage.title())
        _ = eventually { stage.cdn.requestCount("/bytes/film-v2-4/20000") > 0 }
        _ = try stage.story.ask("purge", stage.cdn.url("/film/high.m3u8"))
        stage.cdn.release("/bytes/film-v2-4/20000")
        _ = try stage.wait(id, for: "complete")
        #expect(stage.cdn.requestCount("/film/high.m3u8") == 2)
        #expect(stage.cdn.requestCount("/bytes/film-v2-5/20000") == 1)
    }

    @Test func `a part that is purged before its rest arrives is fetched anew without a wait`()
        throws
    {
        let stage = try DownloadStage()
        let part = "/bytes/film-v2-4/20000"
        #expect(try stage.story.get(part, range: "bytes=0-999").status == 206)
        stage.cdn.hold(part)
        let id = try stage.order(stage.title(), "&audio=none")
        #expect(eventually { stage.cdn.requestCount(part) == 2 })
        _ = try stage.story.ask("purge", stage.cdn.url(part))
        stage.cdn.release(part)
        var state = ""
        _ = try eventually {
            state = try stage.download(id)["state"]
            return ["complete", "waiting", "failed"].contains(state)
        }
        #expect(state == "complete" && stage.cdn.requestCount(part) == 3)
    }

    /// The portal answers from the first piece on, or already in place of the playlists.
    @Test(arguments: ["/bytes/*", "/film/*"])
    func `a download waits until a captive portal is gone`(_ paths: String) throws {
        let stage = try DownloadStage()
        let url = stage.title()
        stage.cdn.put("/portal", text: "<!DOCTYPE html><p>Sign in", contentType: "text/html")
        stage.cdn.setBehaviour("location=/portal", for: paths)
        let id = try stage.order(url, "&audio=none")
        #expect(try stage.wait(id, for: "waiting")["reason"].contains("HTML"))
        stage.cdn.setBehaviour(nil, for: paths)
        _ = try stage.ask("POST", "/api/downloads/\(id)/resume")
        _ = try stage.wait(id, for: "complete")
    }

    @Test func `a download of a file goes on behind a captive portal with what it has`() throws {
        let stage = try DownloadStage(["--concurrency", "fixed:1"])
        let bytes = FixtureCDN.syntheticBytes("film", 0..<600_000)
        stage.cdn.put("/film.mp4", bytes)
        #expect(try stage.story.get("/film.mp4", range: "bytes=0-99999").status == 206)
        stage.cdn.put("/portal", text: "<!DOCTYPE html><p>Sign in", contentType: "text/html")
        stage.cdn.setBehaviour("norange=1", for: "/portal")
        stage.cdn.setBehaviour("location=/portal", for: "/film.mp4")
        let id = try stage.order(stage.cdn.url("/film.mp4"))
        _ = try stage.wait(id, for: "waiting")
        stage.cdn.setBehaviour(nil, for: "/film.mp4")
        _ = try stage.ask("POST", "/api/downloads/\(id)/resume")
        #expect(try stage.wait(id, for: "complete")["bytes"] == "600000")
        stage.cdn.stop()
        #expect(try stage.story.get("/film.mp4").body == bytes)
    }

    @Test func `a missing title fails with the origin's answer`() throws {
        let stage = try DownloadStage()
        let id = try stage.order(stage.cdn.url("/nothing/master.m3u8"))
        #expect(try stage.wait(id, for: "failed")["reason"].contains("404"))
    }

    /// The whole file is stored before in one case, and so its length is known without the origin.
    @Test(arguments: [true, false])
    func `a part beyond the end of its file fails the download and is named`(isStored: Bool) throws
    {
        let stage = try DownloadStage()
        let file = "/bytes/short/20000"
        stage.cdn.put(
            "/short/list.m3u8",
            text: """
                #EXTM3U
                #EXT-X-VERSION:4
                #EXT-X-TARGETDURATION:4
                #EXTINF:4,
                #EXT-X-BYTERANGE:10000@0
                \(file)
                #EXTINF:4,
                #EXT-X-BYTERANGE:10000@30000
                \(file)
                #EXT-X-ENDLIST

                """)
        if isStored { #expect(try stage.story.get(file).status == 200) }
        let id = try stage.order(stage.cdn.url("/short/list.m3u8"))
        let reason = try stage.wait(id, for: "failed")["reason"]
        #expect(reason.contains("one of 2 parts cannot be had"), "\(reason)")
        #expect(reason.contains(file), "\(reason)")
        #expect(stage.story.daemon.isRunning)
    }

    @Test func `a file that becomes shorter than a part that was stored fails the download`() throws
    {
        let stage = try DownloadStage(["--concurrency", "fixed:1"])
        func put(_ count: Int) {
            stage.cdn.put("/short/film.ts", Array(repeating: UInt8(count / 1_000), count: count))
        }
        put(40_000)
        // More than are fetched in parallel, between two parts of one file.
        let others = (0..<4).map { "/bytes/other\($0)/20000" }
        let lines =
            ["#EXT-X-BYTERANGE:10000@30000\n/short/film.ts"] + others
            + ["#EXT-X-BYTERANGE:10000@0\n/short/film.ts"]
        stage.cdn.put(
            "/short/list.m3u8",
            text: "#EXTM3U\n#EXT-X-VERSION:4\n#EXT-X-TARGETDURATION:4\n"
                + lines.map { "#EXTINF:4,\n\($0)\n" }.joined() + "#EXT-X-ENDLIST\n")
        for other in others { stage.cdn.hold(other) }
        let id = try stage.order(stage.cdn.url("/short/list.m3u8"))
        #expect(eventually { stage.cdn.requestCount(others[0]) == 1 })
        #expect(stage.cdn.requestCount("/short/film.ts") == 1)
        put(20_000)
        for other in others { stage.cdn.release(other) }
        let reason = try stage.wait(id, for: "failed")["reason"]
        #expect(reason.contains("one of 6 parts cannot be had"), "\(reason)")
        #expect(reason.contains("/short/film.ts"), "\(reason)")
        #expect(stage.story.daemon.isRunning)
    }

    /// A title whose parts are ranges of one file that states no validator.
    private static let unproven = "/bytes/one/80000"

    /// Puts this title's playlist, and returns its URL.
    private func putUnproven(on stage: DownloadStage) -> String {
        stage.cdn.setBehaviour("noetag=1&lastmod=", for: Self.unproven)
        let segments = (0..<6).map {
            "#EXTINF:4,\n#EXT-X-BYTERANGE:10000@\(100 + $0 * 10_000)\n\(Self.unproven)\n"
        }
        stage.cdn.put(
            "/one/list.m3u8",
            text: "#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-TARGETDURATION:4\n"
                + "#EXT-X-MAP:URI=\"\(Self.unproven)\",BYTERANGE=\"100@0\"\n"
                + segments.joined() + "#EXT-X-ENDLIST\n")
        return stage.cdn.url("/one/list.m3u8")
    }

    @Test func `a part from the middle of a file that proves nothing is refused with a way out`()
        throws
    {
        let stage = try DownloadStage()
        let url = putUnproven(on: stage)
        let id = try stage.order(url, "&from=8&to=16")
        let reason = try stage.wait(id, for: "failed")["reason"]
        #expect(reason.contains("order the title from its start on, without --from"), "\(reason)")
        #expect(try stage.order(url) == id)
        #expect(try stage.wait(id, for: "complete")["pieces"] == "7")
    }

    @Test func `the start of a file that proves nothing takes the place of its middle`() throws {
        let stage = try DownloadStage()
        let url = putUnproven(on: stage)
        // The download yields to the player, and asks for everything while the middle is stored.
        stage.cdn.hold(Self.unproven, afterBytes: 5_000)
        let middle = try stage.story.open(Self.unproven, range: "bytes=20100-30099")
        _ = try middle.read(1_000)
        let id = try stage.order(url)
        stage.cdn.release(Self.unproven)
        #expect(try stage.wait(id, for: "complete")["pieces"] == "7")
    }

    @Test func `a key that cannot be fetched fails the download and is named`() throws {
        let stage = try DownloadStage()
        let url = stage.title()
        stage.cdn.setBehaviour("status=410", for: "/bytes/film-v2-k/16")
        let answer = try stage.wait(try stage.order(url, "&audio=none"), for: "failed")
        #expect(answer["reason"].contains("one of 8 parts"))
        #expect(answer["reason"].contains("film-v2-k") && answer["reason"].contains("410"))
        #expect(stage.cdn.requestCount("/bytes/film-v2-5/20000") == 1)
    }

    @Test func `a part that the origin always fails does not stop a download with a rate limit`()
        throws
    {
        let stage = try DownloadStage()
        let url = stage.title()
        let broken = "/bytes/film-v2-0/20000"
        stage.cdn.setBehaviour("status=503", for: broken)
        let id = try stage.order(url, "&audio=none&rate=900000")
        #expect(
            eventually(within: .seconds(30)) {
                stage.cdn.requestCount("/bytes/film-v2-5/20000") > 0
            })
        #expect(try stage.download(id)["state"] != "complete")
        stage.cdn.setBehaviour(nil, for: broken)
        _ = try stage.wait(id, for: "complete")
        #expect(stage.cdn.requestCount("/bytes/film-v2-5/20000") == 1)
    }

    @Test func `a new order for a title replaces its running download`() throws {
        let stage = try DownloadStage()
        let url = stage.title()
        stage.cdn.hold("/bytes/film-v2-4/20000")
        let first = try stage.order(url, "&audio=none")
        _ = eventually { stage.cdn.requestCount("/bytes/film-v2-4/20000") > 0 }
        let second = try stage.order(url, "&audio=none&variant=360")
        #expect(first == second)
        _ = try stage.wait(second, for: "complete")
        #expect(stage.cdn.requestCount("/bytes/film-v1-5/20000") == 1)
        let list = try stage.ask("GET", "/api/downloads").text
        #expect(list.components(of: "\"id\":") == 1)
        stage.cdn.release("/bytes/film-v2-4/20000")
    }

    @Test func `a web page is downloaded as a file`() throws {
        let stage = try DownloadStage()
        stage.cdn.put("/page.html", text: "<!doctype html><title>No film</title>")
        let id = try stage.order(stage.cdn.url("/page.html"))
        #expect(try stage.wait(id, for: "complete")["streams"] == "[\"file\"]")
    }

    @Test(arguments: ["/bytes/film.mp4/9000000", "/bytes/thing/9000000"])
    func `a file whose length the origin does not tell is never complete`(_ path: String) throws {
        let stage = try DownloadStage()
        stage.cdn.setBehaviour("nototal=1", for: path)
        let id = try stage.order(stage.cdn.url(path))
        let reason = try stage.wait(id, for: "failed")["reason"]
        #expect(reason.contains("length"), "\(reason)")
    }

    @Test func `an empty file is downloaded`() throws {
        let stage = try DownloadStage()
        stage.cdn.put("/empty.bin", [])
        let id = try stage.order(stage.cdn.url("/empty.bin"))
        #expect(try stage.wait(id, for: "complete")["bytes"] == "0")
    }

    @Test func `every outcome of the command has a message and a status`() throws {
        let stage = try DownloadStage()
        let base = stage.story.daemon.baseURL
        let url = stage.title()
        for (words, says) in [
            (["resume", "0123456789ab"], "there is no download"),
            ([url, "--variant", "9999"], "it has 360, 720"),
            ([url, "--audio", "xx"], "it has en, fr"), ([url, "--from", "9:00:00"], "between"),
            (["not a url"], "URL"),
        ] {
            let program = try DaemonProcess.builtBinary()
            let done = try Tool.run([program, "download"] + words + ["--daemon", base])
            // Only an argument that is wrong for every title is wrong usage.
            #expect(done.status == (words == ["not a url"] ? 64 : 1), "\(words)")
            #expect(done.stderr.contains(says), "\(done.stderr)")
        }
    }
}

extension String {
    /// How often a text occurs.
    fileprivate func components(of text: String) -> Int {
        var count = 0
        var rest = self[...]
        while let found = rest.firstRange(of: text) {
            count += 1
            rest = rest[found.upperBound...]
        }
        return count
    }
}
