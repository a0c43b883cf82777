// Bodies that the server cannot complete, which the client must notice.
import HTTP
import HTTPServer
import Posix
import Testing

@Suite(.timeLimit(.minutes(5)))
struct BrokenBodyTests {
    private func server(
        _ record: Record, length: Int64?, breaks: Bool = true
    ) throws -> TestServer {
        try TestServer { _, _, exchange in
            exchange.onFinish = { record.note($0) }
            exchange.onCancel = { record.note("cancelled") }
            let source = PieceSource(
                [pattern(1000)], pause: .milliseconds(20), breaks: breaks, on: exchange.loop,
                record: record)
            exchange.respond(ok(), body: .source(source, length: length))
        }
    }

    @Test(arguments: [true, false])
    func `content that ends before its announced length arrives as far as it goes`(breaks: Bool)
        throws
    {
        let record = Record()
        let server = try server(record, length: 2000, breaks: breaks)
        let client = server.client()
        client.get("/")
        #expect(client.readHead()?.field("Content-Length") == "2000")
        #expect(client.readToEnd() == pattern(1000))
        #expect(client.end == .clean)
        #expect(eventually { record.outcomes.count == 1 })
        #expect(record.outcomes.first?.ending == .broken)
        #expect(record.outcomes.first?.bodyBytes == 1000)
        #expect(record.count("source cancelled") == 1)
        #expect(record.count("cancelled") == 0)
    }

    @Test func `chunked content that fails arrives without its last chunk`() throws {
        let record = Record()
        let server = try server(record, length: nil)
        let client = server.client()
        client.get("/")
        #expect(client.readHead()?.field("Transfer-Encoding") == "chunked")
        let rest = client.readToEnd()
        #expect(rest == Array("3e8\r\n".utf8) + pattern(1000) + [13, 10])
        #expect(eventually { record.outcomes.first?.ending == .broken })
        #expect(record.count("source cancelled") == 1)
    }

    @Test func `content without a length that fails is a reset`() throws {
        let record = Record()
        let server = try server(record, length: nil)
        let client = server.client()
        client.write("GET / HTTP/1.0\r\n\r\n")
        #expect(client.readHead()?.status == 200)
        _ = client.readToEnd()
        #expect(client.end == .reset)
        #expect(eventually { record.outcomes.first?.ending == .broken })
    }

    @Test(arguments: [nil, 5000 as Int64?])
    func `a file shorter than its source claims is a broken body`(length: Int64?) throws {
        let file = try temporaryFile(pattern(3000))
        let record = Record()
        let server = try TestServer { _, _, exchange in
            exchange.onFinish = { record.note($0) }
            let source = FileSource(file, 0..<5000)
            exchange.respond(ok(), body: .source(source, length: length))
        }
        let client = server.client()
        client.get("/")
        #expect(client.answer() == nil)
        #expect(eventually { record.outcomes.first?.ending == .broken })
    }
}
