import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// HTTP's rules where time and numbers matter: concurrent requests, large bodies, slow origins.
extension Stories {
    @Suite(.tags(.timed)) struct RfcTests {}
}

extension Stories.RfcTests {
    /// A daemon with `/at/` mounted on the root of a CDN.
    private func mounted() throws -> (FixtureCDN, DaemonProcess, TemporaryFolder) {
        let cdn = FixtureCDN()
        try cdn.start()
        let folder = try TemporaryFolder()
        let mount = ["--mount", "/at/=\(cdn.url("/"))"]
        return (cdn, try Story.serve(folder.file("cache"), mount), folder)
    }

    /// The responses to this many concurrent clients.
    private func ask(
        _ daemon: DaemonProcess, _ path: String, times: Int,
        headers: @escaping @Sendable (Int) -> [WireHead.Field] = { _ in [] }
    ) -> [PlayerResponse] {
        let base = daemon.baseURL
        let answers = Shared<[PlayerResponse]>([])
        let done = Shared(0)
        for client in 0..<times {
            _ = startDetachedThread {
                let answer = try? ScriptedPlayer(base).get(path, headers: headers(client))
                if let answer { answers.update { $0.append(answer) } }
                done.update { $0 += 1 }
            }
        }
        _ = eventually(within: .seconds(20)) { done.value == times }
        return answers.value
    }

    @Test
    func `concurrent requests share a response while it is received`() throws {
        let (cdn, daemon, folder) = try mounted()
        defer { withExtendedLifetime(folder) { cdn.stop() } }
        let path = segment("a", 400_000)
        cdn.setBehaviour("cc=max-age=60&fb=300&rate=1000000", for: path)
        let answers = ask(daemon, "/at" + path, times: 12)
        #expect(answers.count == 12)
        #expect(answers.allSatisfy { $0.status == 200 && isContent($0.body, of: path) })
        #expect(cdn.requestCount(path) == 1)
    }

    @Test
    func `only-if-cached is answered with the stored part, and never requests the rest`() throws {
        let (cdn, daemon, folder) = try mounted()
        defer { withExtendedLifetime(folder) { cdn.stop() } }
        let path = segment("a", 4_000_000)
        cdn.setBehaviour("cc=max-age=60", for: path)
        let player = ScriptedPlayer(daemon.baseURL)
        let part: [WireHead.Field] = [("Range", "bytes=1000000-1000999")]
        #expect(try player.get("/at" + path, headers: part).status == 206)
        let asked = cdn.requestCount(path)
        let cached: [WireHead.Field] = [("Cache-Control", "only-if-cached")]
        #expect(try player.get("/at" + path, headers: part + cached).status == 206)
        let whole = try player.get("/at" + path, headers: cached)
        #expect(whole.status == 504 && whole.text.hasPrefix("client error: "), "\(whole.status)")
        #expect(cdn.requestCount(path) == asked)
    }

    @Test(arguments: ["cc=no-store", "cc=private", "cc=max-age=0", "cc=max-age=60&header=Vary:*"])
    func `an unshareable response is fetched for each player`(_ behaviour: String) throws {
        let (cdn, daemon, folder) = try mounted()
        defer { withExtendedLifetime(folder) { cdn.stop() } }
        let path = segment("a", 20_000)
        cdn.setBehaviour(Behaviour(query: behaviour + "&fb=200&noetag=1&lastmod="), for: path)
        let answers = ask(daemon, "/at" + path, times: 4)
        #expect(answers.count == 4)
        #expect(answers.allSatisfy { $0.status == 200 && isContent($0.body, of: path) })
        #expect(cdn.requestCount(path) == 4)
    }

    @Test
    func `requests that select different variants do not share`() throws {
        let (cdn, daemon, folder) = try mounted()
        defer { withExtendedLifetime(folder) { cdn.stop() } }
        let path = segment("a", 20_000)
        cdn.setBehaviour("cc=max-age=60&fb=300&header=Vary:Foo", for: path)
        for _ in 0..<2 {
            let answers = ask(daemon, "/at" + path, times: 6) { [("Foo", "\($0 % 2)")] }
            #expect(answers.count == 6 && answers.allSatisfy { isContent($0.body, of: path) })
        }
        // A request that joined another variant was sent again, at most once for all of them.
        #expect((2...4).contains(cdn.requestCount(path)), "\(cdn.requestCount(path))")
    }

