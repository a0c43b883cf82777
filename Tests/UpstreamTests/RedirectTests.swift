import HTTP
import Synchronization
import Testing
import URISyntax
import Upstream

/// Redirects are followed hop by hop, with credentials kept to their origin and every hop under the
/// address policy.
@Suite struct RedirectTests {
    /// Redirects `/start` to `location` and answers everything else.
    private func origin(_ location: String, status: Int = 302) throws -> TestOrigin {
        try TestOrigin {
            if $0.target == "/start" {
                $0.respond(
                    status, ["Location: \(location)", "Set-Cookie: hop=1"], body: [1, 2, 3])
            } else {
                $0.respond(200, ["Set-Cookie: end=2"], body: Array($0.method.utf8))
            }
            return .keep
        }
    }

    @Test func `a redirect is followed and the final URL reported`() throws {
        let origin = try origin("dir/next%2F?a=[1]")
        let harness = try Harness()
        let record = try harness.fetch(origin.url("/start"))
        #expect(record.heads.count == 1 && record.text == "GET")
        #expect(record.heads.first?.finalURL.text == origin.url("/dir/next%2F?a=[1]"))
        #expect(record.redirects.map(\.hasLeftOrigin) == [false])
        #expect(record.heads.first?.setCookies.map(\.value) == ["hop=1", "end=2"])
        #expect(record.heads.first?.setCookies.first?.url.path == "/start")
        #expect(origin.requests.last?.first == "GET /dir/next%2F?a=[1] HTTP/1.1")
        #expect(origin.connections == 1)
        harness.stop()
        origin.stop()
    }

    @Test func `a redirect is a response if it is not to be followed`() throws {
        let origin = try origin("/next")
        let harness = try Harness()
        let record = try harness.fetch(origin.url("/start")) { $0.followsRedirects = false }
        #expect(record.status == 302 && record.heads.first?.fields.first(.location) == "/next")
        #expect(record.body == [1, 2, 3])
        harness.stop()
        origin.stop()
    }

    @Test func `credentials are not sent to another origin`() throws {
        let other = try TestOrigin {
            $0.respond(); return .keep
        }
        let origin = try origin(other.url("/there"))
        let harness = try Harness()
        let fields: Fields = [
            "Authorization": "Bearer s", "Cookie": "a=b", "Referer": "https://r/",
        ]
        _ = try harness.fetch(origin.url("/start")) { $0.fields = fields }
        let lines = try #require(other.requests.first)
        #expect(!lines.contains { $0.hasPrefix("Authorization:") || $0.hasPrefix("Cookie:") })
        #expect(lines.contains("Referer: https://r/"))
        #expect(origin.requests.first?.contains("Authorization: Bearer s") == true)
        harness.stop()
        origin.stop()
        other.stop()
    }

