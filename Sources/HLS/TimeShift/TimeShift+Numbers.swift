import Numbers
import URISyntax

/// The relation of a shifted list's numbers to those of the origin and of other renditions.
extension TimeShift {
    /// The highest origin number that is used for a first segment; higher ones are reduced by a
    /// multiple of it.
    ///
    /// With EXT-X-SKIP an origin's number is the sum of two that are each up to 2^53 - 1.
    private static let highestStart = 1 << 52

    /// Returns the origin's number for the segment that players know as `number`, as in `_HLS_msn`.
    ///
    /// Returns `number` before the first window. The result is clamped to the range of a playlist's
    /// numbers: 0 if the player means a segment from before the origin restarted its numbering.
    package func originNumber(of number: Int) -> Int {
        guard let last = segments.last else { return number }
        let offset = last.number - last.originNumber
        return min(max(number.subtractingSaturated(offset), 0), ExternalNumber.largest)
    }

    /// Chooses the numbers of the first segment: the origin's, or those that another rendition's
    /// list has for the same place.
    mutating func begin(with window: LiveWindow, inStepWith sibling: TimeShift?) {
        guard let first = window.segments.first, let newest = window.segments.last else { return }
        beganBehind = false
        // Numbers in the shifted list only rise, and must stay within what a snapshot can store.
        firstOffset = Self.offset(forFirst: first.originNumber)
        firstDiscontinuity = Self.offset(forFirst: first.originDiscontinuity)
        guard let sibling, let other = sibling.segments.last,
            // Renditions that the origin numbers independently cannot be kept in step.
            abs(first.originNumber - other.originNumber) <= limits.placeholderCount
        else { return }
        // The number must not be negative.
        firstOffset = max(other.number - other.originNumber, -first.originNumber)
        let step = first.originDiscontinuity - sibling.originDiscontinuity
        let isClose = abs(step) <= limits.discontinuityStep
        firstDiscontinuity =
            other.discontinuity + (isClose ? step : 0) - first.originDiscontinuity
        epoch = sibling.epoch
        // That of a restored window is not known until it is read.
        beganBehind =
            sibling.windowStart <= other.number
            && newest.originNumber < sibling.originNumber(of: sibling.windowStart)
    }

    /// True if the segments were taken for earlier ones of another rendition, and are now found to
    /// be of the epoch that it has begun since: this list was read first after the origin restarted.
    ///
    /// It begins anew then, since its numbers and discontinuities are too low.
    func isOutOfStep(with sibling: TimeShift?) -> Bool {
        guard beganBehind, let sibling, sibling.epoch > epoch, let last = segments.last,
            let other = sibling.remembered.known(last.originNumber)
        else { return false }
        return other.number > last.number
    }

    /// Returns what is added to an origin's number so that numbering can start with it.
    private static func offset(forFirst number: Int) -> Int {
        number > highestStart ? number % highestStart - number : 0
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
