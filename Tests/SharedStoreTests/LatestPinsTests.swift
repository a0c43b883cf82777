import Testing

@testable import SharedStore

@Suite struct LatestPinsTests {
    @Test func `a pin that comes after a later unpin of its title changes nothing`() {
        var pins = LatestPins(most: 10)
        let notes = [("1-a", "film"), ("3-a", "film"), ("2-b", "film"), ("2-b", "other")]
        let found = notes.map { pins.note($0, of: $1) }
        #expect(found == [true, true, false, true])
        let isLatestAgain = pins.note("3-a", of: "film")
        #expect(isLatestAgain, "it is read again")
        let isLater = pins.note("3-b", of: "film")
        #expect(isLater)
    }

    @Test func `of many titles the latest changes are remembered`() {
        var pins = LatestPins(most: 10)
        let found = (10..<99).map { pins.note("\($0)", of: "t\($0)") }
        #expect(found.allSatisfy { $0 })
        let isOldKnown = pins.note("97", of: "t98")
        #expect(!isOldKnown)
        let isFirst = pins.note("09", of: "t10")
        #expect(isFirst, "the oldest are forgotten")
    }
}
