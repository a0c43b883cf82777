/// A new window of a live stream beside the remembered segments: whether it continues them, and
/// which of its segments are new.
struct WindowComparison {
    /// What becomes of a window.
    struct Placement: Hashable, Sendable {
        var relation: TimeShift.Relation
        /// The index of the first new segment; the number of segments if none is new.
        var firstNew: Int
        /// The number of segments that were never seen before the new ones.
        ///
        /// In a new epoch they are too many for placeholders.
        var missed = 0
        /// True if a renumbered window has nothing new: its numbers do not count yet, so that the
        /// next window is recognised as renumbered, too.
        var isInStep = false
        /// True if the first new segment of a renumbered window follows the last remembered one in
        /// the window too: the stream goes on, and only its numbers do not.
        var isContinuous = false
    }

    let listed: [LiveWindow.Segment]
    let remembered: ShiftedSegments
    /// The segments of another rendition.
    let sibling: ShiftedSegments?
    let limits: TimeShift.Limits
    /// The target duration of the window before.
    let targetDuration: Duration?
    /// True if lower numbers are those of a new epoch, and higher ones do not follow a hole.
    let countsAnew: Bool
    /// True if the window before came from another host.
    let isOfOtherOrigin: Bool

    /// The place of the window.
    ///
    /// The cost is linear in the segments of the window.
    var placement: Placement {
        guard let last = remembered.all.last else {
            return Placement(relation: .first, firstNew: 0)
        }
        guard let first = listed.first, let newest = listed.last else {
            return Placement(relation: .unchanged, firstNew: 0)
        }
        let relation = relation(first, newest, after: last)
        if relation == .newEpoch { return newEpoch(first, after: last) }
        let firstNew = listed.firstIndex { $0.originNumber > last.originNumber } ?? listed.count
        let missed = relation == .advanced ? first.originNumber - last.originNumber - 1 : 0
        return Placement(relation: relation, firstNew: firstNew, missed: max(missed, 0))
    }

    /// Returns the place of a window whose numbers do not continue those of the last one.
    private func newEpoch(
        _ first: LiveWindow.Segment, after last: TimeShiftSegment
    ) -> Placement {
        switch WindowJoint.place(of: listed, in: remembered.all) {
        case .apart:
            return Placement(
                relation: .newEpoch, firstNew: 0, missed: longHole(before: first, after: last))
        case .after(listed.count, _):
            return Placement(relation: .unchanged, firstNew: listed.count, isInStep: true)
        case .after(let index, let isContinuous):
            return Placement(relation: .newEpoch, firstNew: index, isContinuous: isContinuous)
        case .behind:
            return Placement(relation: .stale, firstNew: listed.count)
        }
    }

    /// Returns the relation by numbers, names at known numbers, and dates.
    private func relation(
        _ first: LiveWindow.Segment, _ newest: LiveWindow.Segment, after last: TimeShiftSegment
    ) -> TimeShift.Relation {
        var overlaps = false
        for segment in listed {
            guard let known = remembered.known(segment.originNumber) else { continue }
            overlaps = true
            if !known.isPlaceholder, !known.isSame(as: segment) { return .newEpoch }
        }
        if newest.originNumber > last.originNumber {
            let longest = longestHole(before: first, after: last)
            let continues = overlaps || isPlausible(first, after: last, longest: longest)
            return continues ? .advanced : .newEpoch
        }
        if newest.originNumber < last.originNumber, countsAnew { return .newEpoch }
        if overlaps { return newest.originNumber == last.originNumber ? .unchanged : .stale }
        // All of it is older than the known segments, or renumbered: dates decide, if there are
        // any.
        if let old = last.date, let date = newest.date, date < old { return .stale }
        return .newEpoch
    }

    /// Returns the most segments that may be missing before a window that continues the last one.
    ///
    /// A list that was away for longer goes on after a discontinuity: what it has is kept. If only
    /// this rendition was away, all of the hole is filled, since its numbers are to be in step.
    private func longestHole(
        before first: LiveWindow.Segment, after last: TimeShiftSegment
    ) -> Int {
        let longest = min(limits.placeholderCount, limits.segmentCount)
        guard let other = sibling?.known(first.originNumber) else { return longest }
        // The other one has found a longer hole, or was renumbered: this one follows it.
        if other.epoch > last.epoch { return longest / 2 }
        let isInStep =
            other.epoch == last.epoch
            && other.number - other.originNumber == last.number - last.originNumber
        return isInStep ? limits.segmentCount : longest
    }

    /// Returns how many segments are missing before a window that would continue the last one if
    /// they were not too many for placeholders; 0 for any other window.
    private func longHole(before first: LiveWindow.Segment, after last: TimeShiftSegment) -> Int {
        guard first.originNumber > last.originNumber,
            isPlausible(first, after: last, longest: limits.segmentCount)
        else { return 0 }
        return first.originNumber - last.originNumber - 1
    }

    /// True if a window that begins after the last segment continues from it, with `longest`
    /// missing segments at most.
    private func isPlausible(
        _ first: LiveWindow.Segment, after last: TimeShiftSegment, longest: Int
    ) -> Bool {
        let missed = first.originNumber - last.originNumber - 1
        if missed == 0 { return true }
        guard missed <= longest else { return false }
        guard let start = last.date, let date = first.date else {
            // Either segments were missed, or a mirror has its own numbers and lists known ones.
            guard !countsAnew, !isOfOtherOrigin else { return false }
            // Where names are reused, others may have had them in the hole.
            return last.generation > 0
                || WindowJoint.place(of: listed, in: remembered.all) == .apart
        }
        let target = targetDuration ?? last.duration
        let expected = start + last.duration + target * missed
        let tolerance = target * max(missed / 2, 3)
        return date < expected + tolerance && expected < date + tolerance
    }
}
