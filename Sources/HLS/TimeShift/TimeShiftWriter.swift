import Numbers
import URISyntax

/// Writes consecutive segments with the tags that change from one to the next.
struct TimeShiftWriter {
    var output: [UInt8]
    /// The attributes of the previous segment that the next one depends on.
    private struct Previous {
        let discontinuity: Int
        let context: TimeShiftContext
        /// The keys in force, as written.
        let keys: KeysInForce
        let marks: TimeShiftSegment.Marks
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
            repeatsMap: previous.map { $0.marks.map != segment.marks.map } ?? false,
            repeatsKeys: previous.map {
                context.hasOtherKey(segment.marks, than: $0.context, $0.marks)
            } ?? false)
        let needsDate = previous == nil || jumps > 0 || wasGap != isGap || segment.hasOwnDate
        if let date = segment.date, needsDate || isOff(date) { append(date) }
        append(parts)
        if isGap { output.append(contentsOf: "#EXT-X-GAP\n".utf8) }
        if segment.isPlaceholder {
            let seconds = DecimalNumber.text(ofSeconds: segment.duration)
            output.append(contentsOf: "#EXTINF:\(seconds),\n".utf8)
        } else if let range = segment.byteRange {
            output.append(contentsOf: "#EXT-X-BYTERANGE:\(range.length)@\(range.offset)\n".utf8)
        }
        output.append(contentsOf: segment.lines)
        output.append(contentsOf: segment.uri)
        output.append(0x0A)
        previous = Previous(
            discontinuity: segment.discontinuity, context: context, keys: keys,
            marks: segment.marks)
        wasGap = isGap
        noteEnd(of: segment)
    }

    /// Writes the lines after the last segment, behind the tags that apply to them; `number` is
    /// that of the segment in progress.
    mutating func write(_ tail: LiveWindow.Tail, number: Int) {
        guard !tail.lines.isEmpty else { return }
        appendDiscontinuities(tail.discontinuities)
        // Behind a discontinuity a URI may name another section or key, whose epoch its link has.
        append(
            tail.context,
            keys(of: tail.context, tail.originNumber, isRenumbered: number != tail.originNumber),
            repeatsMap: tail.discontinuities > 0, repeatsKeys: tail.discontinuities > 0)
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
        _ context: TimeShiftContext, _ keys: KeysInForce, repeatsMap: Bool, repeatsKeys: Bool
    ) {
        let lines = context.lines(
            keys, after: previous.map { ($0.context, $0.keys) }, repeatsMap: repeatsMap,
            repeatsKeys: repeatsKeys)
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
        let seconds = DecimalNumber.text(ofSeconds: segment.duration)
        output.append(contentsOf: "#EXT-X-GAP\n#EXTINF:\(seconds),\n".utf8)
        output += SegmentPlaceholder.uri(of: segment) + [0x0A]
        previous = Previous(
            discontinuity: segment.discontinuity,
            context: TimeShiftContext(mapKeys: before.mapKeys, map: before.map),
            keys: KeysInForce(), marks: .init(map: previous?.marks.map ?? 0))
        wasGap = true
        noteEnd(of: segment)
    }
}
