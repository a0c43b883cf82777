import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Cache keys: a resource is one object under any token, order or mirror of its URL, and parameters
/// that select content are never merged.
extension Stories {
    @Suite(.tags(.crowded)) struct KeysTests {}
}

extension Stories.KeysTests {
    /// The number of origin requests when a path is played with all these queries.
    private func requests(_ queries: [String], _ arguments: [String] = []) throws -> Int {
        let story = try Story(arguments)
        let path = segment("a", 50_000)
        for query in queries {
            let answer = try story.get("\(path)?\(query)")
            #expect(answer.status == 200)
            #expect(isContent(answer.body, of: path))
        }
        return story.cdn.requestCount(path)
    }

    @Test func `the same segment under another token is the same object`() throws {
        #expect(try requests([signature(1), signature(2), signature(3)]) == 1)
    }

    @Test func `the order of parameters does not make another object`() throws {
        #expect(try requests(["a=1&b=2", "b=2&a=1", "b=2&a=1&b=2"]) == 1)
    }

    @Test(arguments: ["id=", "startRange=", "seg=", "x=1&seg=", "q="])
    func `parameters that select content never collapse`(name: String) throws {
        #expect(try requests([name + "2", name + "3", name + "4"]) == 3)
    }

    @Test func `a content parameter beside a token stays in the key`() throws {
        let queries = ["seg=7&\(signature(1))", "seg=8&\(signature(2))", "seg=7&\(signature(3))"]
        #expect(try requests(queries) == 2)
    }

    @Test func `without normalisation every URL is its own object`() throws {
        #expect(try requests([signature(1), signature(2)], ["--keys", "off"]) == 2)
    }

