/// When a feed is compared with the store, to fetch again what the store has removed.
///
/// Feeds are compared only while somebody uses them. The console may watch the state of a feed long
/// after its client has left without a `DELETE`; what was fetched then would displace what is in
/// use.
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
