import Posix
import Testing
import Upstream

/// Which addresses are rejected, in every spelling.
@Suite struct AddressPolicyTests {
    private static func address(_ text: String) throws -> SocketAddress {
        try #require(SocketAddress(host: text, port: 80), "\(text)")
    }

    @Test(arguments: [
        "127.0.0.1", "127.255.0.9", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1",
        "169.254.1.1", "169.254.169.254", "100.64.0.1", "100.127.255.255", "0.0.0.0", "0.1.2.3",
        "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "198.18.0.1", "192.0.0.8",
        "::", "::1", "fe80::1", "fec0::1", "fc00::1", "fd12::1", "fd00:ec2::254", "ff02::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1",
        "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::10.0.0.1",
        "64:ff9b:1::1.1.1.1", "64:ff9b:1:fffe::101:101",
        "2002:7f00:1::1", "2002:a00:1::", "2001:0:1:2:3:4:80ff:fffe",
    ])
    func `local and special addresses are rejected`(text: String) throws {
        #expect(!AddressPolicy().permits(try Self.address(text), host: "cdn.example"))
    }

    @Test(arguments: [
        "1.1.1.1", "93.184.216.34", "172.15.0.1", "172.32.0.1", "100.63.0.1", "100.128.0.1",
        "192.167.1.1", "198.20.0.1", "223.255.255.1", "2606:4700::1111", "::ffff:1.1.1.1",
        "64:ff9b::101:101", "2002:101:101::1", "2a00::1",
    ])
    func `global addresses are accepted`(text: String) throws {
        #expect(AddressPolicy().permits(try Self.address(text), host: "cdn.example"))
    }

    @Test(arguments: [
        ("127.0.0.1", true), ("192.168.1.1", true), ("::1", true), ("fd12::1", true),
        ("169.254.169.254", false), ("::ffff:169.254.169.254", false), ("fd00:ec2::254", false),
        ("0.0.0.0", false), ("224.0.0.1", false), ("255.255.255.255", false),
    ])
    func `metadata services stay rejected when private addresses are allowed`(
        text: String, isAllowed: Bool
    ) throws {
        let policy = AddressPolicy(allowsPrivate: true)
        #expect(policy.permits(try Self.address(text), host: "nas") == isAllowed)
    }

    @Test(arguments: [
        "169.254.169.254", "169.254.170.2", "169.254.170.23", "168.63.129.16", "100.100.100.200",
        "192.0.0.192", "169.254.42.42", "169.254.0.23", "fd00:ec2::254", "fd00:ec2::23",
        "fd20:ce::254", "fd00:42::42", "::ffff:168.63.129.16", "64:ff9b::a83f:8110",
        "64:ff9b:1::a83f:8110", "2002:a83f:8110::1", "2001:0:a83f:8110:0:0:1:1",
        "2001:0:101:101:0:0:57c0:7eef", "fe80::5efe:168.63.129.16", "2a00::200:5efe:6464:64c8",
    ])
    func `metadata and host services of clouds are rejected in every form`(text: String) throws {
        let address = try Self.address(text)
        #expect(!AddressPolicy(allowsPrivate: true).permits(address, host: "cdn.example"))
        // An allowed name may resolve to them later.
        #expect(!AddressPolicy(allowedHosts: ["nas.local"]).permits(address, host: "nas.local"))
        #expect(AddressPolicy(allowedHosts: [address.host]).permits(address, host: address.host))
    }

    @Test(arguments: [
        "192.0.2.1", "198.51.100.1", "203.0.113.1", "192.88.99.1", "2001:db8::1", "3fff::1",
        "5f00::1", "2001:2::1", "2001:20::1", "100:0:0:1::1",
    ])
    func `addresses that are not routed on the Internet are rejected`(text: String) throws {
        #expect(!AddressPolicy().permits(try Self.address(text), host: "cdn.example"))
    }

    @Test func `a host allowed by name may have any address, others may not`() throws {
        let policy = AddressPolicy(allowedHosts: ["NAS.local"])
        let address = try Self.address("192.168.1.2")
        #expect(policy.permits(address, host: "nas.local"))
        #expect(!policy.permits(address, host: "other.local"))
    }

    @Test func `a private peer is rejected before the connection`() throws {
        let origin = try TestOrigin {
            $0.respond(); return .keep
        }
        let harness = try Harness { $0.addressPolicy = AddressPolicy() }
        let record = try harness.fetch(origin.url("/"))
        #expect(record.failure?.kind == .addressRefused("127.0.0.1"))
        #expect(origin.connections == 0)
        harness.stop()
        origin.stop()
    }

    @Test func `a name that resolves to a private address is rejected`() throws {
        let harness = try Harness {
            $0.addressPolicy = AddressPolicy()
            $0.resolve = ["rebind.example:80:10.0.0.1"]
        }
        let record = try harness.fetch("http://rebind.example/")
        #expect(record.failure?.kind == .addressRefused("10.0.0.1"))
        harness.stop()
    }

    @Test func `a refusal names what permits the address`() throws {
        let harness = try Harness { $0.addressPolicy = AddressPolicy() }
        let local = try harness.fetch("http://10.0.0.1/").failure
        #expect(local?.advice == "allow it with --allow-private or --allow-host")
        let metadata = try harness.fetch("http://169.254.169.254/").failure
        #expect(metadata?.advice.contains("--allow-host 169.254.169.254") == true)
        #expect(metadata?.advice.contains("stay refused with --allow-private") == true)
        harness.stop()
    }

    @Test func `a dead IPv6 address costs less than 300 ms`() throws {
        let origin = try TestOrigin {
            $0.respond(200, body: [1]); return .keep
        }
        let port = origin.port
        // A busy machine may be slow occasionally, but not every time.
        let waits = try (0..<5).map { _ in
            let harness = try Harness {
                $0.resolve = ["dual.example:\(port):[2001:db8::1],127.0.0.1"]
            }
            defer { harness.stop() }
            let record = try harness.fetch(origin.url("/", host: "dual.example"))
            #expect(record.body == [1])
            let hop = try #require(record.timings).hop
            // In microseconds.
            return Int(try #require(hop[.name])) + Int(try #require(hop[.connect]))
        }
        #expect(waits.contains { $0 < 300_000 })
        origin.stop()
    }

    @Test func `a rejected address does not affect the host's other addresses`() throws {
        let origin = try TestOrigin {
            $0.respond(200, body: [1]); return .keep
        }
        let port = origin.port
        let harness = try Harness {
            $0.resolve = ["dual.example:\(port):169.254.169.254,127.0.0.1"]
        }
        #expect(try harness.fetch(origin.url("/", host: "dual.example")).body == [1])
        harness.stop()
        origin.stop()
    }
}
