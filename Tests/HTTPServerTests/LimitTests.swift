// Limits of the server, and how the client learns of them.
import Glibc
import HTTP
import HTTPServer
import Posix
import Reactor
import Testing

@Suite(.timeLimit(.minutes(5)))
struct LimitTests {
    @Test(arguments: [
        ("GET /\(String(repeating: "a", count: 20_000)) HTTP/1.1\r\nHost: a\r\n\r\n", 414),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "a", count: 70_000))\r\n\r\n", 431),
        ("GET / HTTP/1.1\r\n\(String(repeating: "X: y\r\n", count: 200))\r\n", 431),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        ("nonsense\r\n\r\n", 400),
    ])
    func `an invalid request is answered, then the connection ends`(
        request: String, status: Int
    ) throws {
        let record = Record()
        let server = try TestServer { _, _, exchange in
            record.note("handled")
            exchange.respond(ok(), body: .none)
        }
        let client = server.client()
        client.write(request + "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n")
        let answer = client.answer()
        #expect(answer?.status == status)
        #expect(answer?.text.hasPrefix("client error: ") == true)
        #expect(answer?.field("Content-Type") == "text/plain; charset=utf-8")
        #expect(answer?.field("Connection") == "close")
        #expect(client.readToEnd() == [])
        #expect(client.end == .clean)
        #expect(record.count("handled") == 0)
    }

    @Test func `connections over the limit get 503 and are closed while all are in use`() throws {
        let record = Record()
        var limits = ServerLimits()
        limits.connections = 2
        let server = try TestServer(limits: limits, Self.holding(record))
        var clients = [server.client(), server.client()]
        for client in clients { client.get("/held") }
        #expect(eventually { record.count("held") == 2 })
        let third = server.client()
        #expect(third.answer()?.status == 503)
        #expect(third.readToEnd() == [])
        clients.removeLast()
        #expect(eventually { server.server.connectionCount == 1 })
        let fourth = server.client()
        fourth.get("/in")
        #expect(fourth.answer()?.status == 200)
    }

    // MARK: Idle connections

    /// Holds the response to `/held`, and answers other requests with their path.
    private static func holding(_ record: Record) -> Script {
        { request, _, exchange in
            guard request.path == "/held" else { return echoPath(request, [], exchange) }
            exchange.respond(ok(), body: .source(StalledSource(record), length: nil))
            record.note("held")
        }
    }

    /// Requests a path and reads the response, so that the connection is idle.
    private func use(_ client: TestClient) {
        client.get("/in")
        #expect(client.answer()?.status == 200)
        client.acknowledge()
    }

    @Test func `the connection that is idle longest gives way to a new one`() throws {
        let record = Record()
        var limits = ServerLimits()
        limits.connections = 3
        let server = try TestServer(limits: limits, Self.holding(record))
        let busy = server.client(), clients = [server.client(), server.client()]
        busy.get("/held")
        #expect(eventually { record.count("held") == 1 })
        for client in clients { use(client) }
        // The other one has been idle for longer then.
        use(clients[0])
        let next = server.client()
        next.get("/next")
        #expect(next.answer()?.text == "/next")
        #expect(clients[1].readToEnd() == [] && clients[1].end == .clean)
        clients[0].get("/more")
        #expect(clients[0].answer()?.text == "/more")
        #expect(record.count("source cancelled") == 0)
        #expect(server.server.connectionCount == 3)
        #expect(server.record.all == ["crowd began"])
        for client in [busy, next] + clients { client.close() }
    }

    @Test func `an HTTP/2 connection without streams gives way after GOAWAY`() throws {
        var limits = ServerLimits()
        limits.connections = 1
        let server = try TestServer(limits: limits, echoPath)
        let client = server.frameClient()
        #expect(client.open())
        client.get(1, "/in")
        #expect(client.response(1).text == "/in")
        client.transport.acknowledge()
        let next = server.client()
        next.get("/next")
        #expect(next.answer()?.text == "/next")
        #expect(client.readToEnd() && client.goAway?.code == .noError)
        #expect(server.server.connectionCount == 1)
        next.close()
    }

    @Test func `an idle connection gives way to a stream`() throws {
        let record = Record()
        var limits = ServerLimits()
        limits.connections = 2
        let server = try TestServer(limits: limits, Self.holding(record))
        let idle = server.client()
        use(idle)
        let client = server.frameClient()
        #expect(client.open())
        client.get(1, "/held")
        client.get(3, "/held")
        #expect(eventually { record.count("held") == 2 })
        #expect(idle.readToEnd() == [])
        client.get(5, "/more")
        #expect(client.response(5).status == 503)
        #expect(server.server.connectionCount == 1)
        client.transport.close()
    }

    @Test func `a connection before its first request gives way after a second`() throws {
        let clock = ManualClock()
        var limits = distinctLimits()
        limits.connections = 1
        let server = try TestServer(limits: limits, clock: clock, echoPath)
        let silent = server.client()
        #expect(eventually { server.server.connectionCount == 1 })
        #expect(server.client().answer()?.status == 503)
        clock.advance(by: .seconds(1 as Int64))
        let next = server.client()
        next.get("/next")
        #expect(next.answer()?.text == "/next")
        #expect(silent.readToEnd() == [])
        // The first look after a minute finds that something has happened.
        for _ in 0..<2 {
            #expect(server.record.all == ["crowd began"])
            clock.advance(by: .seconds(60 as Int64))
        }
        #expect(server.record.all == ["crowd began", "crowd ended: 1 closed, 1 refused"])
    }

    @Test func `a request that has arrived is answered before its connection gives way`() throws {
        var limits = ServerLimits()
        limits.connections = 1
        let server = try TestServer(limits: limits, echoPath)
        let first = server.client(), record = Record()
        use(first)
        server.server.loopHandles[0].enqueue { _ in
            _ = eventually { record.count("both have arrived") == 1 }
        }
        first.get("/more")
        let next = server.client()
        record.note("both have arrived")
        #expect(first.answer()?.text == "/more")
        next.close()
    }

    @Test func `streams over the limit get 503 and leave no place for connections`() throws {
        let record = Record()
        var limits = ServerLimits()
        limits.connections = 4
        let server = try TestServer(limits: limits) { request, _, exchange in
            guard request.path == "/held" else { return echoPath(request, [], exchange) }
            exchange.respond(ok(), body: .source(StalledSource(record), length: nil))
            record.note("held")
        }
        let client = server.frameClient()
        #expect(client.open())
        for stream: UInt32 in [1, 3, 5, 7] { client.get(stream, "/held") }
        #expect(eventually { record.count("held") == 4 })
        client.get(9, "/more")
        let refused = client.response(9)
        #expect(refused.status == 503 && refused.field("retry-after") == "1")
        #expect(server.server.connectionCount == 1)
        let other = server.client()
        #expect(other.answer()?.status == 503)
        client.write(.reset(7))
        #expect(eventually { record.count("source cancelled") == 1 })
        client.get(11, "/more")
        #expect(client.response(11).text == "/more")
        client.transport.close()
        #expect(eventually { server.server.connectionCount == 0 })
        for _ in 0..<limits.connections {
            let next = server.client()
            next.get("/in")
            #expect(next.answer()?.status == 200)
        }
    }

    @Test func `limits are clamped to their ranges`() {
        var limits = ServerLimits()
        limits.headTimeout = .zero
        limits.connections = -1
        limits.bodyBytes = .max
        let clamped = limits.clamped()
        #expect(clamped.headTimeout == .milliseconds(50))
        #expect(clamped.connections == 1)
        #expect(clamped.bodyBytes == 1 << 40)
        #expect(ServerLimits().clamped() == ServerLimits())
    }

    @Test(arguments: [true, false])
    func `a port of another server is an error, shared or not`(shared: Bool) throws {
        let loopback = SocketAddress(bytes: [127, 0, 0, 1], port: 0)
        let other = try listen(on: loopback, sharingPort: shared)
        let taken = try localAddress(of: other.number)
        let error = #expect(throws: SystemError.self) {
            _ = try HTTPServer(addresses: [taken], loops: 2, limits: ServerLimits()) { _ in
                ScriptedHandler(echoPath)
            }
        }
        #expect(error?.code == EADDRINUSE)
        #expect(error?.subject == taken.description)
    }

    @Test func `two servers of one process cannot share a port either`() throws {
        let first = try TestServer(loops: 2, echoPath)
        let taken = first.server.boundAddresses
        #expect(throws: SystemError.self) {
            _ = try HTTPServer(addresses: taken, loops: 2, limits: ServerLimits()) { _ in
                ScriptedHandler(echoPath)
            }
        }
    }

    @Test func `a server listens on several addresses, each with its port`() throws {
        let any = SocketAddress(bytes: [127, 0, 0, 1], port: 0)
        let server = try HTTPServer(addresses: [any, any], loops: 2, limits: ServerLimits()) { _ in
            ScriptedHandler(echoPath)
        }
        defer { server.stop() }
        #expect(Set(server.boundAddresses.map(\.port)).count == 2)
        for address in server.boundAddresses {
            let client = TestClient(port: address.port)
            client.get("/here")
            #expect(client.answer()?.text == "/here")
        }
    }

    @Test func `a port is free again once its server has stopped`() throws {
        let first = try TestServer(loops: 2, echoPath)
        let client = first.client()
        client.get("/a")
        #expect(client.answer()?.status == 200)
        first.server.stop()
        let second = try HTTPServer(
            addresses: first.server.boundAddresses, loops: 2, limits: ServerLimits()
        ) { _ in ScriptedHandler(echoPath) }
        second.stop()
    }
}
