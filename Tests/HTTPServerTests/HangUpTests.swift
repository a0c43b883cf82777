// Clients that disconnect, completely or by half.
import HTTP
import HTTPServer
import Posix
import Reactor
import Testing

@Suite(.timeLimit(.minutes(5)))
struct HangUpTests {
    @Test func `a client that resets cancels source and exchange exactly once`() throws {
        let record = Record()
        let server = try TestServer { _, _, exchange in
            exchange.onCancel = { record.note("cancelled") }
            exchange.onFinish = { record.note($0) }
            exchange.respond(ok(), body: .source(StalledSource(record), length: 10))
        }
        let client = server.client()
        client.get("/")
        #expect(client.readHead()?.status == 200)
        client.reset()
        #expect(eventually { record.outcomes.count == 1 })
        #expect(eventually { server.server.connectionCount == 0 })
        #expect(record.count("source cancelled") == 1)
        #expect(record.count("cancelled") == 1)
        #expect(record.outcomes.first?.ending == .aborted)
        #expect(record.outcomes.first?.status == .ok)
    }

    @Test func `a client that closes during a response is noticed`() throws {
        let record = Record()
        let server = try TestServer { _, _, exchange in
            exchange.onFinish = { record.note($0) }
            exchange.respond(ok(), body: .source(EndlessSource(record), length: nil))
        }
        let client = server.client()
        client.get("/")
        #expect(client.read(100_000).count == 100_000)
        client.close()
        #expect(eventually { record.outcomes.first?.ending == .aborted })
        #expect(record.count("source cancelled") == 1)
    }

    @Test func `an exchange whose client has left accepts an answer without effect`() throws {
        let record = Record()
        let server = try TestServer { _, _, exchange in
            exchange.onFinish = { record.note($0) }
            exchange.onCancel = {
                record.note("cancelled")
                exchange.loop.schedule(after: .milliseconds(1)) { _ in
                    record.note(exchange.isAlive ? "alive" : "gone")
                    let source = StalledSource(record)
                    exchange.respond(ok(), body: .source(source, length: nil))
                }
            }
            record.note("asked")
        }
        let client = server.client()
        client.get("/")
        // Not only the connection is gone: a reset discards what the server has not read yet.
        #expect(eventually { record.count("asked") == 1 })
        client.reset()
        #expect(eventually { record.count("source cancelled") == 1 })
        #expect(record.count("gone") == 1)
        #expect(record.count("cancelled") == 1)
        #expect(record.outcomes.map(\.ending) == [.aborted])
        #expect(record.outcomes.first?.status == nil)
    }

    @Test func `a client that shuts only its sending side gets the whole response`() throws {
        let record = Record()
        let server = try TestServer { _, _, exchange in
            exchange.onFinish = { record.note($0) }
            let source = PieceSource(
                [[1], [2], [3]], pause: .milliseconds(40), on: exchange.loop)
            exchange.respond(ok(), body: .source(source, length: 3))
        }
        let client = server.client()
        client.get("/")
        client.get("/")
        client.halfClose()
        #expect(client.answer()?.body == [1, 2, 3])
        #expect(client.answer()?.body == [1, 2, 3])
        #expect(client.readToEnd() == [])
        #expect(client.end == .clean)
        #expect(eventually { server.server.connectionCount == 0 })
        #expect(record.outcomes.map(\.ending) == [.complete, .complete])
    }

    @Test func `the time of a half-closed client begins anew with its next request`() throws {
        let record = Record(), clock = ManualClock()
        let server = try TestServer(clock: clock) { request, _, exchange in
            record.note(request.path)
            let delay = Interval.milliseconds(request.path == "/a" ? 450 : 200)
            exchange.loop.schedule(after: delay) { _ in echoPath(request, [], exchange) }
        }
        let client = server.client()
        client.write("GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n")
        client.halfClose()
        #expect(eventually { record.count("/a") == 1 })
        clock.advance(by: .milliseconds(450))
        #expect(client.answer()?.text == "/a")
        #expect(eventually { record.count("/b") == 1 })
        // The check of the first request falls into the time of the second.
        for _ in 0..<4 { clock.advance(by: .milliseconds(50)) }
        #expect(client.answer()?.text == "/b")
        #expect(client.readToEnd() == [] && client.end == .clean)
    }

    // Work that no player waits for must not continue.
    @Test func `an idle connection whose client has closed is closed`() throws {
        let record = Record()
        let server = try TestServer { _, _, exchange in
            exchange.onCancel = { record.note("cancelled") }
        }
        let client = server.client()
        client.get("/")
        client.halfClose()
        #expect(eventually { record.count("cancelled") == 1 })
        #expect(eventually { server.server.connectionCount == 0 })
    }

    @Test func `a half-closed client makes way for others before its time is over`() throws {
        let record = Record(), clock = ManualClock()
        let server = try TestServer(clock: clock) { _, _, exchange in
            exchange.onCancel = { record.note("cancelled") }
            exchange.whenHalfClosed {
                record.note("half-closed")
                exchange.endHalfClosed()
            }
            // The client still sends.
            exchange.endHalfClosed()
            record.note("asked")
        }
        let client = server.client()
        client.get("/")
        #expect(eventually { record.count("asked") == 1 })
        #expect(record.count("cancelled") == 0)
        client.halfClose()
        #expect(eventually { record.count("cancelled") == 1 })
        #expect(record.count("half-closed") == 1)
        #expect(eventually { server.server.connectionCount == 0 })
    }

    @Test func `a half-closed client that was answered does not make way`() throws {
        let server = try TestServer { _, _, exchange in
            exchange.whenHalfClosed {
                exchange.respond(ok(), body: .bytes([1, 2]))
                exchange.endHalfClosed()
            }
        }
        let client = server.client()
        client.get("/")
        client.halfClose()
        #expect(client.answer()?.body == [1, 2])
        #expect(client.readToEnd() == [] && client.end == .clean)
    }

    @Test func `a half-closed client does not make the loop spin`() throws {
        let server = try TestServer { request, _, exchange in
            exchange.loop.schedule(after: .milliseconds(300)) { _ in
                exchange.respond(ok(), body: .none)
            }
        }
        let client = server.client()
        client.get("/")
        client.get("/more")
        client.halfClose()
        let before = server.loopTime()
        #expect(client.answer()?.status == 200)
        let spent = server.loopTime().nanoseconds - before.nanoseconds
        #expect(spent < 30_000_000)
    }

    @Test func `a hundred clients that disconnect leave no resources in use`() throws {
        let record = Record()
        let server = try TestServer(loops: 2) { _, _, exchange in
            exchange.onCancel = { record.note("cancelled") }
            exchange.respond(ok(), body: .source(StalledSource(record), length: nil))
        }
        for _ in 0..<100 {
            let client = server.client()
            client.get("/")
            #expect(client.readHead()?.status == 200)
            client.reset()
        }
        #expect(eventually { record.count("cancelled") == 100 })
        #expect(record.count("source cancelled") == 100)
        #expect(eventually { server.server.connectionCount == 0 })
    }
}
