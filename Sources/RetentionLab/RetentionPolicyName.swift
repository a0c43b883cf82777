package import Retention

/// The policies that are held against each other, by the names that `sluice-lab simulate` gives them.
package enum RetentionPolicyName: String, Sendable, CaseIterable {
    /// What was used longest ago goes first.
    case lru
    /// S3-FIFO: three queues, without reordering.
    case s3fifo
    /// SIEVE: one queue and a hand.
    case sieve
    /// W-TinyLFU: a frequency sketch decides what a window may hand over.
    case tinylfu
    /// The daemon's: of titles, the one worth least goes whole, its end first.
    case titles

    /// Makes an empty policy for a store of `capacity` bytes.
    package func makePolicy(capacity: Int64) -> any RetentionPolicy {
        switch self {
        case .lru: LeastRecentlyUsed(capacity: capacity)
        case .s3fifo: SmallMainGhost(capacity: capacity)
        case .sieve: Sieve(capacity: capacity)
        case .tinylfu: WindowTinyLFU(capacity: capacity)
        case .titles: TitleAware(capacity: capacity)
        }
    }
}
