import Glibc
import HTTP
import Synchronization
import Testing
import Upstream

/// Bounds of receive windows on real connections.
struct YieldingReadsTests {
    /// Answers `/segment` with 0.6 MB in 0.8 s, evenly.
    private static func answer(_ exchange: Exchange) -> AfterRequest {
        guard exchange.target == "/segment" else {
            exchange.respond(200, body: Array("#EXTM3U".utf8))
            return .keep
        }
        exchange.send("HTTP/1.1 200 X\r\nContent-Length: 655360\r\n\r\n")
        for _ in 0..<160 {
            exchange.send([UInt8](repeating: 1, count: 4_096))
            exchange.pause(milliseconds: 5)
        }
        return .keep
    }

    private static func origin() throws -> TestOrigin { try TestOrigin { answer($0) } }

    /// Fetches from the origin and returns the bounds of its connections afterwards.
    private static func bounds(
        after path: String, _ lane: Lane, _ harness: Harness, _ origin: TestOrigin
    ) throws -> [CInt] {
        #expect(try harness.fetch(origin.url(path)) { $0.lane = lane }.status == 200)
        return optionsOfConnections(to: origin.port, CInt(IPPROTO_TCP), TCP_WINDOW_CLAMP)
    }

    @Test func `a playlist grants the origin no more than the line needs, since segments follow`()
        throws
    {
        let origin = try Self.origin()
        // With a limit there is one connection, whether the segment was bounded or not.
        let harness = try Harness {
            $0.yields = .players
            $0.perHostLimit = 1
        }
        _ = try Self.bounds(after: "/segment", .playback, harness, origin)
        let bounds = try Self.bounds(after: "/list", .express, harness, origin)
        // Ten segments where the line, of no delay, needs less. The origin's pauses may count as
        // jitter of it, 20 ms at most; without any bound it would be 64 KiB.
        #expect(bounds.count == 1)
        #expect(bounds.allSatisfy { (14_480..<50_000).contains($0) }, "\(bounds)")
        harness.stop()
        origin.stop()
    }

    @Test(arguments: [(YieldUse.off, 0, 1), (.players, 0, 2), (.players, 1, 1)])
    func `background transfers that yield have connections of their own where none are counted`(
        use: YieldUse, hostLimit: Int, connections: Int
    ) throws {
        let origin = try Self.origin()
        let harness = try Harness {
            $0.yields = use
            $0.perHostLimit = hostLimit
        }
        for lane in [Lane.background, .playback, .background, .express] {
            _ = try Self.bounds(after: "/list", lane, harness, origin)
        }
        #expect(origin.connections == connections)
        harness.stop()
        origin.stop()
    }

    /// As the kernel does when the first large packet of a connection arrives.
    @Test func `a bound that was replaced from outside is set again`() throws {
        let isOver = Mutex(false)
        let origin = try TestOrigin { exchange in
            guard exchange.target == "/film" else { return Self.answer(exchange) }
            exchange.send("HTTP/1.1 200 X\r\nContent-Length: 100000000\r\n\r\n")
            // Until the test is over, and for a minute at most.
            for _ in 0..<6_000 where !isOver.withLock({ $0 }) {
                exchange.send([UInt8](repeating: 1, count: 2_000))
                exchange.pause(milliseconds: 10)
            }
            return .close
        }
        let harness = try Harness {
            $0.yields = .players
            $0.perHostLimit = 1
        }
        _ = try Self.bounds(after: "/segment", .playback, harness, origin)
        // The bound of a long express body on a line of no delay does not change by itself.
        _ = try harness.start(origin.url("/film"), lane: .express)
        func bounds() -> [CInt] {
            optionsOfConnections(to: origin.port, CInt(IPPROTO_TCP), TCP_WINDOW_CLAMP)
        }
        #expect(comesTrue { bounds() == [65_536] })
        setOptionOfConnections(to: origin.port, CInt(IPPROTO_TCP), TCP_WINDOW_CLAMP, 1 << 20)
        #expect(comesTrue { bounds() == [65_536] })
        isOver.withLock { $0 = true }
        harness.stop()
        origin.stop()
    }
}
