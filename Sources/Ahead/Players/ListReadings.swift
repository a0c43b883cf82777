import CachePolicy
import Lookahead

/// The playlists that were read for the planner, each in its last generation, so that none is read
/// again for every player that gets it.
struct ListReadings {
    /// The most playlists.
    static let most = 512

    private struct Reading {
        let generation: UInt64
        /// True if it was passed to the planner.
        var isPlanned = false
    }

    private var readings = RecentMap<ListID, Reading>(capacity: Self.most)

    /// True if this generation of a list was read, and the planner has not dropped it since.
    ///
    /// - Parameters:
    ///   - id: the list.
    ///   - generation: that of its object.
    ///   - isKnown: true if the planner knows the list.
    /// - Returns: true if it need not be read.
    func isRead(
        _ id: ListID, _ generation: UInt64, isKnown: @autoclosure () -> Bool
    ) -> Bool {
        guard let reading = readings[id], reading.generation == generation else { return false }
        return !reading.isPlanned || isKnown()
    }

    /// Notes that a generation of a list is read.
    mutating func note(_ id: ListID, _ generation: UInt64) {
        readings[id] = Reading(generation: generation)
    }

    /// Notes that what was read of a list is passed to the planner.
    mutating func notePlanned(_ id: ListID) { readings[id]?.isPlanned = true }

    mutating func forget(_ id: ListID) { readings[id] = nil }
}
