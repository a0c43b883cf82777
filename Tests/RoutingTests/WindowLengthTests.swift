import HTTP
import Routing
import Testing
import URISyntax

/// Window lengths in entries.
@Suite struct WindowLengthTests {
    @Test(arguments: [
        ("3600", 3_600), ("90m", 5_400), ("2h", 7_200), ("1h30m", 5_400), ("1d", 86_400),
        ("24h", 86_400), ("1h2m3s", 3_723),
    ])
    func `durations are parsed, and written in their short form`(_ text: String, _ seconds: Int) {
        #expect(WindowLength.seconds(text) == seconds)
        #expect(WindowLength.seconds(WindowLength.text(seconds)) == seconds)
    }

    @Test(arguments: ["", "0", "h", "-1h", "2x", "25h", "1m1h", "5m5m", "1h30", "99999999999999"])
    func `other text is not a duration`(_ text: String) {
        #expect(WindowLength.seconds(text) == nil)
    }

    @Test(arguments: [
        "/dvr=2h/https://h/a.m3u8?x=1&dvr=9h", "/dvr=7200/https:/h/a.m3u8?x=1&dvr=9h",
        "/proxy?url=https%3A%2F%2Fh%2Fa.m3u8%3Fx%3D1%26dvr%3D9h&dvr=2h",
    ])
    func `a window length precedes the URL, whose own arguments reach the origin`(_ target: String)
    {
        let route = Router(mounts: []).route(RequestHead(method: .get, target: target))
        guard case .entry(let entry) = route else { return #expect(Bool(false)) }
        #expect(entry.window == 7_200 && entry.url.text == "https://h/a.m3u8?x=1&dvr=9h")
    }

    @Test(arguments: ["/dvr=2h", "/dvr=2h/", "/dvr=2h/x.m3u8", "/dvr=/https://h/a.m3u8"])
    func `a window length without a URL is rejected`(_ target: String) {
        let route = Router(mounts: []).route(RequestHead(method: .get, target: target))
        guard case .refused(let status, _) = route else { return #expect(Bool(false)) }
        #expect(status == .badRequest)
    }
}
