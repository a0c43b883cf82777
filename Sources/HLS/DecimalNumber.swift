import URISyntax

/// Numbers of playlists (RFC 8216, 4.2), read from bytes and safe against absurd values.
enum DecimalNumber {
    /// Integers from here on are refused: far enough from overflow for counting on from them.
    static let maximum = 1 << 53

    /// 5 * 10^8 seconds in nanoseconds; ten times that still fits 64 bits.
    private static let longest = 500_000_000_000_000_000

    /// A decimal integer, blanks around it ignored; nil where it is none or too large.
    static func integer(_ bytes: ArraySlice<UInt8>) -> Int? {
        var value = 0
        var hasDigits = false
        for byte in trimmed(bytes) {
            guard ASCII.isDigit(byte), value < maximum / 10 else { return nil }
            value = value * 10 + Int(byte &- 0x30)
            hasDigits = true
        }
        return hasDigits ? value : nil
    }

    /// A decimal number of seconds, negative ones included; nil where it is none.
    ///
    /// Exact to the nanosecond; times beyond 5 * 10^8 seconds (16 years) are cut to that.
    static func seconds(_ bytes: ArraySlice<UInt8>) -> Duration? { seconds(trimmed(bytes).span) }

    /// The same of a text without blanks around it.
    static func seconds(_ text: Span<UInt8>) -> Duration? {
        var nanoseconds = 0
        var scale = 0
        var hasDigits = false
        let isNegative = !text.isEmpty && text[0] == 0x2D
        for index in (isNegative ? 1 : 0)..<text.count {
            let byte = text[index]
            if byte == 0x2E, scale == 0 {
                scale = 1_000_000_000
                continue
            }
            guard ASCII.isDigit(byte) else { return nil }
            hasDigits = true
            let digit = Int(byte &- 0x30)
            if scale == 0 {
                nanoseconds = min(nanoseconds * 10 + digit * 1_000_000_000, longest)
            } else if scale > 1 {
                scale /= 10
                nanoseconds += digit * scale
            }
        }
        guard hasDigits else { return nil }
        return .nanoseconds(isNegative ? -nanoseconds : nanoseconds)
    }

    static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let span = bytes.span
        var lower = 0
        var upper = span.count
        while upper > lower, ASCII.isBlank(span[upper - 1]) { upper -= 1 }
        while lower < upper, ASCII.isBlank(span[lower]) { lower += 1 }
        if upper - lower == span.count { return bytes }
        return bytes[bytes.startIndex + lower..<bytes.startIndex + upper]
    }
}
