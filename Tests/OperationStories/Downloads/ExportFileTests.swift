import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Exports to one file, and those that the daemon rejects.
extension Stories.Downloads {
    @Test(.enabled(if: Tool.exists("ffmpeg"), "ffmpeg makes the files"), arguments: ["mp4", "mkv"])
    func `an export to a file is one file, and reports omitted subtitles`(
        format: String
    ) throws {
        let story = try Story(cdnFolder: Fixture.path("media"))
        let program = try DaemonProcess.builtBinary()
        let daemon = ["--daemon", story.daemon.baseURL]
        let url = story.cdn.url("/ts/master.m3u8")
        let ordered = try Tool.run(
            [program, "download", url, "--variant", "worst", "--subtitles", "all"] + daemon)
        #expect(ordered.status == 0, "\(ordered.stderr)")
        let folder = try TemporaryFolder()
        let target = folder.file("film." + format)
        let done = try Tool.run([program, "export", url, target] + daemon)
        #expect(done.status == 0, "\(done.stderr)")
        #expect(listFolder(folder.path) == ["film." + format])
        let probe = try Tool.run(["ffprobe", "-v", "error", "-show_streams", target]).stdout
        #expect(probe.contains("codec_type=video") && probe.contains("codec_type=audio"))
        let hasSubtitles = probe.contains("codec_type=subtitle")
        #expect(hasSubtitles != done.stderr.contains("subtitles are left out"))
    }

    @Test func `a file that is stored under a key of former rules is exported`() throws {
        let story = try Story()
        let path = "/bytes/50000/film.mp4?t=1"
        #expect(try story.get(path).status == 200)
        let daemon = try story.succeed(["--key-rule", "*=drop t"])
        let player = ScriptedPlayer(daemon.baseURL)
        let answer = try player.get("/api/export?title=\(percentEncoded(story.cdn.url(path)))")
        #expect(answer.status == 200, "\(answer.text)")
        #expect(answer.text.contains("film.mp4"))
        #expect(try player.get("/api/health").status == 200)
    }

    @Test(.enabled(if: geteuid() == 0, "mounting needs root"))
    func `an export to a full disk says that the disk is full`() throws {
        let story = try Story()
        let path = "/bytes/3000000/film.mp4"
        #expect(try story.get(path).status == 200)
        let disk = try MountedDisk(megabytes: 1)
        let done = try sluice(
            "export", story.cdn.url(path), disk.path + "/film", "--daemon", story.daemon.baseURL)
        #expect(done.status == 1, "\(done)")
        #expect(done.stderr.contains("cannot be written"), "\(done.stderr)")
        #expect(done.stderr.contains("No space left on device"), "\(done.stderr)")
    }

    @Test(.enabled(if: geteuid() == 0, "mounting needs root"))
    func `an export that fails leaves an empty folder, so that it can be repeated`() throws {
        let story = try Story()
        story.putTitle("/long.m3u8", "long", count: 30)
        try story.play("/long.m3u8")
        let disk = try MountedDisk(megabytes: 1)
        let target = disk.path + "/film"
        for _ in 1...2 {
            let done = try sluice(
                "export", story.cdn.url("/long.m3u8"), target, "--daemon", story.daemon.baseURL)
            #expect(done.status == 1 && done.stderr.contains("cannot be written"), "\(done)")
            #expect(listFolder(target).isEmpty)
        }
    }

    @Test(arguments: ["mp4", "backup/aac", "film.mkv/", "old.mp4"])
    func `an export to a name that is not one of a media file is a folder`(name: String) throws {
        let stage = try DownloadStage()
        let id = try stage.order(stage.title())
        _ = try stage.wait(id, for: "complete")
        let folder = try TemporaryFolder()
        _ = folder.makeFolder("old.mp4")
        let done = try Tool.run([
            DaemonProcess.builtBinary(), "export", id, folder.file(name), "--daemon",
            stage.story.daemon.baseURL,
        ])
        #expect(done.status == 0, "\(done.stderr)")
        #expect(listFolder(folder.file(name)).contains("index.m3u8"))
    }

    @Test(arguments: ["film.avi", "film.webm", "film.ts"])
    func `an export to an unsupported file type creates nothing`(name: String) throws {
        let stage = try DownloadStage()
        let id = try stage.order(stage.title())
        _ = try stage.wait(id, for: "complete")
        let folder = try TemporaryFolder()
        let done = try Tool.run([
            DaemonProcess.builtBinary(), "export", id, folder.file(name), "--daemon",
            stage.story.daemon.baseURL,
        ])
        #expect(done.status == 1)
        #expect(done.stderr.contains(".mkv"))
        #expect(listFolder(folder.path).isEmpty)
    }

    @Test func `an export to a file makes no folder for it`() throws {
        let stage = try DownloadStage()
        let id = try stage.order(stage.title())
        _ = try stage.wait(id, for: "complete")
        let folder = try TemporaryFolder()
        let done = try Tool.run([
            DaemonProcess.builtBinary(), "export", id, folder.file("none/film.mp4"), "--daemon",
            stage.story.daemon.baseURL,
        ])
        #expect(done.status == 1)
        #expect(done.stderr.contains("there is no folder \(folder.path)/none;"), "\(done.stderr)")
        #expect(listFolder(folder.path).isEmpty)
    }

    @Test func `video and audio of an export lack the same segments`() throws {
        let stage = try DownloadStage()
        let url = stage.title()
        _ = try stage.wait(try stage.order(url), for: "complete")
        func exported() throws -> String {
            try stage.ask("GET", "/api/export?title=\(percentEncoded(url))").text
        }
        #expect(try exported().ranges(of: "#EXTINF").count == 12)
        let part = stage.cdn.url("/bytes/film-v2-2/20000")
        #expect(try stage.story.ask("purge", part).status == 0)
        let rest = try exported()
        #expect(rest.ranges(of: "#EXTINF").count == 10, "\(rest)")
        #expect(rest.ranges(of: "#EXT-X-DISCONTINUITY").count == 2, "\(rest)")
    }

    @Test func `an export has no interstitials`() throws {
        let stage = try DownloadStage()
        stage.cdn.put(
            "/ads/film.m3u8",
            text: """
                #EXTM3U
                #EXT-X-TARGETDURATION:4
                #EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:00Z
                #EXT-X-DATERANGE:ID="1",CLASS="com.apple.hls.interstitial",\
                START-DATE="2026-01-01T00:00:02Z",X-ASSET-URI="ad.m3u8?x=1"
                #EXTINF:4,
                /bytes/ads-0/900
                #EXT-X-ENDLIST

                """)
        let url = stage.cdn.url("/ads/film.m3u8")
        _ = try stage.wait(try stage.order(url), for: "complete")
        let answer = try stage.ask("GET", "/api/export?title=\(percentEncoded(url))")
        #expect(answer.status == 200 && answer.text.contains("#EXTINF"), "\(answer.text)")
        #expect(!answer.text.contains("ad.m3u8"), "\(answer.text)")
    }
}
