import Testing

@testable import Ahead

/// When a feed is compared with the store.
@Suite struct FeedComparisonsTests {
    @Test func `a feed in use is compared every five seconds`() {
        var comparisons = FeedComparisons()
        comparisons.use(at: 0)
        #expect(comparisons.isDue(at: 0))
        comparisons.make(at: 0)
        #expect(!comparisons.isDue(at: 4.9))
        #expect(comparisons.isDue(at: 5))
    }

    @Test func `a feed that nobody uses is compared for ten minutes, and then no more`() {
        var comparisons = FeedComparisons()
        #expect(!comparisons.isDue(at: 0), "restored, and its client has not returned")
        comparisons.use(at: 0)
        comparisons.make(at: 0)
        #expect(comparisons.isDue(at: 599))
        #expect(!comparisons.isDue(at: 600))
        #expect(!comparisons.isDue(at: 1e9))
        comparisons.use(at: 1e9)
        #expect(comparisons.isDue(at: 1e9), "its viewer is back")
    }
}
