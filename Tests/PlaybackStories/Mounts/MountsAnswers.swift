import FixtureCDN
import ScenarioSupport
import Testing

/// Responses through a mount: redirects, interim responses, failures.
extension Stories {
    @Suite(.tags(.crowded)) struct MountsAnswers {}
}

extension Stories.MountsAnswers {
    @Test(arguments: ["GET", "POST"])
    func `a redirect is passed to the client, with the mount's path`(_ method: String) throws {
        let story = try MountedStory()
        let places = [
            ("b", "/mt/b"), ("/o/b?x=1#f", "/mt/b?x=1#f"), (story.origin.url("/o/b"), "/mt/b"),
            ("../else", story.origin.url("/else")), ("/else", story.origin.url("/else")),
            ("https://other.example/x#f", "https://other.example/x#f"), ("?q", "/mt/d/a?q"),
        ]
        for (index, (given, told)) in places.enumerated() {
            let path = given == "../else" ? "/a\(index)" : "/d/a\(index)"
            let expected =
                given == "b" ? "/mt/d/b" : told.replacing("/mt/d/a?", with: "/mt\(path)?")
            story.origin.answer("/o" + path, .respond(302, [("Location", given)]))
            let answer = try story.ask(method, path)
            #expect(answer.status == 302 && answer["Location"] == expected, "\(given)")
        }
    }

    @Test(arguments: ["GET", "POST"])
    func `a redirect within a mount keeps the access token of the query`(_ method: String) throws {
        let story = try MountedStory(["--token", "secret-token"])
        let places = [
            ("a/", "/mt/a/?token=secret-token"), ("/o/b?x#f", "/mt/b?x&token=secret-token#f"),
            ("/else", story.origin.url("/else")),
        ]
        for (index, (given, told)) in places.enumerated() {
            let fields: [WireHead.Field] = [("Location", given), ("Content-Location", "/o/c")]
            story.origin.answer("/o/\(index)", .respond(302, fields))
            let answer = try story.ask(method, "/\(index)?token=secret-token")
            #expect(answer.status == 302 && answer["Location"] == told)
            #expect(answer["Content-Location"] == "/mt/c")
        }
        story.origin.answer("/o/a", .respond(302, [("Location", "a/")]))
        let fields: [WireHead.Field] = [("Authorization", "Bearer secret-token")]
        #expect(try story.ask(method, "/a", fields)["Location"] == "/mt/a/")
    }

    @Test(arguments: ["GET", "POST"])
    func `what an origin states of its host is not told of the daemon's`(_ method: String) throws {
        let story = try MountedStory()
        let fields: [WireHead.Field] = [
            ("Cache-Control", "max-age=100"), ("Alt-Svc", "h3=\":443\""),
            ("Strict-Transport-Security", "max-age=9"), ("X-Own", "1"),
        ]
        story.origin.answer("/o/a", .respond(200, fields, [1]))
        // The second response comes from the store.
        for _ in 0..<(method == "GET" ? 2 : 1) {
            let answer = try story.ask(method, "/a")
            #expect(answer.status == 200 && answer["X-Own"] == "1")
            #expect(answer["Alt-Svc"] == nil && answer["Strict-Transport-Security"] == nil)
        }
    }

