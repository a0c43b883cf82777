import Numbers
import URISyntax

/// Writes the longer window, as players get it.
extension TimeShift {
    package enum Ending: Hashable, Sendable {
        /// Players reload; with parts, hints and reports of the origin's newest window.
        case live
        /// With EXT-X-ENDLIST: the origin is gone, or has ended it.
        case ended
        /// With EXT-X-PLAYLIST-TYPE:VOD and EXT-X-ENDLIST: a finished recording.
        case recorded
    }

    /// The list as a playlist with absolute URIs, to be rewritten like any other.
    ///
    /// - Parameters:
    ///   - duration: how far it reaches back from the newest segment; nil for all that is
    ///     remembered. Never less than the origin's newest window.
    ///   - ending: what comes behind the last segment; `ended` in any case where the origin ended.
    ///   - isPresent: whether a segment that the origin no longer lists is kept. Those that are
    ///     not become gaps, and go where nothing that is kept stands before them.
    /// - Returns: the playlist; empty where there is nothing to list.
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
        // Days of segments: none of them is copied.
        for (index, isGap) in listed {
            let number = segments[index].number
            for line in dateRanges[number] ?? [] { writer.append(line) }
            if isLive, let lines = parts[number] { writer.append(lines) }
            writer.write(segments[index], isGap: isGap)
        }
        if isLive {
            writer.append(tail)
        } else {
            writer.append(Array("#EXT-X-ENDLIST\n".utf8))
        }
        return writer.output
    }

    /// Where the segments stand that are listed, and which of them are gaps.
    private func listed(
        over duration: Duration?, _ ending: Ending, _ isPresent: (TimeShiftSegment) -> Bool
    ) -> [(index: Int, isGap: Bool)] {
        var total = Duration.zero
        var listed: [(index: Int, isGap: Bool)] = []
        listed.reserveCapacity(segments.count)
        for index in segments.indices.reversed() {
            let isInWindow = segments[index].number >= windowStart && !isEnded && ending == .live
            if let duration {
                if !isInWindow, total >= duration { break }
                total += segments[index].duration
            }
            let isGap = segments[index].isGap || !(isInWindow || isPresent(segments[index]))
            listed.append((index, isGap))
        }
        // Gaps at the start lead nowhere; a window of nothing else is kept to be reloaded.
        while let oldest = listed.last, oldest.isGap,
            segments[oldest.index].number < windowStart || ending != .live
        {
            listed.removeLast()
        }
        return listed.reversed()
    }

    func appendHeader(
        _ longest: Duration, _ first: TimeShiftSegment, _ ending: Ending, isLive: Bool,
        to output: inout [UInt8]
    ) {
        let lines = header.split(separator: 0x0A)
        for line in lines where isLive || !Self.isLiveControl(line) {
            output.append(contentsOf: line)
            output.append(0x0A)
        }
        let rounded = (longest + .milliseconds(500)).components.seconds
        let target = max(summary.targetDuration?.components.seconds ?? 1, rounded, 1)
        var text = "#EXT-X-TARGETDURATION:\(target)\n"
        if ending == .recorded {
            text += "#EXT-X-PLAYLIST-TYPE:VOD\n"
        } else if isLive, summary.playlistType == .event, first.number >= windowStart {
            // Only where nothing stands before the origin's own list, which never loses any.
            text += "#EXT-X-PLAYLIST-TYPE:EVENT\n"
        }
        text += "#EXT-X-MEDIA-SEQUENCE:\(first.number)\n"
        if first.discontinuity > 0 || summary.startsWithDiscontinuitySequence {
            text += "#EXT-X-DISCONTINUITY-SEQUENCE:\(first.discontinuity)\n"
        }
        output.append(contentsOf: text.utf8)
    }

    /// Tags that are of use only while somebody produces segments.
    private static func isLiveControl(_ line: ArraySlice<UInt8>) -> Bool {
        line.starts(with: "#EXT-X-SERVER-CONTROL".utf8) || line.starts(with: "#EXT-X-PART-INF".utf8)
    }
}

