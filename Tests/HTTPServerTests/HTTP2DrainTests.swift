// The end of an HTTP/2 connection whose client has not read everything yet.
import HTTP
import HTTPServer
import Posix
import Reactor
import Testing

@Suite(.timeLimit(.minutes(5)))
struct HTTP2DrainTests {
    @Test func `a drain waits for the end of a response that the socket has no room for`() throws {
        let record = Record()
        let server = try TestServer { _, _, exchange in
            exchange.onFinish = { record.note($0) }
            // All its frames are collected in one turn.
            exchange.respond(ok(), body: .bytes(pattern(60_000)))
        }
        let client = server.frameClient(receiveBuffer: 65536)
        client.acknowledgesData = false
        client.open([(Frame.Setting.initialWindowSize, 1 << 20)])
        client.write(.windowUpdate(0, 1 << 30))
        // Until the socket is full: a response is over once the kernel has all of it.
        var count = 0, isOver = true
        while isOver, count < 1_000 {
            client.get(UInt32(count * 2 + 1))
            count += 1
            isOver = eventually(within: .milliseconds(500)) { record.outcomes.count == count }
        }
        #expect(!isOver, "the socket takes everything")
        server.server.drain(within: .seconds(60 as Int64), then: {})
        // Afterwards the loop has received the drain.
        _ = server.loopTime()
        #expect(client.readToEnd())
        #expect(client.end == .clean && client.goAway?.code == .noError)
        #expect(client.streams.count == count)
        #expect(client.streams.values.allSatisfy { $0.isWhole && $0.body.count == 60_000 })
        client.transport.close()
        #expect(eventually { server.server.connectionCount == 0 })
    }

    @Test func `a drained connection stays open while its client reads`() throws {
        let record = Record(), clock = ManualClock(), limits = distinctLimits()
        let server = try TestServer(limits: limits, clock: clock) { _, _, exchange in
            exchange.onFinish = { record.note($0) }
            exchange.respond(ok(), body: .bytes(pattern(120_000)))
        }
        let clients = (0..<2).map { _ in server.frameClient(receiveBuffer: 16384) }
        for (index, client) in clients.enumerated() {
            client.open([(Frame.Setting.initialWindowSize, 1 << 20)])
            client.write(.windowUpdate(0, 1 << 20))
            client.get(1)
            // The kernel has all of it.
            #expect(eventually { record.outcomes.count == index + 1 })
        }
        server.server.drain(within: .seconds(3600 as Int64), then: {})
        // The loop receives the drain, and then looks how far the clients are.
        clock.advance(by: .zero)
        clock.advance(by: limits.lingerTimeout)
        #expect(server.server.connectionCount == 2)
        // After the server's close, the first WINDOW_UPDATE would make the kernel discard the rest.
        #expect(clients[0].read { ($0.streams[1]?.body.count ?? 0) > 60_000 })
        clock.advance(by: limits.lingerTimeout)
        // Only the client that has read nothing since is disconnected.
        #expect(server.server.connectionCount == 1)
        #expect(clients[0].readToEnd() && clients[0].end == .clean)
        #expect(clients[0].response(1).isWhole && clients[0].streams[1]?.body.count == 120_000)
        for client in clients { client.transport.close() }
        #expect(eventually { server.server.connectionCount == 0 })
    }
}
