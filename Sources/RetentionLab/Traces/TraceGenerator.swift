// The traces that can be made from a seed, by name.

/// Makes the same trace from the same seed.
package protocol TraceGenerator: Sendable {
    /// Requests in the order of time.
    func requests(seed: UInt64) -> [TraceRequest]
}

/// The built-in traces by the names that `sluice-lab simulate` knows them by.
package enum TraceName: String, Sendable, CaseIterable {
    case feed
    case series
    case live

    package var generator: any TraceGenerator {
        switch self {
        case .feed: FeedTrace()
        case .series: SeriesTrace()
        case .live: LiveTrace()
        }
    }

    /// Store sizes that this trace is replayed with when nothing is said, in bytes: from a small part of
    /// what it reads to about half.
    package var sizes: [Int64] {
        switch self {
        case .feed: [512, 1_024, 2_048, 4_096].map { $0 << 20 }
        case .series: [10, 20, 40, 80].map { $0 << 30 }
        case .live: [5, 10, 20, 40].map { $0 << 30 }
        }
    }
}
