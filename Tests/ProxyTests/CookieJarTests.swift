/// Cookies go where they belong and nowhere else (RFC 6265; trap 51).
@testable import Proxy
import Posix
import Testing
import URISyntax

@Suite struct `The cookie jar` {
    private let now = WallTime(seconds: 1_800_000_000)

    private func url(_ text: String) throws -> AbsoluteURL { try AbsoluteURL(text) }

    private func sent(_ cookie: String, from: String, to: String) throws -> String? {
        var jar = CookieJar()
        jar.receive(cookie, from: try url(from), now: now)
        return jar.field(for: try url(to), now: now)
    }

    @Test(arguments: [
        ("a=1", "https://h.example/x/m", "https://h.example/x/s", "a=1"),
        ("a=1; Path=/", "https://h.example/x/m", "https://h.example/y", "a=1"),
        (
            "a=1; Domain=example.com; Path=/", "https://a.example.com/", "https://b.example.com/",
            "a=1"
        ),
        ("a=\"q; b\"; Path=/", "https://h.example/", "https://h.example/", "a=\"q"),
    ])
    func `a cookie goes back where it came from`(
        _ cookie: String, _ from: String, _ to: String, _ field: String
    ) throws {
        #expect(try sent(cookie, from: from, to: to) == field)
    }

    @Test(arguments: [
        ("a=1", "https://h.example/x/m", "https://h.example/y"),
        ("a=1; Path=/", "https://h.example/", "https://other.example/"),
        ("a=1; Path=/", "https://a.example.com/", "https://b.a.example.com/"),
        ("a=1; Domain=com; Path=/", "https://example.com/", "https://other.com/"),
        ("a=1; Domain=other.example; Path=/", "https://h.example/", "https://other.example/"),
        ("a=1; Path=/; Secure", "https://h.example/", "http://h.example/"),
        ("a=1; Path=/; Max-Age=0", "https://h.example/", "https://h.example/"),
        (
            "a=1; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "https://h.example/",
            "https://h.example/"
        ),
        ("=1; Path=/", "https://h.example/", "https://h.example/"),
    ])
    func `a cookie does not go where it does not belong`(
        _ cookie: String, _ from: String, _ to: String
    ) throws {
        #expect(try sent(cookie, from: from, to: to) == nil)
    }

    @Test func `the longest path comes first`() throws {
        var jar = CookieJar()
        jar.receive("a=1; Path=/", from: try url("https://h.example/"), now: now)
        jar.receive("b=2; Path=/deep", from: try url("https://h.example/"), now: now)
        #expect(jar.field(for: try url("https://h.example/deep/x"), now: now) == "b=2; a=1")
    }

    @Test func `a cookie set again is changed, not doubled`() throws {
        var jar = CookieJar()
        let home = try url("https://h.example/")
        jar.receive("a=1; Path=/", from: home, now: now)
        jar.receive("a=2; Path=/", from: home, now: now)
        #expect(jar.field(for: home, now: now) == "a=2")
    }

    @Test func `a cookie ends with its time`() throws {
        var jar = CookieJar()
        let home = try url("https://h.example/")
        jar.receive("a=1; Path=/; Max-Age=10", from: home, now: now)
        #expect(jar.field(for: home, now: now + .seconds(9 as Int64)) == "a=1")
        #expect(jar.field(for: home, now: now + .seconds(10 as Int64)) == nil)
    }

    @Test func `a host cannot fill the jar`() throws {
        var jar = CookieJar()
        let home = try url("https://h.example/")
        for number in 0..<1_000 { jar.receive("n\(number)=x; Path=/", from: home, now: now) }
        let sent = jar.field(for: home, now: now)
        let field = try #require(sent)
        #expect(field.split(separator: ";").count == 50)
    }
}
