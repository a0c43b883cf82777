import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// `sluice doctor`: the machine, the settings, and a stream direct and through a daemon.
extension Stories {
    @Suite(.tags(.crowded)) struct DoctorTests {}
}

extension Stories.DoctorTests {
    /// Lines of the table with single blanks, for comparison.
    private func rows(_ result: Tool.Result) -> [String] {
        result.stdout.split(separator: "\n").map {
            $0.split(separator: " ").joined(separator: " ")
        }
    }

    private func port(_ url: String) -> String {
        String(url.split(separator: ":").last?.prefix { $0.isNumber } ?? "")
    }

    /// An origin with the sample's files.
    private func sample() throws -> FixtureCDN {
        let cdn = FixtureCDN(folder: Fixture.repository + "/Fixtures/media")
        try cdn.start()
        return cdn
    }

    @Test func `the machine is checked without a URL, and a free port is no problem`() throws {
        let folder = try TemporaryFolder()
        let result = try sluice("doctor", "--port", "0", "--cache-dir", folder.file("cache/deep"))
        #expect(result.status == 0, "\(result.stdout)\(result.stderr)")
        for text in [
            "ok configuration", "ok cache folder", "disk space", "file system", "descriptors",
            "clock", "memory", "libraries sluice", "which will be created",
        ] {
            #expect(rows(result).contains { $0.contains(text) }, "\(text)\n\(result.stdout)")
        }
        #expect(access(folder.file("cache"), F_OK) != 0)
    }

    @Test func `a relative cache folder that does not exist yet is no problem`() throws {
        let name = "sluice-cache-\(getpid())"
        let result = try sluice("doctor", "--port", "0", "--cache-dir", name)
        #expect(rows(result).contains { $0.hasPrefix("ok cache folder") }, "\(result.stdout)")
        #expect(access(name, F_OK) != 0)
    }

    @Test func `a wrong setting is a problem, reported with all others, and ends with 2`() throws {
        let result = try sluice("doctor", "--port", "70000", "--policy", "often")
        #expect(result.status == 2)
        #expect(rows(result).count { $0.hasPrefix("problem configuration") } == 2)
        #expect(rows(result).contains { $0.contains("libraries sluice") })
    }

    @Test func `a port that another program holds, or a folder that is a file, is a problem`()
        throws
    {
        let folder = try TemporaryFolder()
        try writeFile(folder.file("taken"), [])
        let cdn = try sample()
        defer { cdn.stop() }
        let result = try sluice(
            "doctor", "--port", port(cdn.url("/")), "--cache-dir", folder.file("taken/cache"))
        #expect(result.status == 2)
        #expect(rows(result).contains { $0.contains("another program answers there") })
        #expect(rows(result).contains { $0.hasPrefix("problem cache folder") })
    }

    @Test func `a stream is tested directly and through a temporary daemon, which leaves nothing`()
        throws
    {
        let folder = try TemporaryFolder()
        let work = folder.makeFolder("work")
        let cdn = try sample()
        defer { cdn.stop() }
        let result = try sluice(
            "doctor", "--port", "0", "--allow-private", "--cache-dir", folder.file("cache"),
            cdn.url("/ts/master.m3u8?tok=hidden"), environment: ["TMPDIR=\(work)"])
        #expect(result.status == 0, "\(result.stdout)\(result.stderr)")
        for text in [
            "ok origin name", "6 read: multivariant, VOD", "ok ranges 206",
            "bytes are the same direct and through Sluice", "ok second request answered",
            "ok ranges through Sluice", "ok temporary daemon",
        ] {
            #expect(rows(result).contains { $0.contains(text) }, "\(text)\n\(result.stdout)")
        }
        #expect(!result.stdout.contains("hidden"))
        #expect(listFolder(work).isEmpty)
        #expect(access(folder.file("cache"), F_OK) != 0)
    }

    @Test(arguments: ["byterange", "fmp4", "aes"])
    func `a segment that is a range, or belongs to other forms, is compared too`(name: String)
        throws
    {
        let cdn = try sample()
        defer { cdn.stop() }
        let result = try sluice(
            "doctor", "--port", "0", "--allow-private", cdn.url("/\(name)/master.m3u8"))
        #expect(result.status == 0, "\(result.stdout)")
        #expect(result.stdout.contains("bytes are the same direct and through Sluice"))
    }

    @Test func `a running daemon is found by its port and queried`() throws {
        let story = try Story()
        story.cdn.put("/l.m3u8", text: vod([segment("a", 30_000)]))
        let result = try sluice(
            "doctor", "--json", "--port", port(story.daemon.baseURL), "--cache-dir",
            story.cacheFolder, story.cdn.url("/l.m3u8"))
        #expect(result.status == 0, "\(result.stdout)")
        #expect(result.stdout.contains("\"text\" : \"a daemon of version"))
        #expect(result.stdout.contains("30000 bytes are the same direct and through Sluice"))
        #expect(!result.stdout.contains("temporary daemon"))
        #expect(try story.stat("misses_total") > 0)
    }

