import Numbers
import URISyntax

/// Numbers of playlists (RFC 8216, 4.2), parsed from bytes and limited to ranges that later
/// arithmetic can rely on.
///
/// | what | range | larger values |
/// |---|---|---|
/// | integers: bit rates, byte ranges, counts | 0 to 2^53 - 1 | are rejected |
/// | sequence numbers | 0 to 2^53 - 1 | are taken modulo 2^53, up to 2^64 - 1 |
/// | durations | up to 5 * 10^8 s in either direction | are clamped |
enum DecimalNumber {

    /// 5 * 10^8 seconds in nanoseconds; ten times that still fits 64 bits.
    private static let longest = 500_000_000_000_000_000

    /// Parses a decimal integer up to 2^53 - 1, with blanks around it; nil if malformed or larger.
    static func integer(_ bytes: ArraySlice<UInt8>) -> Int? {
        guard let value = decimalInteger(bytes), value <= UInt64(ExternalNumber.largest) else {
            return nil
        }
        return Int(value)
    }

    /// Parses a media or discontinuity sequence number, with blanks around it; nil if malformed.
    ///
    /// The RFC allows 64 bits. Numbers above 2^53 - 1 are taken modulo 2^53: consecutive segments
    /// keep consecutive numbers, and players get the number as the origin wrote it.
    static func sequenceNumber(_ bytes: ArraySlice<UInt8>) -> Int? {
        decimalInteger(bytes).map { Int($0 & UInt64(ExternalNumber.largest)) }
    }

    /// Parses a decimal-integer of RFC 8216, 4.2: 0 to 2^64 - 1.
    private static func decimalInteger(_ bytes: ArraySlice<UInt8>) -> UInt64? {
        DecimalDigits(trimmed(bytes), upTo: .max).number
    }

    /// Parses a decimal number of seconds, which may be negative; nil if malformed.
    ///
    /// Exact to the nanosecond; clamped to 5 * 10^8 seconds (16 years) in either direction.
    static func seconds(_ bytes: ArraySlice<UInt8>) -> Duration? { seconds(trimmed(bytes).span) }

    /// Parses a decimal number of seconds; nil if malformed or negative.
    static func length(_ bytes: ArraySlice<UInt8>) -> Duration? {
        seconds(bytes).flatMap { $0 < .zero ? nil : $0 }
    }

    /// Parses seconds from a text without blanks around it.
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
        // The fraction may have added to the maximum.
        nanoseconds = min(nanoseconds, longest)
        return .nanoseconds(isNegative ? -nanoseconds : nanoseconds)
    }

    /// Returns a duration as decimal seconds, cut to the millisecond.
    static func text(ofSeconds duration: Duration) -> String {
        if duration < .zero { return "-\(text(ofSeconds: Duration.zero - duration))" }
        let parts = duration.components
        let milliseconds = parts.attoseconds / 1_000_000_000_000_000
        guard milliseconds > 0 else { return "\(parts.seconds)" }
        return "\(parts.seconds).\(String(milliseconds, width: 3))"
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
