import HTTP
import Model
import Posix
import Testing

@testable import Console

struct ConsoleSessionTests {
    private let session = ConsoleSession(token: "a-token-of-tests")
    private let now = WallTime(seconds: 1_800_000_000)

    private func fields(_ cookie: String) -> Fields {
        var fields = Fields()
        fields.append(.cookie, cookie)
        return fields
    }

    private func value() -> String {
        let field = session.begin(now: now, path: "/", isSecure: false)
        return String(field.prefix { $0 != ";" })
    }

    @Test func `a session is valid from its beginning to its end`() {
        let cookie = fields(value())
        #expect(session.isOpen(cookie, now: now))
        #expect(session.isOpen(cookie, now: now + .seconds(7 * 86_400 - 1 as Int64)))
        #expect(!session.isOpen(cookie, now: now + .seconds(7 * 86_400 as Int64)))
    }

    @Test func `the cookie is found among others`() {
        #expect(session.isOpen(fields("theme=dark; \(value()); x=1"), now: now))
    }

    @Test func `another token ends all sessions`() {
        #expect(!ConsoleSession(token: "another-token").isOpen(fields(value()), now: now))
    }

    @Test(arguments: [
        "", "sluice_console=", "sluice_console=.", "sluice_console=99999999999.00",
        "sluice_console=-1.ff", "sluice_console=1e9.ff", "sluice_console=9223372036854775808.ff",
        "sluice_console",
    ])
    func `a forged cookie is rejected`(_ cookie: String) {
        #expect(!session.isOpen(fields(cookie), now: now))
    }

    @Test func `the end of a session cannot be changed`() {
        let text = value()
        let mac = text[text.index(after: text.firstIndex(of: ".") ?? text.startIndex)...]
        #expect(!session.isOpen(fields("sluice_console=1900000000.\(mac)"), now: now))
    }

    @Test func `scripts and other sites do not get the cookie`() {
        let field = session.begin(now: now, path: "/base/", isSecure: true)
        for part in ["; HttpOnly", "; SameSite=Strict", "; Secure", "; Path=/base/;"] {
            #expect(field.contains(part))
        }
        let plain = session.begin(now: now, path: "/", isSecure: false)
        #expect(!plain.contains("Secure;") && !plain.hasSuffix("Secure"))
    }

    @Test(arguments: [
        ("sluice_console=1.2", nil), ("a=1; sluice_console=1.2; b=2", "a=1; b=2"), ("a=1", "a=1"),
        ("sluice_console2=1", "sluice_console2=1"),
    ])
    func `origins do not get the cookie`(_ given: String, _ kept: String?) {
        var fields = fields(given)
        ConsoleSession.strip(&fields)
        #expect(fields.first(.cookie) == kept)
    }
}
