import Testing

@testable import Upstream

struct TallyTests {
    @Test func `a thing has users until each of them is removed`() {
        var tally = Tally<String>()
        let counts = [tally.add("a"), tally.add("a"), tally.add("b")]
        #expect(counts == [1, 2, 1] && tally["a"] == 2)
        tally.remove("a")
        #expect(tally["a"] == 1 && tally["b"] == 1)
        for _ in 0..<2 { tally.remove("a") }
        #expect(tally["a"] == 0)
        let count = tally.add("a")
        #expect(count == 1)
    }
}
