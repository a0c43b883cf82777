import CachePolicy
import HTTP
import Model
import Testing

@testable import Serving

/// Pages of the daemon behind a proxy in front.
struct ForeignPageTests {
    private func change(_ origin: String) -> RequestHead {
        var request = RequestHead(method: .post, target: "/api/clear")
        for (name, value) in [
            (FieldName.host, "127.0.0.1:9000"), (.xForwardedHost, "tv.example"),
            (.xForwardedProto, "https"), (.origin, origin),
        ] {
            request.fields.append(name, value)
        }
        return request
    }

    private var trusting: ProxySettings {
        var settings = ProxySettings()
        settings.trustsForwarded = true
        return settings
    }

    @Test func `the host that a trusted proxy states is that of the daemon's own pages`() {
        let own = change("https://tv.example")
        #expect(!ForeignPage.isForeignChange(own, trusting))
        #expect(ForeignPage.isOwnPage(own, trusting))
        let other = change("https://evil.example")
        #expect(ForeignPage.isForeignChange(other, trusting))
        #expect(!ForeignPage.isOwnPage(other, trusting))
    }

    @Test func `a host may be private in each spelling of an allowed name`() {
        var settings = ProxySettings()
        #expect(!settings.mayBePrivate(finalURL: "http://nas.lan/"))
        settings.privateHosts = ["nas.lan"]
        for host in ["nas.lan", "NAS.lan", "nas.lan."] { #expect(settings.mayBePrivate(host)) }
        #expect(!settings.mayBePrivate("lan"))
        #expect(settings.mayBePrivate(finalURL: "http://nas.lan:8080/a?b"))
        #expect(!settings.mayBePrivate(finalURL: "http://nas.lan.example/"))
        #expect(settings.mayBePrivate(finalURL: "-"))
    }

    @Test func `hosts that are shown a client certificate count as private`() {
        var settings = ProxySettings()
        #expect(!settings.reachesPrivate)
        settings.certificateHosts = [
            KeyGlob("*.bank.example"), KeyGlob("one.example"), KeyGlob("2001:db8::1"),
        ]
        #expect(settings.reachesPrivate)
        for host in [
            "a.bank.example", "A.Bank.example.", "one.example", "2001:db8::1", "2001:0DB8:0:0::1",
        ] {
            #expect(settings.mayBePrivate(host), "\(host)")
        }
        #expect(!settings.mayBePrivate("bank.example") && !settings.mayBePrivate("x.one.example"))
        #expect(settings.mayBePrivate(finalURL: "https://a.bank.example:8443/x"))
    }

    @Test func `a change under a mount is foreign unless its page is the mount's or has consent`() {
        var settings = ProxySettings()
        settings.credentialedOrigins = ["https://site.example"]
        for (origin, relation, isForeign) in [
            ("https://evil.example", nil, true), ("null", "cross-site", true),
            (nil, "cross-site", true), (nil, "same-site", true), (nil, nil, false),
            ("https://site.example", "cross-site", false), ("http://localhost:3000", nil, false),
            ("https://tv.example", "same-origin", false), ("null", "same-origin", false),
        ] as [(String?, String?, Bool)] {
            for method in [HTTPMethod.post, .delete, .get] {
                var request = RequestHead(method: method, target: "/m/a")
                request.fields.append(.host, "127.0.0.1:9000")
                if let origin { request.fields.append(.origin, origin) }
                if let relation { request.fields.append("Sec-Fetch-Site", relation) }
                let found = ForeignPage.isForeignChangeUnderMount(request, settings)
                #expect(found == (isForeign && method != .get), "\(request.fields)")
            }
        }
    }

    @Test func `without trust only Host counts`() {
        let settings = ProxySettings()
        #expect(ForeignPage.isForeignChange(change("https://tv.example"), settings))
        #expect(!ForeignPage.isForeignChange(change("http://127.0.0.1:9000"), settings))
    }
}
