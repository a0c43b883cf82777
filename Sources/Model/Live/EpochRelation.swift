import HLS
import Numbers
import Posix
import Store

/// The relation of a live list's reading to the one before: by dates where both have them,
/// otherwise by sequence numbers and elapsed time.
///
/// Pure.
extension EpochTable.List {
    /// Updates the list from a reading.
    package mutating func note(_ reading: LiveReading, at received: Moment) {
        sections = LiveSection.named(
            reading.sections,
            first: reading.summary.mediaSequence + reading.summary.skippedSegmentCount,
            isDelta: reading.summary.isSkipDelta, after: sections, formerEnd: end)
        start = reading.summary.mediaSequence
        end = reading.summary.nextMediaSequence
        if received.steady == nil, storedEnd == nil { storedEnd = end }
        ended = reading.ended
        if let target = reading.summary.targetDuration { targetDuration = Interval(target) }
        discontinuitySequence = reading.summary.discontinuitySequence ?? discontinuitySequence
        self.received = received
        if !reading.dates.isEmpty || !reading.summary.isSkipDelta { dates = reading.dates }
    }

    /// Takes over what a longer window shows that was saved later than this state of an earlier
    /// run.
    ///
    /// - Parameters:
    ///   - epoch: the epoch that the list was in.
    ///   - end: the number after its last segment.
    ///   - takesNumbers: true if the number counts in an epoch that is known, too.
    mutating func catchUp(with epoch: Epoch, end: Int, takesNumbers: Bool) {
        guard received.steady == nil, epoch >= self.epoch else { return }
        let isRenumbered = epoch > self.epoch
        guard isRenumbered || (takesNumbers && end > self.end) else { return }
        start = max(0, end.subtractingSaturated(max(0, self.end.subtractingSaturated(start))))
        self.end = end
        guard isRenumbered else { return }
        self.epoch = epoch
        (dates, sections, discontinuitySequence, ended) = ([:], [], 0, nil)
    }
}

extension EpochTable {
    /// A reading dated earlier than the latest one by more than this means that the wall clock was
    /// set back.
    private static let setBack = Interval.seconds(10)

    /// The time from which names that are new in a reading have their meaning.
    ///
    /// After the wall clock was set back, it is counted from the latest time seen plus `setBack`,
    /// so that responses known only from the disk count as earlier.
    static func since(_ requested: Moment, latest: WallTime) -> Moment {
        guard latest - requested.wall > setBack else { return requested }
        return Moment(wall: latest + setBack, steady: requested.steady)
    }

    /// Returns the relation of a reading to the previous state of its list, by its names too.
    ///
    /// A text that was cut in its middle looks like one of an origin that has begun anew with the
    /// same names: only a later one tells, which is longer again, or grows from there.
    ///
    /// - Returns: the relation, and the list before the text was cut; nil if it was not, or is
    ///   whole again.
    func relation(
        of reading: LiveReading, at received: Moment, in place: (list: ObjectKey, keys: [ObjectKey])
    ) -> (relation: Relation, whole: List.Whole?) {
        let relation = Self.relation(of: reading, at: received, to: lists[place.list])
        guard let former = lists[place.list] else { return (relation, nil) }
        switch relation {
        case .reset:
            guard isCut(reading, in: place, former) else { return (.reset, nil) }
            let whole = List.Whole(end: former.end, received: former.received)
            return (.doubtful, former.whole ?? whole)
        case .goesOn, .doubtful:
            let end = reading.summary.nextMediaSequence
            guard let whole = former.whole, end < whole.end else { return (relation, nil) }
            let grows = Self.hasGrown(reading, at: received, former)
            return grows ? (.reset, nil) : (relation, whole)
        case .first, .same, .empty: return (relation, former.whole)
        }
    }