    @Test func `an origin's rules apply only to it`() throws {
        #expect(try requests(["s=1", "s=2"], ["--key-rule", "127.0.0.*=drop s"]) == 1)
        #expect(try requests(["s=1", "s=2"], ["--key-rule", "*.example.com=drop s"]) == 2)
        #expect(
            try requests(["w=300", "w=310", "w=900"], ["--key-rule", "127.0.0.1=tier w 320 1280"])
                == 2)
    }

    @Test func `mirrors of one host share its objects`() throws {
        let story = try Story(["--key-rule", "127.0.0.*=host cdn.example.com"])
        let mirror = FixtureCDN(address: "127.0.0.2")
        try mirror.start()
        defer { mirror.stop() }
        let path = segment("a", 50_000)
        #expect(try story.get(path).status == 200)
        let second = try story.player().get(story.url(for: mirror.url(path)))
        #expect(isContent(second.body, of: path))
        #expect(story.cdn.requestCount(path) == 1 && mirror.requestCount(path) == 0)
    }

    @Test func `telemetry reaches neither key nor origin`() throws {
        let story = try Story()
        let path = segment("a", 50_000)
        for bandwidth in 1...3 {
            _ = try story.get("\(path)?CMCD=bl%3D\(bandwidth)00%2Csid%3D%22x%22")
        }
        #expect(story.cdn.requests.map(\.target) == [path])
    }

    @Test func `a mount keeps its URLs apart unless configured otherwise`() throws {
        let story = try Story()
        let path = segment("a", 50_000)
        story.cdn.setBehaviour("cc=max-age%3D600", for: path)
        let plain = try story.succeed(["--mount", "/mount/=\(story.cdn.url("/"))"])
        for number in 1...2 {
            _ = try ScriptedPlayer(plain.baseURL).get("/mount\(path)?\(signature(number))")
        }
        #expect(story.cdn.requestCount(path) == 2)
        plain.kill(SIGTERM)
        _ = try plain.waitForExit()
    }

    // MARK: Vetoes

    @Test func `no-store under a merged key keeps an origin's URLs apart permanently`() throws {
        let story = try Story()
        let path = segment("a", 50_000)
        story.cdn.setBehaviour("cc=no-store", for: path)
        _ = try story.get("\(path)?\(signature(1))")
        story.cdn.setBehaviour(nil, for: path)
        #expect(try story.stat("key_vetoes_total") == 1)
        for number in 2...3 { _ = try story.get("\(path)?\(signature(number))") }
        #expect(story.cdn.requestCount(path) == 3)
        try story.restart()
        for number in 4...5 { _ = try story.get("\(path)?\(signature(number))") }
        #expect(story.cdn.requestCount(path) == 5)
    }

    @Test(arguments: ["etag=other", "as=/bytes/60000/b.ts"])
    func `another representation under a merged key keeps an origin's URLs apart`(
        behaviour: String
    ) throws {
        let story = try Story()
        let path = segment("a", 50_000)
        _ = try story.get("\(path)?\(signature(1))", range: "bytes=0-999")
        story.cdn.setBehaviour(Behaviour(query: behaviour), for: path)
        let second = try story.get("\(path)?\(signature(2))", range: "bytes=2000-2999")
        #expect(second.status == 206)
        #expect(try story.stat("key_vetoes_total") == 1)
        let before = story.cdn.requestCount(path)
        for number in 3...4 { _ = try story.get("\(path)?\(signature(number))") }
        #expect(story.cdn.requestCount(path) == before + 2)
    }

    @Test func `other bytes under equal validators keep an origin's URLs apart too`() throws {
        let story = try Story()
        let path = segment("a", 50_000)
        story.cdn.setBehaviour("etag=same", for: path)
        _ = try story.get("\(path)?\(signature(1))")
        let url = percentEncoded(story.cdn.url("\(path)?\(signature(1))"))
        _ = try story.player().get("/api/purge?url=\(url)", method: "POST")
        story.cdn.setBehaviour("etag=same&as=/bytes/50000/b.ts", for: path)
        _ = try story.get("\(path)?\(signature(2))")
        #expect(try story.settled("key_vetoes_total") { $0 == 1 } == 1)
    }

    @Test func `a URL whose own file has changed bars nothing, though another one came between`()
        throws
    {
        let story = try Story()
        let path = segment("a", 50_000)
        _ = try story.get("\(path)?\(signature(1))", range: "bytes=0-999")
        _ = try story.get("\(path)?\(signature(2))", range: "bytes=2000-2999")
        story.cdn.setBehaviour("etag=other", for: path)
        let changed = try story.get("\(path)?\(signature(1))", range: "bytes=4000-4999")
        #expect(changed.status == 206 && story.cdn.requestCount(path) >= 3)
        #expect(try story.stat("key_vetoes_total") == 0)
    }

    @Test(arguments: [false, true])
    func `a URL whose file has changed bars nothing after a restart and another one either`(
        isRedirected: Bool
    ) throws {
        let story = try Story()
        let path = segment("a", 50_000)
        let file = isRedirected ? segment("b", 50_000) : path
        if isRedirected { story.cdn.setBehaviour("location=/bytes/50000/b.ts", for: path) }
        _ = try story.get("\(path)?\(signature(1))", range: "bytes=0-999")
        try story.restart()
        _ = try story.get("\(path)?\(signature(2))", range: "bytes=2000-2999")
        story.cdn.setBehaviour("etag=other", for: file)
        let changed = try story.get("\(path)?\(signature(1))", range: "bytes=4000-4999")
        #expect(changed.status == 206 && story.cdn.requestCount(file) >= 3)
        #expect(try story.stat("key_vetoes_total") == 0)
    }

    @Test func `bytes of its own that a URL has replaced bar nothing either`() throws {
        let story = try Story()
        let path = segment("a", 50_000)
        func fetch(_ number: Int) throws {
            let url = percentEncoded(story.cdn.url("\(path)?\(signature(number))"))
            _ = try story.player().get("/api/purge?url=\(url)", method: "POST")
            _ = try story.get("\(path)?\(signature(number))")
        }
        story.cdn.setBehaviour("etag=same", for: path)
        for number in 1...2 { try fetch(number) }
        story.cdn.setBehaviour("etag=same&as=/bytes/50000/b.ts", for: path)
        try fetch(1)
        let before = story.cdn.requestCount(path)
        _ = try story.get("\(path)?\(signature(3))")
        #expect(story.cdn.requestCount(path) == before)
        #expect(try story.stat("key_vetoes_total") == 0)
    }

    @Test func `a barred normalisation is allowed again once the bar is removed`() throws {
        let story = try Story()
        let path = segment("a", 50_000)
        story.cdn.setBehaviour("cc=no-store", for: path)
        _ = try story.get("\(path)?\(signature(1))")
        story.cdn.setBehaviour(nil, for: path)
        let command = try Tool.run([
            DaemonProcess.builtBinary(), "keys", "--forget", story.cdn.baseURL, "--daemon",
            story.daemon.baseURL,
        ])
        #expect(command.status == 0)
        for number in 2...4 { _ = try story.get("\(path)?\(signature(number))") }
        #expect(story.cdn.requestCount(path) == 2)
    }

    // MARK: Learning

    /// Plays three segments with a parameter without meaning.
    private func visit(_ story: Story, _ visit: Int) throws {
        for name in ["a", "b", "c"] {
            _ = try story.get("\(segment(name, 20_000))?sess=\(visit)&seg=7")
        }
    }

    /// Waits for the learning that runs behind responses.
    private func knows(_ story: Story, _ text: String) throws -> Bool {
        try eventually { try story.player().get("/api/keys").text.contains(text) }
    }

    @Test func `a parameter that never changes the bytes is proposed and left in the key`() throws {
        let story = try Story()
        for number in 1...4 { try visit(story, number) }
        #expect(story.cdn.requestCount() == 12)
        #expect(try knows(story, "\"name\":\"sess\""))
        #expect(try knows(story, "\"state\":\"proposed\""))
        #expect(try !story.player().get("/api/keys").text.contains("\"name\":\"seg\""))
    }

    @Test func `findings apply in auto mode, also after a restart`() throws {
        let story = try Story(["--keys", "auto"])
        for number in 1...4 { try visit(story, number) }
        let learnt = story.cdn.requestCount()
        #expect(try knows(story, "\"state\":\"applied\""))
        #expect(learnt < 12)
        try story.restart()
        try visit(story, 5)
        try visit(story, 6)
        #expect(story.cdn.requestCount() <= learnt + 3)
    }

    @Test func `a refused proposal is vetoed, also after a restart`() throws {
        let story = try Story()
        for number in 1...4 { try visit(story, number) }
        #expect(try knows(story, "\"state\":\"proposed\""))
        func refuse(_ name: String) throws -> Tool.Result {
            try sluice(
                "keys", "--refuse", name, "--origin", story.cdn.baseURL, "--daemon",
                story.daemon.baseURL)
        }
        #expect(try refuse("other").status == 1)
        #expect(try refuse("sess").status == 0)
        #expect(try knows(story, "\"state\":\"vetoed\""))
        try story.restart()
        #expect(try knows(story, "\"state\":\"vetoed\""))
        #expect(try sluice("keys", "--refuse", "sess").status == 64)
    }

    @Test func `one counter-example vetoes a finding`() throws {
        let story = try Story()
        for number in 1...4 { try visit(story, number) }
        let path = segment("a", 20_000)
        story.cdn.setBehaviour("etag=other", for: path)
        _ = try story.get("\(path)?sess=99&seg=7")
        #expect(try knows(story, "\"state\":\"vetoed\""))
        #expect(try !story.player().get("/api/keys").text.contains("\"state\":\"proposed\""))
    }

    // MARK: Policies

    @Test func `an origin has its own policy`() throws {
        let port = { (story: Story) in "127.0.0.1:\(story.cdn.port)" }
        let story = try Story()
        let path = segment("a", 20_000)
        story.cdn.setBehaviour("cc=max-age%3D0", for: path)
        for _ in 1...2 { _ = try story.get(path) }
        #expect(story.cdn.requestCount(path) == 1)
        let strict = try story.succeed(["--origin-policy", "\(port(story))=rfc"])
        for _ in 1...2 {
            let answer = try ScriptedPlayer(strict.baseURL).get("/" + story.cdn.url(path))
            #expect(answer.status == 200)
        }
        #expect(story.cdn.requestCount(path) == 3)
        strict.kill(SIGTERM)
        _ = try strict.waitForExit()
    }
}
