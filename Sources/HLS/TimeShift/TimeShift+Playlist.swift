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

    /// Returns the list as a playlist with absolute URIs, to be rewritten like any other.
    ///
    /// - Parameters:
    ///   - duration: the time span to include, back from the newest segment; nil for all remembered
    ///     segments. The origin's newest window is always included.
    ///   - ending: the text after the last segment; `ended` in any case if the origin has ended.
    ///   - isPresent: true if a segment that the origin no longer lists is kept. Segments that are
    ///     not kept become gaps, or are omitted if no kept segment precedes them.
    /// - Returns: the playlist, without the oldest segments that would make it longer than the
    ///   limit of bytes; empty if there is nothing to list.
    package func playlist(
        over duration: Duration? = nil, ending: Ending = .live,
        isPresent: (TimeShiftSegment) -> Bool
    ) -> [UInt8] {
        let listed = listed(over: duration, ending, isPresent)
        guard let first = listed.first.map({ segments[$0.index] }) else { return [] }
        let isLive = ending == .live && !isEnded
        var output = Array("#EXTM3U\n".utf8)
        output.reserveCapacity(listed.count * 256 + 1024)
        let longest = listed.lazy.map { self.segments[$0.index].duration }.max() ?? .zero
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
            writer.write(tail, number: number, mostDiscontinuities: limits.discontinuityStep)
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
        var total = Duration.zero
        var bytes = 0
        var listed: [(index: Int, isGap: Bool)] = []
        listed.reserveCapacity(segments.count)
        for index in segments.indices.reversed() {
            let isInWindow = segments[index].number >= windowStart && !isEnded && ending == .live
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
        // Drops leading gaps, but keeps a live window of only gaps, so that players reload.
        while let oldest = listed.last, oldest.isGap,
            segments[oldest.index].number < windowStart || ending != .live
        {
            listed.removeLast()
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

/// Writes consecutive segments with the tags that change from one to the next.
struct TimeShiftWriter {
    var output: [UInt8]
    /// The attributes of the previous segment that the next one depends on.
    private struct Previous {
        let discontinuity: Int
        let context: TimeShiftContext
        /// The keys in force, as written.
        let keys: KeysInForce
        /// The mark of the initialization section.
        let mapMark: UInt32
    }

    private var previous: Previous?
    private var wasGap = false
    /// The date at which players expect the next segment to begin; nil if unknown.
    private var clock: DateTime?

    /// The most milliseconds by which a date may differ from what players derive.
    private static let dateTolerance = 100

    init(output: [UInt8]) { self.output = output }

    mutating func append(_ bytes: [UInt8]) { output.append(contentsOf: bytes) }

    /// Writes a segment; a gap is written unencrypted and with a placeholder URI, unless
    /// `keepsGaps`.
    ///
    /// `parts` are its EXT-X-PART lines, which follow the tags that apply to them (8216bis,
    /// 4.4.4.9). A gap has none: they would be unencrypted, too.
    mutating func write(
        _ segment: TimeShiftSegment, isGap: Bool, parts: [UInt8] = [], keepsGaps: Bool = false
    ) {
        if isGap, !keepsGaps { return writeGap(segment) }
        let jumps = previous.map { segment.discontinuity - $0.discontinuity } ?? 0
        appendDiscontinuities(jumps)
        let context = segment.context
        let keys = keys(
            of: context, segment.originNumber, isRenumbered: segment.number != segment.originNumber)
        append(
            context, keys,
            repeatsMap: previous.map { $0.mapMark != segment.marks.map } ?? false)
        let needsDate = previous == nil || jumps > 0 || wasGap != isGap || segment.hasOwnDate
        if let date = segment.date, needsDate || isOff(date) { append(date) }
        append(parts)
        if isGap { output.append(contentsOf: "#EXT-X-GAP\n".utf8) }
        if segment.isPlaceholder {
            output.append(contentsOf: "#EXTINF:\(Self.seconds(segment.duration)),\n".utf8)
        } else if let range = segment.byteRange {
            output.append(contentsOf: "#EXT-X-BYTERANGE:\(range.length)@\(range.offset)\n".utf8)
        }
        output.append(contentsOf: segment.lines)
        output.append(contentsOf: segment.uri)
        output.append(0x0A)
        previous = Previous(
            discontinuity: segment.discontinuity, context: context, keys: keys,
            mapMark: segment.marks.map)
        wasGap = isGap
        noteEnd(of: segment)
    }

    /// Writes the lines after the last segment, behind the tags that apply to them; `number` is
    /// that of the segment in progress.
    mutating func write(_ tail: LiveWindow.Tail, number: Int, mostDiscontinuities: Int) {
        guard !tail.lines.isEmpty else { return }
        appendDiscontinuities(min(tail.discontinuities, mostDiscontinuities))
        append(
            tail.context,
            keys(of: tail.context, tail.originNumber, isRenumbered: number != tail.originNumber),
            repeatsMap: false)
        if let date = tail.date { append(date) }
        append(tail.lines)
    }

    /// Returns the keys of a segment as they are to be written.
    ///
    /// Without an IV attribute players derive the IV from the media sequence number, which must be
    /// the origin's.
    private func keys(
        of context: TimeShiftContext, _ originNumber: Int, isRenumbered: Bool
    ) -> KeysInForce {
        isRenumbered ? context.keys.withIVs(of: originNumber) : context.keys
    }

    private mutating func append(
        _ context: TimeShiftContext, _ keys: KeysInForce, repeatsMap: Bool
    ) {
        let lines = context.lines(
            keys, after: previous.map { ($0.context, $0.keys) }, repeatsMap: repeatsMap)
        for line in lines { output.append(contentsOf: line + [0x0A]) }
    }

    private mutating func appendDiscontinuities(_ count: Int) {
        for _ in 0..<max(count, 0) { output.append(contentsOf: "#EXT-X-DISCONTINUITY\n".utf8) }
    }

    /// True if players would derive another date from those written and the durations, which are
    /// rounded.
    private func isOff(_ date: DateTime) -> Bool {
        clock.map { abs($0.milliseconds - date.milliseconds) > Self.dateTolerance } ?? true
    }

    private mutating func noteEnd(of segment: TimeShiftSegment) {
        clock = segment.date == nil ? nil : clock.map { $0 + segment.duration }
    }

    private mutating func append(_ date: DateTime) {
        clock = date
        output.append(contentsOf: "#EXT-X-PROGRAM-DATE-TIME:".utf8)
        date.append(to: &output)
        output.append(0x0A)
    }

    /// Writes a gap without encryption: players that do not support EXT-X-GAP fetch the URI, and
    /// must not decrypt its empty body.
    private mutating func writeGap(_ segment: TimeShiftSegment) {
        appendDiscontinuities(previous.map { segment.discontinuity - $0.discontinuity } ?? 0)
        if previous?.keys.isEmpty == false {
            output.append(contentsOf: "#EXT-X-KEY:METHOD=NONE\n".utf8)
        }
        if previous == nil || !wasGap, let date = segment.date {
            append(date)
        }
        let before = previous?.context ?? .none
        output.append(contentsOf: "#EXT-X-GAP\n#EXTINF:\(Self.seconds(segment.duration)),\n".utf8)
        output += TimeShift.placeholder(of: segment, isFragment: before.map != nil) + [0x0A]
        previous = Previous(
            discontinuity: segment.discontinuity,
            context: TimeShiftContext(mapKeys: before.mapKeys, map: before.map),
            keys: KeysInForce(), mapMark: previous?.mapMark ?? 0)
        wasGap = true
        noteEnd(of: segment)
    }

    private static func seconds(_ duration: Duration) -> String {
        let parts = duration.components
        let milliseconds = parts.attoseconds / 1_000_000_000_000_000
        guard milliseconds > 0 else { return "\(parts.seconds)" }
        return "\(parts.seconds).\(String(milliseconds, width: 3))"
    }
}
