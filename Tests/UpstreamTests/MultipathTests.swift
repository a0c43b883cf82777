import Glibc
import HTTP
import Posix
import Testing
import Upstream

/// Connections to origins over Multipath TCP.
@Suite(.enabled(if: hasMultipath(), "this kernel has no MPTCP"))
struct MultipathTests {
    /// Answers with the protocol of the origin's own socket (socket(7), SO_PROTOCOL).
    private func origin(isMultipath: Bool) throws -> TestOrigin {
        try TestOrigin(isMultipath: isMultipath) { exchange in
            var value: CInt = -1
            var length = socklen_t(MemoryLayout<CInt>.size)
            getsockopt(exchange.socket, SOL_SOCKET, SO_PROTOCOL, &value, &length)
            exchange.respond(200, body: Array("\(value)".utf8))
            return .keep
        }
    }

    @Test(arguments: [
        (MultipathUse.on, true, IPPROTO_MPTCP), (.on, false, IPPROTO_TCP),
        // Loopback has one path only.
        (.auto, true, IPPROTO_TCP), (.off, true, IPPROTO_TCP),
    ])
    func `Multipath TCP reaches the origin if the setting and the listener support it`(
        use: MultipathUse, originHasIt: Bool, expected: Int
    ) throws {
        let origin = try origin(isMultipath: originHasIt)
        let harness = try Harness { $0.multipath = use }
        // The second request uses the open connection.
        for _ in 0..<2 {
            let record = try harness.fetch(origin.url())
            #expect(record.text == "\(expected)", "\(String(describing: record.failure))")
        }
        #expect(origin.connections == 1)
        harness.stop()
        origin.stop()
    }

    @Test func `an origin with a fixed interface is reached over that one only`() throws {
        let origin = try origin(isMultipath: true)
        let interface = LocalInterface("127.0.0.1")
        let harness = try Harness { configuration in
            configuration.multipath = .on
            configuration.routes = OriginRoutes { _ in
                var route = OriginRoute.Settings()
                route.interface = interface
                return OriginRoute(route)
            }
        }
        #expect(try harness.fetch(origin.url()).text == "\(IPPROTO_TCP)")
        harness.stop()
        origin.stop()
    }
}
