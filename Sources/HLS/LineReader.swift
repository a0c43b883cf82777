/// Cuts a playlist into lines without copying.
///
/// LF, CRLF and a lone CR all end a line, a byte order mark at the start is skipped and the last
/// line needs no end, since origins do all of these.
struct LineReader {
    /// One line without its end.
    struct Line {
        /// Counted from 1.
        let number: Int
        let range: Range<Int>
    }

    private let limits: PlaylistLimits
    private var cursor: Int
    private(set) var number = 0

    init(_ bytes: [UInt8], limits: PlaylistLimits) {
        self.limits = limits
        cursor = bytes.starts(with: PlaylistDetector.byteOrderMark) ? 3 : 0
    }

    /// The next line, or nil behind the last one; `span` is that of the playlist's bytes.
    ///
    /// Throws where a limit is passed.
    mutating func next(in span: Span<UInt8>) throws(PlaylistError) -> Line? {
        let start = cursor
        guard start < span.count else { return nil }
        number += 1
        guard number <= limits.lineCount else { throw .tooManyLines(limit: limits.lineCount) }
        let count = span.count
        var end = start
        while end < count {
            let byte = span[end]
            if byte <= 0x0D, byte == 0x0A || byte == 0x0D { break }
            end &+= 1
        }
        guard end - start <= limits.lineLength else {
            throw .lineTooLong(line: number, limit: limits.lineLength)
        }
        cursor = end + 1
        if end + 1 < span.count, span[end] == 0x0D, span[end + 1] == 0x0A { cursor = end + 2 }
        return Line(number: number, range: start..<end)
    }
}
