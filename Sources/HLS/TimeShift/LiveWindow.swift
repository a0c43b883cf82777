import URISyntax

/// One version of a live media playlist, split into segments with absolute URIs.
struct LiveWindow {
    struct Segment {
        let originNumber: Int
        let uri: [UInt8]
        let url: AbsoluteURL?
        let byteRange: SubRange?
        let duration: Duration
        /// Its own date, or the end of the segment before it in this window; nil if unknown.
        let date: DateTime?
        /// True if the date is its own.
        let hasOwnDate: Bool
        let isGap: Bool
        /// EXT-X-DISCONTINUITY tags before it.
        let discontinuities: Int
        /// Its discontinuity sequence number at the origin.
        let originDiscontinuity: Int
        let lines: [UInt8]
        /// EXT-X-PART lines with LF.
        let parts: [UInt8]
        let dateRanges: [DateRange]
        let context: TimeShiftContext
        /// The note that `TimeShift.snapshot` wrote before it.
        let note: TimeShiftNote?
    }

    struct DateRange {
        let id: String
        let line: [UInt8]
    }

    /// The lines after the last segment: the parts in progress and hints, with what applies to them.
    struct Tail {
        /// EXT-X-DISCONTINUITY tags before it.
        var discontinuities = 0
        var context = TimeShiftContext.none
        /// EXT-X-PROGRAM-DATE-TIME of the segment in progress; nil if it has none of its own.
        var date: DateTime?
        /// The number that the origin will give the segment in progress.
        var originNumber = 0
        /// Parts, hints and other lines, with LF.
        var lines: [UInt8] = []
    }

    let summary: PlaylistSummary
    /// Tags of the playlist as a whole, with LF, except those that are regenerated.
    private(set) var header: [UInt8] = []
    private(set) var segments: [Segment] = []
    private(set) var tail = Tail()
    /// The reports of other renditions, with LF; they have the origin's numbers.
    private(set) var reports: [UInt8] = []
    /// The numbers of the window as a whole that `TimeShift.snapshot` wrote.
    private(set) var saved = SnapshotNumbers()
    private(set) var tailDateRanges: [DateRange] = []
    /// The IDs of date ranges that a delta update removes.
    var removedDateRanges: [String] { list.media?.skip?.removedDateRanges ?? [] }

    private let list: Playlist
    private var pending = PendingTags()
    private var keys = KeysInForce()
    // The number of keys and maps of the list that have been passed while walking its lines.
    private var keyCount = 0
    private var mapCount = 0
    /// The end of the last segment; nil if its date is unknown.
    private var clock: DateTime?

    /// Parses `body`, which came from `base`; a delta update starts with `context` in force.
    init(
        _ body: [UInt8], base: AbsoluteURL, _ reading: PlaylistReading = PlaylistReading(),
        context: @autoclosure () -> TimeShiftContext = .none
    ) throws(PlaylistError) {
        let absolute = try PlaylistRewriter.rewrite(
            body, base: base, options: PlaylistRewriter.Options(reading)
        ) {
            $1.append(contentsOf: $0.url.bytes)
            return true
        }
        summary = absolute.summary
        var reading = reading
        reading.keepsLines = true
        // Absolute URIs can make the list longer than those of origins may be.
        reading.limits = .own
        list = try Playlist(absolute.bytes, base: base, reading)
        pending.context = summary.isSkipDelta ? context() : .none
        keys = pending.context.keys
        guard let media = list.media else { return }
        for line in list.lines { read(line, media) }
        if let error = keys.excess { throw error }
        let next = summary.nextMediaSequence
        tail = Tail(
            discontinuities: pending.discontinuities, context: pending.context,
            date: media.dates.last.flatMap { $0.mediaSequence == next ? $0.date : nil },
            originNumber: next, lines: pending.parts + pending.lines)
        tailDateRanges = pending.dateRanges
    }