    @Test(arguments: ["GET", "POST"])
    func `interim responses reach clients that support them, and are never stored`(
        _ method: String
    ) throws {
        let story = try MountedStory()
        let lines = ["Link: </x>", "Keep-Alive: 1", "Content-Length: 0"].joined(separator: "\r\n")
        let hints = Array("HTTP/1.1 103 Early Hints\r\n\(lines)\r\n\r\n".utf8)
        let fields: [WireHead.Field] = [("Cache-Control", "max-age=100")]
        story.origin.answer("/o/a", .send(hints), .respond(200, fields, [1]))
        let answer = try story.ask(method, "/a")
        #expect(answer.status == 200 && answer["Link"] == nil)
        #expect(answer.interims.map(\.status) == [103])
        #expect(answer.interims.first?["Link"] == "</x>")
        #expect(answer.interims.first?["Keep-Alive"] == nil)
        #expect(answer.interims.first?["Content-Length"] == nil)
        if method == "GET" { #expect(try story.ask(method, "/a").interims.isEmpty) }
        story.origin.answer("/o/b", .send(hints), .respond(200, fields, [1]))
        let old = try story.send("\(method) /mt/b HTTP/1.0\r\nHost: \(story.host)\r\n\r\n")
        #expect(try old.readHead().status == 200 && old.interims.isEmpty)
    }

    @Test
    func `a response is streamed as it arrives`() throws {
        let story = try MountedStory()
        let gate = Barrier("go on")
        story.origin.answer(
            "/o/a",
            .send(Array("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n".utf8)),
            .hold(until: gate), .send(Array("2\r\nde\r\n0\r\n\r\n".utf8)))
        let stream = try story.player().open("/mt/a", method: "POST")
        #expect(try stream.read(2) == Array("ab".utf8))
        gate.arrive()
        #expect(try stream.readRest() == Array("cde".utf8) && stream.broken == nil)
    }

    @Test(arguments: ["GET", "POST"])
    func `a stream of events may be silent for longer than another body`(_ method: String) throws {
        let story = try MountedStory(["--stall-timeout", "1"])
        func beginning(_ type: String) -> ScriptedOrigin.Step {
            let lines = "Content-Type: \(type)\r\nTransfer-Encoding: chunked\r\n"
            return .send(Array("HTTP/1.1 200 OK\r\n\(lines)\r\n3\r\nabc\r\n".utf8))
        }
        let gate = Barrier("the next event")
        story.origin.answer(
            "/o/events", beginning("text/event-stream; charset=utf-8"), .hold(until: gate),
            .send(Array("2\r\nde\r\n0\r\n\r\n".utf8)))
        story.origin.answer("/o/other", beginning("text/plain"), .stall)
        let events = try story.player().open("/mt/events", method: method)
        // Less than the chunk: behind its last byte, the player waits for the size of the next one.
        #expect(try events.read(2) == Array("ab".utf8))
        // Its silence begins later.
        let other = try story.player().open("/mt/other", method: method)
        #expect(try other.readRest() == Array("abc".utf8) && other.broken != nil)
        gate.arrive()
        #expect(try events.readRest() == Array("cde".utf8) && events.broken == nil)
    }

    @Test(arguments: [
        "Content-Length: 10\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n5\r\nabc",
    ])
    func `a response that is cut is visibly incomplete`(_ rest: String) throws {
        let story = try MountedStory()
        story.origin.answer("/o/a", .send(Array("HTTP/1.1 200 OK\r\n\(rest)".utf8)), .close)
        let answer = try story.ask("POST", "/a")
        #expect(answer.status == 200 && !answer.complete)
    }

    @Test
    func `an unsafe request is never repeated`() throws {
        let story = try MountedStory()
        story.origin.answer("/o/a", .respond(200))
        #expect(try story.ask("GET", "/a").status == 200)
        for _ in 0..<3 { story.origin.answer("/o/b", .close) }
        for method in ["POST", "PUT", "DELETE"] {
            let answer = try story.ask(method, "/b", body: [1])
            #expect(answer.status == 502)
            #expect(answer["Proxy-Status"] == "sluice; error=connection_terminated")
        }
        #expect(story.origin.requestCount("/o/b") == 3)
    }

    @Test
    func `slow uploads delay nobody else`() throws {
        let story = try MountedStory(["--slots", "1"])
        let uploads = try (0..<8).map { index in
            try story.send(
                "PUT /mt/up\(index) HTTP/1.1\r\nHost: \(story.host)\r\nContent-Length: 9\r\n\r\nx")
        }
        story.origin.answer("/o/a", .respond(200, [], [1]))
        #expect(try story.ask("GET", "/a").body == [1])
        for upload in uploads { upload.abort() }
    }
}

// MARK: Failures of the origin

extension Stories.MountsAnswers {
    struct Failure: Sendable, CustomTestStringConvertible {
        let name: String
        let steps: [ScriptedOrigin.Step]
        let status: Int
        let error: String
        var testDescription: String { name }
    }

