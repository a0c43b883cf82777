import Model
import Posix
import Testing
import URISyntax

/// The hosts and URLs that are this daemon's.
@Suite struct OwnAddressesTests {
    private let addresses: OwnAddresses

    init() {
        addresses = OwnAddresses(hostNames: ["edge.example", "rooted.example."])
        addresses.listen(on: [SocketAddress(bytes: [127, 0, 0, 1], port: 9_000)])
    }

    @Test(arguments: ["edge.example", "rooted.example", "localhost"])
    func `a name with the dot of the root is the same name`(_ name: String) throws {
        for host in [name, "\(name).", "\(name).:80", name.uppercased() + "."] {
            #expect(addresses.contains(host: host), "\(host)")
            #expect(!addresses.contains(host: "x.\(host)"), "\(host)")
        }
        #expect(addresses.contains(try AbsoluteURL("http://\(name).:9000/a")))
    }

    @Test(arguments: [
        "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1.", "[::ffff:127.0.0.1]",
        "[::FFFF:7F00:1]", "[0:0:0:0:0:0:0:1]", "[0::1]",
    ])
    func `an address in another spelling is the same address`(_ host: String) throws {
        #expect(addresses.contains(try AbsoluteURL("http://\(host):9000/a")))
        #expect(!addresses.contains(try AbsoluteURL("http://\(host):9001/a")))
    }

    @Test(arguments: ["127.2", "[::2]", "127.0.0.1.example", "1270.0.0.1"])
    func `another address is not this daemon's`(_ host: String) throws {
        #expect(!addresses.contains(try AbsoluteURL("http://\(host):9000/a")))
    }

    @Test(arguments: [".", "..", "edge.example..", ".edge.example", ""])
    func `no other dot is ignored`(_ host: String) {
        #expect(!addresses.contains(host: host))
    }
}
