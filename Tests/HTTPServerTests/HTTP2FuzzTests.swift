// Generated sessions of HTTP/2, most of them malformed (RFC 9113, section 10.5).
import FuzzSupport
import Glibc
import HTTP
import HTTPServer
import Posix
import Testing

/// `HTTP2_SESSIONS=10000 HTTP2_SEED=7` in the environment runs this many sessions of that seed.
@Suite(.timeLimit(.minutes(10)), .serialized)
struct HTTP2FuzzTests {
    /// The number of sessions in a usual run.
    private static let usual = 400

    private static func limits() -> ServerLimits {
        var limits = ServerLimits()
        limits.bodyTimeout = .milliseconds(100)
        limits.writeTimeout = .milliseconds(100)
        limits.lingerTimeout = .milliseconds(50)
        return limits
    }

    private static func server(_ account: ExchangeAccount) throws -> HTTPServer {
        let file = try temporaryFile(pattern(200_000))
        let loopback = SocketAddress(bytes: [127, 0, 0, 1], port: 0)
        return try HTTPServer(addresses: [loopback], loops: 1, limits: limits()) { loop in
            FuzzedHandler(account, file: file, on: loop)
        }
    }

    private static func isAnswering(_ port: UInt16) -> Bool {
        let client = FrameClient(port: port)
        guard client.open() else { return false }
        client.get(1, "/bytes")
        return client.response(1).text == "/bytes"
    }

    private static func open(_ port: UInt16, _ numbers: inout SeededNumbers) -> () -> Void {
        let session = FuzzedSession(&numbers)
        let connection = FuzzedConnection(port: port)
        var sent = 0
        for cut in session.cuts + [session.bytes.count] {
            let piece = session.bytes[sent..<cut]
            guard connection.send(piece, reading: session.readsAnswers) else { break }
            sent = cut
        }
        return {
            if session.readsAnswers { _ = connection.receive() }
            connection.end(session.ending)
            if session.ending == .halfClose { _ = connection.receive(waiting: 20) }
            connection.close()
        }
    }

    /// In a separate process, because memory and descriptors of other tests would count.
    @Test func `generated sessions leave the server working and no resources in use`() async {
        let result = await #expect(
            processExitsWith: .success, observing: [\.standardOutputContent]
        ) {
            let account = ExchangeAccount()
            let server = try HTTP2FuzzTests.server(account)
            let port = server.boundAddresses[0].port
            FuzzRun(usually: HTTP2FuzzTests.usual).run(
                server, account, isAnswering: { HTTP2FuzzTests.isAnswering(port) },
                session: { HTTP2FuzzTests.open(port, &$0) })
            server.stop()
        }
        FuzzRun.show(result)
    }

    @Test func `a stopped server reports the end of every exchange of generated sessions`()
        throws
    {
        for seed: UInt64 in 0..<8 {
            let account = ExchangeAccount()
            let server = try Self.server(account)
            let port = server.boundAddresses[0].port
            let ends = (0..<20).map { index in
                var numbers = SeededNumbers(seed: 1 << 60 + seed << 16 + UInt64(index))
                return Self.open(port, &numbers)
            }
            #expect(Self.isAnswering(port))
            if seed % 2 == 0 {
                server.drain(within: .milliseconds(50), then: {})
                #expect(eventually { server.connectionCount == 0 }, "seed \(seed)")
            }
            server.stop()
            #expect(account.counts.isSettled, "\(account.counts), seed \(seed)")
            #expect(account.counts.repeats == 0, "seed \(seed)")
            for end in ends { end() }
        }
    }
}
