package import Retention

/// The compared policies, by their names in `sluice-lab simulate`.
package enum RetentionPolicyName: String, Sendable, CaseIterable {
    /// Evicts the least recently used object first.
    case lru
    /// S3-FIFO: three queues, without reordering.
    case s3fifo
    /// SIEVE: one queue and a hand.
    case sieve
    /// W-TinyLFU: a frequency sketch controls admission from a window.
    case tinylfu
    /// The daemon's policy: evicts the least valuable title as a whole, its end first.
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
