// Connections of clients with and without Multipath TCP.
import HTTP
import HTTPServer
import Posix
import Testing

@Suite(.timeLimit(.minutes(5)), .enabled(if: hasMultipath(), "this kernel has no MPTCP"))
struct MultipathTests {
    @Test(arguments: [(true, true), (true, false), (false, true), (false, false)])
    func `Multipath TCP is used if both ends support it, and all requests are answered`(
        server: Bool, client: Bool
    ) throws {
        let server = (isMultipath: server, try TestServer(isMultipath: server, echoPath))
        let client = (isMultipath: client, server.1.client(isMultipath: client))
        for path in ["/one", "/two"] {
            client.1.get(path)
            #expect(client.1.answer()?.text == path)
        }
        #expect(client.1.isMultipath == (server.isMultipath && client.isMultipath))
    }

    @Test func `a body that fails is a reset over Multipath TCP too`() throws {
        let record = Record()
        let server = try TestServer(isMultipath: true) { _, _, exchange in
            exchange.onFinish = { record.note($0) }
            let source = PieceSource(
                [pattern(1000)], pause: .milliseconds(20), breaks: true, on: exchange.loop,
                record: record)
            exchange.respond(ok(), body: .source(source, length: nil))
        }
        let client = server.client(isMultipath: true)
        client.write("GET / HTTP/1.0\r\n\r\n")
        #expect(client.readHead()?.status == 200)
        _ = client.readToEnd()
        #expect(client.end == .reset)
        #expect(client.isMultipath || client.end != nil)
        #expect(eventually { record.outcomes.first?.ending == .broken })
    }

    @Test func `a client that disconnects is noticed over Multipath TCP too`() throws {
        let record = Record()
        let server = try TestServer(isMultipath: true) { _, _, exchange in
            exchange.onCancel = { record.note("cancelled") }
            record.note("asked")
        }
        let client = server.client(isMultipath: true)
        client.get("/")
        #expect(eventually { record.count("asked") == 1 })
        client.reset()
        #expect(eventually { record.count("cancelled") == 1 })
    }
}
