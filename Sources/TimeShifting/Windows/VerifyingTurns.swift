// Which followed lists are checked against the index next.
import Posix

/// The turns in which the keeper checks followed lists, those checked longest ago first.
///
/// A check blocks the keeper's thread for some 30 µs per segment: all lists in one turn could keep
/// it from reloading for longer than an origin lists a segment.
struct VerifyingTurns {
    /// A followed list.
    struct Candidate<Item> {
        let item: Item
        /// The time of the last check; nil before.
        let verifiedAt: Monotonic?
        let segmentCount: Int
        /// True if it is to be checked however recent its last check is.
        var isDoubtful = false
    }

    /// The segments that may be checked now; below zero after a list that was longer.
    private var credit = 0

    /// The segments that may be checked in a turn, on average.
    static let segmentsPerTurn = 5_000
    /// The least time between two checks of a list, unless it is doubtful.
    static let interval = Interval.seconds(120 as Int64)

    /// Returns the lists that are checked in this turn; called once a second.
    mutating func next<Item>(of lists: [Candidate<Item>], now: Monotonic) -> [Item] {
        credit = min(credit + Self.segmentsPerTurn, Self.segmentsPerTurn)
        let due = lists.filter { $0.isDoubtful || Self.isDue(after: $0.verifiedAt, now: now) }
        let earliest = Monotonic(nanoseconds: .min)
        let sorted = due.sorted { ($0.verifiedAt ?? earliest) < ($1.verifiedAt ?? earliest) }
        var chosen: [Item] = []
        for list in sorted {
            guard credit > 0 else { break }
            credit -= max(list.segmentCount, 1)
            chosen.append(list.item)
        }
        return chosen
    }

    /// True while a doubtful list that players request may be checked outside a turn.
    ///
    /// A purge makes all lists doubtful at once. Those that are not followed, as beyond the limit of
    /// followed ones, have no turn, and all of their next requests arrive within a few seconds.
    var hasCredit: Bool { credit > 0 }

    /// Counts a check of a doubtful list outside a turn.
    mutating func charge(segmentCount: Int) { credit -= max(segmentCount, 1) }

    /// True if a list that was last checked at a time is to be checked again.
    static func isDue(after verifiedAt: Monotonic?, now: Monotonic) -> Bool {
        verifiedAt.map { now - $0 >= interval } ?? true
    }
}
