import URISyntax

/// A short text that is compared against many places.
struct ShortText {
    /// The bytes of the text in words of eight, first byte in the lowest bits; other bits are 0.
    private let words: (UInt64, UInt64, UInt64)
    /// Masks for the bits of `words` that belong to the text.
    private let masks: (UInt64, UInt64, UInt64)
    let count: Int

    /// Nil for an empty text, for more than 24 bytes, and less than 24 bytes before the end of
    /// `span`.
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

    /// Returns a mask for the lowest `count` bytes of a word; all for more than 8, none for 0 or
    /// less.
    private static func mask(_ count: Int) -> UInt64 {
        count <= 0 ? 0 : UInt64.max >> UInt64(64 - 8 * min(count, 8))
    }

    /// True if the text is at an offset; always false within 24 bytes of the end, where a match is
    /// not worth finding.
    @inline(__always)
    func stands(at offset: Int, in span: Span<UInt8>) -> Bool {
        offset &+ 24 <= span.count
            && EightBytes.load(span, at: offset) & masks.0 == words.0
            && EightBytes.load(span, at: offset &+ 8) & masks.1 == words.1
            && EightBytes.load(span, at: offset &+ 16) & masks.2 == words.2
    }
}
