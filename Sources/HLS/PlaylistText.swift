import URISyntax

/// A playlist cut into lines, each with what it is: for those who judge or rebuild whole lists.
///
/// Costs about 60 bytes a line beside the playlist; the rewriter, which every request passes, does
/// without.
package struct PlaylistText: Sendable {
    package enum Kind: Sendable {
        case blank
        /// A line that starts with `#` and is no tag.
        case comment
        case uri
        /// A tag of the table; the range is what stands behind its colon, empty without one.
        case tag(Tag, value: Range<Int>)
        /// A line that starts with `#EXT` and is not in the table; the range is its name.
        case unknownTag(name: Range<Int>)
    }

    package struct Line: Sendable {
        /// Counted from 1.
        package let number: Int
        /// The line without its end and without blanks around it.
        package let range: Range<Int>
        package let kind: Kind
        /// Whether blanks stood around it.
        package let isPadded: Bool
    }

    package let bytes: [UInt8]
    package let lines: [Line]
    /// Media where no tag tells.
    package let kind: PlaylistKind

    /// Cuts `bytes`, decoded text without content coding.
    ///
    /// Never blocks. Throws where a limit is passed or no `#EXTM3U` comes first among what is no
    /// comment.
    package init(
        _ bytes: [UInt8], limits: PlaylistLimits = .standard
    ) throws(PlaylistError) {
        guard bytes.count <= limits.byteCount else {
            throw .tooLarge(byteCount: bytes.count, limit: limits.byteCount)
        }
        guard PlaylistDetector.looksLikePlaylist(bytes) else {
            let prefix = Array(bytes.prefix(PlaylistDetector.prefixLength))
            throw .notAPlaylist(looksLikeMarkup: PlaylistDetector.looksLikeMarkup(prefix))
        }
        var reader = LineReader(bytes, limits: limits)
        var lines: [Line] = []
        var kind: PlaylistKind?
        let span = bytes.span
        while let raw = try reader.next(in: span) {
            let line = Self.line(raw, in: bytes)
            if kind == nil, case .tag(let tag, _) = line.kind { kind = tag.kind }
            lines.append(line)
        }
        self.bytes = bytes
        self.lines = lines
        self.kind = kind ?? .media
    }

    private static func line(_ raw: LineReader.Line, in bytes: [UInt8]) -> Line {
        var lower = raw.range.lowerBound
        var upper = raw.range.upperBound
        while upper > lower, ASCII.isBlank(bytes[upper - 1]) { upper -= 1 }
        while lower < upper, ASCII.isBlank(bytes[lower]) { lower += 1 }
        let range = lower..<upper
        return Line(
            number: raw.number, range: range, kind: kind(of: range, in: bytes),
            isPadded: range.count < raw.range.count)
    }

    private static func kind(of range: Range<Int>, in bytes: [UInt8]) -> Kind {
        guard let first = bytes[range].first else { return .blank }
        guard first == 0x23 else { return .uri }
        let nameStart = range.lowerBound + 1
        var end = nameStart
        while end < range.upperBound, bytes[end] != 0x3A, !ASCII.isBlank(bytes[end]) { end += 1 }
        let name = nameStart..<end
        if let tag = TagIndex.shared.tag(named: name, in: bytes) {
            let hasValue = end < range.upperBound && bytes[end] == 0x3A
            return .tag(tag, value: (hasValue ? end + 1 : range.upperBound)..<range.upperBound)
        }
        let isTag = bytes[name].starts(with: "EXT".utf8)
        return isTag ? .unknownTag(name: name) : .comment
    }

    /// The text of a range; bytes that are not UTF-8 appear as `%XX`.
    package func text(_ range: Range<Int>) -> String { PercentEncoding.text(bytes[range]) }
}

extension Tag {
    /// The kind of playlist that a tag belongs to; nil where it may stand in both.
    var kind: PlaylistKind? {
        switch scope {
        case .both: nil
        case .multivariant: .multivariant
        case .media: .media
        }
    }
}
