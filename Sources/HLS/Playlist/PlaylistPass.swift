import URISyntax

/// The single pass that parses playlists: splits lines, recognizes tags, lets `PlaylistResolver`
/// resolve their URIs, and checks limits.
///
/// Its results go to a sink: `PlaylistWriter` copies the text with the URIs replaced,
/// `PlaylistCollector` builds the values of a `Playlist`. The pass is specialized for each of them.
///
/// State that lines leave for later lines:
///
/// | state | set by | lasts until |
/// |---|---|---|
/// | `pending` | EXTINF, EXT-X-BYTERANGE, EXT-X-GAP | the next URI line |
/// | `variant` | EXT-X-STREAM-INF | the next URI line |
/// | `context` | EXT-X-KEY, EXT-X-MAP | replaced by the next such tag |
/// | `mediaSequence`, `partIndex` | EXT-X-MEDIA-SEQUENCE, EXT-X-SKIP | advanced by URI lines |
struct PlaylistPass<Sink: PlaylistSink> {
    let body: [UInt8]
    let options: PlaylistReading
    /// True if omitted offsets of byte ranges are written out.
    let writesOffsets: Bool
    /// Rewrites the documents in `data:` URIs; nil if they pass unchanged.
    let documents: PlaylistRewriter.DocumentMap?
    var hasDocuments = false
    var sink: Sink
    private let tags = TagIndex.shared

    private var reader: LineReader
    var summary = PlaylistSummary()
    var resolver: PlaylistResolver
    var unusable = UnusableURIs()

    /// True once a tag has told which kind of playlist this is.
    private(set) var isKindKnown = false
    /// True while EXT-X-STREAM-INF outweighs an earlier tag of media playlists.
    private var isTurned = false
    var pending = PendingSegment()
    var lastInf: LastInf?
    var variant: PendingVariant?
    var context: SegmentContext
    var mediaSequence = 0
    var discontinuitySequence = 0
    var partIndex = 0
    /// The place in the output of the missing offset of the next segment's byte range; nil if it
    /// has one.
    var offsetPlace: Int?
    /// The place in the output behind the last entry of a list without a tag of HLS.
    var entryStart = 0
    var segmentRanges = SubRangeCursor()
    var partRanges = SubRangeCursor()
    var isImagesOnly = false
    /// The playlists that this one names, a limited number.
    var children: [AbsoluteURL] = []
    /// The playlists of subtitles that a multivariant playlist names, a limited number.
    var subtitleLists: [AbsoluteURL] = []
    /// The folder of the last segment.
    var folders: FolderMemory

    init(
        _ body: [UInt8], base: AbsoluteURL?, options: PlaylistReading, writesOffsets: Bool = false,
        documents: PlaylistRewriter.DocumentMap? = nil, to sink: Sink
    ) {
        self.body = body
        self.options = options
        self.writesOffsets = writesOffsets
        self.documents = documents
        self.sink = sink
        resolver = PlaylistResolver(base: base, limit: options.limits.outputByteCount)
        reader = LineReader(body, limits: options.limits)
        context = SegmentContext(hasMap: options.assumesMap)
        folders = FolderMemory(document: body)
    }

    mutating func run(_ map: PlaylistRewriter.ReferenceMap) throws(PlaylistError) {
        // A local copy: its span must not keep the pass from being mutated.
        let body = self.body
        let span = body.span
        for line in try readPreamble(span) { try handle(line, span, map) }
        entryStart = writtenCount
        while true {
            if let last = lastInf, let line = last.line, line.stands(at: reader.cursor, in: span) {
                try takeAgain(last, line.count)
            } else if let line = try reader.next(in: span) {
                try handle(line, span, map)
            } else {
                break
            }
        }
        summary.lineCount = reader.number
        summary.trailingPartCount = partIndex
        try unusable.check(summary)
    }

    // MARK: Lines