    @Test
    func `a range is answered while the whole is still being received`() throws {
        let (cdn, daemon, folder) = try mounted()
        defer { withExtendedLifetime(folder) { cdn.stop() } }
        let path = segment("a", 3_000_000)
        cdn.setBehaviour("cc=max-age=60&rate=2000000", for: path)
        let player = ScriptedPlayer(daemon.baseURL)
        let whole = try player.open("/at" + path)
        _ = try whole.readHead()
        let part = try ScriptedPlayer(daemon.baseURL).get(
            "/at" + path, headers: [("Range", "bytes=200000-299999")])
        #expect(part.status == 206 && part["Content-Range"] == "bytes 200000-299999/3000000")
        #expect(isContent(part.body, of: path, from: 200_000, count: 100_000))
        #expect(isContent(try whole.readRest(), of: path))
        #expect(cdn.requestCount(path) == 1)
    }

    @Test
    func `parts of a large body are read from the disk, also several in one response`() throws {
        let (cdn, daemon, folder) = try mounted()
        defer { withExtendedLifetime(folder) { cdn.stop() } }
        let path = segment("a", 24_000_000)
        cdn.setBehaviour("cc=max-age=60", for: path)
        let player = ScriptedPlayer(daemon.baseURL)
        #expect(isContent(try player.get("/at" + path).body, of: path))
        let answer = try player.get(
            "/at" + path, headers: [("Range", "bytes=5-9,1000000-2999999,-7")])
        #expect(answer.status == 206 && answer.complete)
        let parts = bodies(of: answer)
        #expect(parts.count == 3)
        #expect(isContent(parts[0], of: path, from: 5, count: 5))
        #expect(isContent(parts[1], of: path, from: 1_000_000, count: 2_000_000))
        #expect(isContent(parts[2], of: path, from: 23_999_993, count: 7))
        #expect(cdn.requestCount(path) == 1)
    }

    @Test
    func `the rest of an incomplete body is not requested if its version cannot be verified`()
        throws
    {
        let (cdn, daemon, folder) = try mounted()
        defer { withExtendedLifetime(folder) { cdn.stop() } }
        let player = ScriptedPlayer(daemon.baseURL)
        // Many, since a reader may reach the hole before or after the transfer's end.
        for number in 0..<30 {
            let path = segment("a\(number)", 2_000)
            cdn.setBehaviour(
                Behaviour(query: "cc=max-age=60&trunc=400&noetag=1&lastmod="), for: path)
            let answer = try player.get("/at" + path)
            #expect(answer.status == 200 && !answer.complete)
            #expect(cdn.requestCount(path) == 1)
        }
    }