    /// True if a list has grown from where it may have been cut, as that of a restarted encoder
    /// does: by no more segments than the time between the readings allows, and by no fewer than
    /// have left its start.
    ///
    /// Any other list was cut again, at another place.
    private static func hasGrown(
        _ reading: LiveReading, at received: Moment, _ former: List
    ) -> Bool {
        let growth = reading.summary.nextMediaSequence - former.end
        let slide = reading.summary.mediaSequence - former.start
        guard growth > 0, slide >= 0, slide <= growth else { return false }
        let average = averageDuration(of: reading)
        let gap = (received - former.received).nanoseconds
        // The wall clock was set back since that run, so the elapsed time is unknown.
        guard average > 0, gap >= 0 else { return true }
        // An encoder may list several segments at once.
        return Int64(growth) <= (gap / average).addingSaturated(3)
    }

    /// Returns the average duration of a reading's segments in nanoseconds; 0 without segments.
    private static func averageDuration(of reading: LiveReading) -> Int64 {
        let count = Int64(max(reading.summary.segmentCount, 1))
        return Interval(reading.summary.totalDuration).nanoseconds / count
    }

    /// True if a reading that counts anew by its numbers shows nothing but the beginning of the
    /// window before it, each name at its number; its last name may be cut, too.
    ///
    /// A list that has never slid is not taken for cut: an encoder that begins anew shows the same
    /// numbers and names, and what it replaces must not be lost. The cost is linear in the names of
    /// the reading.
    private func isCut(
        _ reading: LiveReading, in place: (list: ObjectKey, keys: [ObjectKey]), _ former: List
    ) -> Bool {
        let (first, end) = (reading.summary.mediaSequence, reading.summary.nextMediaSequence)
        guard former.ended == nil, reading.ended == nil, first > 1, first >= former.start,
            end < former.end,
            Self.datesAgree(reading, former) == nil,
            reading.summary.discontinuitySequence ?? .max >= former.discontinuitySequence
        else { return false }
        var isKnown = false
        for (name, key) in zip(reading.names, place.keys) {
            guard let number = name.ownSequence else { continue }
            if names[key]?.sequence(in: place.list) == number {
                isKnown = true
            } else if number < end - 1 {
                return false
            }
        }
        return isKnown
    }

    /// Returns the relation of a reading to the previous state of its list, by numbers and dates.
    package static func relation(
        of reading: LiveReading, at received: Moment, to former: List?
    ) -> Relation {
        guard let former else { return .first }
        if received <= former.received { return .same }
        if let ended = former.ended, ended == reading.ended { return .same }
        if reading.isEmpty { return .empty }
        if let agrees = datesAgree(reading, former) { return agrees ? .goesOn : .reset }
        if beginsAnew(reading, at: received, former) { return .reset }
        let end = reading.summary.nextMediaSequence
        if end < former.end {
            let isOlder = isBehind(reading, former) || isLate(reading, at: received, former)
            return isOlder ? .doubtful : .reset
        }
        if let sequence = reading.summary.discontinuitySequence,
            sequence < former.discontinuitySequence
        {
            return .reset
        }
        if hasLeapt(reading, at: received, former) { return .reset }
        // In less than `end` target durations, a list cannot have counted from 0 to `end`. After
        // twice the length of the window, the list shares no names with the former one.
        let gap = received - former.received
        let count = min(end, max(end - reading.summary.mediaSequence, 2) * 2)
        let span = former.targetDuration.nanoseconds.multipliedReportingOverflow(
            by: Int64(clamping: max(count, 2)))
        // The wall clock was set back since that run, so the elapsed time is unknown.
        guard gap >= .zero else { return .doubtful }
        return span.overflow || gap.nanoseconds < span.partialValue ? .goesOn : .doubtful
    }

    /// True if a reading ends a few segments before the one before, as from a cache in between.
    private static func isBehind(_ reading: LiveReading, _ former: List) -> Bool {
        let end = reading.summary.nextMediaSequence
        return end < former.end && former.end - end <= 3 && end > former.start
    }

