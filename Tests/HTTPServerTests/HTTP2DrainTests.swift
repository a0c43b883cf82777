// The end of an HTTP/2 connection whose client has not read everything yet.
import Glibc
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
            isOver = false
            for _ in 0..<100 where !isOver {
                usleep(5000)
                isOver = record.outcomes.count == count
            }
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
}
