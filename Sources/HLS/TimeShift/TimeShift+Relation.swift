import URISyntax

/// How a new window of a live stream relates to those before it.
extension TimeShift {
    func relation(
        of window: LiveWindow, from source: Origin, countsAnew: Bool
    ) -> Relation {
        guard let last = segments.last else { return .first }
        guard let first = window.segments.first, let newest = window.segments.last else {
            return .unchanged
        }
        var overlaps = false
        for segment in window.segments {
            guard let known = known(segment.originNumber) else { continue }
            overlaps = true
            if !known.isPlaceholder, !Self.isSame(known, segment) { return .newEpoch }
        }
        if newest.originNumber > last.originNumber {
            return overlaps || isPlausible(first, after: last, from: source) ? .advanced : .newEpoch
        }
        if newest.originNumber < last.originNumber, countsAnew { return .newEpoch }
        if overlaps { return newest.originNumber == last.originNumber ? .unchanged : .stale }
        // All of it is older than the known segments, or renumbered: dates decide, if there are
        // any.
        if let old = last.date, let date = first.date, date < old { return .stale }
        return .newEpoch
    }

    /// True if a window that begins after the last segment continues from it.
    private func isPlausible(
        _ first: LiveWindow.Segment, after last: TimeShiftSegment, from source: Origin
    ) -> Bool {
        let missed = first.originNumber - last.originNumber - 1
        if missed == 0 { return true }
        // A jump longer than the list can be: the numbers do not continue those of these segments.
        guard missed <= limits.segmentCount else { return false }
        guard let start = last.date, let date = first.date else {
            // Either segments were missed, or a mirror has its own numbers.
            return origin == nil || origin == source
        }
        let target = summary.targetDuration ?? last.duration
        let expected = start + last.duration + target * missed
        let tolerance = target * max(missed / 2, 3)
        return date < expected + tolerance && expected < date + tolerance
    }

    /// Returns the segment with this origin number in the current epoch.
    func known(_ originNumber: Int) -> TimeShiftSegment? {
        guard let last = segments.last else { return nil }
        let index = segments.endIndex - 1 - (last.originNumber - originNumber)
        guard segments.indices.contains(index), segments[index].epoch == epoch else { return nil }
        return segments[index]
    }

    /// True if both are the same segment; hosts, folders and queries are ignored, since they may
    /// carry tokens.
    static func isSame(_ known: TimeShiftSegment, _ seen: LiveWindow.Segment) -> Bool {
        guard known.byteRange == seen.byteRange else { return false }
        if let old = known.date, let new = seen.date,
            abs(old.milliseconds - new.milliseconds) > 10_000
        {
            return false
        }
        if known.uri == seen.uri { return true }
        guard let old = known.url, let new = seen.url else { return false }
        return old.lastPathSegment == new.lastPathSegment && known.duration == seen.duration
            && !new.lastPathSegment.isEmpty
    }
}
