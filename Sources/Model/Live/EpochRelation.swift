import HLS
import Posix

/// What a reading of a live list is, next to the one before: by dates where there are any, else by
/// numbers and the time that has passed. Pure.
extension EpochTable.List {
    /// Takes over what a reading shows.
    package mutating func note(_ reading: LiveReading, at received: Moment) {
        sections = LiveSection.named(
            reading.sections,
            first: reading.summary.mediaSequence + reading.summary.skippedSegmentCount,
            isDelta: reading.summary.isSkipDelta, after: sections, formerEnd: end)
        start = reading.summary.mediaSequence
        end = reading.summary.nextMediaSequence
        if let target = reading.summary.targetDuration { targetDuration = Interval(target) }
        discontinuitySequence = reading.summary.discontinuitySequence ?? discontinuitySequence
        self.received = received
        if !reading.dates.isEmpty || !reading.summary.isSkipDelta { dates = reading.dates }
    }
}

extension EpochTable {
    /// Readings that came so much before the latest one, by the wall clock, tell that it was set back.
    private static let setBack = Interval.seconds(10)

    /// Since when names stand for something new that a reading names anew.
    ///
    /// Once the wall clock was set back, what it says of a response that is only known from the disk
    /// counts from where it stood before.
    static func since(_ requested: Moment, latest: WallTime) -> Moment {
        guard latest - requested.wall > setBack else { return requested }
        return Moment(wall: latest + setBack, steady: requested.steady)
    }

    /// What a reading is, next to what was known of its list.
    package static func relation(
        of reading: LiveReading, at received: Moment, to former: List?
    ) -> Relation {
        guard let former else { return .first }
        if received <= former.received { return .same }
        if let agrees = datesAgree(reading, former) { return agrees ? .goesOn : .reset }
        let end = reading.summary.nextMediaSequence
        if end < former.end {
            // A cache on the way may be behind by a few segments.
            let isBehind = former.end - end <= 3 && end > former.start
            return isBehind ? .doubtful : .reset
        }
        if let sequence = reading.summary.discontinuitySequence,
            sequence < former.discontinuitySequence
        {
            return .reset
        }
        // Counted from 0 it could not have come here in the time that passed; and what both
        // windows name would have left a window that slid on for longer than it is.
        let gap = received - former.received
        let count = min(end, max(end - reading.summary.mediaSequence, 2) * 2)
        let span = former.targetDuration.nanoseconds.multipliedReportingOverflow(
            by: Int64(clamping: max(count, 2)))
        // Since a run before which the wall clock was set back, nobody knows how much that is.
        guard gap >= .zero else { return .doubtful }
        return span.overflow || gap.nanoseconds < span.partialValue ? .goesOn : .doubtful
    }

    /// Whether the dates of two readings fit their numbers; nil where they do not tell.
    private static func datesAgree(_ reading: LiveReading, _ former: List) -> Bool? {
        let target = Int(former.targetDuration.nanoseconds / 1_000_000)
        let both = reading.dates.compactMap { number, date in former.dates[number].map { $0 - date }
        }
        // One segment has one date.
        if !both.isEmpty { return both.allSatisfy { abs($0) <= target / 2 + 100 } }
        guard let old = former.dates.max(by: { $0.key < $1.key }),
            let new = reading.dates.min(by: { $0.key < $1.key })
        else { return nil }
        // Numbers and dates rise together; segments may be much shorter than the target duration,
        // and a pause of the encoder leaves a step.
        guard new.key > old.key else { return new.value < old.value ? nil : false }
        let steps = Int64(clamping: new.key - old.key)
        let (most, overflow) = steps.addingReportingOverflow(4)
        let (slack, isHuge) = most.multipliedReportingOverflow(by: Int64(clamping: 3 * target))
        return new.value > old.value
            && (overflow || isHuge || Int64(clamping: new.value - old.value) <= slack)
    }
}
