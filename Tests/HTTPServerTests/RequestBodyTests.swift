// Request bodies: pulled, limited, expected, or unread.
import Glibc
import HTTP
import HTTPServer
import Posix
import Reactor
import Testing

@Suite(.timeLimit(.minutes(5)))
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
            let isWhole = client.answer()?.body == pattern(count)
            #expect(isWhole)
        }
    }

    @Test func `a chunked body reaches the handler decoded`() throws {
        let server = try echoServer()
        let client = server.client()
        client.get("/", "Transfer-Encoding: chunked\r\n", method: "POST")
        for piece in ["5;x=y\r\nhel", "lo\r\n3\r", "\nyou\r\n0\r\nA: b\r\n", "\r\nGET / HT"] {
            client.write(piece)
            // The loop reads it before the next one comes.
            server.passDeadlines()
        }
        client.write("TP/1.1\r\nHost: test\r\n\r\n")
        #expect(client.answer()?.text == "helloyou")
        #expect(client.answer()?.text == "")
    }

    @Test func `a client that expects 100 gets it before sending the body`() throws {
        let server = try echoServer()
        let client = server.client()
        client.get("/", "Content-Length: 4\r\nExpect: 100-continue\r\n", method: "PUT")
        #expect(client.answer()?.status == 100)
        client.write("body")
        #expect(client.answer()?.text == "body")
    }

    @Test func `a client that expects 100 and sends the body immediately gets none`() throws {
        let server = try echoServer()
        let client = server.client()
        client.write(
            "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\nbody")
        let answer = client.answer()
        #expect(answer?.status == 200)
        #expect(answer?.text == "body")
    }

    @Test func `a body announced as too long is rejected before it is sent`() throws {
        let server = try echoServer(bodyBytes: 10)
        let client = server.client()
        client.get("/", "Content-Length: 11\r\nExpect: 100-continue\r\n", method: "PUT")
        let answer = client.answer()
        #expect(answer?.status == 413)
        #expect(answer?.field("Connection") == "close")
        #expect(answer?.text.hasPrefix("client error: ") == true)
    }

    @Test func `a chunked body that becomes too long is rejected with a readable response`() throws
    {
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

    // MARK: Bodies that nobody reads

    private func unread(_ limits: ServerLimits = ServerLimits()) throws -> TestServer {
        try TestServer(limits: limits) {
            BareHandler { request, _, exchange in
                exchange.respond(ok(), body: .bytes(Array(request.path.utf8)))
            }
        }
    }

    @Test(arguments: ["Content-Length: 50000", "Transfer-Encoding: chunked"])
    func `a request behind an unread body is answered on the same connection`(
        _ framing: String
    ) throws {
        let server = try unread()
        let client = server.client()
        let isChunked = framing.hasPrefix("T")
        for path in ["/a", "/b"] {
            client.get(path, framing + "\r\n", method: "POST")
            if isChunked { client.write("c350\r\n") }
            client.write(pattern(50_000))
            if isChunked { client.write("\r\n0\r\n\r\n") }
            #expect(client.answer()?.text == path)
        }
        client.get("/c")
        #expect(client.answer()?.text == "/c")
    }

    @Test(arguments: [true, false])
    func `a client answered early is not reset at the end of a drain or of the body's time`(
        drains: Bool
    ) throws {
        let record = Record(), clock = ManualClock(), limits = distinctLimits()
        let server = try TestServer(
            limits: limits, clock: clock,
            handler: {
                BareHandler { _, _, exchange in
                    exchange.onFinish = { record.note($0) }
                    exchange.respond(ok(), body: .bytes([1]))
                }
            })
        let client = server.client()
        client.get("/", "Content-Length: 100\r\n", method: "POST")
        #expect(eventually { record.outcomes.count == 1 })
        if drains { server.server.drain(within: .seconds(3600 as Int64), then: {}) }
        clock.advance(by: drains ? .zero : limits.bodyTimeout)
        // A closed socket answers content with a reset, after which the client can write no more.
        client.write(pattern(50))
        #expect(client.canWrite(50))
        #expect(client.answer()?.body == [1])
        #expect(client.readToEnd() == [] && client.end == .clean)
        #expect(server.server.connectionCount == 1)
        clock.advance(by: limits.lingerTimeout)
        #expect(eventually { server.server.connectionCount == 0 })
    }

    @Test func `a body too long to discard ends the connection after a readable response`() throws {
        var limits = ServerLimits()
        limits.lingerBytes = 1000
        let server = try unread(limits)
        let client = server.client()
        client.get("/a", "Content-Length: 1001\r\n", method: "POST")
        let answer = client.answer()
        #expect(answer?.text == "/a")
        #expect(answer?.field("Connection") == "close")
        #expect(client.readToEnd() == [])
    }

    @Test func `an endless unread chunked body ends the connection`() throws {
        var limits = shortLimits()
        limits.lingerBytes = 1000
        let server = try unread(limits)
        let client = server.client()
        client.get("/a", "Transfer-Encoding: chunked\r\n", method: "POST")
        #expect(client.answer()?.text == "/a")
        for _ in 0..<4 {
            client.write("400\r\n")
            client.write([UInt8](repeating: 0x41, count: 1024))
            client.write("\r\n")
        }
        #expect(client.readToEnd() == [])
        #expect(eventually { server.server.connectionCount == 0 })
    }

    @Test func `a client that waits for 100 and gets the response is not asked for the body`()
        throws
    {
        let server = try unread()
        let client = server.client()
        client.get("/a", "Content-Length: 4\r\nExpect: 100-continue\r\n", method: "PUT")
        let answer = client.answer()
        #expect(answer?.status == 200)
        #expect(answer?.field("Connection") == "close")
    }

    // MARK: Bodies that are taken slowly

    @Test func `a client is slowed down by a slow consumer`() throws {
        let record = Record()
        let server = try TestServer {
            BareHandler { _, body, exchange in
                _ = body?.next()
                body?.wake = { _ in record.note("came") }
            }
        }
        let client = server.client()
        client.get("/", "Content-Length: 100000000\r\n", method: "PUT")
        #expect(!client.canWrite(50_000_000))
        #expect(record.count("came") <= 1)
    }

    @Test func `a large body passes completely through a consumer in small pieces`() throws {
        let server = try TestServer {
            BareHandler { _, body, exchange in
                if let body { Counter(body, exchange).go() }
            }
        }
        let client = server.client()
        client.get("/", "Content-Length: 5000000\r\n", method: "PUT")
        client.write(pattern(5_000_000))
        #expect(client.answer()?.text == "5000000 \(checksum(pattern(5_000_000)))")
    }

    @Test func `a client that disconnects within its body ends the exchange`() throws {
        let record = Record()
        let server = try TestServer {
            BareHandler { _, body, exchange in
                exchange.onCancel = { record.note("cancelled") }
                while case .bytes = body?.next() {}
                body?.wake = { _ in record.note("more") }
                record.note("asked")
            }
        }
        let client = server.client()
        client.write("PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: 100\r\n\r\nsome")
        #expect(eventually { record.count("asked") == 1 })
        client.close()
        #expect(eventually { record.count("cancelled") == 1 })
        #expect(record.count("more") == 0)
    }

    @Test func `a malformed chunk gets 400 and ends the exchange`() throws {
        let record = Record()
        let server = try TestServer {
            BareHandler { _, body, exchange in
                exchange.onCancel = { record.note("cancelled") }
                if body?.next() == .gone { record.note("gone") }
            }
        }
        let client = server.client()
        client.write("PUT / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n")
        #expect(client.answer()?.status == 400)
        #expect(eventually { record.count("cancelled") == 1 && record.count("gone") == 1 })
    }

    @Test func `requests behind a body are answered in order`() throws {
        let server = try echoServer()
        let client = server.client()
        client.write(
            "PUT /a HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\none"
                + "PUT /b HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\n\r\n"
                + "GET /c HTTP/1.1\r\nHost: t\r\n\r\n")
        for text in ["one", "two", ""] { #expect(client.answer()?.text == text) }
    }

    @Test func `an interim response precedes the response, except for HTTP/1.0`() throws {
        let server = try TestServer { _, _, exchange in
            var hints = ResponseHead(status: .earlyHints)
            hints.fields.append("Link", "</a>")
            hints.fields.append("Content-Length", "0")
            exchange.sendInterim(hints)
            exchange.respond(ok(), body: .none)
        }
        let client = server.client()
        client.get("/")
        let interim = client.answer()
        #expect(interim?.status == 103)
        #expect(interim?.field("Link") == "</a>")
        #expect(interim?.field("Content-Length") == nil)
        #expect(client.answer()?.status == 200)
        client.write("GET / HTTP/1.0\r\n\r\n")
        #expect(client.answer()?.status == 200)
    }
}

/// Reads a body in small pieces, with a pause after each, and answers with its length and checksum.
private final class Counter {
    private let body: RequestBody
    private let exchange: Exchange
    private var count = 0
    private var sum = 0

    init(_ body: RequestBody, _ exchange: Exchange) {
        self.body = body
        self.exchange = exchange
    }

    func go() {
        for _ in 0..<20 {
            switch body.next(limit: 7777) {
            case .bytes(let bytes):
                count += bytes.count
                for byte in bytes { sum = (sum &* 31 &+ Int(byte)) & 0xFFFF }
            case .wait:
                body.wake = { _ in self.go() }
                return
            case .end:
                return exchange.respond(ok(), body: .bytes(Array("\(count) \(sum)".utf8)))
            case .gone: return
            }
        }
        exchange.loop.schedule(after: .zero) { _ in self.go() }
    }
}

private func checksum(_ bytes: [UInt8]) -> Int {
    bytes.reduce(0) { ($0 &* 31 &+ Int($1)) & 0xFFFF }
}
