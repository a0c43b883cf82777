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

    /// What EXT-X-STREAM-INF has said about the variant whose URI is still to come.
    struct PendingVariant {
        var bandwidth: Int?
    }

    let body: [UInt8]
    let resolver: URLResolver
    let options: PlaylistRewriter.Options
    private let tags = TagIndex.shared

    private var reader: LineReader
    var output: [UInt8] = []
    var summary = PlaylistSummary()
    var variables = Variables()
    private var references: [ResourceReference] = []
    private(set) var diagnostics: [Diagnostic] = []

    private var isKindKnown = false
    var pending = PendingSegment()
    var variant: PendingVariant?
    var context: SegmentContext
    var mediaSequence = 0
    var discontinuitySequence = 0
    var partIndex = 0
    var segmentRanges = SubRangeCursor()
    var partRanges = SubRangeCursor()
    var isImagesOnly = false

    init(_ body: [UInt8], base: AbsoluteURL, options: PlaylistRewriter.Options) {
        self.body = body
        self.options = options
        resolver = URLResolver(base: base)
        reader = LineReader(body, limits: options.limits)
        context = SegmentContext(hasMap: options.assumesMap)
    }

    mutating func run(_ map: PlaylistRewriter.ReferenceMap) throws(PlaylistError) {
        // Relative names grow into whole URLs. Pages that stay untouched cost nothing.
        output.reserveCapacity(min(body.count * 4 + 1024, options.limits.outputByteCount))
        for line in try readPreamble() { try handle(line, map) }
        while let line = try reader.next() { try handle(line, map) }
    }

    consuming func finish() -> RewrittenPlaylist {
        summary.lineCount = reader.number
        summary.trailingPartCount = partIndex
        if summary.kind == .media, summary.targetDuration == nil {
            diagnose(max(reader.number, 1), .targetDuration, "is missing")
        }
        return RewrittenPlaylist(
            bytes: output, summary: summary, references: references, diagnostics: diagnostics,
            definedVariables: variables.values)
    }

    // MARK: Lines

    /// Finds and writes `#EXTM3U`; returns the lines before it, to be written behind it.
    private mutating func readPreamble() throws(PlaylistError) -> [LineReader.Line] {
        var held: [LineReader.Line] = []
        while let line = try reader.next() {
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
        _ line: LineReader.Line, _ map: PlaylistRewriter.ReferenceMap
    ) throws(PlaylistError) {
        let range = withoutLeadingBlanks(line.range)
        if range.isEmpty {
            output.append(0x0A)
        } else if body[range.lowerBound] != 0x23 {
            try handleURILine(LineReader.Line(number: line.number, range: range), map)
        } else if let (tag, value) = parseTag(range) {
            note(scope: tag.scope, of: tag.name, line: line.number)
            try handle(tag, TagLine(number: line.number, range: range, value: value), map)
        } else {
            copy(range)
        }
        guard output.count <= options.limits.outputByteCount else {
            throw .outputTooLarge(line: line.number, limit: options.limits.outputByteCount)
        }
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

    func withoutLeadingBlanks(_ range: Range<Int>) -> Range<Int> {
        var lower = range.lowerBound
        while lower < range.upperBound, ASCII.isBlank(body[lower]) { lower += 1 }
        return lower..<range.upperBound
    }

    /// Writes a line of the body as it is.
    mutating func copy(_ range: Range<Int>) {
        output.append(contentsOf: body[range])
        output.append(0x0A)
    }

    mutating func collect(_ reference: ResourceReference) {
        if options.collectsReferences { references.append(reference) }
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
