import URISyntax

/// Splits a playlist into lines without copying.
///
/// LF, CRLF and a lone CR all end a line, a byte order mark at the start is skipped and the last
/// line needs no line end: origins write all of these.
struct LineReader {
    /// One line without its end.
    struct Line {
        /// Counted from 1.
        let number: Int
        let range: Range<Int>
    }

    private let limits: PlaylistLimits
    /// Where the next line begins.
    private(set) var cursor: Int
    private(set) var number = 0

    init(_ bytes: [UInt8], limits: PlaylistLimits) {
        self.limits = limits
        cursor = PlaylistDetector.markLength(of: bytes)
    }

    /// Returns the next line, or nil after the last one; `span` covers the playlist's bytes.
    ///
    /// Throws if a limit is exceeded.
    mutating func next(in span: Span<UInt8>) throws(PlaylistError) -> Line? {
        let start = cursor
        guard start < span.count else { return nil }
        try countLine()
        let end = Self.lineEnd(in: span, from: start)
        guard end - start <= limits.lineLength else {
            throw .lineTooLong(line: number, limit: limits.lineLength)
        }
        cursor = end + 1
        if end + 1 < span.count, span[end] == 0x0D, span[end + 1] == 0x0A { cursor = end + 2 }
        return Line(number: number, range: start..<end)
    }

    /// Skips a line whose content is already known: `count` bytes including its LF.
    ///
    /// Throws if there are too many lines.
    mutating func skip(_ count: Int) throws(PlaylistError) -> Line {
        try countLine()
        let start = cursor
        cursor += count
        return Line(number: number, range: start..<cursor - 1)
    }

    private mutating func countLine() throws(PlaylistError) {
        number += 1
        guard number <= limits.lineCount else { throw .tooManyLines(limit: limits.lineCount) }
    }

    /// Returns the offset of the first LF or CR from `start` on, or the end.
    @inline(__always)
    private static func lineEnd(in span: Span<UInt8>, from start: Int) -> Int {
        let count = span.count
        var end = start
        // Scans eight bytes at a time: nearly all are above CR.
        while end &+ 8 <= count {
            let found = bytesUpToCR(EightBytes.load(span, at: end))
            guard found != 0 else {
                end &+= 8
                continue
            }
            end &+= found.trailingZeroBitCount / 8
            if span[end] == 0x0A || span[end] == 0x0D { return end }
            end &+= 1
        }
        while end < count, span[end] != 0x0A, span[end] != 0x0D { end &+= 1 }
        return end
    }

    /// Returns a word with the high bit set in the first byte below 0x0E, and possibly in later
    /// bytes.
    ///
    /// The subtraction borrows only from bytes below 0x0E, so that 0 means that there are none.
    @inline(__always)
    private static func bytesUpToCR(_ word: UInt64) -> UInt64 {
        (word &- 0x0E0E_0E0E_0E0E_0E0E) & ~word & 0x8080_8080_8080_8080
    }
}
