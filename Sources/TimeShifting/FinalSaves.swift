// Which windows are saved first when the daemon stops.
import Posix

/// The order in which windows are saved at a stop, which may not take long.
///
/// Each takes two syncs of the disk, and a large daemon has thousands.
enum FinalSaves {
    /// A window with changes that are not saved.
    struct Candidate<Item> {
        let item: Item
        /// True if it is a recording's.
        let isRecorded: Bool
        /// The time of the last save; nil before.
        let savedAt: Monotonic?
    }

    /// Sorts windows: those of recordings first, then those whose last save is longest ago.
    static func sorted<Item>(_ windows: [Candidate<Item>]) -> [Candidate<Item>] {
        let earliest = Monotonic(nanoseconds: .min)
        return windows.sorted { one, other in
            guard one.isRecorded == other.isRecorded else { return one.isRecorded }
            return (one.savedAt ?? earliest) < (other.savedAt ?? earliest)
        }
    }
}
