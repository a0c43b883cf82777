import Testing
@testable import TimeShifting

/// Which segments are in a window.
@Suite struct NamedSegmentsTests {
    private var named = NamedSegments<Int>()

    private mutating func update(_ window: Int, _ first: Int, _ digests: [Int]) {
        named.update(window, from: first, count: digests.count) { digests[$0] }
    }

    @Test func `a segment that leaves one window is found without reading the others`() {
        var named = NamedSegments<Int>()
        var looks = 0
        func pass(_ second: Int) {
            for window in 0..<2_000 {
                named.update(window, from: second, count: 10) { index in
                    looks += 1
                    return window * 1_000_000 + second + index
                }
            }
        }
        pass(0)
        looks = 0
        pass(1)
        // The new segment, and the first and last of those that are known.
        #expect(looks <= 3 * 2_000)
        let left = (0..<2_000).filter { !named.contains($0 * 1_000_000) }
        let kept = (0..<2_000).filter { named.contains($0 * 1_000_000 + 1) }
        #expect(left.count == 2_000 && kept.count == 2_000)
    }

    @Test mutating func `a segment of two windows is named until it has left both`() {
        update(1, 0, [10, 11, 12])
        update(2, 7, [11, 12])
        update(1, 2, [12, 13])
        #expect(!named.contains(10) && named.contains(11) && named.contains(13))
        update(2, 8, [12])
        #expect(!named.contains(11) && named.contains(12))
        named.keep(only: { $0 == 2 })
        #expect(named.contains(12) && !named.contains(13))
        update(2, 9, [])
        #expect(!named.contains(12))
    }

    @Test mutating func `a window that was replaced or extended back is read anew`() {
        update(1, 5, [50, 51])
        update(1, 3, [48, 49, 50, 51])
        #expect((48...51).allSatisfy { named.contains($0) })
        update(1, 3, [90, 91])
        #expect(!(48...51).contains { named.contains($0) } && named.contains(90))
        // Nothing in common with what was known.
        update(1, 100, [60])
        #expect(named.contains(60) && !named.contains(91))
        // The same numbers with other segments.
        update(1, 100, [60, 61])
        update(1, 101, [70, 71])
        #expect(named.contains(70) && !named.contains(60) && !named.contains(61))
    }
}
