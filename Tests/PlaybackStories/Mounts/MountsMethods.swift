import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Requests that no cache may answer pass through a mount unchanged, once.
extension Stories {
    @Suite(.tags(.crowded)) struct MountsMethods {}
}

extension Stories.MountsMethods {
    @Test(arguments: ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "X_a!b"])
    func `any method reaches the origin with its body, and its response is returned`(
        _ method: String
    ) throws {
        let story = try MountedStory()
        story.origin.answer(
            "/o/a;b", .respond(299, [("X-Own", "1"), ("Set-Cookie", "a=b")], Array("yes".utf8)))
        let answer = try story.ask(
            method, "/a;b?c=%20", [("Content-Type", "x/y")], body: Array("body".utf8))
        #expect(answer.status == 299 && answer.text == "yes")
        #expect(answer["X-Own"] == "1" && answer["Set-Cookie"] == "a=b")
        #expect(answer["Cache-Status"]?.contains("fwd=method; fwd-status=299") == true)
        let request = try #require(story.origin.requests.first)
        #expect(request.method == method && request.target == "/o/a;b?c=%20")
        #expect(request["Content-Type"] == "x/y" && request["Via"] == "1.1 sluice")
        #expect(story.origin.bodies == [Array("body".utf8)])
    }

    @Test
    func `a method without a body is forwarded without one`() throws {
        let story = try MountedStory()
        story.origin.answer("/o/a", .respond(204))
        #expect(try story.ask("DELETE", "/a").status == 204)
        let request = try #require(story.origin.requests.first)
        #expect(request["Content-Length"] == nil && request["Transfer-Encoding"] == nil)
    }

    @Test(arguments: ["POST", "PUT", "DELETE", "OPTIONS", "PROPFIND", "GET"])
    func `the policy offline sends no method to the origin`(_ method: String) throws {
        let story = try MountedStory(["--policy", "offline"])
        let answer = try story.ask(method, "/a", body: [1])
        #expect(answer.status == 504 && answer.text.contains("policy offline"))
        #expect(story.origin.requestCount("/o/a") == 0)
    }

    // RFC 9110 section 8.6.
    @Test
    func `a 204 to HEAD has no Content-Length`() throws {
        let story = try MountedStory()
        story.origin.answer("/o/a", .respond(204, [("Content-Length", "0")]))
        let answer = try story.ask("HEAD", "/a")
        #expect(answer.status == 204 && answer["Content-Length"] == nil)
    }

    @Test
    func `connection fields are forwarded in neither direction`() throws {
        let story = try MountedStory()
        story.origin.answer(
            "/o/a",
            .respond(
                200,
                [
                    ("Connection", "x-hop, close"), ("X-Hop", "1"), ("Keep-Alive", "timeout=5"),
                    ("Trailer", "T"), ("Proxy-Authenticate", "x"), ("X-End", "1"),
                    ("Transfer-Encoding", "chunked"),
                ], Array("3\r\nabc\r\n0\r\nT: 1\r\n\r\n".utf8)))
        let answer = try story.ask(
            "POST", "/a",
            [
                ("Connection", "X-Secret, keep-alive"), ("X-Secret", "1"), ("TE", "trailers"),
                ("Trailer", "T"), ("Keep-Alive", "1"), ("Proxy-Authorization", "x"),
                ("Upgrade", "h2c"), ("Expect", "100-continue"), ("X-End", "1"),
            ], body: [1])
        #expect(answer.text == "abc" && answer["X-End"] == "1")
        for name in ["X-Hop", "Keep-Alive", "Trailer", "Proxy-Authenticate", "T"] {
            #expect(answer[name] == nil, "\(name)")
        }
        let request = try #require(story.origin.requests.first)
        #expect(request["X-End"] == "1")
        for name in [
            "X-Secret", "TE", "Trailer", "Keep-Alive", "Proxy-Authorization", "Upgrade",
        ] { #expect(request[name] == nil, "\(name)") }
        // Not of one connection (RFC 9110 section 10.1.1).
        #expect(request["Expect"] == "100-continue")
    }

    @Test
    func `a chunked body is forwarded whole, without its trailers`() throws {
        let story = try MountedStory()
        story.origin.answer("/o/a", .respond(200))
        let stream = try story.send(
            "PUT /mt/a HTTP/1.1\r\nHost: \(story.host)\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nX-Trailer: 1\r\n\r\n")
        #expect(try stream.readHead().status == 200)
        #expect(story.origin.bodies == [Array("abcde".utf8)])
        #expect(story.origin.requests.first?["X-Trailer"] == nil)
    }

    @Test
    func `a body of any size passes through the same memory`() throws {
        let story = try MountedStory()
        let piece = [UInt8](repeating: 0x61, count: 1 << 20)
        let before = story.daemon.anonymousBytes
        story.origin.answer("/o/a", .respond(200))
        let stream = try story.send(
            "PUT /mt/a HTTP/1.1\r\nHost: \(story.host)\r\nContent-Length: \(64 << 20)\r\n\r\n")
        for _ in 0..<64 { try stream.send(piece) }
        #expect(try stream.readHead().status == 200)
        #expect(story.origin.bodies.first?.count == 64 << 20)
        #expect(story.daemon.anonymousBytes - before < 8 << 20)
    }

    @Test
    func `a client gets 100 Continue only once the origin accepts the body`() throws {
        let story = try MountedStory()
        story.origin.answer("/o/a", .respond(200))
        let head = "Host: \(story.host)\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
        let taken = try story.send("PUT /mt/a HTTP/1.1\r\n" + head)
        #expect(try taken.readInterim().status == 100)
        try taken.send(Array("body".utf8))
        #expect(try taken.readHead().status == 200 && taken.interims.count == 1)
        let refused = try story.send("PUT /proxy HTTP/1.1\r\n" + head)
        #expect(try refused.readHead().status >= 400 && refused.interims.isEmpty)
        story.origin.stop()
        let failed = try story.send("PUT /mt/a HTTP/1.1\r\n" + head)
        #expect(try failed.readHead().status == 502 && failed.interims.isEmpty)
    }

    @Test
    func `the answer to a GET with a body is not shared`() throws {
        let story = try MountedStory()
        for word in ["one", "two"] {
            story.origin.answer(
                "/o/a", .respond(200, [("Cache-Control", "max-age=100")], Array(word.utf8)))
            #expect(try story.ask("GET", "/a", body: Array(word.utf8)).text == word)
        }
        #expect(story.origin.bodies == [Array("one".utf8), Array("two".utf8)])
    }

    @Test
    func `requests behind a body are answered on the same connection, in order`() throws {
        let story = try MountedStory()
        for path in ["/o/a", "/o/b", "/o/c"] {
            story.origin.answer(path, .respond(200, [], Array(path.utf8)))
        }
        let player = story.player()
        #expect(try player.get("/mt/a", method: "POST", body: [1, 2]).text == "/o/a")
        let second = try player.get("/mt/b", method: "PUT", body: [3])
        #expect(second.text == "/o/b" && second.reusedConnection)
        let third = try player.get("/mt/c")
        #expect(third.text == "/o/c" && third.reusedConnection)
    }

    @Test
    func `a successful unsafe request makes stored responses stale`() throws {
        let story = try MountedStory()
        let kept: [WireHead.Field] = [("Cache-Control", "max-age=100")]
        for word in ["one", "two"] {
            story.origin.answer("/o/a", .respond(200, kept, Array(word.utf8)))
            #expect(try story.ask("GET", "/a").text == word)
            #expect(try story.ask("GET", "/a").text == word)
            for status in [500, 404] where word == "two" {
                story.origin.answer("/o/a", .respond(status))
                #expect(try story.ask("DELETE", "/a").status == status)
                #expect(try story.ask("GET", "/a").text == word)
            }
            story.origin.answer("/o/a", .respond(200))
            #expect(try story.ask("POST", "/a", body: []).status == 200)
        }
        story.origin.answer("/o/b", .respond(200, kept, Array("b".utf8)))
        #expect(try story.ask("GET", "/b").text == "b")
        story.origin.answer("/o/a", .respond(201, [("Location", "b")]))
        #expect(try story.ask("POST", "/a", body: []).status == 201)
        story.origin.answer("/o/b", .respond(200, kept, Array("c".utf8)))
        #expect(try story.ask("GET", "/b").text == "c")
    }

    @Test
    func `the destination of a MOVE is named to the origin by its own URL`() throws {
        let story = try MountedStory()
        let kept: [WireHead.Field] = [("Cache-Control", "max-age=100")]
        story.origin.answer("/o/b", .respond(200, kept, Array("old".utf8)))
        #expect(try story.ask("GET", "/b").text == "old")
        story.origin.answer("/o/a", .respond(204))
        let there: [WireHead.Field] = [("Destination", "\(story.daemon.baseURL)/mt/b")]
        #expect(try story.ask("MOVE", "/a", there).status == 204)
        #expect(story.origin.requests.last?["Destination"] == story.origin.url("/o/b"))
        story.origin.answer("/o/b", .respond(200, kept, Array("new".utf8)))
        #expect(try story.ask("GET", "/b").text == "new")
        // By way of a proxy in front, which translates the field or not.
        for given in ["http://localhost/mt/b", story.origin.url("/o/b")] {
            story.origin.answer("/o/a", .respond(204))
            #expect(try story.ask("MOVE", "/a", [("Destination", given)]).status == 204)
            #expect(story.origin.requests.last?["Destination"] == story.origin.url("/o/b"))
        }
        let count = story.origin.requests.count
        let away: [WireHead.Field] = [("Destination", "http://elsewhere.test/b")]
        let refused = try story.ask("MOVE", "/a", away)
        #expect(refused.status == 502 && refused.text.contains("/mt/"))
        #expect(story.origin.requests.count == count)
    }
}

