import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Downloads as their users see them.
extension Stories {
    @Suite(.tags(.timed, .threads), .serialized) struct Downloads {}
}

extension Stories.Downloads {
    @Test(arguments: [
        (["--host-limit", "1"], "a host"), (["--origin-limit", "127.0.0.1=1"], "127.0.0.1"),
    ])
    func `a download shows no more transfers than the limit of its host allows`(
        _ limit: [String], _ host: String
    ) throws {
        let stage = try DownloadStage(limit + ["--concurrency", "fixed:4"])
        let held = "/bytes/film-v2-2/20000"
        stage.cdn.hold(held)
        let id = try stage.order(stage.title(), "&audio=none")
        #expect(eventually { stage.cdn.requestCount(held) > 0 })
        #expect(try stage.download(id)["transfers"] == "1")
        let list = try sluice("download", "list", "--daemon", stage.story.daemon.baseURL)
        #expect(list.stdout.contains("1 at once"), "\(list)")
        #expect(list.stdout.contains("transfers at once, 1 from \(host) (fixed"), "\(list)")
        stage.cdn.release(held)
        _ = try stage.wait(id, for: "complete")
    }

    @Test func `a downloaded title is complete and plays without the CDN`() throws {
        let stage = try DownloadStage()
        let id = try stage.order(stage.title())
        let done = try stage.wait(id, for: "complete")
        #expect(done["pieces"] == "16")
        #expect(done["bytes"] == "\(12 * 20_000 + 2 * 916)")
        stage.cdn.stop()
        for path in ["/film/master.m3u8", "/film/high.m3u8", "/film/en.m3u8"] {
            #expect(try stage.story.get(path).status == 200)
        }
        for path in ["/bytes/film-v2-5/20000", "/bytes/film-a1-k/16", "/bytes/film-v2-i/900"] {
            #expect(try stage.story.get(path).status == 200)
        }
        #expect(stage.cdn.requestCount("/film/low.m3u8") == 0)
    }

    @Test func `only what is ordered is fetched`() throws {
        let stage = try DownloadStage()
        let cases = [
            ("&variant=360", "v1", "v2"), ("&variant=worst", "v1", "v2"),
            ("&variant=720p", "v2", "v1"), ("&audio=fr", "a2", "a1"), ("&audio=none", "v2", "a1"),
        ]
        for (index, (arguments, wanted, unwanted)) in cases.enumerated() {
            let id = try stage.order(stage.title("t\(index)"), arguments)
            _ = try stage.wait(id, for: "complete")
            #expect(stage.cdn.requestCount("/bytes/t\(index)-\(wanted)-3/20000") == 1)
            #expect(stage.cdn.requestCount("/bytes/t\(index)-\(unwanted)-3/20000") == 0)
        }
    }

    @Test func `of several heights and languages each is fetched`() throws {
        let stage = try DownloadStage()
        let choices = ["--variant", "360,720", "--audio", "en", "--audio", "fr"]
        let program = try DaemonProcess.builtBinary()
        let done = try Tool.run(
            [program, "download", stage.title()] + choices
                + ["--daemon", stage.story.daemon.baseURL])
        #expect(done.status == 0, "\(done)")
        for kind in ["v1", "v2", "a1", "a2"] {
            #expect(stage.cdn.requestCount("/bytes/film-\(kind)-3/20000") == 1)
        }
    }

