// How many longer windows are followed at the same time.
import Posix

/// The limit of followed lists.
///
/// Each costs a request every few seconds and the bytes of all its segments, and anybody who may
/// use the daemon begins one with an entry.
enum FollowerLimit {
    /// The most lists that are followed for players; recordings do not count.
    static let most = 512

    /// Returns the list to give up before another one is followed.
    ///
    /// It is the one that was requested longest ago, and is followed again when it is requested.
    ///
    /// - Parameters:
    ///   - lastRequests: when players requested each followed list last; nil before the first time.
    ///   - most: the limit.
    /// - Returns: the list; nil while there is room.
    static func displaced<ID: Hashable>(
        _ lastRequests: [ID: Monotonic?], most: Int = FollowerLimit.most
    ) -> ID? {
        guard lastRequests.count >= most else { return nil }
        let never = Monotonic(nanoseconds: .min)
        return lastRequests.min { ($0.value ?? never) < ($1.value ?? never) }?.key
    }
}
