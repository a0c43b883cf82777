import URISyntax

/// One pass over a playlist: the state that lines leave for the lines after them.
///
/// | state | set by | used up by |
/// |---|---|---|
/// | `pending` | EXTINF, EXT-X-BYTERANGE, EXT-X-GAP | the next URI line |
/// | `variant` | EXT-X-STREAM-INF | the next URI line |
/// | `context` | EXT-X-KEY, EXT-X-MAP | replaced by the next such tag |
/// | `mediaSequence`, `partIndex` | EXT-X-MEDIA-SEQUENCE, EXT-X-SKIP | counted on by URI lines |
struct RewritePass {
    /// What tags have said about the segment whose URI is still to come.
    struct PendingSegment {
        var hasInf = false
        var duration: Duration?
        var byteRange: WrittenSubRange?
        var isGap = false
    }

    /// An EXTINF that was read: most segments of a list are as long as the one before.
    struct LastInf {
        /// From behind the tag's colon up to and with the comma.
        let text: ShortText
        /// The whole line with its LF, where no more than the duration stands in it.
        let line: ShortText?
        let duration: Duration
    }

    /// What EXT-X-STREAM-INF has said about the variant whose URI is still to come.
    struct PendingVariant {
        var bandwidth: Int?
        /// Where its line stands in what is written.
        let written: Range<Int>
    }

    let body: [UInt8]
    let resolver: URLResolver
    let options: PlaylistRewriter.Options
    private let tags = TagIndex.shared

    private var reader: LineReader
    /// What is written but for `uncopied`; reach it through `withOutput`.
    private var output: [UInt8] = []
    /// A stretch of the body, whole lines with LF, that is to be written next as it is.
    ///
    /// Most of a playlist is unchanged, and few long copies cost less than many short ones.
    private var uncopied = 0..<0
    var summary = PlaylistSummary()
    var variables = Variables()
    /// Those of the playlist's URL; nil until a definition asks for one.
    var queryParameters: [[UInt8]: [UInt8]]?
    var unusable = UnusableURIs()
    private var references: [ResourceReference] = []
    private var dates: [(mediaSequence: Int, date: DateTime)] = []
    private(set) var diagnostics: [Diagnostic] = []

    private var isKindKnown = false
    var pending = PendingSegment()
    var lastInf: LastInf?
    var variant: PendingVariant?
    var context: SegmentContext
    var mediaSequence = 0
    var discontinuitySequence = 0
    var partIndex = 0
    /// Where in the output the offset of the next segment's byte range belongs; nil where it has one.
    var offsetPlace: Int?
    var segmentRanges = SubRangeCursor()
    var partRanges = SubRangeCursor()
    var isImagesOnly = false
    /// The last URL that was not found the short way.
    var lastAbsolute: AbsoluteURL?
    /// Where the last segment was.
    var folders: FolderMemory

    init(_ body: [UInt8], base: AbsoluteURL, options: PlaylistRewriter.Options) {
        self.body = body
        self.options = options
        resolver = URLResolver(base: base)
        reader = LineReader(body, limits: options.limits)
        context = SegmentContext(hasMap: options.assumesMap)
        folders = FolderMemory(document: body)
    }

    mutating func run(_ map: PlaylistRewriter.ReferenceMap) throws(PlaylistError) {
        // Relative names grow into whole URLs. Pages that stay untouched cost nothing.
        output.reserveCapacity(min(body.count * 6 + 1024, options.limits.outputByteCount))
        // A copy, so that its span does not keep the pass from changing.
        let body = self.body
        let span = body.span
        for line in try readPreamble(span) { try handle(line, span, map) }
        while true {
            if let last = lastInf, let line = last.line, line.stands(at: reader.cursor, in: span) {
                try takeAgain(last, line.count)
            } else if let line = try reader.next(in: span) {
                try handle(line, span, map)
            } else {
                break
            }
        }
        flush()
        try unusable.check(summary)
    }

    consuming func finish() -> RewrittenPlaylist {
        summary.lineCount = reader.number
        summary.trailingPartCount = partIndex
        if summary.kind == .media, summary.targetDuration == nil {
            diagnose(max(reader.number, 1), .targetDuration, "is missing")
        }
        return RewrittenPlaylist(
            bytes: output, summary: summary, references: references, dates: dates,
            diagnostics: diagnostics, definedVariables: variables.values, unusable: unusable)
    }

