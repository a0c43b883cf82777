import URISyntax

/// One line of a playlist and its kind, for code that validates or rebuilds whole playlists.
package struct PlaylistLine: Sendable {
    package enum Kind: Sendable {
        case blank
        /// A line that starts with `#` and is not a tag.
        case comment
        case uri
        /// A known tag; the range is the text after its colon, empty without one.
        case tag(Tag.Name, value: Range<Int>)
        /// A line that starts with `#EXT` and is not a known tag; the range is its name.
        case unknownTag(name: Range<Int>)
    }

    /// Counted from 1.
    package let number: Int
    /// The line without its end and without blanks around it.
    package let range: Range<Int>
    package let kind: Kind
    /// True if there were blanks around it.
    package let isPadded: Bool

    /// The known tag of the line.
    package var tag: Tag.Name? {
        if case .tag(let name, _) = kind { return name }
        return nil
    }

    init(_ raw: LineReader.Line, _ kind: Kind, in bytes: [UInt8]) {
        var lower = raw.range.lowerBound
        var upper = raw.range.upperBound
        while upper > lower, ASCII.isBlank(bytes[upper - 1]) { upper -= 1 }
        while lower < upper, ASCII.isBlank(bytes[lower]) { lower += 1 }
        number = raw.number
        range = lower..<upper
        isPadded = range.count < raw.range.count
        switch kind {
        case .tag(let name, let value):
            let end = max(min(value.upperBound, upper), min(value.lowerBound, upper))
            self.kind = .tag(name, value: min(value.lowerBound, end)..<end)
        default: self.kind = kind
        }
    }
}
