import Numbers
import Testing

@testable import SharedStore

/// Which node takes an order over: all nodes, of any version, have to choose the same one.
@Suite struct OrderCandidatesTests {
    @Test func `each order has the node whose name and number together have the greatest hash`()
        throws
    {
        let nodes = (0..<100).map { String(0xA000 + $0, radix: 16) }
        var candidates = OrderCandidates()
        for node in nodes { candidates.add(node) }
        for number in 0..<200 {
            let id = try #require(SharedOrderID(.recording, String(number, radix: 16)))
            let expected = nodes.max {
                (stableHash("\($0) \(id.text)"), $0) < (stableHash("\($1) \(id.text)"), $1)
            }
            #expect(candidates.choice(for: id) == expected)
        }
    }

    @Test func `there is no choice without nodes`() throws {
        let id = try #require(SharedOrderID(.download, "1"))
        #expect(OrderCandidates().choice(for: id) == nil)
    }

    @Test func `the hash of a text does not depend on its parts`() {
        var parts = StableHash("a")
        parts.add("")
        parts.add("bc")
        #expect(parts.value == stableHash("abc"))
        #expect(stableHash("") == StableHash("").value && stableHash("a") != stableHash("b"))
    }
}
