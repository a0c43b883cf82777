import Posix

/// Recent reports, so that a player that requests one segment in many small ranges, or many viewers
/// of the same one, are not reported for each request.
///
/// Bounded: reports share places, where a later one displaces an earlier one, whose subject is then
/// reported again.
struct RecentReports {
    /// The seconds after which a subject is reported again.
    private static let pause: Int64 = 2

    private var words = [UInt64](repeating: 0, count: 1_024)

    /// A possible report: its subject, and roughly its time.
    struct News {
        fileprivate let slot: Int
        fileprivate let word: UInt64

        /// - Parameters:
        ///   - mark: stands for the subject.
        ///   - time: the time of the request.
        init(_ mark: Int, at time: Monotonic) {
            let hash = UInt64(truncatingIfNeeded: mark) &* 0x9E37_79B9_7F4A_7C15
            let seconds = time.nanoseconds / 1_000_000_000
            word = hash & ~0xFFFF | UInt64(seconds / RecentReports.pause) & 0xFFFF
            slot = Int(hash >> 54)
        }
    }

    /// True if this was reported recently.
    func has(_ news: News) -> Bool { words[news.slot] == news.word }

    /// Returns true if something is to be reported, and counts it as reported.
    mutating func takes(_ news: News) -> Bool {
        guard !has(news) else { return false }
        words[news.slot] = news.word
        return true
    }
}
