import URISyntax

/// One reading of a live media playlist, cut into segments with absolute URIs.
struct LiveWindow {
    struct Segment {
        let originNumber: Int
        let uri: [UInt8]
        let url: AbsoluteURL?
        let byteRange: SubRange?
        let duration: Duration
        let date: DateTime?
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
        /// What `TimeShift.snapshot` wrote before it.
        let note: TimeShiftNote?
    }

    struct DateRange {
        let id: String
        let line: [UInt8]
    }

    let summary: PlaylistSummary
    /// Tags of the list as a whole, with LF, but for those that are written anew.
    private(set) var header: [UInt8] = []
    private(set) var segments: [Segment] = []
    /// What stands behind the last segment, with LF: parts, hints and reports.
    private(set) var tail: [UInt8] = []
    private(set) var tailDateRanges: [DateRange] = []

    private let text: PlaylistText
    private let references: [Int: ResourceReference]
    private var builder = SegmentBuilder()
    private var keys = KeysInForce()

    /// Reads `body`, which came from `base`; `context` is in force before its first line.
    init(
        _ body: [UInt8], base: AbsoluteURL, options: PlaylistRewriter.Options,
        context: TimeShiftContext
    ) throws(PlaylistError) {
        let absolute = try PlaylistRewriter.rewrite(body, base: base, options: options) {
            $1.append(contentsOf: $0.url.bytes)
            return true
        }
        var second = options
        second.collectsReferences = true
        let list = try PlaylistRewriter.rewrite(absolute.bytes, base: base, options: second) {
            _, _ in false
        }
        summary = absolute.summary
        text = try PlaylistText(absolute.bytes)
        references = Dictionary(
            list.references.map { ($0.line, $0) }, uniquingKeysWith: { first, _ in first })
        builder.context = context
        keys = context.keys
        for line in text.lines { read(line) }
        if let line = keys.firstBeyondLimit {
            throw .tooManyKeyFormats(line: line, limit: KeysInForce.limit)
        }
        tail = builder.parts + builder.lines
        tailDateRanges = builder.dateRanges
    }

    private mutating func read(_ line: PlaylistText.Line) {
        switch line.kind {
        case .blank: break
        case .uri: finishSegment(line)
        case .comment:
            if let note = TimeShiftNote(text.bytes[line.range]) {
                builder.note = note
            } else {
                builder.lines += bytes(line)
            }
        case .unknownTag: builder.lines += bytes(line)
        case .tag(let tag, let value): read(tag.name, value, line)
        }
    }

    private mutating func read(
        _ name: Tag.Name, _ value: Range<Int>, _ line: PlaylistText.Line
    ) {
        switch name {
        case .extM3U, .mediaSequence, .discontinuitySequence, .endList, .playlistType, .skip,
            .targetDuration, .gap, .byteRange:
            break
        case .version, .independentSegments, .start, .define, .iFramesOnly, .partInf,
            .serverControl, .allowCache, .imagesOnly:
            header += bytes(line)
        case .discontinuity: builder.discontinuities += 1
        case .programDateTime: builder.date = DateTime(text.bytes[value])
        case .key:
            keys.note(line, text)
            let isNone = AttributeList(text.bytes, in: value).isValue("NONE", of: "METHOD")
            let key = isNone ? nil : references[line.number]?.url ?? builder.context.keyURL
            builder.context = TimeShiftContext(
                mapKeys: builder.context.mapKeys, map: builder.context.map, keys: keys,
                urls: (key, builder.context.mapURL), mapRange: builder.context.mapRange)
        case .map:
            builder.context = TimeShiftContext(
                mapKeys: keys, map: Array(text.bytes[line.range]), keys: keys,
                urls: (builder.context.keyURL, references[line.number]?.url),
                mapRange: references[line.number]?.byteRange)
        case .part: builder.parts += bytes(line)
        case .dateRange:
            let id = AttributeList(text.bytes, in: value).text(of: "ID") ?? ""
            builder.dateRanges.append(DateRange(id: id, line: bytes(line)))
        default: builder.lines += bytes(line)
        }
    }

    private mutating func finishSegment(_ line: PlaylistText.Line) {
        let reference = references[line.number]
        let number = summary.mediaSequence + summary.skippedSegmentCount + segments.count
        segments.append(
            builder.segment(number, uri: Array(text.bytes[line.range]), reference))
        builder = SegmentBuilder(context: builder.context)
    }

    private func bytes(_ line: PlaylistText.Line) -> [UInt8] {
        Array(text.bytes[line.range]) + [0x0A]
    }
}

/// What has been read of a segment whose URI is still to come.
private struct SegmentBuilder {
    var context = TimeShiftContext.none
    var lines: [UInt8] = []
    var parts: [UInt8] = []
    var dateRanges: [LiveWindow.DateRange] = []
    var date: DateTime?
    var discontinuities = 0
    var note: TimeShiftNote?

    func segment(
        _ number: Int, uri: [UInt8], _ reference: ResourceReference?
    ) -> LiveWindow.Segment {
        LiveWindow.Segment(
            originNumber: number, uri: uri, url: reference?.url,
            byteRange: reference?.byteRange, duration: reference?.duration ?? .zero, date: date,
            isGap: reference?.isGap ?? false, discontinuities: discontinuities,
            originDiscontinuity: reference?.discontinuitySequence ?? 0, lines: lines, parts: parts,
            dateRanges: dateRanges, context: context, note: note)
    }
}

/// A comment by which a snapshot keeps what a playlist has no tag for.
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

    /// Reads the comment; nil for any other.
    init?(_ line: ArraySlice<UInt8>) {
        guard line.starts(with: Self.start) else { return nil }
        let numbers = line.dropFirst(Self.start.count).split(separator: 0x2C)
            .compactMap(DecimalNumber.integer)
        guard numbers.count == 6 else { return nil }
        let marks = numbers[3...].map { UInt32(clamping: $0) }
        self.init(
            epoch: numbers[0], originNumber: numbers[1], generation: numbers[2],
            marks: .init(segment: marks[0], map: marks[1], key: marks[2]))
    }

    var line: String {
        "#SLUICE-SEGMENT:\(epoch),\(originNumber),\(generation),"
            + "\(marks.segment),\(marks.map),\(marks.key)\n"
    }

    /// What stands for the segment behind this one unless it says otherwise.
    var next: TimeShiftNote {
        TimeShiftNote(epoch: epoch, originNumber: originNumber + 1, generation: 0, marks: marks)
    }
}
