import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// OpenStack Swift with its S3 interface, on loopback.
private final class ObjectStore: Sendable {
    static var isAvailable: Bool {
        ["swift-proxy-server", "swift-object-server", "memcached", "unshare"].allSatisfy(
            Tool.exists)
    }

    private let child: ChildProcess
    private let folder: TemporaryFolder
    let location: String
    let environment = [
        (name: "AWS_ACCESS_KEY_ID", value: "test:tester"),
        (name: "AWS_SECRET_ACCESS_KEY", value: "testing"),
    ]

    init() throws {
        folder = try TemporaryFolder()
        let port = try Self.freePorts()
        let child = try ChildProcess([
            Fixture.repository + "/Fixtures/tools/object-store", folder.path + "/store", "\(port)",
        ])
        self.child = child
        let ready = "object-store ready "
        func line() -> String? {
            String(decoding: child.standardOutput, as: UTF8.self).split(separator: "\n")
                .first { $0.hasPrefix(ready) }.map { String($0.dropFirst(ready.count)) }
        }
        _ = eventually(within: .seconds(120)) { line() != nil || child.exit != nil }
        guard let found = line() else {
            child.end()
            throw ScenarioFailure(String(decoding: child.standardError, as: UTF8.self))
        }
        location = found
    }

    /// Returns the first of five free ports in a row.
    ///
    /// They are below the range that the kernel takes ports for clients from (ip(7),
    /// ip_local_port_range): no connection of another story can take one before the servers listen.
    private static func freePorts() throws -> UInt16 {
        for _ in 0..<100 {
            let first = UInt16.random(in: 10_000..<31_000)
            if (0..<5).allSatisfy({ isFree(first + $0) }) { return first }
        }
        throw ScenarioFailure("no five free ports in a row")
    }

    private static func isFree(_ port: UInt16) -> Bool {
        let number = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        guard number >= 0 else { return false }
        defer { close(number) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }

    deinit { stop() }

    func stop() { child.end() }
}

extension Stories {
    @Suite(
        .tags(.timed),
        .enabled(
            if: ObjectStore.isAvailable,
            "needs OpenStack Swift: apt-get install --no-install-recommends swift-proxy swift-account swift-container swift-object python3-swift memcached"
        ))
    struct ObjectStoreTests {
        @Test func `a fresh node serves from Swift what another one has fetched`() throws {
            let store = try ObjectStore()
            let cdn = FixtureCDN()
            try cdn.start()
            func node() throws -> Tier.Node {
                Tier.Node(
                    try Story(
                        ["--shared-store", store.location, "--shared-store-head-start", "5"],
                        environment: store.environment), cdn: cdn)
            }
            let paths = ["/bytes/150000/a.ts", "/bytes/20000000/film.mp4", "/bytes/0/none.ts"]
            // An empty body is kept only with a lifetime.
            cdn.setBehaviour("cc=max-age=1000", for: paths[2])
            let first = try node()
            for path in paths { #expect(isContent(try first.get(path).body, of: path)) }
            #expect(try first.settled("writes_total") { $0 == 3 } == 3)
            cdn.stop()
            let second = try node()
            for path in paths { #expect(isContent(try second.get(path).body, of: path)) }
            let third = try node()
            let part = try third.get(paths[1], range: "bytes=17000000-17999999")
            #expect(
                isContent(part.body, of: paths[1], from: 17_000_000, count: 1_000_000))
            #expect(try second.stat("failures_total") == 0 && third.stat("failures_total") == 0)
            store.stop()
            #expect(isContent(try second.get(paths[0]).body, of: paths[0]))
        }
    }
}