    @Test func `a daemon whose token is missing or another is no other program`() throws {
        let story = try Story(["--token", "s3cret-token"])
        func report(_ more: [String], _ environment: [String] = []) throws -> Tool.Result {
            try Tool.run(
                ["env"] + environment + [DaemonProcess.builtBinary(), "doctor"]
                    + ["--port", port(story.daemon.baseURL), "--cache-dir", story.cacheFolder]
                    + more)
        }
        let refusals: [(token: [String], text: String)] = [
            ([], "a daemon answers and requires its access token"),
            (["--token", "0ther-token"], "a daemon answers and has another access token"),
        ]
        for (token, text) in refusals {
            let result = try report(token)
            #expect(result.status == 2)
            let row = rows(result).first { $0.contains(text) }
            #expect(row?.hasPrefix("problem port") == true, "\(result.stdout)")
            #expect(result.stdout.contains("give its token with --token or SLUICE_TOKEN"))
            #expect(!result.stdout.contains("another program"))
        }
        for result in [
            try report(["--token", "s3cret-token"]), try report([], ["SLUICE_TOKEN=s3cret-token"]),
        ] {
            #expect(result.stdout.contains("a daemon of version"), "\(result.stdout)")
        }
    }

    @Test(arguments: [[], ["--absolute-urls"]])
    func `links with a base path are requested as the proxy in front of the daemon requests them`(
        _ form: [String]
    ) throws {
        let story = try Story(["--base-path", "/hls"] + form)
        story.cdn.put(
            "/m.m3u8", text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=9,CODECS=\"x\"\nl.m3u8\n")
        story.cdn.put("/l.m3u8", text: vod([segment("a", 30_000)]))
        let result = try sluice(
            "doctor", "--port", port(story.daemon.baseURL), "--cache-dir", story.cacheFolder,
            story.cdn.url("/m.m3u8"))
        #expect(result.status == 0, "\(result.stdout)")
        #expect(result.stdout.contains("30000 bytes are the same direct and through Sluice"))
    }

    @Test func `a temporary daemon has no base path, as no proxy in front removes it`() throws {
        let cdn = try sample()
        defer { cdn.stop() }
        let result = try sluice(
            "doctor", "--port", "0", "--allow-private", "--base-path", "/hls",
            cdn.url("/ts/master.m3u8"))
        #expect(result.status == 0, "\(result.stdout)")
        #expect(result.stdout.contains("bytes are the same direct and through Sluice"))
    }

    @Test func `an unreachable origin is one line, and nothing further is tested`() throws {
        let cdn = try sample()
        let url = cdn.url("/ts/master.m3u8?tok=hidden")
        cdn.stop()
        let result = try sluice("doctor", "--port", "0", "--allow-private", url)
        #expect(result.status == 2)
        let problems = rows(result).filter { $0.hasPrefix("problem") }
        #expect(problems.count == 1 && problems[0].contains("does not answer"), "\(problems)")
        #expect(!result.stdout.contains("hidden") && !result.stdout.contains("Sluice 2"))
    }

    @Test func `an origin that is silent ends within the time of one request`() throws {
        let cdn = try sample()
        defer { cdn.stop() }
        cdn.setBehaviour("fb=60000", for: "/ts/master.m3u8")
        let result = try sluice(
            "doctor", "--port", "0", "--allow-private", cdn.url("/ts/master.m3u8"))
        #expect(result.status == 2)
        #expect(result.stdout.contains("does not answer: Timeout was reached"))
        #expect(cdn.requestCount() == 1)
    }

    @Test func `an error of the daemon is reported with its message`() throws {
        let cdn = try sample()
        defer { cdn.stop() }
        let result = try sluice("doctor", "--port", "0", cdn.url("/ts/master.m3u8"))
        #expect(result.status == 2)
        #expect(rows(result).contains { $0.contains("allow it with --allow-private") })
    }

    @Test func `headers behind the URL reach the origin, and a refusal says what may help`()
        throws
    {
        let cdn = try sample()
        defer { cdn.stop() }
        cdn.setBehaviour("needheader=User-Agent:kodi", for: "/ts/master.m3u8")
        let url = cdn.url("/ts/master.m3u8")
        let without = try sluice("doctor", "--port", "0", "--allow-private", url)
        #expect(without.status == 2)
        #expect(without.stdout.contains("the origin answered 403"))
        #expect(without.stdout.contains("User-Agent, Cookie"))
        let with = try sluice("doctor", "--port", "0", "--allow-private", url + "|User-Agent=kodi")
        #expect(with.status == 0, "\(with.stdout)")
    }

