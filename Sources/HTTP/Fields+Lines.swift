import URISyntax

/// Parsing of fields that are stored as lines, without copying.
extension Fields {
    /// Parses lines such as `Content-Type: video/mp2t` in `bytes` from an offset on; each ends with
    /// a line feed, which the last may lack, and empty lines are skipped.
    ///
    /// The fields share the memory of `bytes`. Nil if a line is not a well-formed field.
    package init?(lines bytes: [UInt8], from start: Int) {
        var entries: [Entry] = []
        entries.reserveCapacity(12)
        let span = bytes.span
        var lineStart = start
        while lineStart < span.count {
            let end = Self.lineEnd(span, from: lineStart)
            if end > lineStart {
                guard let entry = Self.entry(span, lineStart..<end) else { return nil }
                entries.append(entry)
            }
            lineStart = end + 1
        }
        self.init(storage: bytes, entries: entries)
    }

    /// Returns the offset of the next line feed, or the end.
    private static func lineEnd(_ bytes: Span<UInt8>, from start: Int) -> Int {
        var index = start
        while index < bytes.count {
            if index &+ 8 <= bytes.count {
                let controls = ASCII.controls(in: EightBytes.load(bytes, at: index))
                if controls == 0 {
                    index &+= 8
                    continue
                }
                index &+= controls.trailingZeroBitCount / 8
            }
            if bytes[index] == ASCII.lineFeed { return index }
            index &+= 1
        }
        return index
    }

    private static func entry(_ bytes: Span<UInt8>, _ line: Range<Int>) -> Entry? {
        var nameEnd = line.lowerBound
        while nameEnd < line.upperBound, ASCII.isToken(bytes[nameEnd]) { nameEnd += 1 }
        guard nameEnd > line.lowerBound, nameEnd < line.upperBound,
            bytes[nameEnd] == ASCII.colon
        else { return nil }
        var start = nameEnd + 1
        var end = line.upperBound
        if bytes[end - 1] == ASCII.carriageReturn { end -= 1 }
        while start < end, ASCII.isBlank(bytes[start]) { start += 1 }
        while end > start, ASCII.isBlank(bytes[end - 1]) { end -= 1 }
        guard ASCII.areFieldValue(bytes.extracting(start..<end)) else { return nil }
        return Entry(
            nameStart: UInt32(line.lowerBound), nameEnd: UInt32(nameEnd),
            valueStart: UInt32(start), valueEnd: UInt32(end))
    }
}