    /// Finds and writes `#EXTM3U`; returns the lines before it, which are written after it.
    private mutating func readPreamble(
        _ span: Span<UInt8>
    ) throws(PlaylistError) -> [LineReader.Line] {
        var held: [LineReader.Line] = []
        while let line = try reader.next(in: span) {
            let range = withoutLeadingBlanks(line.range, span)
            if range.isEmpty {
                take(line, .blank)
                continue
            }
            guard body[range.lowerBound] == 0x23 else { break }
            if PlaylistDetector.isSignature(body[range]) {
                take(line, .tag(.extM3U, value: line.range.upperBound..<line.range.upperBound))
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
        let range = withoutLeadingBlanks(line.range, span)
        let lower = range.lowerBound
        if range.isEmpty {
            take(line, .blank)
            copy(range)
        } else if span[lower] != 0x23 {
            take(line, .uri)
            try handleURILine(LineReader.Line(number: line.number, range: range), span, map)
        } else if Self.isInf(span, lower, range.upperBound) {
            // The most frequent tag, recognized without the tag table.
            take(line, .tag(.inf, value: lower + 8..<range.upperBound))
            note(.inf, of: .media)
            noteInf(LineReader.Line(number: line.number, range: range), span)
            copy(range)
        } else if Self.isDate(span, lower, range.upperBound) {
            // Every segment of a long window may have one.
            let value = lower + 25..<range.upperBound
            take(line, .tag(.programDateTime, value: value))
            note(.programDateTime, of: .media)
            summary.hasTagsOfHLS = true
            noteStart(lower)
            if Sink.takesValues { sink.takeDate(DateTime(body[value]), before: mediaSequence) }
            copy(range)
        } else if let (tag, value) = parseTag(range) {
            take(line, .tag(tag.name, value: value))
            note(tag.name, of: tag.kind)
            if tag.name != .extM3U, tag.name != .inf { summary.hasTagsOfHLS = true }
            let whole = TagLine(
                name: tag.name, number: line.number, range: range, value: value)
            try handle(tag, whole, map)
        } else {
            if Sink.takesValues, options.keepsLines {
                let kind = unknownKind(of: range)
                take(line, kind)
            }
            copy(range)
        }
        try checkOutput(line.number)
    }

    @inline(__always)
    private func checkOutput(_ line: Int) throws(PlaylistError) {
        guard sink.writtenCount <= options.limits.outputByteCount else {
            throw .linksTooLong(line: line, limit: options.limits.outputByteCount)
        }
    }

    /// Passes a line to the sink if lines are kept.
    @inline(__always)
    private mutating func take(
        _ line: LineReader.Line, _ kind: @autoclosure () -> PlaylistLine.Kind
    ) {
        if Sink.takesValues, options.keepsLines {
            sink.takeLine(PlaylistLine(line, kind(), in: body))
        }
    }

    /// Records where the tags of the next segment begin.
    @inline(__always)
    mutating func noteStart(_ offset: Int) {
        if Sink.takesValues, pending.start == nil { pending.start = offset }
    }

    /// Returns the kind of a line that starts with `#` and is not a known tag.
    private func unknownKind(of line: Range<Int>) -> PlaylistLine.Kind {
        let name = nameRange(of: line)
        return body[name].starts(with: "EXT".utf8) ? .unknownTag(name: name) : .comment
    }

    /// Handles the next line, which repeats the last EXTINF, without parsing it.
    @inline(__always)
    private mutating func takeAgain(_ inf: LastInf, _ count: Int) throws(PlaylistError) {
        let line = try reader.skip(count)
        take(line, .tag(.inf, value: line.range.lowerBound + 8..<line.range.upperBound))
        note(.inf, of: .media)
        noteStart(line.range.lowerBound)
        pending.hasInf = true
        pending.duration = inf.duration
        copy(line.range)
        try checkOutput(line.number)
    }

    /// True if a line that has `#` at `lower` starts with `#EXTINF:`.
    private static func isInf(_ span: Span<UInt8>, _ lower: Int, _ upper: Int) -> Bool {
        upper - lower >= 8 && EightBytes.load(span, at: lower) == 0x3A46_4E49_5458_4523
    }

    /// True if a line that has `#` at `lower` starts with `#EXT-X-PROGRAM-DATE-TIME:`.
    private static func isDate(_ span: Span<UInt8>, _ lower: Int, _ upper: Int) -> Bool {
        upper - lower >= 25 && EightBytes.load(span, at: lower) == 0x502D_582D_5458_4523
            && EightBytes.load(span, at: lower + 8) == 0x442D_4D41_5247_4F52
            && EightBytes.load(span, at: lower + 16) == 0x454D_4954_2D45_5441
            && span[lower + 24] == 0x3A
    }

    /// Returns the known tag of a line that starts with `#`, and the range of its value.
    private func parseTag(_ line: Range<Int>) -> (Tag, Range<Int>)? {
        let name = nameRange(of: line)
        let end = name.upperBound
        guard let tag = tags.tag(named: name, in: body) else { return nil }
        let hasValue = end < line.upperBound && body[end] == 0x3A
        return (tag, hasValue ? end + 1..<line.upperBound : line.upperBound..<line.upperBound)
    }

    /// Returns the range of the tag name, without `#`, in a line that may be a tag.
    private func nameRange(of line: Range<Int>) -> Range<Int> {
        let start = line.lowerBound + 1
        var end = start
        while end < line.upperBound, body[end] != 0x3A, !ASCII.isBlank(body[end]) { end += 1 }
        return start..<end
    }

    @inline(__always)
    private mutating func note(_ tag: Tag.Name, of kind: PlaylistKind?) {
        guard let kind else { return }
        if !isKindKnown {
            isKindKnown = true
            summary.kind = kind
        } else if summary.kind != kind {
            noteMisplaced(tag)
        }
    }

    /// Handles a tag of the other kind of playlist.
    ///
    /// Clients may reject a playlist with tags of both kinds (8216bis 4.4.6). Most of those that
    /// play it go by EXT-X-STREAM-INF, even behind a tag of media playlists: EXT-X-MEDIA-SEQUENCE
    /// or EXT-X-PLAYLIST-TYPE in the head. Where segments came first, the list has segments to
    /// play; where they follow, see `returnToMedia`.
    private mutating func noteMisplaced(_ tag: Tag.Name) {
        let hasSegments =
            summary.segmentCount > 0 || pending.hasInf || partIndex > 0 || summary.isSkipDelta
        if tag == .streamInf, !hasSegments { (summary.kind, isTurned) = (.multivariant, true) }
    }

    /// Handles a URI behind EXTINF that would be that of a playlist: a stray EXT-X-STREAM-INF does
    /// not take the segments of a list that has a tag of media playlists first.
    ///
    /// The URI is that of the variant only if EXTINF stands before EXT-X-STREAM-INF.
    mutating func returnToMedia() {
        guard summary.kind == .media || isTurned, variant?.followsInf != true else { return }
        variant = nil
        (summary.kind, isTurned) = (.media, false)
    }

    // MARK: Helpers

    @inline(__always)
    private func withoutLeadingBlanks(_ range: Range<Int>, _ span: Span<UInt8>) -> Range<Int> {
        var lower = range.lowerBound
        while lower < range.upperBound, ASCII.isBlank(span[lower]) { lower += 1 }
        return lower..<range.upperBound
    }

    /// Writes a line of the body, or the end of one, unchanged and ends it with LF.
    @inline(__always)
    mutating func copy(_ range: Range<Int>) { sink.copy(range) }

    /// The number of bytes written.
    var writtenCount: Int { sink.writtenCount }
}
