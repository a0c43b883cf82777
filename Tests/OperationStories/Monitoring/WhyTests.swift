import AccessLogFormat
import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// `why` and the access log: every outcome has one name in both.
extension Stories {
    @Suite(.tags(.crowded)) struct WhyTests {}
}

extension Stories.WhyTests {
    /// The response of `/api/why` for a URL.
    private func why(_ story: Story, _ url: String) throws -> String {
        let answer = try story.player().get("/api/why?url=\(percentEncoded(url))")
        #expect(answer.status == 200)
        return answer.text
    }

    @Test func `a URL never requested before will be a miss`() throws {
        let story = try Story()
        let text = try why(story, story.cdn.url(segment("a", 1_000)))
        #expect(text.contains("\"stored\":null"))
        #expect(text.contains("\"outcome\":\"miss\""))
        #expect(story.cdn.requestCount() == 0)
    }

    @Test func `a miss for which there is no room says that it may not be stored`() throws {
        let story = try Story(["--min-free", "900TB"])
        let path = segment("homeless", 10_000)
        #expect(isContent(try story.get(path).body, of: path))
        let told = try why(story, story.cdn.url(path))
        #expect(told.contains("fetch all of it; it may not be stored, for want of room"), "\(told)")
        let isTold = eventually {
            story.daemon.standardError.contains("the disk has less free than min-free")
        }
        #expect(isTold)
    }

    @Test func `key, rules and stored spans are shown, secrets are not`() throws {
        let story = try Story()
        let path = segment("a", 40_000)
        _ = try story.get("\(path)?b=2&a=1&\(signature(1))")
        let text = try why(story, story.cdn.url("\(path)?a=1&b=2&\(signature(2))"))
        #expect(text.contains("\"rule\":\"signatures (fastly)\""))
        #expect(text.contains("\"merged\":true"))
        #expect(text.contains("\"complete\":true") && text.contains("\"total\":40000"))
        #expect(text.contains("\"outcome\":\"hit\""))
        #expect(!text.contains(signature(2).dropFirst(6)))
    }

    @Test func `the stored spans of a partial object and its missing rest are shown`() throws {
        let story = try Story()
        let path = segment("a", 4_000_000)
        _ = try story.get(path, range: "bytes=1000000-1000999")
        let text = try why(story, story.cdn.url(path))
        #expect(text.contains("\"spans\":[[1000000,"))
        #expect(text.contains("\"outcome\":\"partial\""))
    }

