// Reading what names a way to an origin.
import Testing
import Upstream

@Suite struct OriginRouteTests {
    @Test func `a proxy is read with its credentials, which it never shows`() throws {
        let proxy = try OriginProxy("SOCKS5H://me:p%40ss%3A@[2001:db8::1]:1080")
        #expect(proxy.kind == .socks5h && proxy.host == "2001:db8::1" && proxy.port == 1080)
        #expect(proxy.hasCredentials)
        #expect(proxy.description == "socks5h://[2001:db8::1]:1080 (with credentials)")
        #expect(try OriginProxy("http://proxy:3128/").description == "http://proxy:3128")
    }

    @Test(arguments: [
        "", "proxy:1080", "socks4://secret:1080", "http://secret", "http://secret:0",
        "http://secret:1/path", "http://secret:1?q", "http://:secret@h:1", "http://u%00:secret@h:1",
        "http://u:secret%0d%0a@h:1", "http://u%3Asecret:p@h:1",
        "http://u:\(String(repeating: "secret", count: 50))@h:1",
    ])
    func `a text that is no proxy is refused without being repeated`(_ text: String) throws {
        let fault = try #require(throws: OriginProxy.Fault.self) { try OriginProxy(text) }
        #expect(!fault.description.contains("secret"))
    }

    @Test func `pins are hashes of 32 bytes in base64`() {
        let pin = "sha256//" + String(repeating: "A", count: 43) + "="
        #expect(PublicKeyPins(pin)?.description == pin)
        #expect(PublicKeyPins(pin + ";" + pin) != nil)
        for text in ["", "sha256//", pin + ";", "sha1//AAAA", String(pin.dropLast()), pin + "="] {
            #expect(PublicKeyPins(text) == nil)
        }
        // The last digit has bits that no 32 bytes need.
        #expect(PublicKeyPins("sha256//" + String(repeating: "A", count: 42) + "B=") == nil)
    }

    @Test(arguments: [
        "localhost", "a.localhost", "LOCALHOST.", "127.0.0.1", "127.1", "0x7f.1", "2130706433",
        "017700000001", "10.1.2.3", "192.168.0.1", "::1", "fd00::1", "::ffff:127.0.0.1", "router",
        "nas.local", "db.internal", "x.home.arpa", "pi.lan", "169.254.169.254",
        "metadata.google.internal",
    ])
    func `a host that is private by its spelling is not for a proxy`(_ host: String) {
        #expect(!AddressPolicy().permitsByName(host))
    }

    @Test(arguments: ["cdn.example.com", "93.184.216.34", "localhost.example", "2a00:1450::1"])
    func `a public host is for a proxy`(_ host: String) {
        #expect(AddressPolicy().permitsByName(host))
    }

    @Test func `a private host is for a proxy where it is allowed, a metadata service never`() {
        #expect(AddressPolicy(allowedHosts: ["nas.local"]).permitsByName("NAS.local."))
        #expect(AddressPolicy(allowsPrivate: true).permitsByName("localhost"))
        for host in ["169.254.169.254", "metadata.google.internal"] {
            #expect(!AddressPolicy(allowsPrivate: true).permitsByName(host))
        }
    }
}
