/// When a feed is compared with the store, to fetch again what the store has removed.
///
/// Only while somebody uses the feed: its state may be watched, as the console does, long after its
/// client is gone without a `DELETE`, and what is fetched then displaces what is used.
struct FeedComparisons {
    /// The seconds between two comparisons while the viewer stays.
    static let pause = 5.0
    /// The seconds after its last use for which a feed is compared.
    static let patience = 600.0

    private var usedAt = -Double.infinity
    private var madeAt = -Double.infinity

    /// Notes that its client ordered it or reported a position, or that a player requested
    /// something of it.
    mutating func use(at now: Double) { usedAt = now }

    /// Notes that it is compared.
    mutating func make(at now: Double) { madeAt = now }

    /// True if it is to be compared, without a swipe.
    func isDue(at now: Double) -> Bool {
        now - madeAt >= Self.pause && now - usedAt < Self.patience
    }
}