    @Test func `the reason for not storing a response has its name from Cache-Status`() throws {
        let story = try Story()
        let path = segment("a", 1_000)
        story.cdn.setBehaviour("cc=no-store", for: path)
        let answer = try story.get(path)
        #expect(answer["Cache-Status"]?.contains("no-store") == true)
        #expect(
            try why(story, story.cdn.url(path)).contains("\"refused\":{\"reason\":\"no-store\""))
    }

    @Test func `age, lifetime and their source are shown for a mount`() throws {
        let story = try Story()
        let path = segment("a", 1_000)
        story.cdn.setBehaviour("cc=max-age%3D600&header=Age:100", for: path)
        let daemon = try story.succeed(["--mount", "/mount/=\(story.cdn.url("/"))"])
        let player = ScriptedPlayer(daemon.baseURL)
        _ = try player.get("/mount\(path)")
        let url = percentEncoded("\(daemon.baseURL)/mount\(path)")
        let text = try player.get("/api/why?url=\(url)").text
        #expect(text.contains("\"age\":10") && text.contains("\"lifetime\":600"))
        #expect(text.contains("\"lifetime-from\":\"max-age\""))
        #expect(text.contains("\"name\":\"rfc\""))
        daemon.kill(SIGTERM)
        _ = try daemon.waitForExit()
    }

    @Test func `a link of a playlist is explained like its origin's URL`() throws {
        let story = try Story()
        story.cdn.put("/l.m3u8", text: vod(["/bytes/1000/a.ts"]))
        let link = try #require(uriLines(try story.get("/l.m3u8").text).first)
        _ = try story.follow(link)
        let text = try why(story, story.daemon.baseURL + link)
        #expect(text.contains("\"role\":\"segment\"") && text.contains("\"outcome\":\"hit\""))
        let list = try why(story, story.cdn.url("/l.m3u8"))
        #expect(list.contains("\"playlist\":true") && list.contains("\"live\":false"))
    }

    @Test func `the command prints the same for people`() throws {
        let story = try Story()
        let path = segment("a", 40_000)
        _ = try story.get(path)
        let command = try Tool.run(
            [
                DaemonProcess.builtBinary(), "why", story.cdn.url(path), "--daemon",
                story.daemon.baseURL,
            ])
        let text = String(decoding: command.output, as: UTF8.self)
        #expect(command.status == 0)
        #expect(text.contains("hit: answer from the store alone"))
        #expect(text.contains("whole: 40000 of 40000 bytes"))
    }

    @Test func `without a daemon the command reads the folder itself`() throws {
        let story = try Story()
        let path = segment("a", 40_000)
        _ = try story.get(path)
        story.stop()
        let command = try Tool.run([
            DaemonProcess.builtBinary(), "why", story.cdn.url(path), "--cache-dir",
            story.cacheFolder,
        ])
        let text = String(decoding: command.output, as: UTF8.self)
        #expect(text.contains("hit: answer from the store alone"))
        let keys = try Tool.run([
            DaemonProcess.builtBinary(), "keys", "--cache-dir", story.cacheFolder,
        ])
        #expect(String(decoding: keys.output, as: UTF8.self).contains("keys standard"))
    }

    // MARK: Access log

    @Test func `each request is a line of the log with its outcome`() throws {
        let folder = try TemporaryFolder()
        let log = folder.path + "/access.log"
        let story = try Story(["--access-log", log])
        let path = segment("a", 40_000)
        // Each loop writes its line after the response, which the player may see before.
        _ = try story.get("\(path)?\(signature(1))")
        _ = accessLines(log, 1)
        _ = try story.get("\(path)?\(signature(2))", range: "bytes=100-199")
        _ = accessLines(log, 2)
        _ = try story.get("/api/nothing")
        let lines = accessLines(log, 3)
        #expect(lines.map { $0[.outcome] } == ["miss", "hit", "failed"])
        #expect(lines.map { $0.named.isEmpty } == [false, true, false])
        #expect(lines.prefix(2).map { $0[.status] } == ["200", "206"])
        #expect(lines.prefix(2).map { $0[.bytes] } == ["40000", "100"])
        #expect(lines.prefix(2).map { $0[.offset] } == ["0", "100"])
        #expect(lines[0][.key] == lines[1][.key] && lines[0][.key]?.count == 32)
        #expect(lines[0][.url]?.hasSuffix("token=***") == true)
        #expect(lines.map { $0[.client] } == ["127.0.0.1", "127.0.0.1", "127.0.0.1"])
        #expect(lines.map { $0[.tls] } == [nil, nil, nil])
        #expect(lines.map { $0[.ending] } == ["complete", "complete", "complete"])
    }

    @Test func `the access log tells whether a player left or the origin failed`() throws {
        let folder = try TemporaryFolder()
        let log = folder.path + "/access.log"
        let story = try Story(["--access-log", log])
        let (left, cut) = (segment("left", 20_000_000), segment("cut", 400_000))
        story.cdn.hold(left, afterBytes: 100_000)
        let stream = try story.open(left)
        _ = try stream.read(100_000)
        stream.abort()
        #expect(accessLines(log, 1).map { $0[.ending] } == ["aborted"])
        story.cdn.setBehaviour("trunc=100000&norange=1", for: cut)
        _ = try? story.get(cut)
        let last = accessLines(log, 2).last
        #expect(last?[.ending] == "broken" && last?[.status] == "200", "\(last?[.bytes] ?? "-")")
    }

    @Test func `the access log names what a player requested that left before the response`()
        throws
    {
        let folder = try TemporaryFolder()
        let log = folder.path + "/access.log"
        let story = try Story(["--access-log", log])
        let path = segment("slow", 1_000)
        story.cdn.hold(path)
        let stream = try story.open(path)
        #expect(eventually { story.cdn.requestCount(path) == 1 })
        stream.abort()
        let line = try #require(accessLines(log, 1).first)
        story.cdn.release(path)
        #expect(line[.outcome] == "left" && line[.status] == nil, "\(line)")
        #expect(line[.ending] == "aborted" && line[.url] == story.cdn.url(path), "\(line)")
    }

    @Test(arguments: [false, true])
    func `the access log names the client that a trusted proxy saw`(isTrusted: Bool) throws {
        let folder = try TemporaryFolder()
        let log = folder.path + "/access.log"
        let story = try Story(
            ["--access-log", log] + (isTrusted ? ["--trust-forwarded"] : []))
        let fields = ["10.0.0.9, 192.0.2.7", "2001:db8::7", "no address", "x\t1"]
        for (index, field) in fields.enumerated() {
            _ = try story.get(segment("a", 1_000), headers: [("X-Forwarded-For", field)])
            _ = accessLines(log, index + 1)
        }
        let seen = accessLines(log, 4).map { $0[.client] }
        let trusted = ["192.0.2.7", "2001:db8::7", "127.0.0.1", "127.0.0.1"]
        #expect(seen == (isTrusted ? trusted : Array(repeating: "127.0.0.1", count: 4)))
    }

    @Test func `an unsatisfiable range is not a failure in the log`() throws {
        let story = try Story()
        let path = segment("a", 1_000)
        _ = try story.get(path)
        #expect(try story.get(path, range: "bytes=5000-").status == 416)
        story.cdn.setBehaviour("status=404", for: "/gone.ts")
        #expect(try story.get("/gone.ts").status == 404)
        #expect(eventually { story.daemon.standardError.contains("request failed: ") })
        let text = story.daemon.standardError
        #expect(!text.contains("416") && !text.contains("=-") && text.contains("  fault=origin"))
    }

    @Test func `the log is reopened on SIGHUP`() throws {
        let folder = try TemporaryFolder()
        let log = folder.path + "/access.log"
        let story = try Story(["--access-log", log])
        _ = try story.get(segment("a", 1_000))
        #expect(accessLines(log, 1).count == 1)
        rename(log, log + ".1")
        story.daemon.kill(SIGHUP)
        #expect(eventually { access(log, F_OK) == 0 })
        _ = try story.get(segment("b", 1_000))
        #expect(accessLines(log, 1).count == 1)
        #expect(accessLines(log + ".1", 1).count == 1)
    }
}