    /// Drops the newest segment if the text ends in the middle of its URI.
    ///
    /// - Parameter body: the text.
    mutating func dropUnfinished(of body: [UInt8]) {
        guard !Self.isTerminated(body) else { return }
        let start = body.lastIndex(where: Self.isLineEnd).map { $0 + 1 } ?? 0
        if body[start] != UInt8(ascii: "#") { _ = segments.popLast() }
    }

    /// True if the last line of a text has an end.
    static func isTerminated(_ body: [UInt8]) -> Bool { body.last.map(isLineEnd) ?? true }

    private static func isLineEnd(_ byte: UInt8) -> Bool { byte == 0x0A || byte == 0x0D }

    private mutating func read(_ line: PlaylistLine, _ media: MediaPlaylist) {
        switch line.kind {
        case .blank: break
        case .uri:
            // The URI after EXT-X-STREAM-INF is not a segment.
            guard segments.count < media.segments.count,
                media.segments[segments.count].line == line.number
            else { return }
            finish(media.segments[segments.count])
        case .comment:
            if let note = TimeShiftNote(list.source[line.range]) {
                pending.note = note
            } else if !saved.read(list.source[line.range]) {
                pending.lines += bytes(line)
            }
        case .unknownTag: pending.lines += bytes(line)
        case .tag(let name, let value): read(name, value, line, media)
        }
    }

    private mutating func read(
        _ name: Tag.Name, _ value: Range<Int>, _ line: PlaylistLine, _ media: MediaPlaylist
    ) {
        switch name {
        case .extM3U, .mediaSequence, .discontinuitySequence, .endList, .playlistType, .skip,
            .targetDuration, .gap, .byteRange, .programDateTime, .streamInf:
            break
        case .discontinuity: pending.discontinuities += 1
        case .version, .independentSegments, .start, .define, .iFramesOnly, .partInf,
            .serverControl, .allowCache, .imagesOnly:
            header += bytes(line)
        case .key:
            keys.note(media.keys[keyCount], in: list.source)
            keyCount += 1
            pending.context = TimeShiftContext(
                mapKeys: pending.context.mapKeys, map: pending.context.map, keys: keys,
                mapURL: pending.context.mapURL, mapRange: pending.context.mapRange)
        case .map:
            let map = media.maps[mapCount]
            mapCount += 1
            pending.context = TimeShiftContext(
                mapKeys: keys, map: Array(list.source[line.range]), keys: keys,
                mapURL: map.reference?.url, mapRange: map.byteRange)
        case .part: pending.parts += bytes(line)
        case .renditionReport: reports += bytes(line)
        case .dateRange:
            let id = AttributeList(list.source, in: value).text(of: "ID") ?? ""
            pending.dateRanges.append(DateRange(id: id, line: bytes(line)))
        default: pending.lines += bytes(line)
        }
    }

    private mutating func finish(_ segment: MediaPlaylist.Segment) {
        let number = summary.mediaSequence + summary.skippedSegmentCount + segments.count
        // Many packagers date only the first segment of each window.
        let date = segment.date ?? (segment.discontinuities == 0 ? clock : nil)
        clock = date.map { $0 + (segment.duration ?? .zero) }
        segments.append(
            Segment(
                originNumber: number, uri: Array(list.source[segment.uri]),
                url: segment.place?.url, byteRange: segment.byteRange,
                duration: segment.duration ?? .zero, date: date,
                hasOwnDate: segment.date != nil, isGap: segment.isGap,
                discontinuities: segment.discontinuities,
                originDiscontinuity: segment.place == nil ? 0 : segment.discontinuitySequence,
                lines: pending.lines, parts: pending.parts, dateRanges: pending.dateRanges,
                context: pending.context, note: pending.note))
        pending = PendingTags(context: pending.context)
    }

    private func bytes(_ line: PlaylistLine) -> [UInt8] {
        Array(list.source[line.range]) + [0x0A]
    }
}

/// The tags of a segment that were read before its URI.
private struct PendingTags {
    var context = TimeShiftContext.none
    var discontinuities = 0
    var lines: [UInt8] = []
    var parts: [UInt8] = []
    var dateRanges: [LiveWindow.DateRange] = []
    var note: TimeShiftNote?
}
