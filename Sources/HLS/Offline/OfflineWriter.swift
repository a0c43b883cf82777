import URISyntax

/// Writes an offline playlist, segment by segment.
struct OfflineWriter {
    /// The most bytes of the keys that are written anew with an IV; the list ends behind them.
    ///
    /// A key takes some hundred bytes for each segment behind a hole. With a key as long as a line
    /// may be, the list would take gigabytes.
    static let keyByteLimit = 64 << 20

    /// The lines of one segment: its tags, other lines among them, and its URI.
    private struct Block {
        let lines: ArraySlice<PlaylistLine>
        /// Its index among the list's segments; nil for the lines after the last segment.
        let index: Int?
        /// The line of its URI.
        let uriLine: Int?
    }

    private let list: Playlist
    private let media: MediaPlaylist
    private let missing: Set<Int>
    /// URLs that replace segments, by the lines of their URIs.
    private let borrowed: [Int: AbsoluteURL]
    /// What is played of segments that are not listed as they are, by the lines of their URIs.
    private let pieces: [Int: [SegmentPiece]]
    /// The lines of tags that are left out.
    private let omitted: Set<Int>
    private var summary: PlaylistSummary { list.summary }
    private var output: [UInt8] = []
    private var keys = KeysInForce()
    /// The number of the list's keys that are in `keys`.
    private var keyCount = 0
    private var clock = SegmentClock()
    /// By how much the sequence numbers of written segments are higher than in the list: lower by
    /// the segments removed after the first written one, higher by those that are repeated.
    private var shift = 0
    /// What is written of the current segment; nil if it is listed as it is.
    private var piece: SegmentPiece?
    /// The stretch of the last piece that was written.
    private var stretch: Int?
    /// The lowest number of a written segment that is not its number in the list; nil if all keep
    /// theirs.
    private(set) var movedFrom: Int?
    /// The discontinuity sequence number of what was written last; at first that of the list.
    private var discontinuity = 0
    /// The number of EXT-X-DISCONTINUITY tags that are still to be written before the current
    /// segment.
    private var discontinuitiesDue = 0
    /// True if segments were removed since the last written one.
    private var isBehindHole = false
    /// True if a removed segment may have carried the date that later ones depend on.
    private var needsDate = false
    /// The bytes of the keys that were written anew.
    private var keyByteCount = 0
    /// True once EXT-X-START was read, of which a list may have one.
    private var hasStart = false
    /// True if a tag of the list has its first media sequence number.
    private let hasMediaSequence: Bool

    init(
        _ list: Playlist, _ media: MediaPlaylist, missing: Set<Int>,
        borrowed: [Int: AbsoluteURL], pieces: [Int: [SegmentPiece]], omitted: Set<Int>
    ) {
        self.list = list
        self.media = media
        self.missing = missing
        self.borrowed = borrowed
        self.pieces = pieces
        self.omitted = omitted
        hasMediaSequence = list.lines.contains { $0.tag == .mediaSequence }
    }

    private var blocks: [Block] {
        var blocks: [Block] = []
        var start = 0
        for (index, segment) in media.segments.enumerated() {
            let end = segment.line
            blocks.append(Block(lines: list.lines[start..<end], index: index, uriLine: end))
            start = end
        }
        blocks.append(Block(lines: list.lines[start...], index: nil, uriLine: nil))
        return blocks
    }

    /// Returns the present segments, with discontinuities in place of the others.
    mutating func shortened() -> [UInt8] {
        let blocks = self.blocks
        let lead = blocks.prefix { isMissing($0) }.count
        let firstDiscontinuity = firstDiscontinuity(behind: lead)
        discontinuity = firstDiscontinuity
        var wroteSegment = false
        for block in blocks {
            let isMissing = isMissing(block)
            let pieces = isMissing ? [] : block.uriLine.flatMap { self.pieces[$0] } ?? []
            clock.begin(block.index.flatMap { media.segments[$0].date })
            if !isMissing, block.uriLine != nil { begin(block, pieces.first) }
            for line in block.lines where !Self.isLive(line) && !omitted.contains(line.number) {
                write(line, of: block, isMissing: isMissing, lead: lead, firstDiscontinuity)
            }
            if !isMissing { noteMoved(block) }
            for piece in pieces.dropFirst() { write(piece, of: block) }
            clock.end(block.index.flatMap { media.segments[$0].duration })
            guard block.uriLine != nil else { continue }
            guard isMissing else {
                wroteSegment = true
                continue
            }
            needsDate = true
            if wroteSegment {
                shift -= 1
                isBehindHole = true
            }
        }
        return ended()
    }

