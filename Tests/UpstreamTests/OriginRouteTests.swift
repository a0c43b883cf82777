// Parsing the settings that name a route to an origin.
import Glibc
import Posix
import Testing
import URISyntax
import Upstream

@Suite struct OriginRouteTests {
    @Test func `a proxy is parsed with credentials that it never shows`() throws {
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
    func `text that is not a proxy is rejected without being repeated`(_ text: String) throws {
        let fault = try #require(throws: RouteFault.self) { try OriginProxy(text) }
        #expect(!fault.description.contains("secret"))
    }

    @Test func `pins are SHA-256 hashes in base64`() {
        let pin = "sha256//" + String(repeating: "A", count: 43) + "="
        #expect(PublicKeyPins(pin)?.description == pin)
        #expect(PublicKeyPins(pin + ";" + pin) != nil)
        for text in ["", "sha256//", pin + ";", "sha1//AAAA", String(pin.dropLast()), pin + "="] {
            #expect(PublicKeyPins(text) == nil)
        }
        // The last digit has bits beyond 32 bytes.
        #expect(PublicKeyPins("sha256//" + String(repeating: "A", count: 42) + "B=") == nil)
    }

    @Test func `an interface is a name or an address of this machine`() {
        for text in ["eth0", "wg-home.1", "192.0.2.1", "2001:db8::1"] {
            #expect(LocalInterface(text)?.description == text)
        }
        for text in ["", "a/b", "if!eth0", "eth 0", "sixteen-letters-"] {
            #expect(LocalInterface(text) == nil)
        }
    }

    @Test func `a proxy connection bound to an address is not reused without it`() throws {
        // Requests to http origins share the connections to a proxy, whatever the origin.
        let proxy = try TestOrigin { exchange in
            exchange.respond(body: Array((peerAddress(of: exchange.socket)?.host ?? "").utf8))
            return .keep
        }
        let way = try OriginProxy("http://127.0.0.1:\(proxy.port)")
        let harness = try Harness { configuration in
            configuration.routes = OriginRoutes { place in
                var route = OriginRoute.Settings()
                route.proxy = way
                if place.host == "bound.test" { route.interface = LocalInterface("127.0.0.2") }
                return OriginRoute(route)
            }
        }
        #expect(try harness.fetch("http://bound.test/").text == "127.0.0.2")
        #expect(try harness.fetch("http://plain.test/").text == "127.0.0.1")
        #expect(try harness.fetch("http://other.test/").text == "127.0.0.1")
        #expect(proxy.connections == 2)
        harness.stop()
        proxy.stop()
    }

    @Test func `connections use the configured source address`() throws {
        let origin = try TestOrigin { exchange in
            exchange.respond(body: Array((peerAddress(of: exchange.socket)?.host ?? "").utf8))
            return .keep
        }
        let bound = try #require(LocalInterface("127.0.0.2"))
        let loopback = try #require(LocalInterface("lo"))
        let missing = try #require(LocalInterface("none0"))
        let own = try #require(FixedAddress("127.0.0.1"))
        let harness = try Harness { configuration in
            configuration.addressPolicy.allowsPrivate = false
            configuration.routes = OriginRoutes { place in
                var route = OriginRoute.Settings()
                route.addresses = [own]
                switch place.host {
                case "bound.test": route.interface = bound
                case "lo.test": route.interface = loopback
                case "missing.test": route.interface = missing
                default: break
                }
                return OriginRoute(route)
            }
        }
        for (host, address) in [
            ("bound.test", "127.0.0.2"), ("plain.test", "127.0.0.1"), ("lo.test", "127.0.0.1"),
            ("bound.test", "127.0.0.2"),
        ] {
            #expect(try harness.fetch(origin.url(host: host)).text == address, "\(host)")
        }
        #expect(origin.connections == 3)
        let lost = try harness.fetch(origin.url(host: "missing.test"))
        #expect(lost.failure?.kind == .interface)
        #expect(try harness.fetch(origin.url(host: "localhost")).status == 200)
        harness.stop()
        origin.stop()
    }

    @Test func `a redirect uses the route of its target's origin, however many routes there are`()
        throws
    {
        let last = 45
        let origin = try TestOrigin { exchange in
            let step = Int(exchange.target.dropFirst()) ?? 0
            let port = (try? localAddress(of: exchange.socket).port) ?? 0
            let peer = peerAddress(of: exchange.socket)?.host ?? ""
            guard peer == "127.0.0.\(step + 1)" else {
                exchange.respond(500, body: Array("step \(step) came from \(peer)".utf8))
                return .keep
            }
            if step == last {
                exchange.respond(body: Array("arrived".utf8))
            } else {
                let next = "http://h\(step + 1).test:\(port)/\(step + 1)"
                exchange.respond(302, ["Location: \(next)"])
            }
            return .keep
        }
        let own = try #require(FixedAddress("127.0.0.1"))
        let harness = try Harness { configuration in
            configuration.maxRedirects = 50
            configuration.routes = OriginRoutes { place in
                var route = OriginRoute.Settings()
                route.addresses = [own]
                let number = Int(place.host.dropFirst().prefix { $0 != "." }) ?? 0
                route.interface = LocalInterface("127.0.0.\(number + 1)")
                return OriginRoute(route)
            }
        }
        for _ in 0..<2 {
            #expect(try harness.fetch(origin.url("/0", host: "h0.test")).text == "arrived")
        }
        harness.stop()
        origin.stop()
    }

    @Test(arguments: [
        "localhost", "a.localhost", "LOCALHOST.", "127.0.0.1", "127.1", "0x7f.1", "2130706433",
        "017700000001", "10.1.2.3", "192.168.0.1", "::1", "fd00::1", "::ffff:127.0.0.1", "router",
        "nas.local", "db.internal", "x.home.arpa", "pi.lan", "169.254.169.254",
        "metadata.google.internal",
    ])
    func `a literally private host is not sent to a proxy`(_ host: String) {
        #expect(!AddressPolicy().permitsByName(host))
    }

    @Test(arguments: ["cdn.example.com", "93.184.216.34", "localhost.example", "2a00:1450::1"])
    func `a public host is sent to a proxy`(_ host: String) {
        #expect(AddressPolicy().permitsByName(host))
    }

    @Test func `a private host is sent to a proxy if allowed, a metadata service never`() {
        #expect(AddressPolicy(allowedHosts: ["nas.local"]).permitsByName("NAS.local."))
        #expect(AddressPolicy(allowsPrivate: true).permitsByName("localhost"))
        for host in ["169.254.169.254", "metadata.google.internal"] {
            #expect(!AddressPolicy(allowsPrivate: true).permitsByName(host))
        }
    }
}
