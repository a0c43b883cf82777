/// Request bodies: collected whole, bounded, asked for.
import Glibc
import HTTP
import HTTPServer
import Testing

@Suite(.timeLimit(.minutes(1)))
struct RequestBodyTests {
    private func echoServer(bodyBytes: Int = 1 << 20) throws -> TestServer {
        var limits = ServerLimits()
        limits.bodyBytes = bodyBytes
        return try TestServer(limits: limits) { _, body, exchange in
            exchange.respond(ok(), body: .bytes(body))
        }
    }

    @Test(arguments: [0, 1, 1000, 900_000])
    func `a body with a length reaches the handler whole`(count: Int) throws {
        let server = try echoServer()
        let client = server.client()
        for _ in 0..<2 {
            client.get("/", "Content-Length: \(count)\r\n", method: "POST")
            client.write(pattern(count))
            #expect(client.answer()?.body == pattern(count))
        }
    }

    @Test func `a chunked body reaches the handler decoded`() throws {
        let server = try echoServer()
        let client = server.client()
        client.get("/", "Transfer-Encoding: chunked\r\n", method: "POST")
        for piece in ["5;x=y\r\nhel", "lo\r\n3\r", "\nyou\r\n0\r\nA: b\r\n", "\r\nGET / HT"] {
            client.write(piece)
            usleep(5000)
        }
        client.write("TP/1.1\r\nHost: test\r\n\r\n")
        #expect(client.answer()?.text == "helloyou")
        #expect(client.answer()?.text == "")
    }

    @Test func `a client that expects 100 gets it before it sends the body`() throws {
        let server = try echoServer()
        let client = server.client()
        client.get("/", "Content-Length: 4\r\nExpect: 100-continue\r\n", method: "PUT")
        #expect(client.answer()?.status == 100)
        client.write("body")
        #expect(client.answer()?.text == "body")
    }

    @Test func `a client that expects 100 and sends the body at once gets none`() throws {
        let server = try echoServer()
        let client = server.client()
        client.write(
            "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\nbody")
        let answer = client.answer()
        #expect(answer?.status == 200)
        #expect(answer?.text == "body")
    }

    @Test func `a body that is told too long is refused before it is sent`() throws {
        let server = try echoServer(bodyBytes: 10)
        let client = server.client()
        client.get("/", "Content-Length: 11\r\nExpect: 100-continue\r\n", method: "PUT")
        let answer = client.answer()
        #expect(answer?.status == 413)
        #expect(answer?.field("Connection") == "close")
        #expect(answer?.text.hasPrefix("client error: ") == true)
    }

    @Test func `a chunked body that grows too long is refused readably`() throws {
        let server = try echoServer(bodyBytes: 1000)
        let client = server.client()
        client.get("/", "Transfer-Encoding: chunked\r\n", method: "PUT")
        for _ in 0..<100 {
            client.write("400\r\n")
            client.write([UInt8](repeating: 0x41, count: 1024))
            client.write("\r\n")
        }
        #expect(client.answer()?.status == 413)
    }

    @Test func `an interim response precedes the answer, but not for HTTP 1.0`() throws {
        let server = try TestServer { _, _, exchange in
            var hints = ResponseHead(status: .earlyHints)
            hints.fields.append("Link", "</a>")
            exchange.sendInterim(hints)
            exchange.respond(ok(), body: .none)
        }
        let client = server.client()
        client.get("/")
        let interim = client.answer()
        #expect(interim?.status == 103)
        #expect(interim?.field("Link") == "</a>")
        #expect(client.answer()?.status == 200)
        client.write("GET / HTTP/1.0\r\n\r\n")
        #expect(client.answer()?.status == 200)
    }
}
