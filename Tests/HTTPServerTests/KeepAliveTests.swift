// Persistent connections, and those that are closed after a response.
import HTTP
import HTTPServer
import Posix
import Reactor
import Testing

@Suite(.timeLimit(.minutes(5)))
struct KeepAliveTests {
    @Test func `a thousand requests are answered on one connection`() throws {
        let server = try TestServer(echoPath)
        let client = server.client()
        for index in 0..<1000 {
            client.get("/segment\(index).ts")
            #expect(client.answer()?.text == "/segment\(index).ts")
        }
        #expect(server.server.connectionCount == 1)
    }

    @Test func `pipelined requests are answered in order`() throws {
        let server = try TestServer(echoPath)
        let client = server.client()
        let requests = (0..<500).map { "GET /\($0) HTTP/1.1\r\nHost: test\r\n\r\n" }
        client.write(requests.joined())
        for index in 0..<500 {
            #expect(client.answer()?.text == "/\(index)")
        }
    }

    @Test func `a pipelined request waits for a deferred response`() throws {
        let server = try TestServer { request, _, exchange in
            guard request.path == "/slow" else { return echoPath(request, [], exchange) }
            exchange.loop.schedule(after: .milliseconds(50)) { _ in
                exchange.respond(ok(), body: .bytes(Array("slow".utf8)))
            }
        }
        let client = server.client()
        client.get("/slow")
        client.get("/fast")
        #expect(client.answer()?.text == "slow")
        #expect(client.answer()?.text == "/fast")
    }

    @Test func `requests that arrive during a response are answered after it`() throws {
        let server = try TestServer { request, _, exchange in
            guard request.path == "/grow" else { return echoPath(request, [], exchange) }
            let source = PieceSource(
                [[1], [2], [3]], pause: .milliseconds(30), on: exchange.loop)
            exchange.respond(ok(), body: .source(source, length: nil))
        }
        let client = server.client()
        client.get("/grow")
        #expect(client.readHead()?.status == 200)
        client.get("/after")
        #expect(client.readChunks() == [1, 2, 3])
        #expect(client.answer()?.text == "/after")
    }

    @Test(arguments: [
        ("HTTP/1.1", "", nil as String?, true),
        ("HTTP/1.1", "Connection: close\r\n", "close", false),
        ("HTTP/1.1", "Connection: keep-alive, Close\r\n", "close", false),
        ("HTTP/1.0", "", "close", false),
        ("HTTP/1.0", "Connection: keep-alive\r\n", "keep-alive", true),
    ])
    func `version and Connection decide whether the connection stays open`(
        version: String, field: String, answered: String?, lasts: Bool
    ) throws {
        let server = try TestServer(echoPath)
        let client = server.client()
        client.write("GET /a \(version)\r\nHost: test\r\n\(field)\r\n")
        let answer = client.answer()
        #expect(answer?.text == "/a")
        #expect(answer?.field("Connection") == answered)
        if lasts {
            client.get("/b")
            #expect(client.answer()?.text == "/b")
        } else {
            #expect(client.readToEnd() == [])
            #expect(client.end == .clean)
        }
    }

    @Test func `a handler may close the connection`() throws {
        let server = try TestServer { _, _, exchange in
            exchange.respond(ok(("Connection", "close")), body: .none)
        }
        let client = server.client()
        client.get("/")
        #expect(client.answer()?.field("Connection") == "close")
        #expect(client.readToEnd() == [])
        #expect(client.end == .clean)
    }

    @Test func `connections are distributed over the loops and all are served`() throws {
        let server = try TestServer(loops: 3, echoPath)
        let clients = (0..<60).map { _ in server.client() }
        for (index, client) in clients.enumerated() { client.get("/\(index)") }
        for (index, client) in clients.enumerated() {
            #expect(client.answer()?.text == "/\(index)")
        }
        #expect(server.server.connectionCount == 60)
        #expect(server.server.loopHandles.count == 3)
    }
}
