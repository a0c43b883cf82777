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
    /// The epoch of the list that `TimeShift.snapshot` wrote.
    private(set) var listEpoch: Epoch?
    /// The note that `TimeShift.snapshot` wrote of segments that a private host listed.
    private(set) var privateSegments: PrivateSegmentsNote?
    /// The note that `TimeShift.snapshot` wrote of segments that were dropped for the limits.
    private(set) var droppedSegments: DroppedSegmentsNote?
    /// The note that `TimeShift.snapshot` wrote of segments without placeholders.
    private(set) var skippedSegments: SkippedSegmentsNote?
    /// The note that `TimeShift.snapshot` wrote of the origin's discontinuities.
    private(set) var originDiscontinuity: OriginDiscontinuityNote?
    private(set) var tailDateRanges: [DateRange] = []
    /// The IDs of date ranges that a delta update removes.
    var removedDateRanges: [String] { list.media?.skip?.removedDateRanges ?? [] }

    private let list: Playlist
    private var builder = SegmentBuilder()
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
        builder.context = summary.isSkipDelta ? context() : .none
        keys = builder.context.keys
        guard let media = list.media else { return }
        for line in list.lines { read(line, media) }
        if let error = keys.excess { throw error }
        let next = summary.nextMediaSequence
        tail = Tail(
            discontinuities: builder.discontinuities, context: builder.context,
            date: media.dates.last.flatMap { $0.mediaSequence == next ? $0.date : nil },
            originNumber: next, lines: builder.parts + builder.lines)
        tailDateRanges = builder.dateRanges
    }

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
                builder.note = note
            } else if let epoch = Epoch(note: list.source[line.range]) {
                listEpoch = epoch
            } else if let note = PrivateSegmentsNote(list.source[line.range]) {
                privateSegments = note
            } else if let note = DroppedSegmentsNote(list.source[line.range]) {
                droppedSegments = note
            } else if let note = SkippedSegmentsNote(list.source[line.range]) {
                skippedSegments = note
            } else if let note = OriginDiscontinuityNote(list.source[line.range]) {
                originDiscontinuity = note
            } else {
                builder.lines += bytes(line)
            }
        case .unknownTag: builder.lines += bytes(line)
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
        case .discontinuity: builder.discontinuities += 1
        case .version, .independentSegments, .start, .define, .iFramesOnly, .partInf,
            .serverControl, .allowCache, .imagesOnly:
            header += bytes(line)
        case .key:
            keys.note(media.keys[keyCount], in: list.source)
            keyCount += 1
            builder.context = TimeShiftContext(
                mapKeys: builder.context.mapKeys, map: builder.context.map, keys: keys,
                mapURL: builder.context.mapURL, mapRange: builder.context.mapRange)
        case .map:
            let map = media.maps[mapCount]
            mapCount += 1
            builder.context = TimeShiftContext(
                mapKeys: keys, map: Array(list.source[line.range]), keys: keys,
                mapURL: map.reference?.url, mapRange: map.byteRange)
        case .part: builder.parts += bytes(line)
        case .renditionReport: reports += bytes(line)
        case .dateRange:
            let id = AttributeList(list.source, in: value).text(of: "ID") ?? ""
            builder.dateRanges.append(DateRange(id: id, line: bytes(line)))
        default: builder.lines += bytes(line)
        }
    }

    private mutating func finish(_ segment: MediaPlaylist.Segment) {
        let number = summary.mediaSequence + summary.skippedSegmentCount + segments.count
        // Many packagers date only the first segment of each window.
        let date = segment.date ?? (segment.discontinuities == 0 ? clock : nil)
        clock = date.map { $0 + (segment.duration ?? .zero) }
        segments.append(builder.segment(number, segment, at: date, in: list.source))
        builder = SegmentBuilder(context: builder.context)
    }

    private func bytes(_ line: PlaylistLine) -> [UInt8] {
        Array(list.source[line.range]) + [0x0A]
    }
}

/// The tags of a segment that were read before its URI.
private struct SegmentBuilder {
    var context = TimeShiftContext.none
    var discontinuities = 0
    var lines: [UInt8] = []
    var parts: [UInt8] = []
    var dateRanges: [LiveWindow.DateRange] = []
    var note: TimeShiftNote?

    func segment(
        _ number: Int, _ read: MediaPlaylist.Segment, at date: DateTime?, in source: [UInt8]
    ) -> LiveWindow.Segment {
        LiveWindow.Segment(
            originNumber: number, uri: Array(source[read.uri]), url: read.place?.url,
            byteRange: read.byteRange, duration: read.duration ?? .zero, date: date,
            hasOwnDate: read.date != nil, isGap: read.isGap, discontinuities: read.discontinuities,
            originDiscontinuity: read.place == nil ? 0 : read.discontinuitySequence, lines: lines,
            parts: parts, dateRanges: dateRanges, context: context, note: note)
    }
}

/// The comment line in which a snapshot stores the epoch of its list.
extension Epoch {
    private static let start = Array("#SLUICE-LIST-EPOCH:".utf8)

    /// Parses the comment; nil for any other comment.
    init?(note line: ArraySlice<UInt8>) {
        guard line.starts(with: Self.start),
            let number = DecimalNumber.integer(line.dropFirst(Self.start.count))
        else { return nil }
        self.init(number: UInt32(clamping: number))
    }

    var note: String { "#SLUICE-LIST-EPOCH:\(number)\n" }
}

/// A comment line in which a snapshot stores what no tag of a playlist can hold.
struct TimeShiftNote: Hashable {
    let epoch: Int
    let originNumber: Int
    let generation: Int
    let marks: TimeShiftSegment.Marks

    init(
        epoch: Int, originNumber: Int, generation: Int,
        marks: TimeShiftSegment.Marks = TimeShiftSegment.Marks()
    ) {
        self.epoch = epoch
        self.originNumber = originNumber
        self.generation = generation
        self.marks = marks
    }

    private static let start = Array("#SLUICE-SEGMENT:".utf8)

    /// Parses the comment; nil for any other comment.
    init?(_ line: ArraySlice<UInt8>) {
        guard line.starts(with: Self.start) else { return nil }
        let numbers = line.dropFirst(Self.start.count).split(separator: 0x2C)
            .compactMap(DecimalNumber.integer)
        guard numbers.count >= 6 else { return nil }
        let marks = numbers[3...].map { UInt32(clamping: $0) }
        self.init(
            epoch: numbers[0], originNumber: numbers[1], generation: numbers[2],
            marks: .init(segment: marks[0], map: marks[1], keys: Array(marks[2...])))
    }

    var line: String {
        let keys = marks.keys.isEmpty ? [0] : marks.keys
        return "#SLUICE-SEGMENT:\(epoch),\(originNumber),\(generation),"
            + "\(marks.segment),\(marks.map),\(keys.map(String.init).joined(separator: ","))\n"
    }

    /// The default for the next segment, if that has no note of its own.
    var next: TimeShiftNote {
        TimeShiftNote(epoch: epoch, originNumber: originNumber + 1, generation: 0, marks: marks)
    }
}
