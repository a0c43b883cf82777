// The end of a server.
import HTTP
import HTTPServer
import Posix
import Reactor
import Testing

/// Answers some time after the test has noted that the drain has begun.
private func reply(to request: RequestHead, _ exchange: Exchange, once record: Record) {
    let hasBegun = record.count("draining") == 1
    exchange.loop.schedule(after: .milliseconds(50)) { _ in
        hasBegun ? echoPath(request, [], exchange) : reply(to: request, exchange, once: record)
    }
}

@Suite(.timeLimit(.minutes(5)))
struct DrainTests {
    @Test func `a drain closes idle connections and lets responses finish`() throws {
        let server = try TestServer(loops: 2) { request, _, exchange in
            guard request.path == "/slow" else { return echoPath(request, [], exchange) }
            let source = PieceSource(
                [[1], [2], [3]], pause: .milliseconds(400), on: exchange.loop)
            exchange.respond(ok(), body: .source(source, length: 3))
        }
        let idle = server.client()
        idle.get("/a")
        #expect(idle.answer()?.status == 200)
        let busy = server.client()
        busy.get("/slow")
        #expect(busy.readHead()?.status == 200)
        let record = server.record
        server.server.drain(within: .milliseconds(5000)) { record.note("drained") }
        #expect(idle.readToEnd() == [])
        #expect(record.count("drained") == 0)
        #expect(busy.read(3) == [1, 2, 3])
        #expect(busy.readToEnd() == [])
        #expect(busy.end == .clean)
        #expect(eventually { record.count("drained") == 1 })
        #expect(server.server.connectionCount == 0)
    }

    @Test func `a request that runs when the drain begins is answered with close`() throws {
        let record = Record()
        let server = try TestServer { request, _, exchange in
            record.note("asked")
            reply(to: request, exchange, once: record)
        }
        let client = server.client()
        client.get("/a")
        client.get("/b")
        #expect(eventually { record.count("asked") == 1 })
        server.server.drain(within: .milliseconds(5000)) { record.note("drained") }
        record.note("draining")
        let answer = client.answer()
        #expect(answer?.text == "/a")
        #expect(answer?.field("Connection") == "close")
        #expect(client.readToEnd() == [])
        client.close()
        #expect(eventually { record.count("drained") == 1 })
    }

    @Test func `responses that exceed the time of a drain are broken off`() throws {
        let record = Record()
        let server = try TestServer { _, _, exchange in
            exchange.onFinish = { record.note($0) }
            exchange.respond(ok(), body: .source(StalledSource(record), length: nil))
        }
        let client = server.client()
        client.get("/")
        #expect(client.readHead()?.status == 200)
        server.server.drain(within: .milliseconds(100)) { record.note("drained") }
        _ = client.readToEnd()
        #expect(client.end == .reset)
        #expect(eventually { record.count("drained") == 1 })
        // The order of the two reports is not guaranteed.
        #expect(eventually { record.outcomes.first?.ending == .aborted })
    }

    @Test
    func `a new connection may send one request during a drain`()
        throws
    {
        let clock = ManualClock()
        let server = try TestServer(clock: clock, echoPath)
        let (asks, stays) = (server.client(), server.client())
        #expect(eventually { server.server.connectionCount == 2 })
        let record = Record()
        server.server.drain(within: .seconds(10 as Int64)) { record.note("drained") }
        // Afterwards the loop has received the drain.
        clock.advance(by: .zero)
        asks.get("/a")
        let answer = asks.answer()
        #expect(answer?.text == "/a" && answer?.field("Connection") == "close")
        asks.close()
        #expect(eventually { server.server.connectionCount == 1 })
        clock.advance(by: .seconds(1 as Int64))
        #expect(stays.readToEnd() == [] && stays.end == .clean)
        #expect(eventually { record.count("drained") == 1 })
    }

    @Test func `a drain of a stopped server reports at once`() throws {
        let server = try TestServer(loops: 2, echoPath)
        server.server.stop()
        let record = server.record
        server.server.drain(within: .milliseconds(5000)) { record.note("drained") }
        #expect(record.count("drained") == 1)
        server.server.stop()
    }

    @Test func `a stop cancels running responses and joins the threads`() throws {
        let record = Record()
        let server = try TestServer(loops: 2) { _, _, exchange in
            exchange.onCancel = { record.note("cancelled") }
            exchange.respond(ok(), body: .source(StalledSource(record), length: 5))
        }
        let client = server.client()
        client.get("/")
        #expect(client.readHead()?.status == 200)
        server.server.stop()
        #expect(record.count("cancelled") == 1)
        #expect(client.readToEnd() == [])
        #expect(client.end == .reset)
    }
}
