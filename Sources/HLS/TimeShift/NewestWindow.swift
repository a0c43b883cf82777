import Numbers

/// What a longer window keeps of the origin's newest window besides segments: the head of the list
/// and its end, which change with each reading.
///
/// Its segments are known by the numbers of the longer window.
struct NewestWindow: Sendable {
    /// The number of its first segment.
    var start = 0
    private(set) var summary = PlaylistSummary()
    /// True if its last line had an end; false for a restored one, too.
    var isTerminated = false
    /// The tags of the playlist as a whole, with LF, except those that are regenerated.
    private var header: [UInt8] = []
    private var tail = LiveWindow.Tail()
    private var reports: [UInt8] = []
    /// EXT-X-PART lines by segment number.
    private(set) var parts: [Int: [UInt8]] = [:]
    /// The origin's number of the segment in progress if the window has only parts, like the first
    /// one after a restart; nil for any other window.
    private var numberInProgress: Int?

    // MARK: Reading

    /// Takes over the tags and properties of the playlist as a whole.
    mutating func takeHead(of window: LiveWindow) {
        summary = window.summary
        header = window.header
    }

    /// Takes over where the window begins, the parts of its segments, and what follows them.
    ///
    /// - Parameters:
    ///   - window: the window.
    ///   - last: the last segment of the longer window; nil if it has none.
    /// - Returns: the difference between the numbers of the longer window and the origin's; nil if
    ///   either window is empty.
    mutating func takeEnd(of window: LiveWindow, last: TimeShiftSegment?) -> Int? {
        tail = window.tail
        reports = window.reports
        parts = [:]
        let isWithoutSegments = window.segments.isEmpty && !window.tail.lines.isEmpty
        numberInProgress = isWithoutSegments ? window.tail.originNumber : nil
        guard let last, let newest = window.segments.last else { return nil }
        let offset = last.number - newest.originNumber
        // A delta update shows only the number of skipped segments, not where the window starts.
        start = window.summary.mediaSequence + offset
        for segment in window.segments where !segment.parts.isEmpty {
            parts[segment.originNumber + offset] = segment.parts
        }
        return offset
    }

    // MARK: Numbers

    /// Returns the origin's number for the segment that players know as `number`.
    ///
    /// Players know a segment in progress as the one after the last, whatever the origin calls it.
    /// The result is clamped to the range of a playlist's numbers.
    func originNumber(of number: Int, last: TimeShiftSegment) -> Int {
        let offset = last.number - (numberInProgress.map { $0 - 1 } ?? last.originNumber)
        return min(max(number.subtractingSaturated(offset), 0), ExternalNumber.largest)
    }

    /// True if the window has only parts, of a segment whose number shows that the origin has
    /// restarted.
    private func beginsAnew(after last: TimeShiftSegment) -> Bool {
        numberInProgress.map { $0 <= last.originNumber } ?? false
    }

    // MARK: Writing

    /// Appends the tags before the first segment; a snapshot keeps all that the origin sent.
    func appendHead(
        _ longest: Duration, _ first: TimeShiftSegment, _ ending: TimeShift.Ending, isLive: Bool,
        isSnapshot: Bool = false, to output: inout [UInt8]
    ) {
        for line in header.split(separator: 0x0A) {
            guard isLive || !Self.isLiveControl(line),
                isSnapshot || !isMisleadingStart(line, first, ending)
            else { continue }
            output.append(contentsOf: line)
            output.append(0x0A)
        }
        let rounded = (longest + .milliseconds(500)).components.seconds
        let target = max(summary.targetDuration?.components.seconds ?? 1, rounded, 1)
        var text = "#EXT-X-TARGETDURATION:\(target)\n"
        if ending == .recorded {
            text += "#EXT-X-PLAYLIST-TYPE:VOD\n"
        } else if isLive, summary.playlistType == .event, first.number >= start {
            // Only if no segment precedes the origin's own list, which never drops any.
            text += "#EXT-X-PLAYLIST-TYPE:EVENT\n"
        }
        text += "#EXT-X-MEDIA-SEQUENCE:\(first.number)\n"
        if first.discontinuity > 0 || summary.startsWithDiscontinuitySequence {
            text += "#EXT-X-DISCONTINUITY-SEQUENCE:\(first.discontinuity)\n"
        }
        output.append(contentsOf: text.utf8)
    }

    /// True for an EXT-X-START that means the origin's window: at its end, where a recording ends
    /// too, or counted from its beginning, which the longer window precedes.
    private func isMisleadingStart(
        _ line: ArraySlice<UInt8>, _ first: TimeShiftSegment, _ ending: TimeShift.Ending
    ) -> Bool {
        let tag = "#EXT-X-START:".utf8
        guard line.starts(with: tag) else { return false }
        if ending == .recorded { return true }
        guard first.number < start else { return false }
        let value = Array(line.dropFirst(tag.count))
        return AttributeList(value, in: value.indices).length(of: "TIME-OFFSET") != nil
    }

    /// True for tags that are useful only while new segments are produced.
    private static func isLiveControl(_ line: ArraySlice<UInt8>) -> Bool {
        line.starts(with: "#EXT-X-SERVER-CONTROL".utf8) || line.starts(with: "#EXT-X-PART-INF".utf8)
    }

    /// Writes what follows the last segment of a live list: the segment in progress, and reports.
    ///
    /// - Parameters:
    ///   - last: the last segment of the longer window.
    ///   - most: the most discontinuities before the segment in progress.
    ///   - writer: has written the last segment.
    func writeEnd(
        after last: TimeShiftSegment, discontinuities most: Int, to writer: inout TimeShiftWriter
    ) {
        var tail = tail
        // The first whole segment of a restarted origin will begin with a discontinuity.
        let least = beginsAnew(after: last) ? 1 : 0
        tail.discontinuities = min(max(tail.discontinuities, least), most)
        writer.write(tail, number: last.number + 1)
        // A report with the origin's number would make players ask for a segment that does not
        // exist in a renumbered list, or is long gone; without one they load the list.
        if last.number == last.originNumber { writer.append(reports) }
    }
}