    @Test func `features that break players or caches cause warnings, not problems`() throws {
        let cdn = try sample()
        defer { cdn.stop() }
        cdn.put(
            "/odd.m3u8",
            text: "\u{FEFF}#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n/bytes/9000/seg \n"
                + "#EXT-X-ENDLIST\n")
        cdn.setBehaviour("type=text/plain", for: "/odd.m3u8")
        cdn.setBehaviour("norange=1&noetag=1&lastmod=&cc=no-store", for: "/bytes/9000/seg")
        let result = try sluice(
            "doctor", "--port", "0", "--allow-private", cdn.url("/odd.m3u8"))
        #expect(result.status == 0, "\(result.stdout)")
        for text in [
            "players a byte order mark", "players blanks after a URI",
            "players URIs without a file extension", "playlist type text/plain is no type",
            "ranges ranges are ignored", "validators neither ETag nor",
            "caching Cache-Control: no-store", "second request not from the store",
        ] {
            #expect(
                rows(result).contains { $0.hasPrefix("warning \(text)") },
                "\(text)\n\(result.stdout)")
        }
    }

    @Test func `a stream with many playlists and long segments is tested in part`() throws {
        let cdn = try sample()
        defer { cdn.stop() }
        var list = "#EXTM3U\n"
        for number in 0..<60 {
            list += "#EXT-X-STREAM-INF:BANDWIDTH=9,CODECS=\"x\"\nlow\(number).m3u8\n"
            cdn.put("/low\(number).m3u8", text: vod(["/bytes/20000000/a.ts"]))
        }
        cdn.put("/many.m3u8", text: list)
        let result = try sluice(
            "doctor", "--port", "0", "--allow-private", cdn.url("/many.m3u8"))
        #expect(result.status == 0, "\(result.stdout)")
        #expect(result.stdout.contains("16777216 bytes are the same direct and through Sluice"))
        let direct = (0..<60).map { cdn.requestCount("/low\($0).m3u8") }
        #expect(direct.count { $0 > 0 } < 20, "\(direct)")
    }

    @Test(arguments: ["", "hls/"])
    func `the URL that a player has is tested as the origin's in it`(_ path: String) throws {
        let cdn = try sample()
        defer { cdn.stop() }
        let result = try sluice(
            "doctor", "--port", "0", "--allow-private",
            "--base-path", "/hls",
            "http://127.0.0.1:9000/\(path)" + cdn.url("/bytes/50000/film.mp4?tok=hidden"))
        #expect(result.status == 0, "\(result.stdout)")
        #expect(result.stdout.contains("it leads through a daemon; its origin's"))
        #expect(result.stdout.contains("50000 bytes are the same direct and through Sluice"))
        #expect(!result.stdout.contains("hidden"))
    }

    @Test(arguments: [["--header", "User-Agent: my-player"], ["--dvr", "2h"]])
    func `what url prints is tested as the origin's in it, with its headers`(_ options: [String])
        throws
    {
        let cdn = try sample()
        defer { cdn.stop() }
        let path = "/bytes/50000/film.mp4"
        let needed = options[1].split(separator: " ").last ?? ""
        if options[0] == "--header" {
            cdn.setBehaviour(.init(query: "needheader=User-Agent:\(needed)"), for: path)
        }
        let program = try DaemonProcess.builtBinary()
        let entry = try Tool.run([program, "url", cdn.url(path + "?tok=hidden")] + options).stdout
        let result = try sluice(
            "doctor", "--port", "0", "--allow-private", String(entry.dropLast()))
        #expect(result.status == 0, "\(result.stdout)")
        #expect(result.stdout.contains("50000 bytes are the same direct and through Sluice"))
        #expect(!result.stdout.contains("hidden") && !result.stdout.contains("my-player"))
    }

    @Test func `an origin that the settings do not name is a problem, and gets no request`() throws
    {
        let cdn = try sample()
        defer { cdn.stop() }
        let result = try sluice(
            "doctor", "--port", "0", "--allow-private", "--only-origin", "other.example",
            cdn.url("/bytes/50000/film.mp4"))
        #expect(result.status == 2, "\(result.stdout)")
        #expect(result.stdout.contains("not named with --only-origin"), "\(result.stdout)")
        #expect(cdn.requests.isEmpty)
    }

    @Test(arguments: ["doctor", "report"])
    func `a URL that is none is named, with what to try and without its query`(_ command: String)
        throws
    {
        let result = try sluice(command, "--port", "0", "cdn.example.com/a.m3u8?tok=hidden")
        #expect(result.status == 64)
        #expect(result.stderr.contains("the URL 'cdn.example.com/a.m3u8' is not usable"))
        #expect(result.stderr.contains("try https://cdn.example.com/a.m3u8"))
        #expect(!result.stderr.contains("hidden"))
        let scheme = try sluice(command, "--port", "0", "rtmp://cdn.example.com/a")
        #expect(scheme.status == 64 && !scheme.stderr.contains("try https"))
    }

    @Test func `a file that is not a playlist is tested as one`() throws {
        let cdn = try sample()
        defer { cdn.stop() }
        let result = try sluice(
            "doctor", "--port", "0", "--allow-private", cdn.url("/bytes/50000/film.mp4"))
        #expect(result.status == 0, "\(result.stdout)")
        #expect(result.stdout.contains("50000 bytes are the same direct and through Sluice"))
    }
}

