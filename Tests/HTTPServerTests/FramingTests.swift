// Heads and bodies on the wire.
import HTTP
import HTTPServer
import Posix
import Testing

@Suite(.timeLimit(.minutes(5)))
struct FramingTests {
    @Test func `HEAD gets the fields of GET and no body`() throws {
        let server = try TestServer { _, _, exchange in
            let body = [UInt8](repeating: 0x41, count: 100)
            exchange.respond(ok(("ETag", "\"1\"")), body: .bytes(body))
        }
        let client = server.client()
        client.get("/", method: "HEAD")
        client.get("/")
        let head = client.answer(toHead: true)
        let whole = client.answer()
        #expect(head?.field("Content-Length") == "100")
        #expect(head?.field("ETag") == "\"1\"")
        #expect(head?.field("Date") != nil)
        #expect(whole?.body.count == 100)
    }

    @Test func `HEAD has a source's length and cancels it unread`() throws {
        let record = Record()
        let server = try TestServer { _, _, exchange in
            exchange.onFinish = { record.note($0) }
            exchange.respond(ok(), body: .source(StalledSource(record), length: 1 << 40))
        }
        let client = server.client()
        client.get("/", method: "HEAD")
        #expect(client.answer(toHead: true)?.field("Content-Length") == "1099511627776")
        #expect(eventually { record.outcomes.count == 1 })
        #expect(record.count("source cancelled") == 1)
        #expect(record.outcomes.first?.ending == .complete)
        #expect(record.outcomes.first?.bodyBytes == 0)
    }

    @Test(arguments: [HTTPStatus.noContent, .notModified])
    func `a status without content sends none, whatever the handler returned`(
        status: HTTPStatus
    ) throws {
        let server = try TestServer { _, _, exchange in
            exchange.respond(ResponseHead(status: status), body: .bytes([1, 2, 3]))
        }
        let client = server.client()
        client.get("/")
        client.get("/")
        #expect(client.answer()?.field("Content-Length") == nil)
        #expect(client.answer()?.status == Int(status.rawValue))
    }

    @Test func `content of unknown length is chunked`() throws {
        let server = try TestServer { _, _, exchange in
            let pieces = [pattern(1), pattern(70_000), pattern(300_000)]
            let source = PieceSource(pieces, pause: .milliseconds(5), on: exchange.loop)
            exchange.respond(ok(), body: .source(source, length: nil))
        }
        let client = server.client()
        client.get("/")
        let answer = client.answer()
        #expect(answer?.field("Transfer-Encoding") == "chunked")
        #expect(answer?.field("Content-Length") == nil)
        let isWhole = answer?.body == pattern(1) + pattern(70_000) + pattern(300_000)
        #expect(isWhole)
        client.get("/")
        #expect(client.answer()?.body.count == 370_001)
    }

    @Test func `for HTTP/1.0 content of unknown length ends with the connection`() throws {
        let server = try TestServer { _, _, exchange in
            let source = PieceSource([pattern(9)], pause: .milliseconds(5), on: exchange.loop)
            exchange.respond(ok(), body: .source(source, length: nil))
        }
        let client = server.client()
        client.write("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        let answer = client.answer()
        #expect(answer?.field("Transfer-Encoding") == nil)
        #expect(answer?.field("Connection") == "close")
        #expect(answer?.body == pattern(9))
        #expect(client.end == .clean)
    }

    @Test func `the first piece is sent before the rest exists`() throws {
        let record = Record()
        let server = try TestServer { _, _, exchange in
            let source = PieceSource(
                [Array("first".utf8), [1]], pause: .milliseconds(5), on: exchange.loop,
                mayGoOn: { left in
                    record.count("head") > 0 && (left == 2 || record.count("first") > 0)
                })
            exchange.respond(ok(), body: .source(source, length: 6))
        }
        let client = server.client()
        client.get("/")
        #expect(client.readHead()?.status == 200)
        record.note("head")
        #expect(client.read(5) == Array("first".utf8))
        record.note("first")
        #expect(client.read(1) == [1])
    }

    @Test(arguments: [0, 1, 4096, 3_000_001], [true, false])
    func `a file is sent byte for byte`(count: Int, isLengthKnown: Bool) throws {
        let content = pattern(count + 10)
        let file = try temporaryFile(content)
        let server = try TestServer { _, _, exchange in
            let source = FileSource(file, 10..<Int64(count + 10))
            let length = isLengthKnown ? Int64(count) : nil
            exchange.respond(ok(), body: .source(source, length: length))
        }
        let client = server.client()
        for _ in 0..<2 {
            client.get("/")
            #expect(client.answer()?.body == Array(content[10...]))
        }
    }

    @Test func `a source that has more when it is asked to wake is read again`() throws {
        let server = try TestServer { _, _, exchange in
            let source = HastySource(waits: 100, on: exchange.loop)
            exchange.respond(ok(), body: .source(source, length: 100))
        }
        let client = server.client()
        client.get("/")
        #expect(client.answer()?.body == [UInt8](repeating: 0x2A, count: 100))
    }

    @Test func `long content in memory is sent byte for byte`() throws {
        let server = try TestServer { _, _, exchange in
            exchange.respond(ok(), body: .bytes(pattern(5_000_000)))
        }
        let client = server.client()
        client.get("/")
        let isWhole = client.answer()?.body == pattern(5_000_000)
        #expect(isWhole)
    }

    @Test func `framing fields of the handler are replaced`() throws {
        let server = try TestServer { _, _, exchange in
            let head = ok(
                ("Content-Length", "99"), ("Transfer-Encoding", "gzip"), ("Keep-Alive", "timeout=1")
            )
            exchange.respond(head, body: .bytes([1, 2]))
        }
        let client = server.client()
        client.get("/")
        let answer = client.answer()
        #expect(answer?.field("Content-Length") == "2")
        #expect(answer?.field("Transfer-Encoding") == nil)
        #expect(answer?.field("Keep-Alive") == nil)
        #expect(answer?.field("Date")?.hasSuffix("GMT") == true)
    }

    @Test func `the date of a forwarded response is kept`() throws {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT"
        let server = try TestServer { _, _, exchange in
            exchange.respond(ok(("Date", date)), body: .none)
        }
        let client = server.client()
        client.get("/")
        let head = client.answer()?.head
        #expect(head?.contains("Date: \(date)") == true)
        #expect(head?.split(separator: "Date:").count == 2)
    }

    @Test func `a field with a line break gives 500 instead`() throws {
        let server = try TestServer { _, _, exchange in
            var head = ok()
            head.fields.append("Location", "/\r\nSet-Cookie: a=b")
            exchange.respond(head, body: .bytes([1]))
        }
        let client = server.client()
        client.get("/")
        let answer = client.answer()
        #expect(answer?.status == 500)
        #expect(answer?.field("Set-Cookie") == nil)
    }
}
