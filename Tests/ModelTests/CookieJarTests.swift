@testable import Model
import Posix
import Testing
import URISyntax

/// Which cookies are sent with a request (RFC 6265).
@Suite struct `The cookie jar` {
    private let now = Monotonic(nanoseconds: 7)
    private let date = WallTime(seconds: 1_800_000_000)

    private func url(_ text: String) throws -> AbsoluteURL { try AbsoluteURL(text) }

    private func sent(_ cookie: String, from: String, to: String) throws -> String? {
        var jar = CookieJar()
        jar.receive(cookie, from: try url(from), now: now, date: date)
        return jar.field(for: try url(to), now: now)
    }

    @Test func `says whether requests may carry another cookie than before`() throws {
        var jar = CookieJar()
        let url = try url("https://h.example/m")
        var answers: [Bool] = []
        for field in ["a=1; Max-Age=10", "a=1; Max-Age=20", "a=2; Max-Age=20", "no cookie"] {
            answers.append(jar.receive(field, from: url, now: now, date: date))
        }
        let later = now + .seconds(30 as Int64)
        for field in ["a=2", "a=2", "a=; Max-Age=0"] {
            answers.append(jar.receive(field, from: url, now: later, date: date))
        }
        #expect(answers == [true, false, true, false, true, false, false])
    }

