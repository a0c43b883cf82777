import Numbers
package import URISyntax

/// How the numbers of a shifted list relate to the origin's and to those of other renditions.
extension TimeShift {
    /// Hosts below `invalid` exist nowhere (RFC 2606, 2).
    private static let placeholderHost = "missing.invalid"

    /// Lists that the origin begins with higher numbers begin so much lower here.
    private static let highestStart = 1 << 52

    /// The URI that stands for a gap: who asks for it is to be given an empty body.
    static func placeholder(_ number: Int, isFragment: Bool) -> [UInt8] {
        Array("http://\(placeholderHost)/\(number).\(isFragment ? "m4s" : "ts")".utf8)
    }

    /// The same for a segment that was seen: with the extension of its own URI, since players compare
    /// what they are given for one number from reload to reload.
    static func placeholder(of segment: TimeShiftSegment, isFragment: Bool) -> [UInt8] {
        guard !segment.isPlaceholder, let url = segment.url else {
            return placeholder(segment.number, isFragment: isFragment)
        }
        let name = url.bytes[url.lastPathSegmentRange]
        let kind = name.lastIndex(of: 0x2E).map { name[$0...] } ?? []
        guard kind.dropFirst().allSatisfy({ ASCII.isAlphanumeric($0) }) else {
            return placeholder(segment.number, isFragment: isFragment)
        }
        return Array("http://\(placeholderHost)/\(segment.number)".utf8) + kind
    }

    /// Whether a URL stands in a list for a segment that is not kept.
    package static func isPlaceholder(_ url: AbsoluteURL) -> Bool {
        url.hasHost(placeholderHost)
    }

    /// The number by which the origin knows what a player calls `number`, as in `_HLS_msn`.
    ///
    /// The number itself before the first window. Held within what a playlist may carry: 0 where
    /// the player means a segment from before the origin counted anew.
    package func originNumber(of number: Int) -> Int {
        guard let last = segments.last else { return number }
        let offset = last.number - last.originNumber
        return min(max(number.subtractingSaturated(offset), 0), OutsideNumber.largest)
    }

    /// Notes what the names of a segment stand for.
    package mutating func mark(_ number: Int, _ marks: TimeShiftSegment.Marks) {
        guard let first = segments.first else { return }
        let index = number - first.number
        if segments.indices.contains(index) { segments[index].marks = marks }
    }

    /// Whether a segment's bytes are those of a segment that is listed.
    package func names(_ segment: TimeShiftSegment) -> Bool {
        guard let number = numbersByName[SegmentName(segment.uri, segment.byteRange)] else {
            return false
        }
        return self.segment(number: number) != nil
    }

    /// Chooses the numbers of the first segment: the origin's, or those that another rendition's
    /// list has at the same place.
    mutating func begin(with window: LiveWindow, inStepWith sibling: TimeShift?) {
        guard let first = window.segments.first else { return }
        // Ours only rise, and have to stay within what a snapshot can carry.
        firstOffset = first.originNumber > Self.highestStart ? -Self.highestStart : 0
        firstDiscontinuity =
            first.originDiscontinuity > Self.highestStart ? -Self.highestStart : 0
        guard let sibling, let other = sibling.segments.last,
            // Renditions whose origin counts each for itself have nothing to keep in step.
            abs(first.originNumber - other.originNumber) <= limits.placeholderCount
        else { return }
        // Not before number 0, which nothing can be.
        firstOffset = max(other.number - other.originNumber, -first.originNumber)
        let step = first.originDiscontinuity - sibling.originDiscontinuity
        let isClose = abs(step) <= limits.discontinuityStep
        firstDiscontinuity =
            other.discontinuity + (isClose ? step : 0) - first.originDiscontinuity
        epoch = sibling.epoch
    }

    /// Puts placeholders before the first segment of a new epoch where another rendition is ahead.
    ///
    /// - Returns: their number; 0 where this one leads, or the other has not begun the epoch yet.
    mutating func catchUp(with sibling: TimeShift?, at next: LiveWindow.Segment) -> Int {
        guard let sibling, sibling.epoch >= epoch, let last = segments.last,
            let other = sibling.known(next.originNumber)
        else { return 0 }
        let missed = other.number - last.number - 1
        guard missed > 0, missed <= limits.placeholderCount else { return 0 }
        appendPlaceholders(missed, after: last)
        return missed
    }

    mutating func appendPlaceholders(_ count: Int, after last: TimeShiftSegment) {
        let duration = summary.targetDuration ?? last.duration
        for index in 1...count {
            let previous = segments[segments.endIndex - 1]
            let number = last.number + index
            segments.append(
                TimeShiftSegment(
                    number: number, originNumber: last.originNumber + index,
                    epoch: last.epoch, generation: 0, discontinuity: last.discontinuity, url: nil,
                    byteRange: nil, duration: duration,
                    date: previous.date.map { $0 + previous.duration }, isGap: true,
                    isPlaceholder: true, uri: Self.placeholder(number, isFragment: false),
                    lines: [], hasOwnDate: false, context: last.context))
        }
    }
}
