import CachePolicy
import Model
import Posix
import Store

/// The resources that were given up after all attempts; the oldest are forgotten first.
struct GivenUpMemory {
    private var ends = RecentMap<ObjectKey, (at: Monotonic, isSpent: Bool)>(capacity: 1_024)

    /// For this long, a resource whose attempts have all failed gets one attempt for each player
    /// request.
    static let lifetime = Interval.seconds(5 as Int64)

    /// Notes that all attempts for a resource have failed, or that a request has spent its budget.
    mutating func note(_ key: ObjectKey, isSpent: Bool, now: Monotonic) {
        ends[key] = (now, isSpent)
    }

    /// Notes that a resource was fetched.
    mutating func forget(_ key: ObjectKey) { ends[key] = nil }

    /// True if all attempts for a resource failed recently.
    ///
    /// A spent budget concerns one request only: requests that had begun by then have their own.
    func holds(_ key: ObjectKey, for budget: OriginBudget?, now: Monotonic) -> Bool {
        guard let (time, isSpent) = ends[key], now - time < Self.lifetime else { return false }
        return !isSpent || budget.map { $0.begunAt > time } ?? true
    }
}
