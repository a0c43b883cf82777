import Testing

@testable import DaemonService

@Suite struct GivenHostTests {
    @Test(arguments: [
        ("CDN.Example", "cdn.example"), ("10.0.0.1", "10.0.0.1"), ("::1", "::1"), ("[::1]", "::1"),
        ("b\u{fc}cher.example", "xn--bcher-kva.example"), ("a_b", "a_b"),
    ]) func `a host is read as requests have it`(text: String, host: String) {
        #expect(GivenHost.ascii(text) == host)
        #expect(GivenHost.field(text) == (host.contains(":") ? "[\(host)]" : host))
    }

    @Test(arguments: [
        "", "http://127.0.0.1", "a/b", "a b", "a:80", "[::1]:80", "a:", "u@a", "a?", "a#b",
        "*.example",
        "[::1", "1:2:3",
    ]) func `what is more than a host, or none, is refused`(text: String) {
        #expect(GivenHost.ascii(text) == nil)
    }

    @Test(arguments: [
        ("a.example", "a.example"), ("a.example:443", "a.example"), ("*:8443", "*"), ("::1", "::1"),
        ("[::1]", "::1"), ("[::1]:443", "::1"), ("*", "*"), ("a.example:*", "a.example"),
        ("a.example:44?", "a.example"), ("a.example?443", "a.example"),
        ("a.example*443", "a.example*"), ("*443", "*"), ("fd00:*", "fd00:*"), ("fd00:*", "fd00"),
    ]) func `a pattern of origins names hosts on any port`(pattern: String, hosts: String) {
        #expect(RoutesReader.hosts(of: pattern).contains(hosts))
    }

    @Test(arguments: ["a.example", "*.example", "10.0.0.*", "cdn?.example", "a*b.example"])
    func `a pattern without a port names no further hosts`(pattern: String) {
        #expect(RoutesReader.hosts(of: pattern) == [pattern])
    }

    @Test func `a port is left out where one may stand`() {
        #expect(GivenHost.ascii("a.example:80", mayHavePort: true) == "a.example")
        #expect(GivenHost.ascii("[::1]:80", mayHavePort: true) == "::1")
        #expect(GivenHost.ascii("a.example:x", mayHavePort: true) == nil)
    }

    @Test(arguments: [
        ("https://App.Example/", "https://app.example"),
        ("https://app.example:443", "https://app.example"),
        ("http://app.example:8080", "http://app.example:8080"),
        ("http://[::1]:3000", "http://[::1]:3000"),
        ("capacitor://localhost", "capacitor://localhost"),
        ("chrome-extension://abcdef/", "chrome-extension://abcdef"),
    ]) func `a web origin is read as browsers write it`(text: String, origin: String) {
        #expect(GivenHost.webOrigin(text) == origin)
    }

    @Test(arguments: [
        "foo", "", "*", "https://", "https://a/b", "https://u@a", "https://a?b", "https://a#b",
        "http:a", "1a://b", "://a", "app://a/b", "null",
    ]) func `what is no web origin is refused`(text: String) {
        #expect(GivenHost.webOrigin(text) == nil)
    }
}
