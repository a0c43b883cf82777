// Which windows are saved next.
import Posix

/// The turns in which the keeper saves windows: those of recordings first, then those saved longest
/// ago.
///
/// A window is saved whole, and changes with every segment: thousands of them could keep the disk,
/// and the keeper's thread, busy with nothing else. Recordings are few, and what a crash takes from
/// them may be gone at the origin: they do not wait for the windows of players.
struct SavingTurns {
    /// A window that has changed since it was saved.
    struct Candidate<Item> {
        let item: Item
        /// True if it is a recording's.
        let isRecorded: Bool
        /// The time of the last save; nil before.
        let savedAt: Monotonic?
        let segmentCount: Int
        /// The bytes of the last save; 0 before.
        let byteCount: Int

        /// What a save is charged.
        fileprivate var charge: Int {
            if isRecorded { return 0 }
            return byteCount > 0 ? byteCount : segmentCount * SavingTurns.bytesPerSegment
        }
    }

    /// The bytes that may be saved now; below zero after a window that was longer.
    private var credit = 0

    /// The bytes that may be saved in a turn, on average.
    static let bytesPerTurn = 5_000_000
    /// The estimate for windows that have not been saved.
    fileprivate static let bytesPerSegment = 170

    /// Returns the windows that are saved in this turn, those of recordings first; called once a
    /// second.
    mutating func next<Item>(of windows: [Candidate<Item>], now: Monotonic) -> [Candidate<Item>] {
        credit = min(credit + Self.bytesPerTurn, Self.bytesPerTurn)
        let due = windows.filter { window in
            window.savedAt.map { now - $0 >= Self.interval(window.segmentCount) } ?? true
        }
        var chosen: [Candidate<Item>] = []
        for window in Self.inOrder(due) {
            guard window.isRecorded || credit > 0 else { break }
            credit -= window.charge
            chosen.append(window)
        }
        return chosen
    }

    /// Returns windows in the order in which they are saved, at a stop too: those of recordings
    /// first, then those whose last save is longest ago.
    ///
    /// A stop may not take long; each save takes two syncs of the disk, and a large daemon has
    /// thousands of windows.
    static func inOrder<Item>(_ windows: [Candidate<Item>]) -> [Candidate<Item>] {
        let earliest = Monotonic(nanoseconds: .min)
        return windows.sorted { one, other in
            guard one.isRecorded == other.isRecorded else { return one.isRecorded }
            return (one.savedAt ?? earliest) < (other.savedAt ?? earliest)
        }
    }

    /// Takes back the charge of windows that were chosen and not reached: they are chosen again.
    mutating func giveBack<Item>(_ windows: ArraySlice<Candidate<Item>>) {
        for window in windows { credit += window.charge }
    }

    /// The least time between two saves of a window: longer for long ones, since a day of segments
    /// is tens of megabytes.
    private static func interval(_ segmentCount: Int) -> Interval {
        .seconds(3 + Int64(segmentCount) / 500)
    }
}
