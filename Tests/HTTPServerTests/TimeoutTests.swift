// Clients that are slow to ask, or to read.
import Glibc
import HTTP
import HTTPServer
import Posix
import Testing

@Suite(.timeLimit(.minutes(5)))
struct TimeoutTests {
    @Test func `a head that comes drop by drop is answered 408 and cut`() throws {
        let server = try TestServer(limits: shortLimits(), echoPath)
        let client = server.client()
        for byte in "GET / HTTP/1.1\r\nHost: \(String(repeating: "a", count: 20))".utf8 {
            client.write([byte])
            usleep(10_000)
        }
        #expect(client.answer()?.status == 408)
        #expect(client.readToEnd() == [])
        #expect(eventually { server.server.connectionCount == 0 })
    }

    @Test func `a connection that says nothing is closed without a word`() throws {
        let server = try TestServer(limits: shortLimits(), echoPath)
        let client = server.client()
        #expect(client.readToEnd() == [])
        #expect(client.end == .clean)
    }

    @Test func `a body that does not come is answered 408`() throws {
        let server = try TestServer(limits: shortLimits(), echoPath)
        let client = server.client()
        client.get("/", "Content-Length: 10\r\n", method: "POST")
        client.write("half ")
        #expect(client.answer()?.status == 408)
    }

    @Test func `an idle connection lives for its time after each response`() throws {
        let server = try TestServer(limits: shortLimits(), echoPath)
        let client = server.client()
        for _ in 0..<4 {
            usleep(150_000)
            client.get("/a")
            #expect(client.answer()?.status == 200)
        }
        let start = Monotonic.now()
        #expect(client.readToEnd() == [])
        #expect(client.end == .clean)
        #expect(Monotonic.now() - start > .milliseconds(250))
    }

    @Test func `a reader that takes nothing is cut, its source cancelled once`() throws {
        let record = Record()
        let server = try TestServer(limits: shortLimits()) { _, _, exchange in
            exchange.onCancel = { record.note("cancelled") }
            exchange.onFinish = { record.note($0) }
            exchange.respond(ok(), body: .source(EndlessSource(record), length: nil))
        }
        let client = server.client(receiveBuffer: 4096)
        client.get("/")
        #expect(eventually { record.outcomes.count == 1 })
        #expect(record.outcomes.first?.ending == .aborted)
        #expect(record.count("source cancelled") == 1)
        #expect(record.count("cancelled") == 1)
        #expect(eventually { server.server.connectionCount == 0 })
    }

    @Test func `a slow reader that goes on reading lives beyond the time`() throws {
        var limits = shortLimits()
        // So long that a reader which the machine holds up is none that has gone.
        limits.writeTimeout = .milliseconds(800)
        let sent = pattern(12_000_000)
        let server = try TestServer(limits: limits) { _, _, exchange in
            exchange.respond(ok(), body: .bytes(sent))
        }
        let client = server.client(receiveBuffer: 65536)
        client.get("/")
        #expect(client.readHead()?.status == 200)
        var body: [UInt8] = []
        for _ in 0..<12 {
            usleep(160_000)
            body += client.read(1_000_000)
        }
        // The runner would look for days for the differences of two such arrays.
        let isWhole = body == sent
        #expect(isWhole, "\(body.count) bytes")
    }

    @Test func `a source that waits longer than any time is not cut`() throws {
        let server = try TestServer(limits: shortLimits()) { _, _, exchange in
            let source = PieceSource([[7]], pause: .milliseconds(700), on: exchange.loop)
            exchange.respond(ok(), body: .source(source, length: 1))
        }
        let client = server.client()
        client.get("/")
        #expect(client.answer()?.body == [7])
    }
}