    // MARK: Lines

    /// Finds and writes `#EXTM3U`; returns the lines before it, to be written behind it.
    private mutating func readPreamble(
        _ span: Span<UInt8>
    ) throws(PlaylistError) -> [LineReader.Line] {
        var held: [LineReader.Line] = []
        while let line = try reader.next(in: span) {
            let range = withoutLeadingBlanks(line.range)
            if range.isEmpty { continue }
            guard body[range.lowerBound] == 0x23 else { break }
            if PlaylistDetector.isSignature(body[range]) {
                if !held.isEmpty { diagnose(line.number, .extM3U, "is not the first line") }
                copy(range)
                return held
            }
            held.append(line)
        }
        let prefix = Array(body.prefix(PlaylistDetector.prefixLength))
        throw .notAPlaylist(looksLikeMarkup: PlaylistDetector.looksLikeMarkup(prefix))
    }

    private mutating func handle(
        _ line: LineReader.Line, _ span: Span<UInt8>, _ map: PlaylistRewriter.ReferenceMap
    ) throws(PlaylistError) {
        var lower = line.range.lowerBound
        while lower < line.range.upperBound, ASCII.isBlank(span[lower]) { lower += 1 }
        let range = lower..<line.range.upperBound
        if range.isEmpty {
            copy(range)
        } else if span[lower] != 0x23 {
            try handleURILine(LineReader.Line(number: line.number, range: range), span, map)
        } else if Self.isInf(span, lower, range.upperBound) {
            // The most frequent tag, found and read without a look into the table.
            note(scope: .media, of: .inf, line: line.number)
            noteInf(LineReader.Line(number: line.number, range: range), span)
            copy(range)
        } else if Self.isDate(span, lower, range.upperBound) {
            // Every segment of a long window may have one.
            note(scope: .media, of: .programDateTime, line: line.number)
            if options.collectsDates, let date = DateTime(body[lower + 25..<range.upperBound]) {
                dates.append((mediaSequence, date))
            }
            copy(range)
        } else if let (tag, value) = parseTag(range) {
            note(scope: tag.scope, of: tag.name, line: line.number)
            try handle(tag, TagLine(number: line.number, range: range, value: value), map)
        } else {
            copy(range)
        }
        try checkOutput(line.number)
    }

    private func checkOutput(_ line: Int) throws(PlaylistError) {
        guard output.count + uncopied.count <= options.limits.outputByteCount else {
            throw .outputTooLarge(line: line, limit: options.limits.outputByteCount)
        }
    }

    /// Takes the next line, which is that of the last EXTINF again, without reading it.
    private mutating func takeAgain(_ inf: LastInf, _ count: Int) throws(PlaylistError) {
        let line = try reader.skip(count)
        note(scope: .media, of: .inf, line: line.number)
        pending.hasInf = true
        pending.duration = inf.duration
        copy(line.range)
        try checkOutput(line.number)
    }

    /// Whether a line that starts at `lower` with `#` starts with `#EXTINF:`.
    private static func isInf(_ span: Span<UInt8>, _ lower: Int, _ upper: Int) -> Bool {
        upper - lower >= 8 && EightBytes.load(span, at: lower) == 0x3A46_4E49_5458_4523
    }

    /// Whether a line that starts at `lower` with `#` starts with `#EXT-X-PROGRAM-DATE-TIME:`.
    private static func isDate(_ span: Span<UInt8>, _ lower: Int, _ upper: Int) -> Bool {
        upper - lower >= 25 && EightBytes.load(span, at: lower) == 0x502D_582D_5458_4523
            && EightBytes.load(span, at: lower + 8) == 0x442D_4D41_5247_4F52
            && EightBytes.load(span, at: lower + 16) == 0x454D_4954_2D45_5441
            && span[lower + 24] == 0x3A
    }

    /// The known tag of a line that starts with `#`, and where its value stands.
    private func parseTag(_ line: Range<Int>) -> (Tag, Range<Int>)? {
        let nameStart = line.lowerBound + 1
        var end = nameStart
        while end < line.upperBound, body[end] != 0x3A, !ASCII.isBlank(body[end]) { end += 1 }
        guard let tag = tags.tag(named: nameStart..<end, in: body) else { return nil }
        let hasValue = end < line.upperBound && body[end] == 0x3A
        return (tag, hasValue ? end + 1..<line.upperBound : line.upperBound..<line.upperBound)
    }