    @Test func `a title that was ordered without audio plays without the CDN`() throws {
        let stage = try DownloadStage()
        let id = try stage.order(stage.title(), "&audio=none")
        _ = try stage.wait(id, for: "complete")
        let (player, daemon) = try stage.story.offline()
        let master = try player.get("/film/master.m3u8")
        #expect(links(master.text).map(fileName) == ["high"] && !master.text.contains("AUDIO"))
        let list = try player.player.get(try #require(links(master.text).first))
        let media = uriLines(list.text)
        #expect(media.count == 6 && list.text.contains("#EXT-X-ENDLIST"))
        for link in media { #expect(try player.player.get(link).status == 200) }
        withExtendedLifetime(daemon) {}
    }

    @Test func `a part of a title is fetched with its key and its section`() throws {
        let stage = try DownloadStage()
        let id = try stage.order(stage.title(), "&from=8&to=0:16&audio=none")
        #expect(try stage.wait(id, for: "complete")["pieces"] == "4")
        #expect(stage.cdn.requestCount("/bytes/film-v2-1/20000") == 0)
        #expect(stage.cdn.requestCount("/bytes/film-v2-2/20000") == 1)
        #expect(stage.cdn.requestCount("/bytes/film-v2-4/20000") == 0)
    }

    @Test func `a choice that the title lacks is refused with those it has`() throws {
        let stage = try DownloadStage()
        let cases = [
            ("&variant=1080", "it has 360, 720"), ("&audio=de", "it has en, fr"),
            ("&subtitles=en", "none that says its language"), ("&from=100", "between the times"),
        ]
        for (index, (arguments, reason)) in cases.enumerated() {
            let id = try stage.order(stage.title("t\(index)"), arguments)
            let answer = try stage.wait(id, for: "failed")
            #expect(answer["reason"].contains(reason))
        }
    }

    @Test func `a dry run describes an order and places none`() throws {
        let stage = try DownloadStage()
        let url = stage.title()
        func dryRun(_ arguments: String = "") throws -> DownloadStage.Answer {
            try stage.ask(
                "POST", "/api/downloads/dry-run?url=\(DownloadStage.encoded(url))\(arguments)")
        }
        let plan = try dryRun()
        #expect(plan.status == 200 && plan["pieces"] == "16" && plan["bytes"] == "0")
        // 24 seconds at 900 kb/s.
        #expect(plan["bytes_expected"] == "2700000" && plan["is_estimate"] == "true")
        #expect(plan.text.contains("\"streams\":[\"720p\",\"audio en\"]"), "\(plan.text)")
        #expect(members("id", in: try stage.ask("GET", "/api/downloads").text) == [])
        #expect(!stage.cdn.requests.contains { $0.path.hasPrefix("/bytes/") })
        let base = stage.story.daemon.baseURL
        let told = try sluice("download", "--dry-run", url, "--daemon", base)
        #expect(
            told.stdout.hasSuffix(" (720p, audio en): 24 s, 16 parts, about 2.7 MB\n"), "\(told)")
        let lacking = try dryRun("&audio=de")
        #expect(lacking.status == 409 && lacking.text.contains("it has en, fr"))
        let done = try stage.wait(try stage.order(url), for: "complete")
        #expect(done["bytes_expected"] == done["bytes"] && done["is_estimate"] == "false")
        let again = try dryRun()
        #expect(again["bytes"] == done["bytes"] && again["bytes_expected"] == done["bytes"])
        #expect(again["is_estimate"] == "false")
    }

    @Test func `a dry run tells the size of a file of which a part is stored`() throws {
        let stage = try DownloadStage()
        for path in ["/bytes/film.mp4/9000000", "/bytes/thing/9000000"] {
            let url = DownloadStage.encoded(stage.cdn.url(path))
            let plan = try stage.ask("POST", "/api/downloads/dry-run?url=\(url)")
            #expect(plan.status == 200, "\(plan.text)")
            _ = try stage.wait(try stage.order(stage.cdn.url(path)), for: "complete")
            let again = try stage.ask("POST", "/api/downloads/dry-run?url=\(url)")
            #expect(again["bytes_expected"] == "9000000" && again["bytes"] == "9000000")
        }
    }

    @Test func `a download under way shows the size that it will have`() throws {
        let stage = try DownloadStage()
        let held = "/bytes/film-v2-2/20000"
        stage.cdn.hold(held)
        let id = try stage.order(stage.title(), "&audio=none")
        #expect(eventually { stage.cdn.requestCount(held) > 0 })
        // The other pieces: 5 segments, a section and a key; the held one takes 4 s at 900 kb/s.
        let bytes = "\(5 * 20_000 + 916 + 450_000)"
        #expect(try eventually { try stage.download(id)["bytes_expected"] == bytes })
        let list = try sluice("download", "list", "--daemon", stage.story.daemon.baseURL)
        #expect(list.stdout.contains(" of about 551 kB"), "\(list)")
        stage.cdn.release(held)
        let done = try stage.wait(id, for: "complete")
        #expect(done["bytes_expected"] == "\(6 * 20_000 + 916)")
    }

    @Test func `a faulty order is a bad request`() throws {
        let stage = try DownloadStage()
        let url = DownloadStage.encoded(stage.title())
        for arguments in [
            "&variant=high", "&rate=0", "&from=x", "&from=9&to=3", "&audio=%20", "&speed=9",
            "&h_=x", "&audio=en,", "&audio=en&audio=none", "&variant=best&variant=360",
        ] {
            let answer = try stage.ask("POST", "/api/downloads?url=\(url)\(arguments)")
            #expect(answer.status == 400, "\(arguments)")
        }
    }

    @Test func `a live stream is refused with a hint to record it`() throws {
        let stage = try DownloadStage()
        stage.cdn.put(
            "/live.m3u8", text: "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n/bytes/l/9000\n")
        let answer = try stage.wait(try stage.order(stage.cdn.url("/live.m3u8")), for: "failed")
        #expect(answer["reason"].contains("sluice record"))
    }

    @Test(arguments: ["/bytes/film.mp4/9000000", "/bytes/thing/9000000"])
    func `a URL that is not a playlist is downloaded as a file`(path: String) throws {
        let stage = try DownloadStage()
        let done = try stage.wait(try stage.order(stage.cdn.url(path)), for: "complete")
        #expect(done["bytes"] == "9000000")
        stage.cdn.stop()
        let body = try stage.story.get(path).body
        #expect(body.count == 9_000_000)
        let name = String(path.split(separator: "/")[1])
        #expect(body == FixtureCDN.syntheticBytes(name, 0..<9_000_000))
    }

    @Test func `several titles download concurrently, and are listed in order`() throws {
        let stage = try DownloadStage()
        let ids = try ["a", "b", "c"].map { try stage.order(stage.title($0)) }
        for id in ids { _ = try stage.wait(id, for: "complete") }
        let list = try stage.ask("GET", "/api/downloads").text
        let places = ids.compactMap { list.firstRange(of: "\"id\":\"\($0)\"")?.lowerBound }
        #expect(places.count == 3 && places == places.sorted())
    }

    @Test func `of more downloads than the limit, those that are not over are listed`() throws {
        let stage = try DownloadStage()
        var ids = try ["a", "b"].map { name in
            let id = try stage.order(stage.title(name))
            _ = try stage.wait(id, for: "complete")
            return id
        }
        ids.append(try stage.order(stage.title("c"), "&rate=1000"))
        let list = try stage.ask("GET", "/api/downloads?limit=2").text
        #expect(members("id", in: list) == [ids[2], ids[1]], "\(list)")
        #expect(members("total", in: list) == ["3"])
        #expect(members("id", in: try stage.ask("GET", "/api/downloads").text) == ids)
        for limit in ["0", "1001", "x"] {
            #expect(try stage.ask("GET", "/api/downloads?limit=\(limit)").status == 400)
        }
    }

    @Test func `a token is needed where one is set, also for the origin's own`() throws {
        let stage = try DownloadStage(["--token", "secret-of-the-daemon"])
        #expect(try stage.ask("GET", "/api/downloads").status == 401)
        let open = try DownloadStage()
        let url = open.title()
        open.cdn.setBehaviour("needtoken=x", for: "/bytes/*")
        let answer = try open.wait(try open.order(url), for: "failed")
        #expect(answer["reason"].contains("403"))
    }

    @Test func `no more transfers run at once than the controller allows`() throws {
        let stage = try DownloadStage(["--concurrency", "fixed:3"])
        let url = stage.title(segments: 20)
        stage.cdn.setBehaviour("fb=10", for: "/bytes/*")
        _ = try stage.wait(try stage.order(url), for: "complete")
        #expect(stage.cdn.peakConcurrentRequests == 3)
    }
}

extension Stories.Downloads {
    @Test func `an export is served by any web server`() throws {
        let stage = try DownloadStage()
        let id = try stage.order(stage.title(), "&to=8")
        _ = try stage.wait(id, for: "complete")
        stage.cdn.stop()
        let folder = try TemporaryFolder()
        let target = folder.file("export")
        let done = try Tool.run([
            "sh", "-c", "umask 022 && exec \"$@\"", "sh", DaemonProcess.builtBinary(), "export", id,
            target, "--daemon", stage.story.daemon.baseURL,
        ])
        #expect(done.status == 0)
        let modes = try Tool.run(["find", target, "-printf", "%m\n"]).stdout
        #expect(Set(modes.split(separator: "\n")) == ["755", "644"], "\(modes)")
        let names = listFolder(target).sorted()
        // Two segments, a section and a key of each of two streams, two lists and the entry.
        #expect(names.count == 11)
        #expect(names.contains("index.m3u8"))
    }
}
