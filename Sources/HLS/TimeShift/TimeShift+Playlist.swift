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
        guard let first = listed.first.map({ segments[$0.index] }), let last = segments.last else {
            return []
        }
        let isLive = ending == .live && !isEnded
        var output = Array("#EXTM3U\n".utf8)
        output.reserveCapacity(listed.count * 256 + 1024)
        let longest = listed.lazy.map { segments[$0.index].duration }.max() ?? .zero
        newestWindow.appendHead(longest, first, ending, isLive: isLive, to: &output)
        var writer = TimeShiftWriter(output: output)
        for line in dateRanges.listedLines(before: first.number) { writer.append(line) }
        // There may be days of segments: they are used in place, without copies.
        for (index, isGap) in listed {
            let number = segments[index].number
            for line in dateRanges.lines(before: number) { writer.append(line) }
            writer.write(
                segments[index], isGap: isGap,
                parts: isLive ? newestWindow.parts[number, default: []] : [])
        }
        if isLive {
            newestWindow.writeEnd(
                after: last, discontinuities: limits.discontinuityStep, to: &writer)
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
}
