// Distributions of durations with fixed size: one type for percentiles, one for Prometheus.

/// Times in microseconds, in buckets whose width grows with the time: the times in one bucket
/// differ by an eighth at most.
///
/// Old times fade: whenever it contains `most` times, all counts are halved.
package struct PhaseHistogram: Sendable {
    /// The number of times at which counts are halved.
    package static let most = 8_192

    /// Empty until the first time is added.
    private var counts: [UInt16] = []
    /// The number of times in it.
    package private(set) var count = 0

    package init() {}

    /// Adds a time.
    package mutating func add(_ microseconds: UInt32) {
        if counts.isEmpty { counts = Array(repeating: 0, count: Self.buckets) }
        counts[Self.bucket(of: microseconds)] += 1
        count += 1
        if count >= Self.most { fade() }
    }

    private mutating func fade() {
        count = 0
        for index in counts.indices {
            counts[index] /= 2
            count += Int(counts[index])
        }
    }

    /// Returns the time that this share of the times does not exceed, in microseconds; nil if there
    /// are none.
    ///
    /// A share below 0 counts as 0, one above 1 as 1.
    package func percentile(_ share: Double) -> UInt32? {
        guard count > 0 else { return nil }
        let wanted = share > 0 ? Int((min(share, 1) * Double(count)).rounded(.up)) : 1
        var seen = 0
        for (index, held) in counts.enumerated() {
            seen += Int(held)
            if seen >= max(wanted, 1) { return Self.middle(of: index) }
        }
        return nil
    }

    // MARK: Buckets

    /// Three bits after the leading one distinguish the buckets.
    private static let buckets = 8 * 30

    /// Returns the bucket of a time.
    static func bucket(of microseconds: UInt32) -> Int {
        guard microseconds >= 8 else { return Int(microseconds) }
        let shift = 28 - microseconds.leadingZeroBitCount
        return (shift + 1) * 8 + Int(microseconds >> UInt32(shift)) - 8
    }

    /// Returns the middle of a bucket.
    static func middle(of bucket: Int) -> UInt32 {
        guard bucket >= 16 else { return UInt32(bucket) }
        let shift = UInt32(bucket / 8 - 1)
        return (UInt32(bucket % 8 + 8) << shift) + (1 << (shift - 1))
    }
}

/// Times in the form of a Prometheus histogram: counts that only grow, in fixed buckets.
package struct PhaseCounts: Sendable, Hashable {
    /// The upper bounds of the buckets, in microseconds; one more bucket holds the rest.
    package static let bounds: [UInt32] = [
        1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
        2_500_000, 5_000_000, 10_000_000,
    ]

    /// The number of times in each bucket, not cumulative.
    package private(set) var counts = Array(repeating: UInt64(0), count: bounds.count + 1)
    /// The sum of all times, in microseconds.
    package private(set) var sum: UInt64 = 0

    package init() {}

    /// Adds a time.
    package mutating func add(_ microseconds: UInt32) {
        counts[Self.bounds.firstIndex { microseconds <= $0 } ?? Self.bounds.count] &+= 1
        sum &+= UInt64(microseconds)
    }
}