    @Test
    func `several ranges count as bytes sent to the player`() throws {
        let (cdn, daemon, folder) = try mounted()
        defer { withExtendedLifetime(folder) { cdn.stop() } }
        let path = segment("a", 10_000)
        cdn.setBehaviour("cc=max-age=60", for: path)
        let player = ScriptedPlayer(daemon.baseURL)
        _ = try player.get("/at" + path)
        let answer = try player.get("/at" + path, headers: [("Range", "bytes=0-99,9000-9199")])
        #expect(answer.status == 206 && bodies(of: answer).count == 2)
        let sent = 10_000 + answer.body.count
        let figures = Array("\"player_bytes_total\":\(sent),".utf8)
        #expect(
            try eventually(within: .seconds(5)) {
                try player.get("/api/stats").body.firstRange(of: figures) != nil
            })
    }

    @Test
    func `several ranges with a missing one are rejected offline`() throws {
        let (cdn, daemon, folder) = try mounted()
        defer { withExtendedLifetime(folder) { cdn.stop() } }
        let path = segment("a", 3_000_000)
        cdn.setBehaviour("cc=max-age=60", for: path)
        let first = ScriptedPlayer(daemon.baseURL)
        #expect(try first.get("/at" + path, headers: [("Range", "bytes=0-999")]).status == 206)
        daemon.kill(SIGTERM)
        _ = try daemon.waitForExit()
        let host = "127.0.0.1:\(cdn.port)"
        let mount = ["--mount", "/at/=\(cdn.url("/"))", "--origin-policy", "\(host)=offline"]
        let offline = try Story.serve(folder.file("cache"), mount)
        let asked = cdn.requestCount(path)
        let answer = try ScriptedPlayer(offline.baseURL).get(
            "/at" + path, headers: [("Range", "bytes=0-9,2000000-2000009")])
        #expect(answer.status == 504 && answer.text.contains("offline"))
        #expect(cdn.requestCount(path) == asked)
    }

    /// The bodies of a multipart response, by the length in each part.
    private func bodies(of answer: PlayerResponse) -> [[UInt8]] {
        var rest = answer.body[...]
        var found: [[UInt8]] = []
        let mark = Array("\r\n\r\n".utf8)
        while let end = rest.firstRange(of: mark) {
            let head = String(decoding: rest[..<end.lowerBound], as: UTF8.self)
            rest = rest[end.upperBound...]
            guard let range = head.firstRange(of: "Content-Range: bytes ") else { break }
            let text = head[range.upperBound...].prefix { $0 != "/" }.split(separator: "-")
            guard text.count == 2, let first = Int(text[0]), let last = Int(text[1]) else { break }
            found.append(Array(rest.prefix(last - first + 1)))
            rest = rest.dropFirst(last - first + 1)
        }
        return found
    }

    @Test
    func `hits do not occupy the origin's connection, and are marked as hits`() throws {
        let (cdn, daemon, folder) = try mounted()
        defer { withExtendedLifetime(folder) { cdn.stop() } }
        let player = ScriptedPlayer(daemon.baseURL)
        cdn.put("/a.txt", text: "text")
        cdn.setBehaviour("cc=max-age=60", for: "/a.txt")
        #expect(
            try player.get("/at/a.txt")["Cache-Status"]
                == "sluice; fwd=uri-miss; fwd-status=200; stored")
        let hit = try player.get("/at/a.txt")
        #expect(hit["Cache-Status"]?.hasPrefix("sluice; hit; ttl=") == true)
        let refused = try player.get("/at/a.txt", headers: [("Cache-Control", "max-age=0")])
        #expect(refused["Cache-Status"]?.contains("fwd=") == true)
    }

    @Test
    func `a response requested before an unsafe request is not stored`() throws {
        let origin = try ScriptedOrigin()
        let folder = try TemporaryFolder()
        let daemon = try Story.serve(
            folder.file("cache"), ["--mount", "/at/=\(origin.url("/x/"))"])
        defer { origin.stop() }
        let fresh: [WireHead.Field] = [("Cache-Control", "max-age=60")]
        let changed = Barrier("the answer of before")
        origin.answer(
            "/x/it", .hold(until: changed), .respond(200, fresh, Array("old".utf8)))
        let old = Shared<String?>(nil)
        let base = daemon.baseURL
        _ = startDetachedThread {
            let answer = try? ScriptedPlayer(base).get("/at/it")
            old.update { $0 = answer?.text ?? "" }
        }
        #expect(eventually { origin.requestCount("/x/it") == 1 })
        origin.answer("/x/it", .respond(200, [], Array("done".utf8)))
        let post = try ScriptedPlayer(base).get("/at/it", method: "POST", body: [1])
        #expect(post.text == "done")
        changed.arrive()
        #expect(eventually { old.value == "old" })
        origin.answer("/x/it", .respond(200, fresh, Array("new".utf8)))
        #expect(try ScriptedPlayer(base).get("/at/it").text == "new")
    }

    @Test
    func `offline contacts no origin under a mount either`() throws {
        let (cdn, daemon, folder) = try mounted()
        cdn.put("/a.txt", text: "text")
        cdn.setBehaviour("cc=max-age=1&header=Age:99", for: "/a.txt")
        _ = try ScriptedPlayer(daemon.baseURL).get("/at/a.txt")
        daemon.kill(15)
        _ = try daemon.waitForExit(within: .seconds(20))
        let offline = try Story.serve(
            folder.file("cache"), ["--mount", "/at/=\(cdn.url("/"))", "--policy", "offline"])
        defer { cdn.stop() }
        let player = ScriptedPlayer(offline.baseURL)
        for control in ["no-cache", "no-store", "max-age=0"] {
            let answer = try player.get("/at/a.txt", headers: [("Cache-Control", control)])
            #expect(answer.status == 200 && answer.text == "text")
        }
        #expect(try player.get("/at/b.txt").status == 504)
        #expect(cdn.requests.count == 1)
    }
}
