import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Administration of the store: pin, purge, verify, df; through the daemon, and on its folder
/// without one.
extension Stories {
    @Suite(.tags(.crowded)) struct AdministrationTests {}
}

// MARK: Pins

extension Stories.AdministrationTests {
    @Test
    func `a pinned title stays when everything else is evicted`() throws {
        let story = try Story(["--cache-size", "5MB", "--min-free", "0"])
        for name in ["/kept.m3u8", "/gone.m3u8"] {
            story.putTitle(name, name, count: 6)
            try story.play(name)
        }
        let pinned = try story.ask("pin", story.cdn.url("/kept.m3u8"))
        #expect(pinned.status == 0 && pinned.stdout.contains("100 % is kept"), "\(pinned)")
        for index in 0..<30 { _ = try story.get(segment("flood\(index)", 500_000)) }
        #expect(try story.settled("stored_bytes") { $0 <= 5_000_000 } <= 5_000_000)
        story.cdn.resetLog()
        try story.play("/kept.m3u8")
        #expect(story.cdn.requestCount() == 0)
        try story.play("/gone.m3u8")
        #expect(story.cdn.requestCount() > 0)
        #expect(try story.ask("ls").stdout.contains("pinned"))
    }

    @Test
    func `a pin holds what is fetched later, and what another title brought`() throws {
        let story = try Story(["--cache-size", "5MB", "--min-free", "0"])
        story.putTitle("/first.m3u8", "common")
        try story.play("/first.m3u8")
        story.putTitle("/second.m3u8", "common")
        _ = try story.get("/second.m3u8")
        let isKnown = try story.title("/second.m3u8") { members("percent", in: $0).first == "100" }
        #expect(!isKnown.isEmpty)
        #expect(try story.ask("pin", story.url("/second.m3u8")).status == 0)
        story.putTitle("/later.m3u8", "later")
        let early = try story.ask("pin", story.cdn.url("/later.m3u8"))
        #expect(early.stdout.contains("0 % is kept"), "\(early)")
        try story.play("/later.m3u8")
        for index in 0..<30 { _ = try story.get(segment("wash\(index)", 500_000)) }
        #expect(try story.settled("stored_bytes") { $0 <= 5_000_000 } <= 5_000_000)
        story.cdn.resetLog()
        try story.play("/second.m3u8")
        try story.play("/later.m3u8")
        #expect(story.cdn.requestCount() == 0)
    }

    @Test
    func `pins survive a restart and the loss of the index until they are removed`() throws {
        let story = try Story()
        story.putTitle("/pin.m3u8", "pin")
        try story.play("/pin.m3u8")
        #expect(try story.ask("pin", story.cdn.url("/pin.m3u8")).status == 0)
        story.stop()
        for name in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"] {
            unlink("\(story.cacheFolder)/\(name)")
        }
        try story.restart()
        let text = try story.title("/pin.m3u8") { members("percent", in: $0).first == "100" }
        #expect(members("pinned", in: text) == ["true"])
        #expect(try story.ask("unpin", story.cdn.url("/pin.m3u8")).stdout == "unpinned\n")
        #expect(try story.ask("unpin", story.cdn.url("/pin.m3u8")).stdout == "it was not pinned\n")
        #expect(members("pinned", in: try story.title("/pin.m3u8")) == ["false"])
    }
}

// MARK: Clearing

extension Stories.AdministrationTests {
    @Test
    func `clear keeps pinned titles unless told to remove them`() throws {
        let story = try Story()
        for name in ["/pin.m3u8", "/free.m3u8"] {
            story.putTitle(name, name)
            try story.play(name)
        }
        #expect(try story.ask("pin", story.cdn.url("/pin.m3u8")).status == 0)
        let some = try story.ask("clear").stdout
        #expect(some.contains("1 pinned title is kept"), "\(some)")
        story.cdn.resetLog()
        try story.play("/pin.m3u8")
        #expect(story.cdn.requestCount() == 0)
        #expect(try story.follow("/api/clear?pinned=perhaps", method: "POST").status == 400)
        let all = try story.ask("clear", "--pinned").stdout
        #expect(!all.hasPrefix("removed 0") && !all.contains("kept"), "\(all)")
        #expect(try story.settled("stored_objects") { $0 == 0 } == 0)
        try story.play("/pin.m3u8")
        #expect(story.cdn.requestCount() > 0)
    }

