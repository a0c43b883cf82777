// Clients that send or read slowly, by a clock that the tests move.
import Glibc
import HTTP
import HTTPServer
import Posix
import Reactor
import Testing

@Suite(.timeLimit(.minutes(5)))
struct TimeoutTests {
    private let clock = ManualClock()
    private let limits = distinctLimits()

    private func server(_ script: @escaping Script = echoPath) throws -> TestServer {
        try TestServer(limits: limits, clock: clock, script)
    }

    private func client(_ server: TestServer, receiveBuffer: CInt? = nil) -> TestClient {
        let before = server.server.connectionCount
        let client = server.client(receiveBuffer: receiveBuffer)
        #expect(eventually { server.server.connectionCount == before + 1 })
        return client
    }

    private func justBefore(_ interval: Interval) -> Interval {
        Interval(nanoseconds: interval.nanoseconds - 1)
    }

    @Test func `a head that arrives byte by byte gets 408 and ends the connection`() throws {
        let server = try server(), client = client(server)
        for byte in "GET / HTTP/1.1\r\nHost: \(String(repeating: "a", count: 20))".utf8 {
            client.write([byte])
            clock.advance(by: .milliseconds(300))
        }
        #expect(client.answer()?.status == 408)
        #expect(client.readToEnd() == [])
        clock.advance(by: limits.lingerTimeout)
        #expect(eventually { server.server.connectionCount == 0 })
    }

    @Test func `a head that is complete just in time is answered`() throws {
        let server = try server(), client = client(server)
        client.write("GET /a HTTP/1.1\r\nHost: a\r\n")
        clock.advance(by: justBefore(limits.headTimeout))
        client.write("\r\n")
        #expect(client.answer()?.text == "/a")
    }

    @Test func `a silent connection is closed without a response`() throws {
        let server = try server(), client = client(server)
        clock.advance(by: limits.headTimeout)
        #expect(client.readToEnd() == [])
        #expect(client.end == .clean)
    }

    @Test func `a body that does not arrive gets 408`() throws {
        let server = try server(), client = client(server)
        client.get("/", "Content-Length: 10\r\n", method: "POST")
        client.write("half ")
        clock.advance(by: limits.bodyTimeout)
        #expect(client.answer()?.status == 408)
    }

    @Test func `an idle connection stays open for its time after each response`() throws {
        let server = try server(), client = client(server)
        for path in ["/a", "/b", "/c", "/d"] {
            client.get(path)
            #expect(client.answer()?.text == path)
            clock.advance(by: justBefore(limits.idleTimeout))
        }
        #expect(server.server.connectionCount == 1)
        clock.advance(by: Interval(nanoseconds: 1))
        #expect(client.readToEnd() == [])
        #expect(client.end == .clean)
    }

    @Test func `an empty line after a body leaves the connection idle`() throws {
        let server = try server(), client = client(server)
        client.get("/a", "Content-Length: 3\r\n", method: "POST")
        client.write("abc\r\n")
        #expect(client.answer()?.text == "/a")
        clock.advance(by: limits.headTimeout)
        server.passDeadlines()
        client.get("/b")
        #expect(client.answer()?.text == "/b")
    }

    @Test func `a reader that takes nothing is disconnected, its source cancelled once`() throws {
        let record = Record()
        let server = try server { _, _, exchange in
            exchange.onCancel = { record.note("cancelled") }
            exchange.onFinish = { record.note($0) }
            exchange.respond(ok(), body: .source(EndlessSource(record), length: nil))
        }
        let client = client(server, receiveBuffer: 4096)
        client.get("/")
        #expect(
            eventually {
                clock.advance(by: limits.writeTimeout)
                return record.outcomes.count == 1
            })
        #expect(record.outcomes.first?.ending == .aborted)
        #expect(record.count("source cancelled") == 1)
        #expect(record.count("cancelled") == 1)
        #expect(eventually { server.server.connectionCount == 0 })
    }

    @Test func `a slow reader that continues is not disconnected`() throws {
        let sent = pattern(12_000_000)
        let server = try server { _, _, exchange in
            exchange.respond(ok(), body: .bytes(sent))
        }
        let client = client(server, receiveBuffer: 65536)
        client.get("/")
        #expect(client.readHead()?.status == 200)
        var body: [UInt8] = []
        for _ in 0..<4 {
            clock.advance(by: justBefore(limits.writeTimeout))
            // More than a third of the largest send buffer, so that the kernel reports room
            // (tcp(7): tcp_wmem).
            body += client.read(3_000_000)
        }
        // The test runner would take days to compute the difference of two such arrays.
        let isWhole = body == sent
        #expect(isWhole, "\(body.count) bytes")
    }

    @Test func `a reader too slow for the kernel to report room is not disconnected`() throws {
        let sent = pattern(12_000_000)
        let server = try server { _, _, exchange in
            exchange.respond(ok(), body: .bytes(sent))
        }
        let client = client(server, receiveBuffer: 65536)
        client.get("/")
        #expect(client.readHead()?.status == 200)
        var body: [UInt8] = []
        for _ in 0..<4 {
            // Less than a third of the send buffer in all.
            body += client.read(200_000)
            clock.advance(by: limits.writeTimeout)
            server.passDeadlines()
        }
        body += client.read(sent.count - body.count)
        let isWhole = body == sent
        #expect(isWhole, "\(body.count) bytes")
    }

    @Test func `a client that still reads its last response is not disconnected`() throws {
        let record = Record(), sent = pattern(120_000)
        let server = try server { _, _, exchange in
            exchange.onFinish = { record.note($0) }
            exchange.respond(ok(("Connection", "close")), body: .bytes(sent))
        }
        let client = client(server, receiveBuffer: 16384)
        client.get("/")
        #expect(eventually { record.outcomes.count == 1 })
        clock.advance(by: limits.lingerTimeout)
        // After the server's close, this would make the kernel discard the rest of the response.
        client.get("/more")
        let isWhole = client.answer()?.body == sent
        #expect(isWhole && client.readToEnd() == [] && client.end == .clean)
        client.close()
        #expect(eventually { server.server.connectionCount == 0 })
    }

    @Test func `a source that waits longer than any timeout is not cancelled`() throws {
        let record = Record()
        let server = try server { _, _, exchange in
            let source = PieceSource(
                [[7]], pause: .seconds(1000 as Int64), on: exchange.loop, record: record)
            exchange.respond(ok(), body: .source(source, length: 1))
        }
        let client = client(server)
        client.get("/")
        #expect(eventually { record.count("wake set") == 1 })
        clock.advance(by: .seconds(999 as Int64))
        #expect(server.server.connectionCount == 1)
        clock.advance(by: .seconds(1 as Int64))
        #expect(client.answer()?.body == [7])
    }
}
