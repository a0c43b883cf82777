import URISyntax

/// The relation of a shifted list's numbers to those of the origin and of other renditions.
extension TimeShift {
    /// Returns the origin's number for the segment that players know as `number`, as in `_HLS_msn`.
    ///
    /// Returns `number` before the first window. The result is clamped to the range of a playlist's
    /// numbers: 0 if the player means a segment from before the origin restarted its numbering.
    ///
    /// Players know a segment in progress as the one after the last, whatever the origin calls it.
    package func originNumber(of number: Int) -> Int {
        guard let last = segments.last else { return number }
        return newestWindow.originNumber(of: number, last: last)
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

    /// Returns the segment of another rendition at the place of the first one of a new epoch.
    ///
    /// - Returns: the segment; nil if the other rendition has not begun the epoch yet, or does not
    ///   have it behind the last segment of this one.
    private func counterpart(
        of next: LiveWindow.Segment, in sibling: TimeShift?
    ) -> TimeShiftSegment? {
        guard let sibling, sibling.epoch >= epoch, let last = segments.last,
            let other = sibling.remembered.known(next.originNumber), other.number > last.number,
            other.number - last.number - 1 <= limits.segmentCount
        else { return nil }
        return other
    }

    /// Returns the rise of the discontinuity sequence number to the first segment of a new epoch
    /// that keeps this rendition in step with another one; nil if nothing shows it.
    ///
    /// A rendition that was read all the time shows whether the stream went on over the epoch; in
    /// one that missed it, the windows do not meet. Call it before `catchUp`.
    func discontinuityStep(inStepWith sibling: TimeShift?, at next: LiveWindow.Segment) -> Int? {
        guard let last = segments.last, let other = counterpart(of: next, in: sibling) else {
            return nil
        }
        // The other one may count discontinuities that this one has missed, or lack some.
        let before = sibling?.segment(number: last.number)?.discontinuity ?? last.discontinuity
        return max(other.discontinuity - min(before, last.discontinuity), 0)
    }

    /// Appends placeholders before the first segment of a new epoch if another rendition is ahead.
    ///
    /// - Returns: the number of placeholders; 0 if this rendition leads or the other has not begun
    ///   the epoch yet.
    mutating func catchUp(with sibling: TimeShift?, at next: LiveWindow.Segment) -> Int {
        guard let last = segments.last, let other = counterpart(of: next, in: sibling) else {
            return 0
        }
        let missed = other.number - last.number - 1
        if missed > 0 { appendPlaceholders(missed, after: last) }
        return missed
    }

    mutating func appendPlaceholders(_ count: Int, after last: TimeShiftSegment) {
        let duration = targetDuration ?? last.duration
        let isFragment = last.context.map != nil
        for index in 1...count {
            let previous = segments[segments.endIndex - 1]
            let number = last.number + index
            remembered.append(
                TimeShiftSegment(
                    number: number, originNumber: last.originNumber + index,
                    epoch: last.epoch, generation: 0, discontinuity: last.discontinuity, url: nil,
                    byteRange: nil, duration: duration,
                    date: previous.date.map { $0 + previous.duration }, isGap: true,
                    isPlaceholder: true,
                    uri: SegmentPlaceholder.uri(number, isFragment: isFragment), lines: [],
                    hasOwnDate: false, context: last.context))
        }
    }
}
