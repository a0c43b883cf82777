import Library
import Model
import Routing
import Testing
import URISyntax

/// Headers behind the URL of an order, as Kodi writes them.
@Suite struct `Headers behind the URL of an order` {
    @Test func `a download has the headers of its arguments and of its URL`() throws {
        let order = try DownloadOrder(
            query: "url=http%3A%2F%2Fh%2Fa.m3u8%7CReferer%3Dhttps%253A%252F%252Fs%2F&h_X-A=1"
        ) { try? AbsoluteURL($0) }
        #expect(order.entry.url.text == "http://h/a.m3u8")
        let headers = order.entry.headers.map { "\($0.name): \($0.value)" }
        #expect(Set(headers) == ["Referer: https://s/", "X-A: 1"])
    }

    @Test func `a download with a header that the daemon sets is refused`() {
        #expect(throws: AdministrationRefusal.self) {
            try DownloadOrder(query: "url=http%3A%2F%2Fh%2Fa%7CHost%3Dx") { try? AbsoluteURL($0) }
        }
    }

    @Test func `an item of a feed has the headers behind its URL, or is invalid`() throws {
        let text = #"{"entries":["http://h/a|X-A=1","http://h/b|Host=x","http://h/c"]}"#
        let order = try FeedOrder(parsing: Array(text.utf8))
        let items = order.items
        #expect(items.map { $0.entry?.url.text } == ["http://h/a", nil, "http://h/c"])
        #expect(items[0].entry?.headers == [Entry.Header(name: "X-A", value: "1")])
        #expect(items[1].fault?.contains("set by the daemon itself") == true)
    }

    /// Returns the reason why an item with these headers is invalid; nil if it is valid.
    private func fault(_ url: String, _ headers: String) throws -> String? {
        let text = #"{"entries":["http://h/c",{"url":"\#(url)","headers":{\#(headers)}}]}"#
        return try FeedOrder(parsing: Array(text.utf8)).items[1].fault
    }

    @Test func `the headers of an item follow the rules of headers behind its URL`() throws {
        for name in ["Host", "Range", "if-none-match", "Content-Length", "CDN-Loop"] {
            let found = try fault("http://h/a", "\"\(name)\":\"x\"")
            #expect(found?.contains("set by the daemon itself") == true, "\(name)")
        }
        let many = (1...33).map { "\"x\($0)\":\"1\"" }.joined(separator: ",")
        #expect(try fault("http://h/a", many)?.contains("at most 32 headers") == true)
        #expect(try fault("http://h/a", "\"x\":1")?.contains("no text") == true)
        let most = (1...31).map { "\"x\($0)\":\"1\"" }.joined(separator: ",")
        #expect(try fault("http://h/a|X-A=1", most) == nil)
        #expect(try fault("http://h/a|X-A=1&X-B=2", most) != nil)
    }
}
