import Numbers
import URISyntax

/// The relation of a shifted list's numbers to those of the origin and of other renditions.
extension TimeShift {
    /// Returns the origin's number for the segment that players know as `number`, as in `_HLS_msn`.
    ///
    /// Returns `number` before the first window. The result is clamped to the range of a playlist's
    /// numbers: 0 if the player means a segment from before the origin restarted its numbering.
    package func originNumber(of number: Int) -> Int {
        guard let last = segments.last else { return number }
        let offset = last.number - last.originNumber
        return min(max(number.subtractingSaturated(offset), 0), ExternalNumber.largest)
    }

    /// True if the segments were taken for earlier ones of another rendition, and are now found to
    /// be of the epoch that it has begun since: this list was read first after the origin restarted.
    ///
    /// It begins anew then, since its numbers and discontinuities are too low.
    func isOutOfStep(with sibling: TimeShift?) -> Bool {
        guard began.isBehind, let sibling, sibling.epoch > epoch, let last = segments.last,
            let other = sibling.remembered.known(last.originNumber)
        else { return false }
        return other.number > last.number
    }

    /// Appends placeholders before the first segment of a new epoch if another rendition is ahead.
    ///
    /// - Returns: the number of placeholders; 0 if this rendition leads or the other has not begun
    ///   the epoch yet.
    mutating func catchUp(with sibling: TimeShift?, at next: LiveWindow.Segment) -> Int {
        guard let sibling, sibling.epoch >= epoch, let last = segments.last,
            let other = sibling.remembered.known(next.originNumber)
        else { return 0 }
        let missed = other.number - last.number - 1
        guard missed > 0, missed <= limits.segmentCount else { return 0 }
        appendPlaceholders(missed, after: last)
        return missed
    }

    mutating func appendPlaceholders(_ count: Int, after last: TimeShiftSegment) {
        let duration = summary.targetDuration ?? last.duration
        for index in 1...count {
            let previous = segments[segments.endIndex - 1]
            let number = last.number + index
            remembered.append(
                TimeShiftSegment(
                    number: number, originNumber: last.originNumber + index,
                    epoch: last.epoch, generation: 0, discontinuity: last.discontinuity, url: nil,
                    byteRange: nil, duration: duration,
                    date: previous.date.map { $0 + previous.duration }, isGap: true,
                    isPlaceholder: true, uri: SegmentPlaceholder.uri(number, isFragment: false),
                    lines: [], hasOwnDate: false, context: last.context))
        }
    }
}
