import URISyntax

/// What a new window of a live stream is, next to those before it.
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
        // All of it is older than what is known, or counted anew: dates tell, if there are any.
        if let old = last.date, let date = first.date, date < old { return .stale }
        return .newEpoch
    }

    /// Whether a window that begins behind the last segment goes on from it.
    private func isPlausible(
        _ first: LiveWindow.Segment, after last: TimeShiftSegment, from source: Origin
    ) -> Bool {
        let missed = first.originNumber - last.originNumber - 1
        if missed == 0 { return true }
        // More than a window can hold: whoever counts like this does not go on with these segments.
        guard missed <= limits.segmentCount else { return false }
        guard let start = last.date, let date = first.date else {
            // A hole, or a mirror with numbers of its own.
            return origin == nil || origin == source
        }
        let target = summary.targetDuration ?? last.duration
        let expected = start + last.duration + target * missed
        let tolerance = target * max(missed / 2, 3)
        return date < expected + tolerance && expected < date + tolerance
    }

    /// The segment that the origin gave this number in the present epoch.
    func known(_ originNumber: Int) -> TimeShiftSegment? {
        guard let last = segments.last else { return nil }
        let index = segments.endIndex - 1 - (last.originNumber - originNumber)
        guard segments.indices.contains(index), segments[index].epoch == epoch else { return nil }
        return segments[index]
    }

    /// Whether two readings are of one segment; hosts, folders and queries may carry tokens.
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