    @Test
    func `clear after verify removes what was verified`() throws {
        let story = try Story()
        for round in 0..<10 {
            let paths = (0..<5).map { segment("round\(round)-\($0)", 20_000) }
            for path in paths { _ = try story.get(path) }
            #expect(try story.ask("verify").stdout.hasPrefix("5 objects are intact"))
            let cleared = try story.ask("clear").stdout
            #expect(cleared.hasPrefix("removed 5 objects"), "\(cleared)")
            #expect(try story.stat("stored_objects") == 0)
        }
    }
}

// MARK: Purging

extension Stories.AdministrationTests {
    @Test
    func `a purge by title removes that title and nothing else`() throws {
        let story = try Story()
        for name in ["/one.m3u8", "/two.m3u8"] {
            story.putTitle(name, name)
            try story.play(name)
        }
        let gone = try story.ask("purge", "--title", story.cdn.url("/one.m3u8"))
        #expect(gone.stdout.hasPrefix("removed 5 objects, "), "\(gone)")
        story.cdn.resetLog()
        try story.play("/two.m3u8")
        #expect(story.cdn.requestCount() == 0)
        try story.play("/one.m3u8")
        #expect(story.cdn.requestCount() == 5)
    }

    @Test
    func `a purge by host removes its objects except the pinned ones`() throws {
        let story = try Story()
        let other = FixtureCDN()
        try other.start()
        defer { other.stop() }
        let path = segment("host", 1_000)
        for url in [story.cdn.url(path), other.url(path)] {
            _ = try story.player().get(story.url(for: url))
        }
        story.putTitle("/pinned.m3u8", "pinned")
        try story.play("/pinned.m3u8")
        #expect(try story.ask("pin", story.cdn.url("/pinned.m3u8")).status == 0)
        let gone = try story.ask("purge", "--host", "127.0.0.1:\(story.cdn.port)")
        #expect(gone.stdout.hasPrefix("removed 1 object, "), "\(gone)")
        story.cdn.resetLog()
        _ = try story.player().get(story.url(for: other.url(path)))
        #expect(other.requestCount() == 1)
        try story.play("/pinned.m3u8")
        #expect(story.cdn.requestCount() == 0)
        #expect(try story.ask("purge", "--host", "127.0.0.1").stdout.hasPrefix("removed 1 object"))
    }