    private mutating func note(scope: Tag.Scope, of tag: Tag.Name, line: Int) {
        let kind: PlaylistKind
        switch scope {
        case .both: return
        case .multivariant: kind = .multivariant
        case .media: kind = .media
        }
        if !isKindKnown {
            isKindKnown = true
            summary.kind = kind
        } else if summary.kind != kind {
            diagnose(line, tag, "does not belong in a \(summary.kind.rawValue) playlist")
        }
    }

    /// Whether a tag has told which kind of playlist this is.
    var knowsKind: Bool { isKindKnown }

    // MARK: Helpers

    private func withoutLeadingBlanks(_ range: Range<Int>) -> Range<Int> {
        var lower = range.lowerBound
        while lower < range.upperBound, ASCII.isBlank(body[lower]) { lower += 1 }
        return lower..<range.upperBound
    }

    /// Writes a line of the body, or the end of one, as it is and ends it with LF.
    mutating func copy(_ range: Range<Int>) {
        let end = range.upperBound
        if end < body.count, body[end] == 0x0A {
            if uncopied.upperBound != range.lowerBound {
                flush()
                uncopied = range.lowerBound..<end + 1
            } else {
                uncopied = uncopied.lowerBound..<end + 1
            }
        } else {
            flush()
            output.append(contentsOf: body[range])
            output.append(0x0A)
        }
    }

    /// Writes what is due, so that something else can be written behind it.
    private mutating func flush() {
        guard !uncopied.isEmpty else { return }
        output.append(contentsOf: body[uncopied])
        uncopied = 0..<0
    }

    /// Lets `write` append to what is written so far.
    @inline(__always)
    mutating func withOutput<Result>(_ write: (inout [UInt8]) -> Result) -> Result {
        flush()
        return write(&output)
    }

    /// How many bytes are written.
    var writtenCount: Int { output.count + uncopied.count }

    /// Takes out what was written in a range.
    mutating func remove(_ range: Range<Int>) {
        flush()
        output.removeSubrange(range)
    }

    /// Takes back all that was written behind the first `count` bytes.
    mutating func takeBack(to count: Int) {
        flush()
        output.removeSubrange(count...)
    }

    /// Appends what the map gives for `reference`; returns false, with nothing appended, for none.
    ///
    /// Without a closure around it, which would copy the reference.
    @inline(__always)
    mutating func appendMapped(
        _ reference: ResourceReference, _ map: PlaylistRewriter.ReferenceMap
    ) -> Bool {
        if options.collectsReferences { references.append(reference) }
        flush()
        let start = output.count
        guard map(reference, &output) else {
            output.removeSubrange(start...)
            return false
        }
        if !options.trustsMap, Self.breaksOut(output, from: start) {
            Self.escape(&output, from: start)
        }
        return true
    }

    private static func escape(_ output: inout [UInt8], from start: Int) {
        let replacement = Array(output[start...])
        output.removeSubrange(start...)
        for byte in replacement {
            if byte == 0x22 || ASCII.isControl(byte) {
                PercentEncoding.append(byte, to: &output)
            } else {
                output.append(byte)
            }
        }
    }

    /// Whether a replacement would end the quoted string or the line it stands in.
    private static func breaksOut(_ output: [UInt8], from start: Int) -> Bool {
        let span = output.span.extracting(start...)
        // Without branches and early end, so that the compiler takes many bytes at a time.
        var found: UInt8 = 0
        for index in span.indices {
            let byte = span[index]
            found |= (byte < 0x20 ? 1 : 0) | (byte == 0x22 ? 1 : 0) | (byte == 0x7F ? 1 : 0)
        }
        return found != 0
    }

    mutating func diagnose(_ line: Int, _ tag: Tag.Name?, _ message: String) {
        guard diagnostics.count < Diagnostic.maximumCount else { return }
        diagnostics.append(Diagnostic(line: line, tag: tag?.rawValue ?? "URI", message: message))
    }
}

/// A line with a known tag.
struct TagLine {
    let number: Int
    /// The whole line from its `#`.
    let range: Range<Int>
    /// What stands behind the colon; empty without one.
    let value: Range<Int>
}
