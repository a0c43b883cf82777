import HTTP
import Model
import Testing

@testable import Ahead

/// Which items of a feed are read past the cache, and what failures mean for items.
@Suite struct FeedRenewalsTests {
    private var renewals = FeedRenewals()

    private static func refusal(_ status: HTTPStatus) -> ProxyFailure {
        ProxyFailure(.origin, status, "no", originStatus: status)
    }

    /// Judges a refused segment of an item.
    private mutating func judge(
        _ content: Int = 1, _ status: HTTPStatus = .forbidden, at now: Double
    ) -> FeedRenewals.Verdict {
        renewals.judge(Self.refusal(status), of: content, isEntry: false, now: now)
    }

    @Test mutating func `an item is read past the cache once, and again after five minutes`() {
        // Two segments are refused before the item is read.
        let before = [0.0, 1].map { judge(at: $0) }
        #expect(before == [.expired, .expired] && !renewals.isRenewing(1))
        renewals.begin(1)
        let isRenewing = renewals.isRenewing(1)
        let during = judge(at: 2)
        #expect(isRenewing && during == .refused)
        renewals.end(1, now: 3)
        #expect(!renewals.isRenewing(1))
        let after = [4, 302.5, 303].map { judge(at: $0) }
        #expect(after == [.refused, .refused, .expired])
        renewals.begin(1)
        let isAgain = renewals.isRenewing(1)
        #expect(isAgain)
    }

    @Test mutating func `an item that was not refused is read from the cache`() {
        renewals.begin(1)
        #expect(!renewals.isRenewing(1))
        renewals.end(1, now: 0)
        let first = judge(at: 1)
        #expect(first == .expired)
        renewals.begin(2)
        #expect(!renewals.isRenewing(2))
    }

    @Test mutating func `a reading past the cache that fails is not ended by another item`() {
        _ = judge(at: 0)
        renewals.begin(1)
        renewals.end(2, now: 1)
        #expect(renewals.isRenewing(1))
        let other = judge(2, at: 1)
        #expect(other == .expired)
    }

    @Test mutating func `the item's own URL has no playlist that could name another one`() {
        let verdict = renewals.judge(
            Self.refusal(.forbidden), of: 1, isEntry: true, now: 0)
        #expect(verdict == .refused)
        renewals.begin(1)
        #expect(!renewals.isRenewing(1))
    }

    @Test mutating func `other failures end an item for good or for now, without a renewal`() {
        let missing = judge(1, .notFound, at: 0)
        let broken = judge(1, .serviceUnavailable, at: 0)
        let page = judge(1, .ok, at: 0)
        #expect(missing == .dead(forGood: true) && broken == .dead(forGood: false))
        #expect(page == .refused)
        renewals.begin(1)
        #expect(!renewals.isRenewing(1))
    }
}