    @Test
    func `a purge by prefix removes what is below it, with and without a daemon`() throws {
        let story = try Story()
        let paths = ["/show7/1.ts", "/show7/s1/2.ts", "/show70/1.ts"]
        for path in paths {
            story.cdn.put(path, text: path)
            #expect(try story.get(path).text == path)
        }
        let gone = try story.ask("purge", "--prefix", story.cdn.url("/show7/s1"))
        #expect(gone.stdout.hasPrefix("removed 1 object, "), "\(gone)")
        let refused = try story.ask("purge", "--prefix", story.cdn.url("/show7?x"))
        #expect(refused.status != 0 && refused.stderr.contains("no query"), "\(refused)")
        story.stop()
        let rest = try story.onFolder("purge", "--prefix", story.cdn.url("/show7"))
        #expect(rest.stdout.hasPrefix("removed 1 object, "), "\(rest)")
        try story.restart()
        story.cdn.resetLog()
        for path in paths { #expect(try story.get(path).text == path) }
        #expect(story.cdn.requestCount() == 2)
    }

    @Test
    func `a purge by age removes objects unused for that long`() throws {
        let story = try Story()
        let (old, fresh) = (segment("old", 1_000), segment("fresh", 1_000))
        _ = try story.get(old)
        _ = try story.get(fresh)
        #expect(try story.ask("purge", "--older-than", "1h").stdout.hasPrefix("removed 0 objects"))
        // The age is also how long the command may take to start on a busy machine: what it finds
        // as old as that is removed too.
        let isGone = try eventually(within: .seconds(30), pausing: .milliseconds(250)) {
            _ = try story.get(fresh)
            return try story.ask("purge", "--older-than", "10s").stdout
                .hasPrefix("removed 1 object,")
        }
        #expect(isGone)
        #expect(story.cdn.requestCount(fresh) == 1)
        _ = try story.get(old)
        #expect(story.cdn.requestCount(old) == 2)
    }

    @Test(arguments: [
        [], ["--host", "h", "--title", "x"], ["--older-than", "soon"], ["--title", "nonsense"],
        ["--title", "000000000000"], ["no-url"],
    ])
    func `an ambiguous purge removes nothing`(_ arguments: [String]) throws {
        let story = try Story()
        _ = try story.get(segment("safe", 1_000))
        let result = try Tool.run(
            [DaemonProcess.builtBinary(), "purge"] + arguments
                + ["--daemon", story.daemon.baseURL])
        #expect(result.status != 0 && !result.stderr.isEmpty, "\(result)")
        #expect(try story.stat("stored_objects") == 1)
    }
}

// MARK: Without a daemon

extension Stories.AdministrationTests {
    @Test
    func `every command works on the folder while no daemon runs`() throws {
        let story = try Story()
        for name in ["/one.m3u8", "/two.m3u8"] {
            story.putTitle(name, name)
            try story.play(name)
        }
        story.stop()
        let list = try story.onFolder("ls")
        #expect(list.status == 0 && list.stdout.split(separator: "\n").count == 3, "\(list)")
        #expect(
            try story.onFolder("pin", story.cdn.url("/one.m3u8")).stdout.contains("100 % is kept"))
        #expect(
            try story.onFolder("purge", "--older-than", "0s").stdout.hasPrefix("removed 5 objects"))
        let check = try story.onFolder("verify")
        #expect(check.status == 0 && check.stdout.hasPrefix("5 objects are intact"), "\(check)")
        let use = try story.onFolder("df", "--json")
        #expect(members("used_bytes", in: use.stdout) == members("pinned_bytes", in: use.stdout))
        try story.restart()
        story.cdn.resetLog()
        try story.play("/one.m3u8")
        #expect(story.cdn.requestCount() == 0)
        #expect(try story.ask("ls").stdout.contains("pinned"))
    }

    @Test
    func `the folder of a running daemon is refused and not changed`() throws {
        let story = try Story()
        let path = segment("mine", 1_000)
        _ = try story.get(path)
        for command in [["ls"], ["df"], ["verify"], ["purge", "--older-than", "0s"], ["clear"]] {
            let result = try Tool.run(
                [DaemonProcess.builtBinary()] + command + ["--cache-dir", story.cacheFolder])
            #expect(result.status == 4 && result.stderr.contains("in use"), "\(result)")
        }
        _ = try story.get(path)
        #expect(story.cdn.requestCount(path) == 1)
    }

    @Test
    func `an argument that is wrong is wrong usage, with a daemon and without one`() throws {
        let story = try Story()
        let refused = try story.ask("purge", "--title", "nonsense")
        #expect(refused.status == 64 && refused.stderr.contains("12 hexadecimal"), "\(refused)")
        story.stop()
        let alone = try story.onFolder("purge", "--title", "nonsense")
        #expect(alone.status == 64 && alone.stderr.contains("12 hexadecimal"), "\(alone)")
    }

    @Test
    func `without a daemon its URLs are known by the names that its settings have`() throws {
        let story = try Story()
        story.cdn.put("/a.ts", Array("bytes".utf8))
        _ = try story.get("/a.ts")
        story.stop()
        let folder = try TemporaryFolder()
        let file = folder.file("settings.json")
        try writeFile(
            file, #"{"host-name":["nas.test"],"bind":["127.0.0.9"],"port":9000}"#.utf8)
        let path = "/proxy?url=\(percentEncoded(story.cdn.url("/a.ts")))"
        // Another server of that machine.
        let other = try story.onFolder("purge", "http://nas.test:8080\(path)", "--config", file)
        #expect(other.stdout.hasPrefix("removed 0 objects"), "\(other)")
        let why = try story.onFolder("why", "http://127.0.0.9:9000\(path)", "--config", file)
        #expect(why.stdout.contains("whole: 5 of 5 bytes"), "\(why)")
        let purged = try story.onFolder("purge", "http://nas.test:9000\(path)", "--config", file)
        #expect(purged.stdout.hasPrefix("removed 1 object,"), "\(purged)")
    }

    @Test
    func `a folder without a store is not changed`() throws {
        let folder = try TemporaryFolder()
        let photos = folder.makeFolder("photos")
        try writeFile(photos + "/a.jpg", "jpeg".utf8)
        for (path, status) in [(photos, 4), (folder.file("none"), 4)] {
            let result = try sluice("purge", "--older-than", "0s", "--cache-dir", path)
            #expect(result.status == Int32(status) && result.stderr.contains("no store"))
        }
        #expect(listFolder(photos) == ["a.jpg"] && access(folder.file("none"), F_OK) != 0)
        let nothing = try sluice(
            "ls", "--config", folder.file("settings.json"), "--daemon", "http://127.0.0.1:1")
        #expect(nothing.status == 5 && nothing.stderr.contains("no daemon answers"))
    }
}