// MARK: What the daemon answers itself

extension Stories.MountsMethods {
    @Test
    func `the daemon answers preflights for its own CORS grants, the origin others`() throws {
        let story = try MountedStory()
        let site = "http://localhost:8000"
        func preflight(_ path: String, for method: String) throws -> PlayerResponse {
            try story.ask(
                "OPTIONS", path, [("Origin", site), ("Access-Control-Request-Method", method)])
        }
        for method in ["GET", "HEAD"] {
            let own = try preflight("/l.m3u8", for: method)
            #expect(own.status == 204 && own["Access-Control-Allow-Origin"] == "*")
        }
        #expect(story.origin.requests.isEmpty)
        for method in ["GET", "HEAD", "PUT"] {
            story.origin.answer("/o/a", .respond(403))
            let refused = try preflight("/a", for: method)
            #expect(refused.status == 403 && refused["Access-Control-Allow-Origin"] == nil)
            story.origin.answer(
                "/o/a", .respond(204, [("Access-Control-Allow-Origin", site)]))
            let granted = try preflight("/a", for: method)
            #expect(granted.status == 204 && granted["Access-Control-Allow-Origin"] == site)
        }
        try story.origin.verify()
    }

    // Browsers send no credentials with a preflight.
    @Test
    func `a preflight without the access token does not reach the origin`() throws {
        let story = try MountedStory(["--token", "secret-token"])
        for (method, status) in [("GET", 204), ("PUT", 401)] {
            let answer = try story.ask(
                "OPTIONS", "/a",
                [
                    ("Origin", "http://localhost:8000"),
                    ("Access-Control-Request-Method", method),
                ])
            #expect(answer.status == status)
        }
        #expect(story.origin.requests.isEmpty)
    }

