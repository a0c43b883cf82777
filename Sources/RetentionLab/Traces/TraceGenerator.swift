// The built-in traces, generated from a seed, by name.

/// A trace generator: the same seed gives the same trace.
package protocol TraceGenerator: Sendable {
    /// The requests, ordered by time.
    func requests(seed: UInt64) -> [TraceRequest]
}

/// The built-in traces by their names in `sluice-lab simulate`.
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

    /// The default store sizes for this trace in bytes: from a small part of its distinct bytes to
    /// about half.
    package var sizes: [Int64] {
        switch self {
        case .feed: [512, 1_024, 2_048, 4_096].map { $0 << 20 }
        case .series: [10, 20, 40, 80].map { $0 << 30 }
        case .live: [5, 10, 20, 40].map { $0 << 30 }
        }
    }
}
