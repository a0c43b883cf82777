import HTTP
import Model
import Posix
import Testing

@testable import Console

struct ConsoleSessionTests {
    private let session = ConsoleSession(token: "a-token-of-tests")
    private let now = WallTime(seconds: 1_800_000_000)
    private let host = "127.0.0.1:9000"

    private func fields(_ cookie: String) -> Fields {
        var fields = Fields()
        fields.append(.cookie, cookie)
        return fields
    }

    private func value() -> String {
        let field = session.begin(now: now, host: host, path: "/", isSecure: false)
        return String(field.prefix { $0 != ";" })
    }

    @Test func `a session is valid from its beginning to its end`() {
        let cookie = fields(value())
        #expect(session.isOpen(cookie, host: host, now: now))
        #expect(session.isOpen(cookie, host: host, now: now + .seconds(7 * 86_400 - 1 as Int64)))
        #expect(!session.isOpen(cookie, host: host, now: now + .seconds(7 * 86_400 as Int64)))
    }

    @Test func `the cookie is found among others`() {
        #expect(session.isOpen(fields("theme=dark; \(value()); x=1"), host: host, now: now))
    }

    @Test func `another token ends all sessions`() {
        let other = ConsoleSession(token: "another-token")
        #expect(!other.isOpen(fields(value()), host: host, now: now))
    }

    @Test(arguments: [
        "", "=", "=.", "=99999999999.00", "=-1.ff", "=1e9.ff", "=9223372036854775808.ff",
    ])
    func `a forged cookie is rejected`(_ rest: String) {
        #expect(!session.isOpen(fields("sluice_console_9000" + rest), host: host, now: now))
    }

    @Test func `the end of a session cannot be changed`() {
        let text = value()
        let mac = text[text.index(after: text.firstIndex(of: ".") ?? text.startIndex)...]
        let later = fields("sluice_console_9000=1900000000.\(mac)")
        #expect(!session.isOpen(later, host: host, now: now))
    }

    @Test(arguments: [
        ("tv.example", false, "sluice_console"), ("tv.example", true, "sluice_consoles"),
        ("tv.example:9000", false, "sluice_console_9000"), (nil, false, "sluice_console"),
        ("[::1]:9443", true, "sluice_consoles_9443"), ("[::1]", false, "sluice_console"),
        ("tv.example:", false, "sluice_console"), ("tv.example:1;2", false, "sluice_console"),
    ])
    func `daemons on ports of one host, with and without TLS, have cookies of their own`(
        _ host: String?, _ isSecure: Bool, _ name: String
    ) {
        let field = session.begin(now: now, host: host, path: "/", isSecure: isSecure)
        let pair = String(field.prefix { $0 != ";" })
        #expect(pair.hasPrefix(name + "="))
        #expect(
            ConsoleSession.end(host: host, path: "/", isSecure: isSecure).hasPrefix(name + "=;"))
        #expect(session.isOpen(fields(pair), host: host, now: now))
        // One of another port proves nothing here: to sign out there would not end it.
        #expect(!session.isOpen(fields(pair), host: "tv.example:81", now: now))
    }

    @Test func `scripts and other sites do not get the cookie`() {
        let field = session.begin(now: now, host: host, path: "/base/", isSecure: true)
        for part in ["; HttpOnly", "; SameSite=Strict", "; Secure", "; Path=/base/;"] {
            #expect(field.contains(part))
        }
        let plain = session.begin(now: now, host: host, path: "/", isSecure: false)
        #expect(!plain.contains("Secure;") && !plain.hasSuffix("Secure"))
    }

    @Test(arguments: [
        ("sluice_console=1.2", nil), ("a=1; sluice_console=1.2; b=2", "a=1; b=2"), ("a=1", "a=1"),
        ("sluice_console2=1", "sluice_console2=1"), ("sluice_console_x=1", "sluice_console_x=1"),
        ("sluice_console_9000=1.2; a=1; sluice_consoles_443=1.2; sluice_consoles=1.2", "a=1"),
    ])
    func `origins do not get the cookie`(_ given: String, _ kept: String?) {
        var fields = fields(given)
        ConsoleSession.strip(&fields)
        #expect(fields.first(.cookie) == kept)
    }
}
