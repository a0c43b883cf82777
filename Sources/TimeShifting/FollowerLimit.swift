// How many longer windows are followed at the same time.
import Posix

/// The limit of followed lists.
///
/// Each costs a request every few seconds and the bytes of all its segments, and anybody who may
/// use the daemon begins one with an entry.
enum FollowerLimit {
    /// The most lists that are followed for players; recordings do not count.
    static let most = 512

    /// A list that was requested within this time stays: players reload in turn, so that each would
    /// displace the one whose turn is next.
    static let idle = Interval.seconds(30 as Int64)

    /// What is done for another list.
    enum Room<ID: Hashable>: Equatable {
        case free
        /// After this list is given up, which was requested longest ago.
        case displacing(ID)
        /// All are in use.
        case none
    }

    /// Decides whether another list is followed.
    ///
    /// - Parameters:
    ///   - lastRequests: when players requested each followed list last; nil before the first time.
    ///   - now: the current time.
    ///   - most: the limit.
    /// - Returns: whether there is room, or what makes some.
    static func room<ID: Hashable>(
        beside lastRequests: [ID: Monotonic?], now: Monotonic, most: Int = FollowerLimit.most
    ) -> Room<ID> {
        guard lastRequests.count >= most else { return .free }
        let requested = lastRequests.compactMap { id, time in time.map { (id: id, time: $0) } }
        guard let oldest = requested.min(by: { $0.time < $1.time }), now - oldest.time >= idle
        else { return .none }
        return .displacing(oldest.id)
    }
}
