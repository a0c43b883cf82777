import HTTP
import Routing
import Testing
import URISyntax

/// Players' telemetry does not reach an origin.
@Suite struct TelemetryTests {
    @Test(arguments: [
        ("http://a/x.ts?CMCD=bl%3D2100%2Csid%3D%22a%22", "http://a/x.ts"),
        ("http://a/x.ts?id=2&CMCD=bl%3D2100&seg=7", "http://a/x.ts?id=2&seg=7"),
        ("http://a/x.ts?CMCD", "http://a/x.ts"), ("http://a/x.ts?cmcd=1", "http://a/x.ts?cmcd=1"),
        ("http://a/x.ts?CMCDs=1", "http://a/x.ts?CMCDs=1"), ("http://a/x.ts?", "http://a/x.ts?"),
    ])
    func `the CMCD argument is removed and nothing else`(url: String, expected: String) throws {
        #expect(Telemetry.stripped(try AbsoluteURL(url)).text == expected)
    }

    @Test func `CMCD fields are removed case-insensitively`() {
        var fields = Fields()
        for name in ["CMCD-Request", "cmcd-session", "CMCD-Object", "CMCD-Status", "Range"] {
            fields.append(name, "x")
        }
        Telemetry.strip(&fields)
        #expect(fields.map(\.name) == ["Range"])
    }

    @Test func `entries and mounts lose the CMCD argument`() throws {
        let router = Router(mounts: [try Mount("/mount/=http://a/")])
        let entry = RequestHead(method: .get, target: "/http://a/x.m3u8?CMCD=bl%3D1&id=2")
        guard case .entry(let found) = router.route(entry) else {
            Issue.record("no entry")
            return
        }
        #expect(found.url.text == "http://a/x.m3u8?id=2")
        let mounted = RequestHead(method: .get, target: "/mount/x?CMCD=1")
        guard case .mount(_, let url) = router.route(mounted) else {
            Issue.record("no mount")
            return
        }
        #expect(url.text == "http://a/x")
    }
}
