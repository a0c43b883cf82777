import Numbers
import URISyntax

/// The longer window as a playlist for players.
extension TimeShift {
    package enum Ending: Hashable, Sendable {
        /// Players reload; includes parts, hints and reports of the origin's newest window.
        case live
        /// With EXT-X-ENDLIST: the origin has disappeared or has ended the stream.
        case ended
        /// With EXT-X-PLAYLIST-TYPE:VOD and EXT-X-ENDLIST: a finished recording.
        case recorded
    }

    /// Leaves lost segments at the start out of the list for players, for good.
    ///
    /// Called before a live list is written: the numbers of its first segment must not decrease
    /// (8216bis, 6.2.2), although a segment that was given up may arrive later, or be found by a
    /// check. Stops at the origin's newest window, so that players reload.
    ///
    /// - Parameter isLost: true if a segment that the origin no longer lists is not there and not on
    ///   its way.
    /// - Returns: true if the list begins later than before.
    package mutating func leaveOutLost(_ isLost: (TimeShiftSegment) -> Bool) -> Bool {
        let former = max(listStart, segments.first?.number ?? listStart)
        var start = former
        while start < windowStart, let segment = segment(number: start),
            segment.isGap || isLost(segment)
        {
            start += 1
        }
        guard start > former else { return false }
        listStart = start
        return true
    }

    /// Returns the list as a playlist with absolute URIs, to be rewritten like any other.
    ///
    /// - Parameters:
    ///   - duration: the time span to include, back from the newest segment; nil for all remembered
    ///     segments. The origin's newest window is always included.
    ///   - ending: the text after the last segment; `ended` in any case if the origin has ended.
    ///   - isPresent: true if a segment that the origin no longer lists is kept. Segments that are
    ///     not kept become gaps. Those at the start are omitted: of a live list, what
    ///     `leaveOutLost` has left out.
    /// - Returns: the playlist, without the oldest segments that would make it longer than the
    ///   limit of bytes; empty if there is nothing to list.
    package func playlist(
        over duration: Duration? = nil, ending: Ending = .live,
        isPresent: (TimeShiftSegment) -> Bool
    ) -> [UInt8] {
        let segments = self.segments
        let listed = listed(over: duration, ending, isPresent)
        guard let first = listed.first.map({ segments[$0.index] }) else { return [] }
        let isLive = ending == .live && !isEnded
        var output = Array("#EXTM3U\n".utf8)
        output.reserveCapacity(listed.count * 256 + 1024)
        let longest = listed.lazy.map { segments[$0.index].duration }.max() ?? .zero
        appendHeader(longest, first, ending, isLive: isLive, to: &output)
        var writer = TimeShiftWriter(output: output)
        for line in dateRanges.listedLines(before: first.number) { writer.append(line) }
        // There may be days of segments: they are used in place, without copies.
        for (index, isGap) in listed {
            let number = segments[index].number
            for line in dateRanges.lines(before: number) { writer.append(line) }
            writer.write(
                segments[index], isGap: isGap, parts: isLive ? parts[number, default: []] : [])
        }
        if isLive {
            let number = segments.last.map { $0.number + 1 } ?? tail.originNumber
            // The first whole segment of a restarted origin will begin with a discontinuity.
            var tail = tail
            tail.discontinuities = min(
                max(tail.discontinuities, beginsAnew ? 1 : 0), limits.discontinuityStep)
            writer.write(tail, number: number)
            // A report with the origin's number would make players ask for a segment that does not
            // exist in a renumbered list, or is long gone; without one they load the list.
            if let last = segments.last, last.number == last.originNumber {
                writer.append(reports)
            }
        } else {
            writer.append(Array("#EXT-X-ENDLIST\n".utf8))
        }
        return writer.output
    }

    /// Returns the indices of the listed segments, and which of them are gaps.
    private func listed(
        over duration: Duration?, _ ending: Ending, _ isPresent: (TimeShiftSegment) -> Bool
    ) -> [(index: Int, isGap: Bool)] {
        let segments = self.segments
        var total = Duration.zero
        var bytes = 0
        var listed: [(index: Int, isGap: Bool)] = []
        listed.reserveCapacity(segments.count)
        for index in segments.indices.reversed() {
            let number = segments[index].number
            // A recording lists all that was fetched.
            if number < listStart, number < windowStart, ending != .recorded { break }
            let isInWindow = number >= windowStart && !isEnded && ending == .live
            if let duration {
                if !isInWindow, total >= duration { break }
                total += segments[index].duration
            }
            let isGap = segments[index].isGap || !(isInWindow || isPresent(segments[index]))
            if let next = listed.last, !next.isGap {
                // The lines of its context stand before a segment that follows a gap, too.
                let context = segments[next.index].context
                if isGap || segments[index].context !== context { bytes += context.byteCount }
            }
            bytes += segments[index].byteCount
            if bytes > limits.byteCount, !listed.isEmpty { break }
            listed.append((index, isGap))
        }
        // A live list would begin earlier again once a gap is filled.
        if ending != .live {
            while let oldest = listed.last, oldest.isGap { listed.removeLast() }
        }
        return listed.reversed()
    }

    /// Appends the tags before the first segment; a snapshot keeps all that the origin sent.
    func appendHeader(
        _ longest: Duration, _ first: TimeShiftSegment, _ ending: Ending, isLive: Bool,
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
        } else if isLive, summary.playlistType == .event, first.number >= windowStart {
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
    /// too, or counted from its beginning, which this list precedes.
    private func isMisleadingStart(
        _ line: ArraySlice<UInt8>, _ first: TimeShiftSegment, _ ending: Ending
    ) -> Bool {
        let tag = "#EXT-X-START:".utf8
        guard line.starts(with: tag) else { return false }
        if ending == .recorded { return true }
        guard first.number < windowStart else { return false }
        let value = Array(line.dropFirst(tag.count))
        let offset = AttributeList(value, in: value.indices).bytes(of: "TIME-OFFSET")
        return offset.flatMap(DecimalNumber.length) != nil
    }

    /// True for tags that are useful only while new segments are produced.
    private static func isLiveControl(_ line: ArraySlice<UInt8>) -> Bool {
        line.starts(with: "#EXT-X-SERVER-CONTROL".utf8) || line.starts(with: "#EXT-X-PART-INF".utf8)
    }
}