    @Test func `fields for the origin replace the given ones at its hops, and leave it never`()
        throws
    {
        let other = try TestOrigin {
            $0.respond(); return .keep
        }
        let origin = try TestOrigin {
            let next = $0.target == "/start" ? "/next" : other.url("/there")
            $0.respond(302, ["Location: \(next)"])
            return .keep
        }
        let harness = try Harness()
        let given: Fields = ["User-Agent": "player", "Authorization": "Bearer p"]
        let own: Fields = [
            "user-agent": "edge", "X-Api-Key": "s3cret", "Authorization": "Bearer o",
        ]
        _ = try harness.fetch(origin.url("/start")) {
            $0.fields = given
            $0.originFields = own
        }
        #expect(origin.requests.count == 2 && other.requests.count == 1)
        for lines in origin.requests {
            for (name, value) in own { #expect(lines.contains("\(name): \(value)")) }
            for (name, value) in given { #expect(!lines.contains("\(name): \(value)")) }
        }
        let lines = try #require(other.requests.first)
        #expect(lines.filter { $0.lowercased().hasPrefix("user-agent:") } == ["user-agent: player"])
        for name in ["X-Api-Key", "Authorization"] {
            #expect(!lines.contains { $0.hasPrefix("\(name):") }, "\(lines)")
        }
        harness.stop()
        origin.stop()
        other.stop()
    }

    @Test func `no value of a field for the origin, and no type of dropped content, leaves it`()
        throws
    {
        let other = try TestOrigin {
            $0.respond(); return .keep
        }
        let origin = try origin(other.url("/there"))
        let harness = try Harness()
        _ = try harness.fetch(origin.url("/start")) {
            $0.method = .post
            $0.body = [9]
            $0.fields = ["X-Key": "given", "Content-Type": "text/given"]
            $0.originFields = ["X-Key": "one", "x-key": "two", "Content-Type": "text/own"]
        }
        let first = try #require(origin.requests.first)
        #expect(first.contains("X-Key: one") && first.contains("x-key: two"))
        #expect(first.contains("Content-Type: text/own") && !first.contains("X-Key: given"))
        let lines = try #require(other.requests.first)
        #expect(lines.first == "GET /there HTTP/1.1")
        #expect(lines.filter { $0.lowercased().hasPrefix("x-key:") } == ["X-Key: given"])
        #expect(!lines.contains { $0.lowercased().hasPrefix("content-type:") })
        harness.stop()
        origin.stop()
        other.stop()
    }

    @Test func `a chain that has left its origin says so at every later redirect`() throws {
        let other = try TestOrigin {
            if $0.target == "/one" {
                $0.respond(302, ["Location: /two"])
            } else {
                $0.respond()
            }
            return .keep
        }
        let origin = try origin(other.url("/one"))
        let harness = try Harness()
        let record = try harness.fetch(origin.url("/start")) { $0.fields = ["Cookie": "a=b"] }
        #expect(record.redirects.map(\.isCrossOrigin) == [true, false])
        #expect(record.redirects.map(\.hasLeftOrigin) == [true, true])
        #expect(other.requests.count == 2)
        harness.stop()
        origin.stop()
        other.stop()
    }

    @Test func `credentials are sent within the same origin`() throws {
        let origin = try origin("/next")
        let harness = try Harness()
        let fields: Fields = ["Authorization": "Bearer s", "Cookie": "a=b"]
        _ = try harness.fetch(origin.url("/start")) { $0.fields = fields }
        #expect(origin.requests.last?.contains("Authorization: Bearer s") == true)
        #expect(origin.requests.last?.contains("Cookie: a=b") == true)
        harness.stop()
        origin.stop()
    }

    private func authorization(_ userinfo: String) -> String {
        "Authorization: Basic " + Base64.encode(Array(userinfo.utf8))
    }

    @Test func `user information is sent at every hop within its origin, and not to another`()
        throws
    {
        let other = try TestOrigin {
            $0.respond(); return .keep
        }
        let origin = try TestOrigin {
            let next = $0.target == "/start" ? "/next" : other.url("/there")
            $0.respond(302, ["Location: \(next)"])
            return .keep
        }
        let harness = try Harness()
        let url = origin.url("/start").replacing("http://", with: "http://ann:p%40w@")
        let record = try harness.fetch(url)
        let expected = authorization("ann:p@w")
        #expect(origin.requests.map { $0.contains(expected) } == [true, true])
        #expect(other.requests.count == 1)
        #expect(!other.requests.joined().contains { $0.hasPrefix("Authorization:") })
        #expect(record.redirects.map(\.from.text) == [origin.url("/start"), origin.url("/next")])
        harness.stop()
        origin.stop()
        other.stop()
    }

    @Test func `user information of a redirect's target replaces that of the URL, no given field`()
        throws
    {
        let origin = try TestOrigin { exchange in
            switch exchange.target {
            case "/start":
                let host = exchange.field("Host") ?? ""
                exchange.respond(302, ["Location: http://bob:word@\(host)/next"])
            case "/next": exchange.respond(302, ["Location: /end"])
            default: exchange.respond()
            }
            return .keep
        }
        let harness = try Harness()
        let url = origin.url("/start").replacing("http://", with: "http://ann:pw@")
        _ = try harness.fetch(url)
        _ = try harness.fetch(url) { $0.fields = ["Authorization": "Bearer s"] }
        let sent = origin.requests.map { $0.filter { $0.hasPrefix("Authorization:") } }
        let (ann, bob) = (authorization("ann:pw"), authorization("bob:word"))
        let given = "Authorization: Bearer s"
        #expect(sent == [[ann], [bob], [bob], [given], [given], [given]])
        harness.stop()
        origin.stop()
    }

    @Test func `user information of a redirect to another origin is sent there`() throws {
        let other = try TestOrigin {
            $0.respond(); return .keep
        }
        let target = other.url("/there").replacing("http://", with: "http://bob:word@")
        let origin = try origin(target)
        let harness = try Harness()
        let url = origin.url("/start").replacing("http://", with: "http://ann:pw@")
        let record = try harness.fetch(url)
        #expect(other.requests.first?.contains(authorization("bob:word")) == true)
        #expect(other.requests.joined().count { $0.hasPrefix("Authorization:") } == 1)
        #expect(record.heads.first?.finalURL.text == other.url("/there"))
        harness.stop()
        origin.stop()
        other.stop()
    }

    @Test func `the delegate can set cookies for the next hop`() throws {
        let origin = try origin("/next")
        let harness = try Harness()
        let script = Script(onRedirect: { $0.setCookies.first?.value })
        _ = try harness.fetch(origin.url("/start"), script: script)
        #expect(origin.requests.last?.contains("Cookie: hop=1") == true)
        harness.stop()
        origin.stop()
    }

    @Test(arguments: [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")])
    func `a redirected POST keeps or changes its method by the status`(
        status: Int, method: String
    ) throws {
        let origin = try origin("/next", status: status)
        let harness = try Harness()
        let record = try harness.fetch(origin.url("/start")) {
            $0.method = .post
            $0.body = [9]
        }
        #expect(record.text == method)
        harness.stop()
        origin.stop()
    }

    @Test func `a redirect loop fails at the limit`() throws {
        let origin = try TestOrigin {
            $0.respond(302, ["Location: /again"]); return .keep
        }
        let harness = try Harness()
        let record = try harness.fetch(origin.url("/"))
        #expect(record.failure?.kind == .tooManyRedirects)
        #expect(origin.requests.count == 11)
        harness.stop()
        origin.stop()
    }

    @Test(arguments: ["file:///etc/passwd", "ftp://x/y", "gopher://x/", "data:text/plain,x"])
    func `a redirect to another scheme is rejected`(location: String) throws {
        let origin = try origin(location)
        let harness = try Harness()
        let record = try harness.fetch(origin.url("/start"))
        #expect(record.failure?.kind == .forbiddenScheme)
        harness.stop()
        origin.stop()
    }

    @Test func `a redirect with a huge body is followed without reading all of it`() throws {
        let origin = try TestOrigin {
            if $0.target == "/big" {
                $0.respond(302, ["Location: /small"], body: Array(repeating: 1, count: 4_000_000))
            } else {
                $0.respond(200, body: [5])
            }
            return .keep
        }
        let harness = try Harness()
        let record = try harness.fetch(origin.url("/big"))
        #expect(record.body == [5])
        harness.stop()
        origin.stop()
    }

    @Test(arguments: ["HTTP/1.0", "HTTP/1.1"])
    func `a redirect whose body ends with the connection is followed while that is open`(
        version: String
    ) throws {
        let origin = try TestOrigin { exchange in
            guard exchange.target == "/start" else {
                exchange.respond(body: [5])
                return .keep
            }
            exchange.send("\(version) 302 X\r\nLocation: /there\r\n\r\nmoved")
            // Longer than the fetch below is waited for.
            exchange.holdOpen(seconds: 30)
            return .close
        }
        let harness = try Harness()
        let record = try harness.fetch(origin.url("/start"))
        #expect(record.body == [5] && record.failure == nil)
        #expect(origin.connections == 2)
        harness.stop()
        origin.stop()
    }

    @Test func `a redirect whose body trickles is followed before its end`() throws {
        let hasArrived = Atomic(false)
        let wasFollowed = Atomic(false)
        let origin = try TestOrigin { exchange in
            guard exchange.target == "/start" else {
                hasArrived.store(true, ordering: .releasing)
                exchange.respond(body: [5])
                return .keep
            }
            // No byte is late, and all of them are fewer than are read for the connection.
            exchange.send("HTTP/1.1 302 X\r\nLocation: /there\r\nContent-Length: 60000\r\n\r\n")
            let isFollowed = comesTrue {
                exchange.send([1])
                return hasArrived.load(ordering: .acquiring)
            }
            wasFollowed.store(isFollowed, ordering: .releasing)
            return .close
        }
        let harness = try Harness()
        #expect(try harness.fetch(origin.url("/start")).body == [5])
        harness.stop()
        origin.stop()
        let isFollowed = wasFollowed.load(ordering: .acquiring)
        #expect(isFollowed)
    }

    @Test func `a redirect to a private address is rejected before a connection`() throws {
        let inner = try TestOrigin {
            $0.respond(); return .keep
        }
        let origin = try origin(inner.url("/", host: "localhost"))
        let harness = try Harness {
            $0.addressPolicy = AddressPolicy(allowedHosts: ["127.0.0.1"])
        }
        let record = try harness.fetch(origin.url("/start"))
        guard case .addressRefused = record.failure?.kind else {
            Issue.record("\(String(describing: record.failure))")
            return
        }
        #expect(inner.connections == 0 && record.failure?.isRetryable == false)
        harness.stop()
        origin.stop()
        inner.stop()
    }
}