    /// True for a segment that is not written.
    private func isMissing(_ block: Block) -> Bool {
        guard let line = block.uriLine else { return false }
        return missing.contains(line) || keyByteCount >= Self.keyByteLimit
    }

    /// Returns the EXT-X-DISCONTINUITY-SEQUENCE of a list that begins behind some of its segments.
    ///
    /// The tags of the first written segment count from there.
    private func firstDiscontinuity(behind count: Int) -> Int {
        if let first = media.segments.dropFirst(count).first,
            let piece = pieces[first.line]?.first
        {
            return max(0, piece.discontinuity - first.discontinuities)
        }
        return media.segments.prefix(count).reduce(summary.discontinuitySequence ?? 0) {
            $0 + $1.discontinuities
        }
    }

    /// Begins a segment: writes the discontinuities before it, but for those that its own tags stand
    /// for, and its date if that is not known otherwise.
    private mutating func begin(_ block: Block, _ next: SegmentPiece?) {
        let own = block.lines.count(where: { $0.tag == .discontinuity })
        begin(next, own)
        while discontinuitiesDue > own { writeDiscontinuity() }
        guard needsDate else { return }
        needsDate = false
        if !block.lines.contains(where: { $0.tag == .programDateTime }), let date {
            append("#EXT-X-PROGRAM-DATE-TIME:\(date.text)")
        }
    }

    /// Begins a piece of a segment, maybe in another stretch than the one before.
    ///
    /// - Parameters:
    ///   - next: the piece; nil if the segment is listed as it is.
    ///   - own: the number of EXT-X-DISCONTINUITY tags that the segment has itself.
    private mutating func begin(_ next: SegmentPiece?, _ own: Int) {
        piece = next
        if let next {
            let isNewStretch = stretch.map { $0 != next.stretch } ?? false
            // A list whose numbers are not the video's at the origin either keeps its own tags.
            discontinuitiesDue = max(next.discontinuity - discontinuity, isNewStretch ? 1 : own)
            if isNewStretch { needsDate = true }
            stretch = next.stretch
        } else {
            discontinuitiesDue = isBehindHole ? max(1, own) : own
        }
        discontinuity += discontinuitiesDue
        isBehindHole = false
    }

    private mutating func writeDiscontinuity() {
        append("#EXT-X-DISCONTINUITY")
        discontinuitiesDue -= 1
    }

    /// Writes a further piece of a segment that was written.
    private mutating func write(_ next: SegmentPiece, of block: Block) {
        guard let index = block.index, let uri = block.lines.last,
            keyByteCount < Self.keyByteLimit
        else { return }
        begin(next, 0)
        shift += 1
        while discontinuitiesDue > 0 { writeDiscontinuity() }
        needsDate = false
        if let date { append("#EXT-X-PROGRAM-DATE-TIME:\(date.text)") }
        for line in block.lines where line.tag == .inf { writeDuration(line) }
        if let range = media.segments[index].byteRange {
            append("#EXT-X-BYTERANGE:\(range.length)@\(range.offset)")
        }
        writeIVs(block)
        append(uri)
        noteMoved(block)
    }

    /// The date of what is written of the current segment.
    private var date: DateTime? {
        guard let offset = piece?.offset, offset > 0 else { return clock.date }
        let duration = Duration.milliseconds(Int((offset * 1_000).rounded()))
        return clock.date.map { $0 + duration }
    }

    private mutating func write(
        _ line: PlaylistLine, of block: Block, isMissing: Bool, lead: Int,
        _ firstDiscontinuity: Int
    ) {
        if line.tag == .key, keyCount < media.keys.count {
            keys.note(media.keys[keyCount], in: list.source)
            keyCount += 1
        }
        switch line.tag {
        case .extM3U:
            append(line)
            if lead > 0, !hasMediaSequence { append("#EXT-X-MEDIA-SEQUENCE:\(lead)") }
            if firstDiscontinuity > 0, summary.discontinuitySequence == nil {
                append("#EXT-X-DISCONTINUITY-SEQUENCE:\(firstDiscontinuity)")
            }
        case .mediaSequence:
            append("#EXT-X-MEDIA-SEQUENCE:\(summary.mediaSequence + lead)")
        case .discontinuitySequence:
            append("#EXT-X-DISCONTINUITY-SEQUENCE:\(firstDiscontinuity)")
        case .start: writeStart(line)
        case .gap:
            if !isMissing, block.uriLine.flatMap({ borrowed[$0] }) == nil { append(line) }
        case .inf:
            if !isMissing { writeDuration(line) }
        case .programDateTime:
            guard !isMissing else { return }
            guard let offset = piece?.offset, offset > 0, let date else { return append(line) }
            append("#EXT-X-PROGRAM-DATE-TIME:\(date.text)")
        case .discontinuity:
            guard !isMissing else { return }
            // Those behind the last segment are before none.
            if block.uriLine == nil { return append(line) }
            if discontinuitiesDue > 0 { writeDiscontinuity() }
        case .byteRange:
            guard !isMissing else { return }
            if let range = block.index.flatMap({ media.segments[$0].byteRange }) {
                append("#EXT-X-BYTERANGE:\(range.length)@\(range.offset)")
            } else {
                append(line)
            }
        default:
            if line.number == block.uriLine {
                guard !isMissing else { return }
                writeIVs(block)
                if let url = borrowed[line.number] { return append(url.text) }
            }
            append(line)
        }
    }