extension Stories.AdministrationTests {
    @Test(.enabled(if: geteuid() == 0 && Tool.exists("setpriv"), "needs setpriv and root"))
    func `a folder that this user may not open is not called empty`() throws {
        let story = try Story()
        _ = try story.get(segment("mine", 1_000))
        story.stop()
        #expect(chown(story.cacheFolder, 65_534, 65_534) == 0)
        #expect(chmod(story.cacheFolder, 0o700) == 0)
        let without = "-dac_override,-dac_read_search"
        let result = try Tool.run([
            "setpriv", "--bounding-set", without, "--inh-caps", without,
            DaemonProcess.builtBinary(), "ls", "--cache-dir", story.cacheFolder,
        ])
        #expect(result.status == 4, "\(result)")
        #expect(result.stderr.contains("cannot be opened"), "\(result.stderr)")
        #expect(result.stderr.contains("run this as its owner"), "\(result.stderr)")
        #expect(!result.stderr.contains("no store"), "\(result.stderr)")
    }
}

// MARK: Disk and checks

extension Stories.AdministrationTests {
    @Test
    func `df adds up`() throws {
        let story = try Story(["--cache-size", "50MB", "--min-free", "1MB"])
        story.putTitle("/df.m3u8", "df")
        try story.play("/df.m3u8")
        var text = ""
        _ = try eventually {
            text = try story.api("df")
            return members("objects", in: text).first == "5"
        }
        #expect(members("budget_bytes", in: text) == ["50000000"])
        #expect(members("min_free_bytes", in: text) == ["1000000"])
        let bytes = members("bytes", in: text).compactMap { Int($0) }
        #expect(bytes.count == 3 && bytes[0] + bytes[1] == bytes[2], "\(text)")
        #expect(members("name", in: text).last == "127.0.0.1:\(story.cdn.port)")
        let table = try story.ask("df").stdout
        #expect(table.contains(" 50 MB") && table.contains("5 objects"), "\(table)")
    }

    @Test
    func `a check finds a corrupt byte, and the dropped object is fetched again`() throws {
        let story = try Story()
        let (bad, good) = (segment("bad", 300_000), segment("good", 100_000))
        _ = try story.get(good)
        _ = try story.get(bad)
        #expect(try story.ask("verify").status == 0)
        story.stop()
        try turnByte(inLargestFileOf: story.cacheFolder)
        let check = try story.onFolder("verify", "--json")
        #expect(check.status == 1 && members("sound", in: check.stdout) == ["false"], "\(check)")
        #expect(try story.onFolder("verify").status == 0)
        try story.restart()
        #expect(isContent(try story.get(bad).body, of: bad))
        #expect(isContent(try story.get(good).body, of: good))
        #expect(story.cdn.requestCount(good) == 1 && story.cdn.requestCount(bad) == 2)
    }

    /// Turns one byte in the middle of the largest object.
    private func turnByte(inLargestFileOf folder: String) throws {
        let files = try storedFiles(folder).map { (path: $0, bytes: try readFile($0)) }
        guard var largest = files.max(by: { $0.bytes.count < $1.bytes.count }) else { return }
        largest.bytes[largest.bytes.count / 2] ^= 1
        try writeFile(largest.path, largest.bytes)
    }

    @Test
    func `requests that change the store need authorization`() throws {
        let story = try Story(["--token", "open sesame"])
        for (name, method) in [("pin?url=http://h/x", "POST"), ("titles", "GET"), ("df", "GET")] {
            #expect(try story.player().get("/api/\(name)", method: method).status == 401)
        }
        let free = try Story()
        let foreign = [("Origin", "http://evil.example")]
        for name in ["pin?url=http://h/x", "unpin?url=http://h/x", "purge?host=h", "verify"] {
            let path = "/api/\(name)"
            #expect(try free.player().get(path, headers: foreign, method: "POST").status == 403)
        }
        #expect(try free.player().get("/api/pin?url=http://h/x").status == 405)
        #expect(try free.player().get("/api/titles", method: "POST").status == 405)
        #expect(try free.player().get("/api/titles?limit=0").status == 400)
        #expect(try free.player().get("/api/titles?after=x").status == 400)
        #expect(try free.player().get("/api/titles/000000000000").status == 404)
    }
}