/// Writes segments one behind the other, with what has changed from one to the next.
struct TimeShiftWriter {
    var output: [UInt8]
    /// What is needed of the segment before.
    private var previous: (discontinuity: Int, context: TimeShiftContext)?
    private var wasGap = false
    /// Whether the keys in force are spelt out for the segment before.
    private var hasOwnIVs = false

    init(output: [UInt8]) { self.output = output }

    mutating func append(_ bytes: [UInt8]) { output.append(contentsOf: bytes) }

    /// Writes a segment; one that is a gap in clear, with a URI of ours, unless `keepsGaps`.
    mutating func write(_ segment: TimeShiftSegment, isGap: Bool, keepsGaps: Bool = false) {
        if isGap, !keepsGaps { return writeGap(segment) }
        let jumps = previous.map { segment.discontinuity - $0.discontinuity } ?? 0
        for _ in 0..<max(jumps, 0) { output.append(contentsOf: "#EXT-X-DISCONTINUITY\n".utf8) }
        // The IV that players would take is the number that the origin gave it.
        let isRenumbered = segment.number != segment.originNumber
        let lines = isRenumbered ? segment.context.keys.withIVs(of: segment.originNumber) : []
        let returns = hasOwnIVs && lines.isEmpty
        if returns { output.append(contentsOf: "#EXT-X-KEY:METHOD=NONE\n".utf8) }
        segment.context.append(after: returns ? nil : previous?.context, to: &output)
        for line in lines { output.append(contentsOf: line + [0x0A]) }
        hasOwnIVs = !lines.isEmpty
        let needsDate = previous == nil || jumps > 0 || wasGap != isGap || segment.hasOwnDate
        if needsDate, let date = segment.date {
            append(date)
        }
        if isGap { output.append(contentsOf: "#EXT-X-GAP\n".utf8) }
        if segment.isPlaceholder {
            output.append(contentsOf: "#EXTINF:\(Self.seconds(segment.duration)),\n".utf8)
        } else if let range = segment.byteRange {
            output.append(contentsOf: "#EXT-X-BYTERANGE:\(range.length)@\(range.offset)\n".utf8)
        }
        output.append(contentsOf: segment.lines)
        output.append(contentsOf: segment.uri)
        output.append(0x0A)
        previous = (segment.discontinuity, segment.context)
        wasGap = isGap
    }

    private mutating func append(_ date: DateTime) {
        output.append(contentsOf: "#EXT-X-PROGRAM-DATE-TIME:".utf8)
        date.append(to: &output)
        output.append(0x0A)
    }

    /// Players that do not know EXT-X-GAP ask for the URI: nothing of it is to be decrypted.
    private mutating func writeGap(_ segment: TimeShiftSegment) {
        let jumps = previous.map { segment.discontinuity - $0.discontinuity } ?? 0
        for _ in 0..<max(jumps, 0) { output.append(contentsOf: "#EXT-X-DISCONTINUITY\n".utf8) }
        if hasOwnIVs || !(previous?.context.keys.lines.isEmpty ?? true) {
            output.append(contentsOf: "#EXT-X-KEY:METHOD=NONE\n".utf8)
        }
        hasOwnIVs = false
        if previous == nil || !wasGap, let date = segment.date {
            append(date)
        }
        let before = previous?.context ?? .none
        output.append(contentsOf: "#EXT-X-GAP\n#EXTINF:\(Self.seconds(segment.duration)),\n".utf8)
        output += TimeShift.placeholder(of: segment, isFragment: before.map != nil) + [0x0A]
        previous = (
            segment.discontinuity, TimeShiftContext(mapKeys: before.mapKeys, map: before.map)
        )
        wasGap = true
    }

    private static func seconds(_ duration: Duration) -> String {
        let parts = duration.components
        let milliseconds = parts.attoseconds / 1_000_000_000_000_000
        guard milliseconds > 0 else { return "\(parts.seconds)" }
        return "\(parts.seconds).\(String(milliseconds, width: 3))"
    }
}
