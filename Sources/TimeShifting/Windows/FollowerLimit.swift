// How many time shift windows are followed at the same time.
import Posix

/// The limit of followed lists.
///
/// Each costs a request every few seconds and the bytes of all its segments, and any client can
/// begin one by requesting an entry.
enum FollowerLimit {
    /// The most lists that are followed for players; recordings do not count.
    static let most = 512

    /// A list that was requested within this time is not displaced.
    ///
    /// With more lists than places, each reload would otherwise displace the list that is reloaded
    /// next.
    static let idle = Interval.seconds(30 as Int64)

    /// Decides which list is given up for another one, if too many are followed.
    ///
    /// - Parameters:
    ///   - lastRequests: when players requested each followed list last; nil before the first time.
    ///   - now: the current time.
    /// - Returns: the list that was requested longest ago; nil if all are in use.
    static func displaced<ID: Hashable>(
        of lastRequests: [ID: Monotonic?], now: Monotonic
    ) -> ID? {
        let requested = lastRequests.compactMap { id, time in time.map { (id: id, time: $0) } }
        guard let oldest = requested.min(by: { $0.time < $1.time }), now - oldest.time >= idle
        else { return nil }
        return oldest.id
    }
}