    @Test(arguments: [
        ("a=1", "https://h.example/x/m", "https://h.example/x/s", "a=1"),
        ("a=1; Path=/", "https://h.example/x/m", "https://h.example/y", "a=1"),
        (
            "a=1; Domain=example.com; Path=/", "https://a.example.com/", "https://b.example.com/",
            "a=1"
        ),
        ("a=\"q; b\"; Path=/", "https://h.example/", "https://h.example/", "a=\"q"),
        (
            "a=1; Domain=.Example.COM; Path=/", "https://example.com/", "https://x.example.com/",
            "a=1"
        ),
        ("a=1; Domain=; Path=/", "https://h.example/", "https://h.example/", "a=1"),
        ("a=1; Path=x", "https://h.example/v/m", "https://h.example/v/s", "a=1"),
        ("a=1; Path=/v", "https://h.example/", "https://h.example/v", "a=1"),
        (
            "a=b=c; SameSite=Strict; HttpOnly; X=y", "https://h.example/", "https://h.example/",
            "a=b=c"
        ),
        ("a=1; Max-Age=x", "https://h.example/", "https://h.example/", "a=1"),
        ("a=1; Path=/", "https://h.example/", "http://h.example:8080/", "a=1"),
        ("a=1; Domain=co.uk; Path=/", "https://co.uk/", "https://co.uk/", "a=1"),
        ("a=1; Domain=bbc.co.uk; Path=/", "https://a.bbc.co.uk/", "https://b.bbc.co.uk/", "a=1"),
        ("__Host-a=1; Path=/; Secure", "https://h.example/", "https://h.example/", "__Host-a=1"),
        ("a=1; Domain=127.0.0.1; Path=/", "http://127.0.0.1/", "http://127.0.0.1:81/", "a=1"),
    ])
    func `a cookie is sent to its origin and path`(
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
        ("a=1; Expires=Thu, 01-Jan-1970 00:00:00 GMT", "https://h.example/", "https://h.example/"),
        (
            "a=1; Expires=Thursday, 01-Jan-70 00:00:00 GMT", "https://h.example/",
            "https://h.example/"
        ),
        (
            "a=1; Max-Age=-1; Expires=Fri, 01 Jan 2100 00:00:00 GMT", "https://h.example/",
            "https://h.example/"
        ),
        ("a=1; Path=/v", "https://h.example/", "https://h.example/video"),
        ("a=1; Domain=co.uk; Path=/", "https://a.co.uk/", "https://b.co.uk/"),
        (
            "a=1; Domain=cloudfront.net; Path=/", "https://a.cloudfront.net/",
            "https://b.cloudfront.net/"
        ),
        ("a=1; Domain=example.com; Path=/", "https://badexample.com/", "https://example.com/"),
        ("a=1; Domain=0.0.1; Path=/", "http://127.0.0.1/", "http://128.0.0.1/"),
        ("a=1; Secure", "http://h.example/", "https://h.example/"),
        ("__Secure-a=1; Path=/", "https://h.example/", "https://h.example/"),
        ("__Host-a=1; Path=/; Secure; Domain=example", "https://h.example/", "https://h.example/"),
        ("__Host-a=1; Path=/v; Secure", "https://h.example/", "https://h.example/v"),
    ])
    func `a cookie is not sent elsewhere`(
        _ cookie: String, _ from: String, _ to: String
    ) throws {
        #expect(try sent(cookie, from: from, to: to) == nil)
    }

    @Test func `cookies with longer paths come first`() throws {
        var jar = CookieJar()
        jar.receive("a=1; Path=/", from: try url("https://h.example/"), now: now, date: date)
        jar.receive("b=2; Path=/deep", from: try url("https://h.example/"), now: now, date: date)
        #expect(jar.field(for: try url("https://h.example/deep/x"), now: now) == "b=2; a=1")
    }

    @Test func `a life of one second is a whole second, whenever it begins`() throws {
        var jar = CookieJar()
        let home = try url("https://h.example/")
        let begin = now + .milliseconds(990)
        jar.receive("a=1; Max-Age=1", from: home, now: begin, date: date)
        #expect(jar.field(for: home, now: begin + .milliseconds(999)) == "a=1")
        #expect(jar.field(for: home, now: begin + .milliseconds(1_000)) == nil)
    }

    @Test func `a cookie that is set again is replaced`() throws {
        var jar = CookieJar()
        let home = try url("https://h.example/")
        jar.receive("a=1; Path=/", from: home, now: now, date: date)
        jar.receive("a=2; Path=/", from: home, now: now, date: date)
        #expect(jar.field(for: home, now: now) == "a=2")
    }

    @Test func `a secure cookie is not changed from an insecure connection`() throws {
        var jar = CookieJar()
        let home = try url("https://h.example/")
        jar.receive("a=1; Path=/; Secure", from: home, now: now, date: date)
        jar.receive("a=2; Path=/v", from: try url("http://h.example/"), now: now, date: date)
        #expect(jar.field(for: try url("https://h.example/v"), now: now) == "a=1")
        jar.receive("a=3; Path=/; Secure", from: home, now: now, date: date)
        #expect(jar.field(for: home, now: now) == "a=3")
    }

    @Test func `a full jar drops its oldest cookies, of any host`() throws {
        var jar = CookieJar()
        for host in 0..<400 {
            jar.receive("h=1", from: try url("https://h\(host).example/"), now: now, date: date)
        }
        #expect(jar.field(for: try url("https://h99.example/"), now: now) == nil)
        #expect(jar.field(for: try url("https://h100.example/"), now: now) == "h=1")
    }

    @Test func `a cookie expires`() throws {
        var jar = CookieJar()
        let home = try url("https://h.example/")
        jar.receive("a=1; Path=/; Max-Age=10", from: home, now: now, date: date)
        #expect(jar.field(for: home, now: now + .seconds(9 as Int64)) == "a=1")
        #expect(jar.field(for: home, now: now + .seconds(10 as Int64)) == nil)
    }

    @Test func `Expires is meant by the clock of the origin, however wrong it is here`() throws {
        let home = try url("https://h.example/")
        // 15 Jan 2027 08:00:00 by the clock of the origin.
        for (text, seconds) in [("08:00:10", 10), ("07:59:59", 0), ("08:00:00", 0)] {
            var jar = CookieJar()
            let line = "a=1; Expires=Fri, 15 Jan 2027 \(text) GMT"
            jar.receive(line, from: home, now: now, date: date)
            #expect(jar.isEmpty == (seconds == 0))
            let end = now + .seconds(Int64(seconds))
            let (before, after) = (end + .milliseconds(-1), end)
            #expect(jar.field(for: home, now: before) == (seconds == 0 ? nil : "a=1"))
            #expect(jar.field(for: home, now: after) == nil)
        }
    }

    @Test func `the cookies of one host are limited`() throws {
        var jar = CookieJar()
        let home = try url("https://h.example/")
        for number in 0..<1_000 {
            jar.receive("n\(number)=x; Path=/", from: home, now: now, date: date)
        }
        let sent = jar.field(for: home, now: now)
        let field = try #require(sent)
        #expect(field.split(separator: ";").count == 50)
    }
}
