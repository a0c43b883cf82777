import FixtureCDN
import ScenarioSupport
import Testing

/// Random requests to the daemon's own pages, by seed: each is answered or rejected with a message,
/// and the daemon continues.
extension Stories {
    @Suite(.tags(.timed)) struct AdminFuzzTests {}
}

extension Stories.AdminFuzzTests {
    /// Pages with the names of their arguments.
    static let pages: [(method: String, path: String, arguments: [String])] = [
        ("GET", "/api/titles", ["limit", "after"]), ("GET", "/api/titles/%", []),
        ("GET", "/api/df", []), ("POST", "/api/pin", ["url", "title"]),
        ("POST", "/api/unpin", ["url", "title"]),
        ("POST", "/api/purge", ["url", "title", "host", "prefix", "older-than"]),
        ("GET", "/api/why", ["url"]), ("GET", "/api/keys", ["url"]),
        ("POST", "/api/keys/forget", ["origin"]),
        ("POST", "/api/keys/refuse", ["origin", "name"]),
        (
            "POST", "/api/downloads",
            ["url", "variant", "audio", "subtitles", "from", "to", "rate", "h_Range"]
        ),
        ("GET", "/api/downloads", []), ("GET", "/api/downloads/%", []),
        ("POST", "/api/downloads/%/pause", []), ("DELETE", "/api/downloads/%", []),
        ("POST", "/api/recordings", ["url", "for", "until", "at", "name", "variant"]),
        ("GET", "/api/recordings/%", []), ("GET", "/api/export", ["url", "title", "format"]),
        ("POST", "/api/feeds/f/position", ["index", "direction"]), ("GET", "/api/feeds/%", []),
        ("GET", "/proxy", ["url", "h_Referer", "h_Cookie"]), ("GET", "/%", []),
        ("GET", "/metrics", []), ("GET", "/api/origins", []),
    ]

    static let values = [
        "", "0", "-1", "1", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
        "1e309", "nan", "%", "%00", "%ff", "..%2f..", "best", "all", "720p", "999999999999p",
        "100000w", "9223372036854775807w", "1:2:3", "000000000000", "ffffffffffff",
        "9223372036854775807-ffffffffffff", "-9223372036854775808-000000000000", "forward",
        "file%3A%2F%2F%2Fetc%2Fpasswd", "http%3A%2F%2F", "http%3A%2F%2F%5B%3A%3A1%5D%3A0%2F",
        String(repeating: "9", count: 3_000), "%F0%9F%98%80",
    ]

    static let orders = [
        #"{"entries":["URL","URL"],"index":VALUE,"height":VALUE}"#,
        #"{"entries":[{"url":"URL","weight":VALUE,"headers":{"VALUE":"VALUE"}}]}"#,
        #"{"entries":["URL"],"parameters":{"items":VALUE,"activeFirst":VALUE}}"#,
        "VALUE", "[[[[", "{\"entries\":",
    ]

    /// Repeatable random numbers.
    private struct Dice {
        var state: UInt64

        mutating func pick<Element>(_ elements: [Element]) -> Element {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return elements[Int((state >> 33) % UInt64(elements.count))]
        }
    }

    @Test(arguments: [1, 2] as [UInt64])
    func `the daemon's own pages answer random requests`(seed: UInt64) throws {
        let story = try Story()
        story.cdn.put("/l.m3u8", text: vod([segment("a", 20_000)]))
        _ = try story.get("/l.m3u8")
        var dice = Dice(state: seed)
        let known = percentEncoded(story.cdn.url("/l.m3u8"))
        for round in 0..<250 {
            let page = dice.pick(Self.pages)
            var target = page.path.replacing("%", with: dice.pick(Self.values + [known]))
            for (index, name) in page.arguments.enumerated() where index == 0 || round % 2 == 0 {
                let value = dice.pick(Self.values + [known, known, known])
                target += "\(target.contains("?") ? "&" : "?")\(name)=\(value)"
            }
            let answer = try story.player().get(
                story.daemon.baseURL + target, method: page.method)
            // 502 and 504 are the responses for an unreachable origin.
            #expect(
                answer.status < 500 || (502...504).contains(answer.status),
                "\(page.method) \(target.prefix(200)): \(answer.status) \(answer.text.prefix(200))")
            if round % 25 == 0 {
                let order = dice.pick(Self.orders).replacing("URL", with: story.cdn.url("/l.m3u8"))
                    .replacing("VALUE", with: dice.pick(Self.values))
                let put = try story.player().get(
                    story.daemon.baseURL + "/api/feeds/f", method: "PUT", body: Array(order.utf8))
                #expect(put.status < 500, "\(order.prefix(200)): \(put.text.prefix(200))")
                #expect(try story.player().get("/api/health").status == 200)
            }
        }
    }
}
