import HLS
import Numbers
import Posix
package import Store

/// What a reading is, besides its content.
extension EpochTable {
    /// The relation of a reading to the one before; the raw value is what `why` shows.
    package enum Relation: String, Sendable {
        case first
        /// The same bytes, or a reading received no later than the last.
        case same
        case goesOn = "goes-on"
        case doubtful
        case reset
        /// A live text that names nothing: the origin has just restarted, or writes its list in
        /// place.
        case empty

        /// False if the list and its names stay as they are.
        var isChange: Bool { self != .same && self != .empty }
    }

    /// When a reading was requested and when it was received.
    package struct Times: Sendable {
        let requested: Moment
        package let received: Moment

        init(requested: WallTime, received: WallTime, steady: SteadyTimes? = nil) {
            self.requested = Moment(wall: requested, steady: steady?.requested)
            self.received = Moment(wall: received, steady: steady?.received)
        }
    }

    /// What is known of the last window of one list.
    struct Reading: Sendable {
        var generation: UInt64 = 0
        var relation = Relation.first
        /// The last text's names, so that only new ones are hashed.
        var names = WindowNames()
        /// The names of an older text that was read after it; mostly none.
        var olderNames = WindowNames()
        /// The names that the last text, a delta update, skips.
        var skipped = SkippedNames()
        var keyVersion: UInt64 = 0
        /// When the text was received last: again, or as unchanged, since it was applied.
        var confirmed: Monotonic?
        var count: Int { names.keys.count + olderNames.keys.count }
        /// The estimated memory in bytes.
        var byteCount: Int { names.byteCount + olderNames.byteCount + skipped.byteCount }
        /// The keys of the last window's names, first of those that its text skips.
        var keys: [ObjectKey] { skipped.isEmpty ? names.keys : skipped.keys + names.keys }

        /// Notes a later text without any name.
        mutating func noteEmpty(_ generation: UInt64) {
            self.generation = generation
            relation = .empty
        }
    }

    /// What was dropped to make room for a reading.
    package struct Dropped: Sendable, Equatable {
        /// The lists of which nothing is known any more.
        package var lists: [ObjectKey] = []
        /// The lists of which only the window is not known any more.
        package var windows: [ObjectKey] = []
    }

    /// The change that a reading makes to the names in it.
    struct Change {
        let relation: Relation
        let epoch: Epoch
        let former: Former?
        let list: ObjectKey
        /// The number of the first segment.
        let start: Int
        let times: Times
        /// The time since which the names have a new meaning, if they have one.
        let since: Moment
    }

    /// What names ask of the former state of their list: plain values, since each name of a reading
    /// copies them.
    struct Former {
        let epoch: Epoch
        let start: Int
        let end: Int
        let targetDuration: Interval
        let received: Moment
        let isExtended: Bool

        init(_ list: List) {
            epoch = list.epoch
            (start, end) = (list.start, list.end)
            targetDuration = list.targetDuration
            received = list.received
            isExtended = list.isExtended
        }
    }

    /// Returns what `since` does for a name in the last window of its list; nil for one that has
    /// left it.
    func sinceInWindow(_ name: ObjectKey) -> Moment? {
        guard let known = names[name], let list = lists[known.last.list] else { return nil }
        // While a long reading is applied, its names are newer than the list.
        let isShown = known.last.time >= list.received
        let isSkipped = readings[known.last.list]?.skipped.contains(name) ?? false
        return isShown || isSkipped ? known.since : nil
    }

    /// True if a list that is still read shows a name, or one that has ended.
    ///
    /// What a list showed when its last player went on to another rendition tells nothing later:
    /// variants share keys, and their origin changes these for all of them at once. A list is read
    /// at least once in a target duration; two more allow for readings that are late.
    func isShown(_ name: ObjectKey, at now: Monotonic) -> Bool {
        guard let known = names[name] else { return false }
        if sinceInWindow(name) != nil, isRead(known.last.list, at: now) { return true }
        // Delta updates of another list may still skip it: they do not note that it was seen.
        return readings.contains { list, reading in
            !reading.skipped.isEmpty && isRead(list, at: now) && reading.skipped.contains(name)
        }
    }

    /// True if a list is still read, whether or not its text changes, or has ended.
    private func isRead(_ key: ObjectKey, at now: Monotonic) -> Bool {
        guard let list = lists[key] else { return false }
        guard list.ended == nil, let received = list.received.steady else { return true }
        let last = max(received, readings[key]?.confirmed ?? received)
        // Lists state 0, too.
        let target = max(list.targetDuration, .seconds(1))
        let age = target.nanoseconds.multipliedSaturated(by: 3)
        return now - last <= Interval(nanoseconds: age)
    }

    /// Returns the earliest time at which a list can have begun to show a name where the text that
    /// an earlier run stored last shows it; nil for a name that this text lacks or shows at several
    /// places, and for one that has been seen with another meaning since.
    ///
    /// A list shows each segment at most a target duration after the one before. Two more allow for
    /// the time from the last segment to the reading, and for lists that are late.
    func storedStart(of name: ObjectKey) -> WallTime? {
        guard let known = names[name], known.since.steady == nil,
            let sequence = known.last.sequence, let list = lists[known.last.list],
            let end = list.storedEnd
        else { return nil }
        let count = max(end.subtractingSaturated(sequence), 0).addingSaturated(2)
        let age = list.targetDuration.nanoseconds.multipliedSaturated(by: Int64(clamping: count))
        return WallTime(nanoseconds: known.since.wall.nanoseconds.subtractingSaturated(age))
    }

    /// Returns the numbers of the segments that a reading skips and that the table therefore knows
    /// from readings before; nil for a full list, and where the list does not just continue.
    static func skips(_ reading: LiveReading, _ relation: Relation) -> Range<Int>? {
        guard reading.summary.isSkipDelta, relation == .goesOn else { return nil }
        let first = reading.summary.mediaSequence
        return first..<(first + reading.summary.skippedSegmentCount)
    }

    /// Returns the epoch of a name at a number of a list that names it.
    func epoch(of name: ObjectKey, at number: Int, in list: ObjectKey) -> Epoch {
        names[name]?.epoch(at: number, in: list) ?? .first
    }
}
