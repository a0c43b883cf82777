import HTTP
import Model
import Routing
import Testing

@testable import Serving

struct LinkPrefixTests {
    private func prefix(
        _ fields: [(FieldName, String)], isEncrypted: Bool = false,
        _ change: (inout ProxySettings) -> Void = { _ in }
    ) -> LinkPrefix {
        var settings = ProxySettings()
        change(&settings)
        var request = RequestHead(method: .get, target: "/l.m3u8")
        for (name, value) in fields { request.fields.append(name, value) }
        return LinkPrefix(request, isEncrypted: isEncrypted, settings)
    }

    private let forwarded: [(FieldName, String)] = [
        (.host, "127.0.0.1:9000"), (.xForwardedProto, "https"),
        (.xForwardedHost, "tv.example:8443"),
        (.xForwardedPrefix, "/hls/"),
    ]

    @Test func `links are paths unless absolute URLs are set`() {
        let plain = prefix([(.host, "tv.example")]) { $0.basePath = "/hls" }
        #expect(plain.written == "/hls" && plain.absolute == "http://tv.example/hls")
        let absolute = prefix([(.host, "tv.example")]) { $0.writesAbsoluteURLs = true }
        #expect(absolute.written == "http://tv.example")
        #expect(prefix([(.host, "a")], isEncrypted: true).absolute == "https://a")
    }

    @Test func `a request without a host has paths only`() {
        let absolute = prefix([]) {
            $0.writesAbsoluteURLs = true
            $0.basePath = "/hls"
        }
        #expect(absolute.written == "/hls" && absolute.absolute == "/hls")
    }

    @Test func `forwarded names count only where they are trusted`() {
        #expect(prefix(forwarded).absolute == "http://127.0.0.1:9000")
        let trusting = prefix(forwarded) { $0.trustsForwarded = true }
        #expect(trusting.path == "/hls" && trusting.absolute == "https://tv.example:8443/hls")
    }

    @Test func `of a chain of proxies that append, the outermost is believed`() {
        let chain: [(FieldName, String)] = [
            (.host, "127.0.0.1:9000"), (.xForwardedProto, "https, http"),
            (.xForwardedHost, "tv.example:8443 , inner.lan"),
        ]
        #expect(prefix(chain).absolute == "http://127.0.0.1:9000")
        let trusting = prefix(chain) { $0.trustsForwarded = true }
        #expect(trusting.absolute == "https://tv.example:8443")
        let empty = prefix([(.host, "a"), (.xForwardedHost, ", b")]) { $0.trustsForwarded = true }
        #expect(empty.absolute == "http://a")
    }

    @Test(arguments: [
        (FieldName.xForwardedPrefix, "//evil.example"), (.xForwardedPrefix, "javascript:x"),
        (.xForwardedPrefix, "/a b"), (.xForwardedPrefix, "/a\"b"), (.xForwardedPrefix, ""),
        (.xForwardedHost, ""), (.xForwardedHost, "a/b"), (.xForwardedHost, "a\"b"),
        (.xForwardedHost, "u@h"), (.xForwardedProto, "javascript"), (.xForwardedProto, "HTTPS"),
    ])
    func `a forwarded field of another form is ignored`(_ name: FieldName, _ value: String) {
        let prefix = prefix([(.host, "own.example"), (name, value)]) { $0.trustsForwarded = true }
        #expect(prefix.absolute == "http://own.example" && prefix.path == "")
    }

    @Test func `the scheme that a trusted proxy states is that of the client`() {
        var request = RequestHead(method: .get, target: "/")
        request.fields.append(.xForwardedProto, "https")
        var settings = ProxySettings()
        #expect(OwnOrigin(request, isEncrypted: false, settings).scheme == "http")
        settings.trustsForwarded = true
        #expect(OwnOrigin(request, isEncrypted: false, settings).scheme == "https")
    }

    @Test func `a session without a seal adds nothing`() {
        let session = Session(id: SessionID(1), fields: Fields())
        #expect(prefix([(.host, "a")]).own(of: session, in: "/l.m3u8") == "")
    }
}
