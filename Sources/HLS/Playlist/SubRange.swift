import URISyntax

/// The bytes of a resource that a segment, part or initialization section consists of.
package struct SubRange: Hashable, Sendable {
    package let offset: Int
    package let length: Int
    /// The offset after the last byte.
    package var end: Int { offset + length }
    /// The offsets of its bytes.
    package var bytes: Range<Int64> { Int64(offset)..<Int64(end) }

    package init(offset: Int, length: Int) {
        self.offset = offset
        self.length = length
    }
}

/// A sub-range as written: `<n>[@<o>]` (RFC 8216, 4.3.2.2).
struct WrittenSubRange {
    let length: Int
    let offset: Int?

    init?(_ bytes: ArraySlice<UInt8>) {
        let at = bytes.firstIndex(of: 0x40)
        guard let length = DecimalNumber.integer(bytes[..<(at ?? bytes.endIndex)]) else {
            return nil
        }
        self.length = length
        guard let at else {
            offset = nil
            return
        }
        guard let offset = DecimalNumber.integer(bytes[(at + 1)...]) else { return nil }
        self.offset = offset
    }
}

/// Tracks the sub-ranges of consecutive segments, so that an omitted offset continues the last
/// range.
struct SubRangeCursor {
    private var url: AbsoluteURL?
    private var end = 0

    init() {}

    /// A cursor behind the range of a segment of another list.
    init(behind known: RangeEnd) {
        url = known.place.url
        end = known.end
        isReset = false
    }

    /// Returns the range that `written` means for `url`; nil if its end overflows.
    ///
    /// An offset may be omitted only if the previous range is of the same resource; otherwise 0 is
    /// guessed.
    mutating func resolve(_ written: WrittenSubRange, for url: AbsoluteURL) -> SubRange? {
        let continues = self.url == url
        let offset = written.offset ?? (continues ? end : 0)
        let (end, overflow) = offset.addingReportingOverflow(written.length)
        guard !overflow else { return nil }
        isUncertain = written.offset == nil && (!continues || isUncertain)
        self.url = url
        self.end = end
        isReset = false
        return SubRange(offset: offset, length: written.length)
    }

    /// True if the last range begins at a guessed offset, or continues one that does.
    private(set) var isUncertain = false

    /// True if there is no previous range to continue.
    private(set) var isReset = true

    /// Forgets the last range after a segment that is a whole resource.
    mutating func reset() {
        url = nil
        isReset = true
    }
}
