import Posix

/// Decides when a recording ends for want of room.
///
/// All of its fetches fail together, and the room may be there again within moments: it is not the
/// number of failures that counts but the time since the first one.
struct RoomShortage: Sendable, Equatable {
    private var since: Monotonic?

    /// The least time that a shortage lasts before the recording ends.
    private static let patience = Interval.seconds(60)

    /// True while fetches fail for want of room.
    var isPresent: Bool { since != nil }

    /// Notes that a fetch has failed for want of room.
    ///
    /// - Parameters:
    ///   - now: the time.
    ///   - target: the longest target duration of the recording's playlists.
    /// - Returns: true if the recording ends, since nothing was stored for too long.
    mutating func failed(at now: Monotonic, target: Interval) -> Bool {
        let start = since ?? now
        since = start
        let step = min(max(target.nanoseconds, 0), 300_000_000_000)
        return now - start >= max(Self.patience, Interval(nanoseconds: 3 * step))
    }

    /// Notes that a fetch was stored.
    mutating func ends() { since = nil }
}