    // Fetch standard, CORS-preflight fetch: the response must have an ok status.
    @Test
    func `under the policy offline preflights for reads are answered, and not remembered`() throws {
        let story = try MountedStory(["--policy", "offline"])
        func preflight(for method: String) throws -> PlayerResponse {
            try story.ask(
                "OPTIONS", "/a",
                [
                    ("Origin", "http://localhost:8000"),
                    ("Access-Control-Request-Method", method),
                    ("Access-Control-Request-Headers", "x-own"),
                ])
        }
        for method in ["GET", "HEAD"] {
            let answer = try preflight(for: method)
            #expect(answer.status == 204 && answer["Access-Control-Allow-Origin"] == "*")
            #expect(answer["Access-Control-Allow-Headers"] == "x-own")
            #expect(answer["Access-Control-Max-Age"] == "0")
        }
        #expect(try preflight(for: "PUT").status == 504)
        #expect(story.origin.requests.isEmpty)
    }

    @Test
    func `proxy hops are counted`() throws {
        let story = try MountedStory()
        #expect(try story.ask("OPTIONS", "/a", [("Max-Forwards", "0")]).status == 204)
        for method in ["TRACE", "CONNECT"] {
            #expect([400, 501].contains(try story.ask(method, "/a").status), "\(method)")
        }
        #expect(story.origin.requests.isEmpty)
        story.origin.answer("/o/a", .respond(200))
        #expect(try story.ask("OPTIONS", "/a", [("Max-Forwards", "7")]).status == 200)
        #expect(story.origin.requests.first?["Max-Forwards"] == "6")
    }

    @Test
    func `playback URLs accept only GET, HEAD and OPTIONS, and the connection stays open`()
        throws
    {
        let story = try Story()
        story.cdn.put("/a.ts", Array("bytes".utf8))
        let player = story.player()
        #expect(try player.get(story.url("/a.ts"), method: "POST", body: [1, 2]).status == 405)
        let next = try player.get(story.url("/a.ts"))
        #expect(next.text == "bytes" && next.reusedConnection)
    }
}
