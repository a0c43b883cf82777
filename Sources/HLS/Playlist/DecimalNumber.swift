import Numbers
import URISyntax

/// Numbers of playlists (RFC 8216, 4.2), read from bytes and held within ranges that later
/// arithmetic can rely on.
///
/// | what | range | larger values |
/// |---|---|---|
/// | integers: bit rates, byte ranges, counts | 0 to 2^53 - 1 | are read as no number |
/// | sequence numbers | 0 to 2^53 - 1 | are counted modulo 2^53, up to 2^64 - 1 |
/// | durations | up to 5 * 10^8 s in either direction | are cut to that |
enum DecimalNumber {

    /// 5 * 10^8 seconds in nanoseconds; ten times that still fits 64 bits.
    private static let longest = 500_000_000_000_000_000

    /// A decimal integer up to 2^53 - 1, blanks around it ignored; nil where it is none or larger.
    static func integer(_ bytes: ArraySlice<UInt8>) -> Int? {
        guard let value = decimalInteger(bytes), value <= UInt64(OutsideNumber.largest) else {
            return nil
        }
        return Int(value)
    }

    /// A media or discontinuity sequence number, blanks around it ignored; nil where it is none.
    ///
    /// The RFC allows 64 bits. Numbers above 2^53 - 1 are counted modulo 2^53: those of consecutive
    /// segments stay consecutive, and what is passed to players is the text of the origin.
    static func sequenceNumber(_ bytes: ArraySlice<UInt8>) -> Int? {
        decimalInteger(bytes).map { Int($0 & UInt64(OutsideNumber.largest)) }
    }

    /// A decimal-integer of RFC 8216, 4.2: 0 to 2^64 - 1.
    private static func decimalInteger(_ bytes: ArraySlice<UInt8>) -> UInt64? {
        DecimalDigits(trimmed(bytes), upTo: .max).number
    }

    /// A decimal number of seconds, negative ones included; nil where it is none.
    ///
    /// Exact to the nanosecond; times beyond 5 * 10^8 seconds (16 years) are cut to that.
    static func seconds(_ bytes: ArraySlice<UInt8>) -> Duration? { seconds(trimmed(bytes).span) }

    /// The same for lengths of time, of which none is negative; nil for those that are.
    static func length(_ bytes: ArraySlice<UInt8>) -> Duration? {
        seconds(bytes).flatMap { $0 < .zero ? nil : $0 }
    }

    /// Reads seconds from a text without blanks around it.
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
        // A fraction behind the longest time would pass it.
        nanoseconds = min(nanoseconds, longest)
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
