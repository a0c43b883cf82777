import HTTP
import Testing
import URISyntax

struct `Request head` {
    @Test(
        arguments: [
            (HTTPVersion.http11, nil, true), (.http11, "close", false), (.http11, "Close", false),
            (.http11, "keep-alive", true), (.http11, "keep-alive, close", false),
            (.http11, "upgrade", true), (.http10, nil, false), (.http10, "keep-alive", true),
            (.http10, "Keep-Alive", true), (.http10, "x, KEEP-ALIVE", true),
            (.http10, "close, keep-alive", false), (.http10, "x", false),
        ] as [(HTTPVersion, String?, Bool)])
    func `version and Connection decide whether the connection stays open`(
        version: HTTPVersion, connection: String?, expected: Bool
    ) {
        var head = RequestHead(method: .get, target: "/", version: version)
        if let connection { head.fields.append(.connection, connection) }
        #expect(head.keepAlive == expected)
    }

    @Test func `close counts on any line of Connection`() {
        let lines = fields(("Connection", "x"), ("connection", "close"))
        #expect(!RequestHead(method: .get, target: "/", fields: lines).keepAlive)
    }

    @Test func `content is delimited by length, by chunks, or absent`() {
        let head = { RequestHead(method: .post, target: "/", fields: $0) }
        #expect(head(Fields()).bodyFraming == .none)
        #expect(head(["Content-Length": "0"]).bodyFraming == .length(0))
        #expect(head(["Content-Length": "007"]).bodyFraming == .length(7))
        #expect(head(["Transfer-Encoding": "Chunked"]).bodyFraming == .chunked)
        #expect(head(["Transfer-Encoding": ", chunked ,"]).bodyFraming == .chunked)
        #expect(head(["Content-Length": "x"]).bodyFraming == .none)
    }

    @Test func `only HTTP/1.1 requests can expect 100-continue`() {
        var head = RequestHead(
            method: .post, target: "/", fields: ["Expect": "100-Continue"])
        #expect(head.expectsContinue)
        head.version = .http10
        #expect(!head.expectsContinue)
        #expect(!RequestHead(method: .post, target: "/").expectsContinue)
    }

    @Test(
        arguments: [
            ("/", "/", nil), ("/a/b?c=d", "/a/b", "c=d"), ("/a?", "/a", ""),
            ("/a?b?c", "/a", "b?c"), ("/a#f", "/a", nil), ("/a?b#f?g", "/a", "b"),
            ("http://h", "/", nil), ("http://h/p?q", "/p", "q"), ("http://h?q", "/", "q"),
            ("HTTPS://h:1/p", "/p", nil), ("*", "*", nil),
            ("/https://cdn.example.com/v.m3u8?t=1", "/https://cdn.example.com/v.m3u8", "t=1"),
            ("//a/b", "//a/b", nil), ("/%3F?%23", "/%3F", "%23"),
        ] as [(String, String, String?)])
    func `a target is split into path and query`(target: String, path: String, query: String?) {
        let head = RequestHead(method: .get, target: target)
        #expect(head.path == path)
        #expect(head.query == query)
    }

    @Test func `the authority of an absolute target takes precedence over Host`() {
        var head = RequestHead(method: .get, target: "http://b:81/x", fields: ["Host": "a"])
        #expect(head.host == "b:81")
        head.target = "/x"
        #expect(head.host == "a")
    }

    @Test func `query items keep their order, duplicates and spelling`() {
        let head = RequestHead(method: .get, target: "/p?a=1&b&&a=%32+3&c=x=y&=v")
        #expect(head.queryItems.map(\.rawName) == ["a", "b", "a", "c", ""])
        #expect(head.queryItems.map(\.rawValue) == ["1", nil, "%32+3", "x=y", "v"])
        #expect(head.queryItems[2].value() == "2+3")
        #expect(head.queryItems[2].value(plusAsSpace: true) == "2 3")
        #expect(head.queryItems[1].value() == "")
        #expect(RequestHead(method: .get, target: "/p").queryItems.isEmpty)
    }

    @Test func `a URL in a query item keeps its ampersands if they are encoded`() {
        let url = "https://cdn.example.com/v.m3u8?a=1&b=2+3#x"
        let target = "/proxy?url=" + PercentCoding.queryComponent(url) + "&h_Referer=x"
        let items = RequestHead(method: .get, target: target).queryItems
        #expect(items.first?.value() == url)
        #expect(items.last?.name() == "h_Referer")
    }

    @Test func `methods that change nothing are safe`() {
        #expect(HTTPMethod.get.isSafe && HTTPMethod.trace.isSafe)
        for method in [HTTPMethod.put, .delete, .post, .patch, .connect, .other("LOCK")] {
            #expect(!method.isSafe, "\(method)")
        }
    }
}
