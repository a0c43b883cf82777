import Lookahead

/// How many fetches of a download may be in flight, so that it keeps to its rate.
struct DownloadPace: Sendable, Equatable {
    /// The seconds for which unused credit is kept.
    static let mostSeconds = 2.0

    /// The bytes that the rate still allows; negative after more was fetched.
    private var credit = 0.0

    /// Returns the bytes per second that a download may take; nil for no limit.
    ///
    /// - Parameters:
    ///   - own: its own rate; nil for none.
    ///   - common: the rate of all downloads together; nil for none.
    ///   - running: the downloads that share it.
    /// - Returns: its own rate, limited by its share of the common one.
    static func rate(own: Int64?, common: Int64?, running: Int) -> Int64? {
        let share = common.map { $0 / Int64(max(1, running)) }
        return [own, share].compactMap { $0 }.min()
    }

    /// Forgets credit of a time in which nothing could be fetched.
    mutating func begin() { credit = 0 }

    /// Adds what a rate allows in some seconds.
    ///
    /// - Parameters:
    ///   - seconds: the time since the last call.
    ///   - rate: bytes per second.
    mutating func pass(_ seconds: Double, at rate: Int64) {
        credit = min(Double(rate) * Self.mostSeconds, credit + Double(rate) * seconds)
    }

    /// Counts fetched bytes.
    mutating func count(_ bytes: Int64) { credit -= Double(bytes) }

    /// Returns how many fetches to keep in flight.
    ///
    /// - Parameters:
    ///   - limit: the network's limit of transfers.
    ///   - rate: bytes per second; nil for no limit.
    /// - Returns: slightly more than the limit, so that a free slot is used immediately.
    func window(limit: Int, rate: Int64?) -> Int {
        let most = min(limit, ConcurrencyPlan.most) + 2
        guard let rate else { return most }
        guard credit > 0 else { return 0 }
        // Few in parallel, so that fetches in flight do not exceed the rate by much.
        return max(1, min(most, Int(rate / 1_000_000)))
    }
}
