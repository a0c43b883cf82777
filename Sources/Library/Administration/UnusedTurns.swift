// When what nobody has used for long is removed.
import Posix

/// The turns in which what nobody has used for a time is removed: one at once, then one an hour.
///
/// A changed setting, as by a reload, applies at once, but within an hour of the last turn only at
/// the end of that hour.
struct UnusedTurns {
    /// What a timer does.
    struct Turn: Equatable {
        /// What was not used since then is to be removed; nil for nothing.
        let since: WallTime?
        /// The time until the next turn.
        let pause: Interval
    }

    /// The least time between two removals.
    static let interval = Interval.seconds(3_600 as Int64)

    /// The time without use after which something is removed; nil for never.
    private var limit: Interval?
    /// The number of the setting.
    private var setting = 0
    private var last: Monotonic?

    /// Takes a setting, nil for never; returns its number, by which its timer asks for turns.
    mutating func follow(_ limit: Interval?) -> Int {
        self.limit = limit
        setting += 1
        return setting
    }

    /// Returns the turn of a setting; nil if nothing is to be removed, or a later setting has a
    /// timer of its own.
    mutating func next(of setting: Int, now: Monotonic, wall: WallTime) -> Turn? {
        guard setting == self.setting, let limit else { return nil }
        if let last, now < last + Self.interval {
            return Turn(since: nil, pause: last + Self.interval - now)
        }
        last = now
        return Turn(
            since: wall + Interval(nanoseconds: -limit.nanoseconds), pause: Self.interval)
    }
}
