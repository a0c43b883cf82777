import Library
import Routing
import Testing
import URISyntax

/// Members of the order of a feed.
struct FeedOrderTests {
    private let misspelt = Array(#"{"entries":["http://h/a"],"hieght":720}"#.utf8)

    @Test func `a member that an order does not have is refused by its name`() throws {
        let fault = #expect(throws: FeedOrder.Fault.self) { try FeedOrder(parsing: misspelt) }
        #expect(fault?.description.contains(#"no member "hieght""#) == true)
        let all = #"""
            {"entries":["http://h/a"],"index":0,"direction":"forward","height":720,
            "scheme":"default","parameters":{}}
            """#
        #expect(try FeedOrder(parsing: Array(all.utf8)).height == 720)
    }

    @Test func `an entry is what its URL leads to, and one that leads to nothing is at fault`()
        throws
    {
        let text = #"""
            {"entries":["http://own/a|Referer=b","http://own/api",
            {"url":"http://h/a","headers":{"Referer":"b"}}]}
            """#
        let target = try AbsoluteURL("http://h/a")
        let order = try FeedOrder(parsing: Array(text.utf8)) { url in
            guard url.text.hasPrefix("http://own/") else { return Entry(url: url) }
            return url.text.hasSuffix("/api") ? nil : Entry(url: target, window: 60)
        }
        let first = Entry(
            url: target, headers: [.init(name: "Referer", value: "b")], window: 60)
        #expect(order.items[0].entry == first)
        #expect(order.items[1].entry == nil)
        #expect(order.items[2].entry?.window == nil)
        #expect(order.items.map { $0.fault == nil } == [true, false, true])
    }

    @Test func `headers of an entry replace those of its link`() throws {
        let linked: [Entry.Header] = [
            .init(name: "Referer", value: "a"), .init(name: "X-A", value: "b"),
            .init(name: "X-B", value: "c"),
        ]
        let text = #"""
            {"entries":[{"url":"http://own/a","headers":{"referer":"a","x-a":"d"}},
            {"url":"http://h/a|X-A=b","headers":{"X-A":"c"}}]}
            """#
        let order = try FeedOrder(parsing: Array(text.utf8)) { url in
            Entry(url: url, headers: url.text.hasPrefix("http://own/") ? linked : [])
        }
        let found = order.items.map { $0.entry?.headers.map { "\($0.name): \($0.value)" } }
        #expect(found == [["Referer: a", "X-B: c", "x-a: d"], ["X-A: b", "X-A: c"]])
    }

    @Test func `an order that another version accepted is restored without the member`() throws {
        #expect(try FeedOrder(parsing: misspelt, isSaved: true).items.count == 1)
    }
}