    /// The age up to which a text may be that of a cache in between, however short its segments:
    /// three segments of six seconds.
    private static let longestDelay = Interval.seconds(18)

    /// True if a reading ends a short time before the one before, with numbers to which a restarted
    /// origin cannot have counted since.
    private static func isLate(
        _ reading: LiveReading, at received: Moment, _ former: List
    ) -> Bool {
        let end = reading.summary.nextMediaSequence
        guard end < former.end, end > former.start else { return false }
        let average = averageDuration(of: reading)
        guard average > 0 else { return false }
        // An origin may list several segments at once when it starts, but then they leave its list
        // one at a time. The reading before may have been as late.
        let gap = received - former.received
        let time = gap.nanoseconds.addingSaturated(longestDelay.nanoseconds)
        let passed = Int64(clamping: reading.summary.mediaSequence)
        let hasSlidTooFar = gap >= .zero && passed > time / average
        guard hasSlidTooFar || isTooSoon(for: end, at: received, former) else { return false }
        let delay = Int64(clamping: former.end - end).multipliedSaturated(by: average)
        return delay <= longestDelay.nanoseconds
    }

    /// True if a list had ended, and is live again with numbers that it had before.
    ///
    /// Such a list never changes (8216bis section 6.2.1), so this is another stream under its URL,
    /// however many segments it has by now. Only a cache in between may have sent a text from before
    /// the end, for a short time.
    private static func beginsAnew(
        _ reading: LiveReading, at received: Moment, _ former: List
    ) -> Bool {
        guard former.ended != nil, reading.ended == nil,
            reading.summary.mediaSequence < former.end
        else { return false }
        let gap = received - former.received
        let target = former.targetDuration.nanoseconds
        let isShort = gap >= .zero && gap.nanoseconds / 3 < target
        return !(isShort && isBehind(reading, former))
    }

    /// True if more segments were missed than a list can have passed since: its numbers are those
    /// of another encoder.
    private static func hasLeapt(
        _ reading: LiveReading, at received: Moment, _ former: List
    ) -> Bool {
        let (missed, overflow) = reading.summary.mediaSequence
            .subtractingReportingOverflow(former.end)
        return !overflow && missed > 0 && isTooSoon(for: missed, at: received, former)
    }

    /// True if a list cannot have counted so many segments since the reading before.
    ///
    /// Segments may be much shorter than the target duration, and a cache in between may have sent
    /// an older list before, hence the slack. Time in which nothing was read counts as well.
    private static func isTooSoon(
        for count: Int, at received: Moment, _ former: List
    ) -> Bool {
        let gap = received - former.received
        let target = max(former.targetDuration.nanoseconds, 1)
        return gap >= .zero && count / 10 > (gap.nanoseconds / target).addingSaturated(2)
    }

    /// True if the dates of two readings fit their numbers; nil where they allow no conclusion.
    private static func datesAgree(_ reading: LiveReading, _ former: List) -> Bool? {
        let target = Int(former.targetDuration.nanoseconds / 1_000_000)
        let both = reading.dates.compactMap { number, date in former.dates[number].map { $0 - date }
        }
        // A segment listed in both readings must have the same date, within tolerance.
        if !both.isEmpty { return both.allSatisfy { abs($0) <= target / 2 + 100 } }
        guard let old = former.dates.max(by: { $0.key < $1.key }),
            let new = reading.dates.min(by: { $0.key < $1.key })
        else { return nil }
        // Numbers and dates must rise together. Segments may be much shorter than the target
        // duration, and a pause of the encoder leaves a gap, hence the slack.
        guard new.key > old.key else { return new.value < old.value ? nil : false }
        let steps = Int64(clamping: new.key - old.key)
        let (most, overflow) = steps.addingReportingOverflow(4)
        let (slack, isHuge) = most.multipliedReportingOverflow(by: Int64(clamping: 3 * target))
        return new.value > old.value
            && (overflow || isHuge || Int64(clamping: new.value - old.value) <= slack)
    }
}
