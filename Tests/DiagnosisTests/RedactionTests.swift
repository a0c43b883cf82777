import Testing
import URISyntax

@testable import Diagnosis

@Suite struct RedactionTests {
    @Test(arguments: [
        ("GET http://u:SECRET@h/a?x=SECRET&y=SECRET 1", "GET http://***@h/a?x=***&y=*** 1"),
        (#"{"url":"https://h/a?SECRET","n":1}"#, #"{"url":"https://h/a?***","n":1}"#),
        ("Authorization: Basic SECRET", "Authorization: ***"),
        ("authorization=Bearer SECRET", "authorization=***"),
        ("sent Bearer SECRETSECRET, again", "sent Bearer ***, again"),
        ("Cookie: a=SECRET; b=SECRET", "Cookie: ***"),
        (#"{"Set-Cookie":"a=SECRET; Path=/","n":1}"#, #"{"Set-Cookie":"***","n":1}"#),
        ("path /seg;token=SECRET/a.ts", "path /seg;token=***"),
        ("socks5://user:SECRET@proxy:1080", "socks5://***@proxy:1080"),
        (#""token" : "SECRET""#, #""token" : "***""#),
    ])
    func `secrets at their usual places are removed`(given: String, expected: String) {
        let shown = Redaction().text(given)
        #expect(shown == expected)
        #expect(!shown.contains("SECRET"))
    }

    @Test(arguments: [
        "sluice_hits_total{host=\"cdn.example\"} 7", "what is this? nothing", "a basic fact",
        "2026-01-01T00:00:00Z 127.0.0.1 GET /a 200 hit", "x=1, monkey=2",
        "http://h/a.ts?token=***",
    ])
    func `text without secrets is unchanged`(_ text: String) {
        #expect(Redaction().text(text) == text)
    }

    @Test func `known secrets are removed wherever they occur`() throws {
        let url = try AbsoluteURL("https://us%65r:pass-1@h/p/exp=9999/a.m3u8?k=val%2Due&bare-one")
        let redaction = Redaction(secrets: url.secrets + ["abc"])
        let text = "pass-1 user 9999 val-ue val%2Due bare-one abc\nagain pass-1"
        #expect(redaction.text(text) == "*** *** *** *** *** *** abc\nagain ***")
    }

    @Test func `each value behind an encoded question mark is a secret`() throws {
        let url = try AbsoluteURL("https://h/sea.mp4%3Ftoken=FIRST-ONE%26k%3dother%2Done&bare-one")
        let text = "FIRST-ONE other%2Done, other-one bare-one sea.mp4"
        #expect(Redaction(secrets: url.secrets).text(text) == "*** ***, *** *** sea.mp4")
    }

    @Test func `each value of an encoded query behind a value of the path is a secret`() throws {
        let url = try AbsoluteURL("https://h/exp=9999%3ftoken=FIRST-ONE%26k%3Dother-one/sea.mp4")
        let text = "9999 FIRST-ONE, other-one sea.mp4"
        #expect(Redaction(secrets: url.secrets).text(text) == "*** ***, *** sea.mp4")
    }

    @Test func `secrets are extracted from the URLs of a setting`() {
        let found = Redaction.secrets(in: "*=socks5://joe:hush@p:1 /d/=http://h/?q=word")
        #expect(Set(found) == ["joe", "hush", "word"])
    }
}
