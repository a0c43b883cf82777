// Which windows are saved next.
import Posix

/// The turns in which the keeper saves windows, those saved longest ago first.
///
/// A window is saved whole, and changes with every segment: thousands of them could keep the disk,
/// and the keeper's thread, busy with nothing else.
struct SavingTurns {
    /// A window that has changed since it was saved.
    struct Candidate<Item> {
        let item: Item
        /// The time of the last save; nil before.
        let savedAt: Monotonic?
        let segmentCount: Int
        /// The bytes of the last save; 0 before.
        let byteCount: Int
    }

    /// The bytes that may be saved now; below zero after a window that was longer.
    private var credit = 0

    /// The bytes that may be saved in a turn, on average.
    static let bytesPerTurn = 5_000_000
    /// The estimate for windows that have not been saved.
    private static let bytesPerSegment = 170

    /// Returns the windows that are saved in this turn; called once a second.
    mutating func next<Item>(of windows: [Candidate<Item>], now: Monotonic) -> [Item] {
        credit = min(credit + Self.bytesPerTurn, Self.bytesPerTurn)
        let due = windows.filter { window in
            window.savedAt.map { now - $0 >= Self.interval(window.segmentCount) } ?? true
        }
        let earliest = Monotonic(nanoseconds: .min)
        let sorted = due.sorted { ($0.savedAt ?? earliest) < ($1.savedAt ?? earliest) }
        var chosen: [Item] = []
        for window in sorted {
            guard credit > 0 else { break }
            credit -=
                window.byteCount > 0
                ? window.byteCount : window.segmentCount * Self.bytesPerSegment
            chosen.append(window.item)
        }
        return chosen
    }

    /// The least time between two saves of a window: longer for long ones, since a day of segments
    /// is tens of megabytes.
    private static func interval(_ segmentCount: Int) -> Interval {
        .seconds(3 + Int64(segmentCount) / 500)
    }
}
