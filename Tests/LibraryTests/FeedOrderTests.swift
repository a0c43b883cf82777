import Library
import Testing

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

    @Test func `an order that another version accepted is restored without the member`() throws {
        #expect(try FeedOrder(parsing: misspelt, isSaved: true).items.count == 1)
    }
}