    static let failures: [Failure] = [
        Failure(
            name: "closed", steps: [.close], status: 502, error: "connection_terminated"),
        Failure(
            name: "reset", steps: [.reset], status: 502, error: "connection_terminated"),
        Failure(
            name: "half a head",
            steps: [.send(Array("HTTP/1.1 200 OK\r\nContent-Le".utf8)), .close],
            status: 502, error: "connection_terminated"),
        Failure(
            name: "no HTTP", steps: [.send(Array("SSH-2.0-x\r\n".utf8)), .close], status: 502,
            error: "http_protocol_error"),
        Failure(
            name: "two lengths",
            steps: [
                .send(
                    Array(
                        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab".utf8)),
                .close,
            ], status: 502, error: "http_protocol_error"),
        Failure(
            name: "another protocol",
            steps: [.send(Array("HTTP/1.1 101 X\r\nUpgrade: y\r\n\r\n".utf8)), .close],
            status: 502, error: "http_protocol_error"),
        Failure(
            name: "a head without end",
            steps: [
                .send(
                    Array("HTTP/1.1 200 OK\r\n".utf8)
                        + Array(
                            String(
                                repeating: "X: \(String(repeating: "y", count: 500))\r\n",
                                count: 800
                            )
                            .utf8)), .close,
            ], status: 502, error: "http_response_header_section_size"),
        Failure(
            name: "silence", steps: [.stall], status: 504, error: "http_response_timeout"),
    ]

    @Test(arguments: failures, ["GET", "POST"])
    func `a failing origin gives an error with the registered name of the failure`(
        _ failure: Failure, _ method: String
    ) throws {
        let story = try MountedStory(["--first-byte-timeout", "1"])
        for _ in 0..<6 {
            switch failure.steps.count {
            case 1: story.origin.answer("/o/a", failure.steps[0])
            default: story.origin.answer("/o/a", failure.steps[0], failure.steps[1])
            }
        }
        let answer = try story.ask(method, "/a")
        #expect(answer.status == failure.status)
        #expect(answer["Proxy-Status"] == "sluice; error=\(failure.error)")
        #expect(answer.text.hasPrefix("origin error: ") && answer["Cache-Control"] == "no-store")
    }

    @Test(arguments: [
        ("http://127.0.0.1:1/", "connection_refused"), ("http://no-such.invalid/", "dns_error"),
    ])
    func `an unreachable origin gives an error`(_ place: String, _ error: String) throws {
        let folder = try TemporaryFolder()
        let daemon = try Story.serve(folder.file("cache"), ["--mount", "/gone/=\(place)"])
        for method in ["GET", "POST"] {
            let answer = try ScriptedPlayer(daemon.baseURL).get("/gone/a", method: method)
            #expect(answer.status == 502)
            #expect(answer["Proxy-Status"] == "sluice; error=\(error)")
        }
    }

    @Test
    func `a private address is reported as prohibited`() throws {
        let folder = try TemporaryFolder()
        let daemon = try DaemonProcess([
            "serve", "--port", "0", "--cache-dir", folder.file("cache"),
            "--mount", "/own/=http://127.0.0.1:1/",
        ])
        let answer = try ScriptedPlayer(daemon.baseURL).get("/own/a", method: "POST")
        #expect(answer.status == 403)
        #expect(answer["Proxy-Status"] == "sluice; error=destination_ip_prohibited")
    }

    private static let brief: [WireHead.Field] = [
        ("Cache-Control", "max-age=1, stale-while-revalidate=600"), ("ETag", "\"e1\""),
    ]

    @Test(arguments: [
        (404, ""), (410, "no-store"), (451, ""), (302, ""), (200, "no-store"), (200, ""),
    ])
    func `a full response that cannot be stored takes the stored one out of use`(
        _ status: Int, _ control: String
    ) throws {
        let story = try MountedStory()
        story.origin.answer("/o/a", .respond(200, Self.brief, Array("old".utf8)))
        #expect(try story.ask("GET", "/a").text == "old")
        let fields: [WireHead.Field] = control.isEmpty ? [] : [("Cache-Control", control)]
        let reload: [WireHead.Field] = [("Cache-Control", "no-cache")]
        story.origin.answer("/o/a", .respond(status, fields, Array("new".utf8)))
        let answer = try story.ask("GET", "/a", reload)
        #expect(answer.status == status && answer.text == "new")
        #expect(answer["Cache-Status"]?.hasPrefix("sluice; fwd=request; fwd-status=") == true)
        // Also where the origin cannot be asked.
        story.origin.answer("/o/a", .respond(200, fields, Array("next".utf8)))
        #expect(try story.ask("GET", "/a").text == "next")
        try story.origin.verify()
    }

    @Test(arguments: [429, 401, 503])
    func `a refusal of the moment leaves the stored response in use`(_ status: Int) throws {
        let story = try MountedStory()
        story.origin.answer("/o/a", .respond(200, Self.brief, Array("old".utf8)))
        #expect(try story.ask("GET", "/a").text == "old")
        story.origin.answer("/o/a", .respond(status))
        _ = try story.ask("GET", "/a", [("Cache-Control", "no-cache")])
        #expect(try story.ask("GET", "/a").text == "old")
    }

    @Test(arguments: ["max-age=1, stale-while-revalidate=600", "max-age=1"])
    func `clients share a new version while it is received`(_ control: String) throws {
        let story = try MountedStory()
        let fields: [WireHead.Field] = [
            ("Age", "30"), ("Cache-Control", control), ("ETag", "\"e1\""),
        ]
        story.origin.answer("/o/a", .respond(200, fields, Array("old".utf8)))
        #expect(try story.ask("GET", "/a").text == "old")
        let rest = Barrier("the rest")
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nCache-Control: max-age=60\r\n\r\n"
        story.origin.answer(
            "/o/a", .send(Array((head + "new").utf8)), .hold(until: rest),
            .send(Array("est".utf8)))
        func begin() throws -> PlayerStream {
            let stream = try story.player().open("/mt/a")
            _ = try stream.read(3)
            return stream
        }
        var streams = [try begin()]
        #expect(eventually { story.origin.requestCount("/o/a") == 2 })
        for _ in 0..<2 { streams.append(try begin()) }
        // What the daemon asks behind a stale response, it has asked before this.
        story.origin.answer("/o/b", .respond(200))
        #expect(try story.ask("GET", "/b").status == 200)
        #expect(story.origin.requestCount("/o/a") == 2)
        rest.arrive()
        for stream in streams { _ = try stream.readRest() }
        #expect(try eventually { try story.ask("GET", "/a").text == "newest" })
    }

    private static let stale: [WireHead.Field] = [
        ("Age", "30"), ("Cache-Control", "max-age=1"), ("ETag", "\"a\""),
    ]

    /// The beginning of a response with the body `newest`.
    private static func beginning(_ etag: String?) -> [UInt8] {
        let tag = etag.map { "ETag: \"\($0)\"\r\n" } ?? ""
        let lines = "Content-Length: 6\r\nCache-Control: max-age=60\r\n\(tag)"
        return Array("HTTP/1.1 200 OK\r\n\(lines)\r\nnew".utf8)
    }

    @Test(arguments: [nil, "b"])
    func `a new version that breaks off leaves the stored one in use`(_ etag: String?) throws {
        let story = try MountedStory()
        story.origin.answer("/o/a", .respond(200, Self.stale, Array("old".utf8)))
        #expect(try story.ask("GET", "/a").text == "old")
        story.origin.answer("/o/a", .send(Self.beginning(etag)), .stall)
        // With a validator, the rest is asked for again for seconds.
        let player = ScriptedPlayer(story.daemon.baseURL, deadline: .seconds(30))
        let stream = try player.open("/mt/a")
        #expect(try stream.read(3) == Array("new".utf8))
        story.origin.stop()
        #expect(try stream.readRest() == [])
        #expect(stream.broken != nil)
        for _ in 0..<2 {
            let answer = try story.ask("GET", "/a")
            #expect(answer.status == 200 && answer.complete && answer.text == "old")
            #expect(answer["ETag"] == "\"a\"")
        }
    }

    @Test func `a new version replaces the stored one with its last byte`() throws {
        let story = try MountedStory()
        story.origin.answer("/o/a", .respond(200, Self.stale, Array("old".utf8)))
        #expect(try story.ask("GET", "/a").text == "old")
        let rest = Barrier("the rest")
        story.origin.answer(
            "/o/a", .send(Self.beginning("b")), .hold(until: rest), .send(Array("est".utf8)))
        let stream = try story.player().open("/mt/a")
        #expect(try stream.read(3) == Array("new".utf8))
        // Those who ask meanwhile get the new version too, by the same response.
        let start = try story.ask("GET", "/a", [("Range", "bytes=0-1")])
        #expect(start.status == 206 && start.text == "ne")
        rest.arrive()
        #expect(try stream.readRest() == Array("est".utf8))
        #expect(try story.ask("GET", "/a").text == "newest")
        #expect(try story.ask("GET", "/a", [("Range", "bytes=4-5")]).text == "st")
        #expect(story.origin.requestCount("/o/a") == 2)
        try story.origin.verify()
    }

    @Test func `what is served after a 503 says that the origin was asked`() throws {
        let story = try MountedStory()
        let fields: [WireHead.Field] = [("Cache-Control", "max-age=1, stale-if-error=60")]
        story.origin.answer("/o/a", .respond(200, [("Age", "30")] + fields, Array("old".utf8)))
        #expect(try story.ask("GET", "/a").text == "old")
        story.origin.answer("/o/a", .respond(503))
        let answer = try story.ask("GET", "/a")
        let said = answer["Cache-Status"] ?? ""
        #expect(answer.text == "old")
        #expect(said.hasPrefix("sluice; fwd=stale; fwd-status=503; ttl=-"), "\(said)")
        #expect(said.hasSuffix("; detail=origin-unreachable") && !said.contains("ttl=-1;"))
    }

    @Test func `a fresh response that is served after a failed reload was requested by the client`()
        throws
    {
        let story = try MountedStory()
        story.origin.answer("/o/a", .respond(200, [("Cache-Control", "max-age=600")], [1]))
        #expect(try story.ask("GET", "/a").status == 200)
        story.origin.answer("/o/a", .respond(503))
        let answer = try story.ask("GET", "/a", [("Cache-Control", "no-cache")])
        let said = answer["Cache-Status"] ?? ""
        #expect(answer.body == [1] && said.hasPrefix("sluice; fwd=request; fwd-status=503; ttl="))
    }

    @Test func `after a 503 a stored part answers only for the bytes that it has`() throws {
        let story = try MountedStory()
        let fields: [WireHead.Field] = [
            ("Age", "30"), ("Cache-Control", "max-age=1"), ("ETag", "\"e1\""),
            ("Content-Range", "bytes 0-2/6"),
        ]
        story.origin.answer("/o/a", .respond(206, fields, Array("old".utf8)))
        #expect(try story.ask("GET", "/a", [("Range", "bytes=0-2")]).text == "old")
        let requests: [[WireHead.Field]] = [[], [("Range", "bytes=3-")], [("Range", "bytes=1-4")]]
        for request in requests {
            story.origin.answer("/o/a", .respond(503))
            let answer = try story.ask("GET", "/a", request)
            #expect(answer.status >= 500 && answer.complete, "\(request)")
        }
        story.origin.answer("/o/a", .respond(503))
        let part = try story.ask("GET", "/a", [("Range", "bytes=1-2")])
        #expect(part.status == 206 && part.text == "ld")
    }
}
