// The transfers that a host may still count though they have ended: pure.
import Posix

/// The ends of transfers to hosts that limit their number, and the requests that are repeated since
/// the host noticed such an end late.
struct RecentEnds: Sendable {
    /// The most hosts whose ends are remembered.
    static let most = 64
    /// The time within which an origin notices that a transfer has ended.
    private static let notice = Interval.seconds(1 as Int64)

    private var latest: [String: Monotonic] = [:]
    /// The requests that wait to be repeated, or for the answer, by host.
    private var repeats: [String: Int] = [:]

    /// Notes that a transfer to a host has ended.
    mutating func note(_ host: String, now: Monotonic) {
        if latest.count >= Self.most, latest[host] == nil {
            latest = latest.filter { now - $0.value < Self.notice }
            if latest.count >= Self.most { return }
        }
        latest[host] = now
    }

    /// True if a host may have refused a request since it counted a transfer that had ended.
    func mayRepeat(_ host: String, now: Monotonic) -> Bool {
        latest[host].map { now - $0 < Self.notice } ?? false
    }

    /// Begins the repetition of a request, which `endRepeat` must end.
    mutating func beginRepeat(_ host: String) { repeats[host, default: 0] += 1 }

    /// Ends a repetition.
    ///
    /// - Parameter host: the host.
    /// - Returns: false, with no change, if there is none.
    mutating func endRepeat(_ host: String) -> Bool {
        guard let count = repeats[host] else { return false }
        repeats[host] = count > 1 ? count - 1 : nil
        return true
    }

    /// True while a request to a host is repeated: what no player waits for must not take its
    /// place.
    func isRepeating(_ host: String) -> Bool { !repeats.isEmpty && repeats[host] != nil }
}
