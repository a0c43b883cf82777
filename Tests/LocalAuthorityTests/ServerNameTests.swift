// The names for which a server certificate can be made.
import LocalAuthority
import Posix
import Testing

struct ServerNameTests {
    @Test(arguments: [
        ("localhost", "localhost"), ("NAS.Home.Arpa", "nas.home.arpa"), ("tv.local.", "tv.local"),
        ("bücher.example", "xn--bcher-kva.example"), ("my_pc", "my_pc"),
        ("*.home.arpa", "*.home.arpa"), ("*.Bücher.example", "*.xn--bcher-kva.example"),
        ("192.168.1.7", "192.168.1.7"), ("[2001:DB8::1]", "2001:db8::1"), ("::1", "::1"),
    ])
    func `a name has one spelling in the certificate`(text: String, spelling: String) throws {
        #expect(try ServerName(text).description == spelling)
    }

    @Test(arguments: [
        "http://nas", "nas:9443", "nas/", "a b", "a..b", ".a", "-a", "a-", "a,DNS:b", "a\nb",
        "a\0b",
        "127.0.0.1\0.example", "*", "*.", "*.arpa", "a.*.b", "*a.b.c", "*.*.b.c", "1.2.3", "a.300",
        "fe80::1%eth0", "@", ".", "", String(repeating: "a", count: 64),
        String(repeating: "a.", count: 130) + "a",
    ])
    func `text that is not a host is rejected`(text: String) {
        #expect(throws: ServerName.Fault.self) { try ServerName(text) }
    }

    @Test func `a rejected name is shown without control characters and shortened`() {
        let fault = #expect(throws: ServerName.Fault.self) {
            try ServerName("\u{1B}[31m" + String(repeating: "x", count: 500))
        }
        #expect(fault?.description.contains("\u{1B}") == false)
        #expect((fault?.description.count ?? 1000) < 200)
    }

    @Test func `a list has each name once and at most a hundred`() throws {
        #expect(
            try ServerNames(["b", "a", "B", "::1", "0::1"]).list.map(\.description) == [
                "b", "a", "::1",
            ])
        let many = (0...100).map { "host\($0)x" }
        #expect(try ServerNames(Array(many.dropLast())).list.count == 100)
        #expect(throws: ServerNames.Fault.tooMany(101)) { try ServerNames(many) }
        #expect(throws: ServerNames.Fault.none) { try ServerNames([]) }
    }

    @Test func `a machine's own names exclude link-local addresses and are limited in number`() {
        let some = ["127.0.0.1", "192.168.1.7", "fe80::1", "fd00::7"].compactMap {
            SocketAddress(host: $0, port: 0)
        }
        #expect(
            ServerNames(hostName: "Nas.home.arpa", addresses: some).list.map(\.description) == [
                "nas.home.arpa", "nas.local", "localhost", "127.0.0.1", "::1", "192.168.1.7",
                "fd00::7",
            ])
        #expect(
            ServerNames(hostName: "localhost", addresses: []).list.map(\.description) == [
                "localhost", "127.0.0.1", "::1",
            ])
        #expect(ServerNames(hostName: "", addresses: []).list.count == 3)
        let crowd = (0..<200).map { SocketAddress(bytes: [10, 0, 0, UInt8($0)], port: 0) }
        #expect(ServerNames(hostName: "nas", addresses: crowd).list.count == 100)
    }
}
