// Clients of HTTP/2 that read slowly, by a clock that the tests move.
import HTTP
import HTTPServer
import Posix
import Reactor
import Testing

@Suite(.timeLimit(.minutes(5)))
struct HTTP2SlowReaderTests {
    @Test func `a connection too slow for the kernel to report room is not disconnected`() throws {
        let clock = ManualClock(), limits = distinctLimits(), sent = pattern(12_000_000)
        let server = try TestServer(limits: limits, clock: clock) { _, _, exchange in
            exchange.respond(ok(), body: .bytes(sent))
        }
        let client = server.frameClient(receiveBuffer: 65536)
        client.acknowledgesData = false
        client.open([(Frame.Setting.initialWindowSize, 1 << 30)])
        client.write(.windowUpdate(0, 1 << 30))
        client.get(1)
        for round in 1...4 {
            // Less than a third of the send buffer in all.
            #expect(client.read { $0.streams[1]?.body.count ?? 0 >= round * 200_000 })
            clock.advance(by: limits.writeTimeout)
            server.passDeadlines()
        }
        let isWhole = client.response(1, timeout: .seconds(60)).body == sent
        #expect(isWhole)
    }

    @Test func `a large window may stay closed while the client reads half of it`() throws {
        let clock = ManualClock(), limits = distinctLimits(), window = 1 << 20
        let server = try TestServer(limits: limits, clock: clock) { _, _, exchange in
            exchange.respond(ok(), body: .bytes(pattern(4 << 20)))
        }
        let client = server.frameClient()
        client.acknowledgesData = false
        client.open([(Frame.Setting.initialWindowSize, UInt32(window))])
        client.write(.windowUpdate(0, 1 << 30))
        client.get(1)
        #expect(client.read { $0.streams[1]?.body.count == window })
        let pass = {
            clock.advance(by: limits.writeTimeout)
            server.passDeadlines()
        }
        // Half a mebibyte takes a slow reader 64 seconds: more than one deadline, less than two.
        for round in 2...3 {
            for _ in 0..<2 { pass() }
            client.write(.windowUpdate(1, UInt32(window)))
            #expect(client.read { $0.streams[1]?.body.count == round * window })
        }
        #expect(client.streams[1]?.reset == nil)
        for _ in 0..<6 { pass() }
        #expect(client.response(1).reset == .cancel)
    }

    @Test func `responses whose last frames were not sent do not count as complete`() throws {
        let record = Record(), count = 128
        let server = try TestServer { _, _, exchange in
            exchange.onFinish = { record.note($0) }
            // Less than the frames of one write: each write has the end of a response.
            exchange.respond(ok(), body: .bytes(pattern(60_000)))
            record.note("answered")
        }
        let client = server.frameClient(receiveBuffer: 4096)
        client.open([(Frame.Setting.initialWindowSize, 1 << 30)])
        client.write(.windowUpdate(0, 1 << 30))
        // More than the largest send buffer in all.
        client.write((0..<count).flatMap { getFrame(UInt32($0 * 2 + 1)).bytes() })
        #expect(eventually { record.count("answered") == count })
        var sent = -1
        while sent != record.outcomes.count {
            sent = record.outcomes.count
            server.passDeadlines()
        }
        #expect(sent < count)
        client.transport.reset()
        #expect(eventually { record.outcomes.count == count })
        #expect(record.outcomes.count { $0.ending == .complete } == sent)
    }
}
