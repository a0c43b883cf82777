import URISyntax

/// A few bytes that are looked for again and again.
struct ShortText {
    /// What was read, from the text's start on; each eight with their first byte in the lowest bits.
    private let words: (UInt64, UInt64, UInt64)
    /// The bits of those that belong to the text.
    private let masks: (UInt64, UInt64, UInt64)
    let count: Int

    /// Nil for a text of more than 24 bytes, and for one at the very end.
    init?(_ range: Range<Int>, of span: Span<UInt8>) {
        let start = range.lowerBound
        guard !range.isEmpty, range.count <= 24, start + 24 <= span.count else { return nil }
        count = range.count
        masks = (Self.mask(count), Self.mask(count - 8), Self.mask(count - 16))
        words = (
            EightBytes.load(span, at: start) & masks.0,
            EightBytes.load(span, at: start + 8) & masks.1,
            EightBytes.load(span, at: start + 16) & masks.2
        )
    }

    /// The lowest `count` bytes of a word; all for more, none for less.
    private static func mask(_ count: Int) -> UInt64 {
        count <= 0 ? 0 : UInt64.max >> UInt64(64 - 8 * min(count, 8))
    }

    /// Whether the text stands at an offset; false near the end, where nobody looks.
    @inline(__always)
    func stands(at offset: Int, in span: Span<UInt8>) -> Bool {
        offset &+ 24 <= span.count
            && EightBytes.load(span, at: offset) & masks.0 == words.0
            && EightBytes.load(span, at: offset &+ 8) & masks.1 == words.1
            && EightBytes.load(span, at: offset &+ 16) & masks.2 == words.2
    }
}
