import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// `sluice report`: what the archive contains, and what it never does.
extension Stories {
    @Suite(.tags(.crowded)) struct ReportTests {}
}

extension Stories.ReportTests {
    /// The files of an archive by their names.
    private func unpack(_ archive: String, in folder: String) throws -> [String: String] {
        let result = try Tool.run(["tar", "-xzf", archive, "-C", folder])
        #expect(result.status == 0, "\(result.stderr)")
        return try Dictionary(
            uniqueKeysWithValues: listFolder(folder + "/sluice-report").map { name in
                let bytes = try readFile("\(folder)/sluice-report/\(name)")
                return (name, String(decoding: bytes, as: UTF8.self))
            })
    }

    @Test func `a report contains no planted secret`() throws {
        let folder = try TemporaryFolder()
        let log = folder.file("access.log")
        let mount = "/demo/=http://muser:xMOUNTSECRET@h.example/"
        let shared = [
            "--token", "xTOKENSECRET", "--access-log", log, "--mount", mount, "--mount-header",
            "/demo/=X-Own: xHEADERSECRET",
        ]
        let story = try Story(shared)
        story.cdn.put(
            "/m.m3u8",
            text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=9\nlow.m3u8?child=xCHILDSECRET\n"
                + "#EXT-X-STREAM-INF:BANDWIDTH=8\ngone.m3u8?child=xGONESECRET\n")
        story.cdn.put(
            "/low.m3u8",
            text: "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:4,\n"
                + "/bytes/2000/a.ts?s=xSEGMENTSECRET\n")
        story.cdn.setBehaviour("cookie=sid=xCOOKIESECRET", for: "/m.m3u8")
        let port = story.daemon.baseURL.split(separator: ":").last.map(String.init) ?? ""
        // A player's session with credentials, in the daemon's tables and its log.
        let entry =
            "/proxy?url=\(percentEncoded(story.cdn.url("/m.m3u8?sig=xPLAYSECRET")))"
            + "&h_Authorization=Bearer%20xSESSIONSECRET&h_Cookie=c%3DxJARSECRET&token=xTOKENSECRET"
        #expect(try story.player().get(story.daemon.baseURL + entry).status == 200)
        #expect(
            eventually {
                String(decoding: (try? readFile(log)) ?? [], as: UTF8.self).contains("m3u8")
            })
        // As another program or version might have written it.
        let lines = String(decoding: try readFile(log), as: UTF8.self)
        try writeFile(
            log,
            (lines + "GET http://a:xLOGSECRET@h/a?k=xLOGSECRET 200\nCookie: a=b; c=xLOGSECRET\n"
                + "sent Authorization: Bearer xLOGSECRET\n/p/token=xLOGSECRET/a xTOKENSECRET\n")
                .utf8)
        let programs = folder.makeFolder("bin")
        try writeFile(
            programs + "/systemctl",
            ("#!/bin/sh\necho LoadState=loaded\necho ActiveState=active\n"
                + "echo Environment=A=xUNITSECRET\n").utf8)
        #expect(chmod(programs + "/systemctl", 0o755) == 0)
        let archive = folder.file("r.tar.gz")
        let url =
            story.cdn.url("/m.m3u8?sig=xURLSECRET")
            .replacing("http://", with: "http://uSECRETu:xPASSSECRET@")
            + "|User-Agent=xAGENTSECRET&Cookie=d%3DxGIVENSECRET"
        let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
        let arguments =
            ["report", "--output", archive, "--port", port, "--cache-dir", story.cacheFolder]
            + shared + ["--header", "Referer: http://r/?q=xREFERERSECRET", url]
        let result = try Tool.run(
            ["env", "PATH=\(programs):\(path)", "TMPDIR=\(folder.makeFolder("tmp"))"]
                + [DaemonProcess.builtBinary()] + arguments)
        #expect(result.status == 0, "\(result.stdout)\(result.stderr)")
        #expect(!result.stdout.contains("SECRET") && !result.stderr.contains("SECRET"))

        let files = try unpack(archive, in: folder.makeFolder("unpacked"))
        #expect(
            Set(files.keys) == [
                "version.txt", "doctor.txt", "doctor.json", "config.json", "stats.json",
                "metrics.txt", "origins.json", "history.json", "access-log.txt", "unit.txt",
            ])
        for (name, text) in files {
            #expect(!text.contains("SECRET"), "\(name):\n\(text)")
            #expect(!text.isEmpty, "\(name)")
        }
        // The remaining text is useful.
        #expect(files["doctor.txt"]?.contains("a daemon of version") == true)
        #expect(files["access-log.txt"]?.contains("/m.m3u8?sig=***") == true)
        #expect(files["stats.json"]?.contains("\"misses_total\":") == true)
        #expect(files["unit.txt"] == "LoadState=loaded\nActiveState=active\n")
        #expect(files["config.json"]?.contains("http://***@h.example/") == true)
        var found = stat()
        #expect(stat(archive, &found) == 0 && found.st_mode & 0o777 == 0o600)
        #expect(listFolder(folder.file("tmp")).isEmpty)
    }

    @Test func `an existing file is replaced only on request`() throws {
        let folder = try TemporaryFolder()
        let archive = folder.file("r.tar.gz")
        try writeFile(archive, "mine".utf8)
        let kept = try sluice("report", "--port", "0", "--output", archive)
        #expect(kept.status == 1 && kept.stderr.contains("exists already"))
        #expect(try readFile(archive) == Array("mine".utf8))
        let made = try sluice("report", "--port", "0", "--output", archive, "--force")
        #expect(made.status == 0, "\(made.stderr)")
        let files = try unpack(archive, in: folder.makeFolder("unpacked"))
        #expect(files["config.json"] != nil && files["stats.json"] == nil)
        #expect(made.stdout.contains("without figures: no daemon answers"))
    }

    @Test(arguments: [[], ["--token", "another-token"]])
    func `a report without the daemon's token says so`(_ token: [String]) throws {
        let folder = try TemporaryFolder()
        let story = try Story(["--token", "the-right-token"])
        let port = story.daemon.baseURL.split(separator: ":").last.map(String.init) ?? ""
        let made = try Tool.run(
            [
                DaemonProcess.builtBinary(), "report", "--port", port, "--cache-dir",
                story.cacheFolder, "--output", folder.file("r.tar.gz"),
            ] + token)
        #expect(made.status == 0, "\(made.stderr)")
        let line = made.stdout.split(separator: "\n").first { $0.hasPrefix("without figures") }
        #expect(line?.contains("access token") == true, "\(made.stdout)")
        #expect(line?.contains("--token") == true, "\(made.stdout)")
    }

    @Test
    func `a report is made of wrong settings too, and none is left if packing fails`()
        throws
    {
        let folder = try TemporaryFolder()
        let archive = folder.file("r.tar.gz")
        let result = try sluice("report", "--port", "70000", "--output", archive)
        #expect(result.status == 0, "\(result.stderr)")
        let files = try unpack(archive, in: folder.makeFolder("unpacked"))
        #expect(files["doctor.txt"]?.contains("port is a number") == true)
        let bare = try Tool.run(
            [
                "env", "PATH=\(folder.makeFolder("none"))", DaemonProcess.builtBinary(), "report",
                "--port", "0", "--output", folder.file("other.tar.gz"),
            ].map { $0 == "env" ? "/usr/bin/env" : $0 })
        #expect(bare.status == 1 && bare.stderr.contains("tar and gzip are needed"))
        #expect(access(folder.file("other.tar.gz"), F_OK) != 0)
    }
}
