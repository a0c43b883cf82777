import URISyntax

/// How a new window of a live stream relates to those before it.
extension TimeShift {
    func relation(
        of window: LiveWindow, from source: Origin, countsAnew: Bool, besides sibling: TimeShift?
    ) -> Relation {
        guard let last = segments.last else { return .first }
        guard let first = window.segments.first, let newest = window.segments.last else {
            return .unchanged
        }
        var overlaps = false
        for segment in window.segments {
            guard let known = remembered.known(segment.originNumber) else { continue }
            overlaps = true
            if !known.isPlaceholder, !known.isSame(as: segment) { return .newEpoch }
        }
        if newest.originNumber > last.originNumber {
            let continues =
                overlaps
                || isPlausible(
                    window, first, after: last, from: source, countsAnew: countsAnew,
                    longest: longestHole(before: first, after: last, besides: sibling))
            return continues ? .advanced : .newEpoch
        }
        if newest.originNumber < last.originNumber, countsAnew { return .newEpoch }
        if overlaps { return newest.originNumber == last.originNumber ? .unchanged : .stale }
        // All of it is older than the known segments, or renumbered: dates decide, if there are
        // any.
        if let old = last.date, let date = newest.date, date < old { return .stale }
        return .newEpoch
    }

    /// True if the origin's list has entered this epoch since the last change.
    func isBefore(_ epoch: Epoch?) -> Bool {
        guard let epoch, let listEpoch else { return false }
        return listEpoch < epoch
    }

    /// Returns the most segments that may be missing before a window that continues the last one.
    ///
    /// A list that was away for longer goes on after a discontinuity: what it has is kept. If only
    /// this rendition was away, all of the hole is filled, since its numbers are to be in step.
    private func longestHole(
        before first: LiveWindow.Segment, after last: TimeShiftSegment, besides sibling: TimeShift?
    ) -> Int {
        let longest = min(limits.placeholderCount, limits.segmentCount)
        guard let sibling, let other = sibling.remembered.known(first.originNumber) else {
            return longest
        }
        // The other one has found a longer hole, or was renumbered: this one follows it.
        if sibling.epoch > epoch { return longest / 2 }
        let isInStep =
            sibling.epoch == epoch
            && other.number - other.originNumber == last.number - last.originNumber
        return isInStep ? limits.segmentCount : longest
    }

    /// Returns how many segments are missing before a window that would continue the last one if
    /// they were not too many for placeholders; 0 for any other window.
    func longHole(before window: LiveWindow, from source: Origin, countsAnew: Bool) -> Int {
        guard let last = segments.last, let first = window.segments.first,
            first.originNumber > last.originNumber,
            isPlausible(
                window, first, after: last, from: source, countsAnew: countsAnew,
                longest: limits.segmentCount)
        else { return 0 }
        return first.originNumber - last.originNumber - 1
    }

    /// True if a window that begins after the last segment continues from it, with `longest`
    /// missing segments at most.
    private func isPlausible(
        _ window: LiveWindow, _ first: LiveWindow.Segment, after last: TimeShiftSegment,
        from source: Origin, countsAnew: Bool, longest: Int
    ) -> Bool {
        let missed = first.originNumber - last.originNumber - 1
        if missed == 0 { return true }
        guard missed <= longest else { return false }
        guard let start = last.date, let date = first.date else {
            // Either segments were missed, or a mirror has its own numbers and lists known ones.
            guard !countsAnew, origin == nil || origin == source else { return false }
            // Where names are reused, others may have had them in the hole.
            return last.generation > 0
                || WindowJoint.place(of: window.segments, in: segments) == .apart
        }
        let target = summary.targetDuration ?? last.duration
        let expected = start + last.duration + target * missed
        let tolerance = target * max(missed / 2, 3)
        return date < expected + tolerance && expected < date + tolerance
    }
}