extension Stories.DoctorTests {
    @Test func `the direct part takes the daemon's ways, a redirect those of its own origin`()
        throws
    {
        let cdn = try sample()
        defer { cdn.stop() }
        let proxy = try WayOutProxy(.socks5, user: "me", password: "hidden")
        defer { proxy.stop() }
        let port = port(cdn.url("/"))
        // No resolver knows the first name; the second one has an address of its own.
        cdn.setBehaviour(
            .init(query: "location=http%3A%2F%2Fmedia.example%3A\(port)%2Fts%2Fmaster.m3u8"),
            for: "/film.m3u8")
        let ways = [
            "--origin-proxy", "cdn.test=socks5h://me:hidden@127.0.0.1:\(proxy.port)",
            "--resolve", "media.example:\(port)=127.0.0.1",
        ]
        let result = try Tool.run(
            [try DaemonProcess.builtBinary(), "doctor", "--port", "0", "--allow-private"] + ways
                + ["http://cdn.test:\(port)/film.m3u8"])
        #expect(result.status == 0, "\(result.stdout)\(result.stderr)")
        let way = "through socks5h://127.0.0.1:\(proxy.port) (with credentials)"
        #expect(rows(result).contains("ok way to the origin \(way)"), "\(result.stdout)")
        #expect(result.stdout.contains("6 read: multivariant, VOD"), "\(result.stdout)")
        #expect(result.stdout.contains("bytes are the same direct and through Sluice"))
        #expect(!result.stdout.contains("hidden"))
        #expect(!proxy.asked.isEmpty && proxy.asked.allSatisfy { $0 == "cdn.test:\(port)" })
        let direct = try sluice(
            "doctor", "--port", "0", "--allow-private", "http://cdn.test:\(port)/film.m3u8")
        #expect(direct.status == 2 && direct.stdout.contains("does not answer"))
    }

    @Test func `the daemon made for a check joins no cluster`() throws {
        let cdn = try sample()
        defer { cdn.stop() }
        let bucket = BucketFixture()
        try bucket.start()
        defer { bucket.stop() }
        let variables = bucket.environment.map { "\($0.name)=\($0.value)" }
        let result = try Tool.run(
            ["env"] + variables
                + [try DaemonProcess.builtBinary(), "doctor", "--port", "0", "--allow-private"]
                + ["--shared-store", bucket.location, cdn.url("/bytes/50000/film.mp4")])
        #expect(result.stdout.contains("bytes are the same direct and through Sluice"))
        #expect(bucket.requests.isEmpty && bucket.objects.isEmpty)
    }

    @Test(arguments: [SIGTERM, SIGINT])
    func `a signal ends the daemon made for a check, and its folder is removed`(_ number: CInt)
        throws
    {
        let folder = try TemporaryFolder()
        let work = folder.makeFolder("work")
        let cdn = try sample()
        defer { cdn.stop() }
        let path = segment("held", 20_000)
        cdn.put("/l.m3u8", text: vod([path]))
        // The direct requests are those of a page; only the daemon's are held.
        cdn.hold(path, without: "Origin")
        let doctor = try ChildProcess(
            [try DaemonProcess.builtBinary(), "doctor", "--port", "0", "--allow-private"]
                + ["--cache-dir", folder.file("cache"), cdn.url("/l.m3u8")],
            environment: [("TMPDIR", work)])
        // The daemon has been asked: it runs, and the doctor waits for it.
        #expect(
            eventually(within: .seconds(30)) {
                cdn.requests.contains { $0.path == path && $0["Origin"] == nil }
            })
        #expect(!listFolder(work).isEmpty)
        doctor.kill(number)
        #expect(doctor.waitForExit() == .signal(number))
        #expect(listFolder(work).isEmpty)
        #expect(try Tool.run(["pgrep", "-f", work]).stdout.isEmpty)
        cdn.release(path)
    }
}