    /// Writes the point where players begin, if that is written.
    private mutating func writeStart(_ line: PlaylistLine) {
        guard !missing.isEmpty || !pieces.isEmpty else { return append(line) }
        guard !hasStart else { return }
        hasStart = true
        switch StartOffset.change(of: line, in: list.source, by: { moved($0) }) {
        case .none: append(line)
        case .removed: break
        case .edited(let edit):
            output.append(contentsOf: "#EXT-X-START:".utf8)
            edit.append(to: &output)
            output.append(0x0A)
        }
    }

    /// Returns the offset of a point of the list in what is written of it; nil if it is not.
    private func moved(_ offset: Duration) -> Duration? {
        var time = 0.0
        var written: [Range<Double>] = []
        for segment in media.segments {
            let end = time + max(0, (segment.duration ?? .zero) / .seconds(1))
            if let pieces = pieces[segment.line] {
                for piece in pieces {
                    let start = time + piece.offset
                    written.append(start..<(piece.seconds.map { start + $0 } ?? end))
                }
            } else if !missing.contains(segment.line) {
                written.append(time..<end)
            }
            time = end
        }
        return StartOffset.moved(offset, in: time, to: written)
    }

    /// Writes the duration of what is played of a segment, with the title of the origin's tag.
    private mutating func writeDuration(_ line: PlaylistLine) {
        guard let seconds = piece?.seconds, case .tag(_, let value) = line.kind else {
            return append(line)
        }
        let duration = Duration.milliseconds(Int((seconds * 1_000).rounded()))
        output.append(contentsOf: "#EXTINF:\(DecimalNumber.text(ofSeconds: duration)),".utf8)
        if let comma = list.source[value].firstIndex(of: 0x2C) {
            output.append(contentsOf: list.source[(comma + 1)..<value.upperBound])
        }
        output.append(0x0A)
    }

    /// Writes explicit IVs once sequence numbers change that keys without an IV depend on.
    private mutating func writeIVs(_ block: Block) {
        guard shift != 0 || movedFrom != nil,
            let number = block.index.map({ media.segments[$0].mediaSequence })
        else { return }
        for line in keys.withIVs(of: number).lines(replacing: keys) {
            output.append(contentsOf: line)
            output.append(0x0A)
            keyByteCount += line.count + 1
        }
    }

    /// Notes the first segment that is written under another number.
    private mutating func noteMoved(_ block: Block) {
        guard shift != 0, movedFrom == nil, let index = block.index else { return }
        movedFrom = media.segments[index].mediaSequence + shift
    }

    private mutating func ended() -> [UInt8] {
        if !summary.hasEndList { append("#EXT-X-ENDLIST") }
        return output
    }

    // MARK: Lines

    /// True if a line is useful only while new segments are produced.
    private static func isLive(_ line: PlaylistLine) -> Bool {
        line.tag.map { Tag.named($0).isForLive } ?? false
    }

    private mutating func append(_ line: PlaylistLine) {
        output.append(contentsOf: list.source[line.range])
        output.append(0x0A)
    }

    private mutating func append(_ line: String) {
        output.append(contentsOf: line.utf8)
        output.append(0x0A)
    }
}

/// Tracks EXT-X-PROGRAM-DATE-TIME from segment to segment.
struct SegmentClock {
    /// The date of the current segment; nil if no tag contains it.
    private(set) var date: DateTime?

    /// Sets the date from a segment's own tag, if it has one.
    mutating func begin(_ date: DateTime?) { self.date = date ?? self.date }

    /// Advances by a segment's duration.
    mutating func end(_ duration: Duration?) {
        date = duration.flatMap { duration in date.map { $0 + duration } }
    }
}
