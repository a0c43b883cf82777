// Byte classes and decimal numbers that every parser of this target shares (RFC 9110 section 5.6).
import Numbers
import URISyntax

/// Named bytes and byte classes of the HTTP grammar.
package enum ASCII {
    package static let tab: UInt8 = 0x09
    package static let lineFeed: UInt8 = 0x0A
    package static let carriageReturn: UInt8 = 0x0D
    package static let space: UInt8 = 0x20
    package static let quote: UInt8 = 0x22
    package static let percent: UInt8 = 0x25
    package static let comma: UInt8 = 0x2C
    package static let colon: UInt8 = 0x3A
    package static let semicolon: UInt8 = 0x3B
    package static let equals: UInt8 = 0x3D
    package static let backslash: UInt8 = 0x5C

    /// Whether the byte may stand in a `token` (RFC 9110 section 5.6.2).
    @inlinable
    package static func isToken(_ byte: UInt8) -> Bool {
        // Two 64-bit sets instead of a table: no global to initialise, no bounds check.
        let low: UInt64 = 0x03FF_6CFA_0000_0000
        let high: UInt64 = 0x57FF_FFFF_C7FF_FFFE
        if byte < 64 { return (low >> UInt64(byte)) & 1 == 1 }
        return byte < 128 && (high >> UInt64(byte & 63)) & 1 == 1
    }

    /// Whether the byte is `0` to `9`.
    @inlinable
    package static func isDigit(_ byte: UInt8) -> Bool {
        byte &- 0x30 < 10
    }

    /// Whether the byte is an ASCII letter.
    @inlinable
    package static func isAlpha(_ byte: UInt8) -> Bool {
        (byte | 0x20) &- 0x61 < 26
    }

    /// Whether the byte is optional white space, a space or a tab (RFC 9110 section 5.6.3).
    @inlinable
    package static func isOWS(_ byte: UInt8) -> Bool {
        byte == space || byte == tab
    }

    /// Whether the byte may stand in a field value: visible, obs-text, space or tab (RFC 9110
    /// section 5.5).
    @inlinable
    package static func isFieldValue(_ byte: UInt8) -> Bool {
        (byte >= 0x20 && byte != 0x7F) || byte == tab
    }

    /// The high bit of each of eight bytes, out of `EightBytes.load`, that is a control character, be
    /// it one that may stand in a field value.
    ///
    /// The high bits are taken out first, so that no sum leaves its byte.
    @inlinable
    package static func controls(in word: UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let low = word & (ones &* 0x7F)
        let isBelowBlank = ~(low &+ ones &* (0x80 - 0x20))
        let isDelete = low &+ ones
        return (isBelowBlank | isDelete) & ~word & (ones &* 0x80)
    }

    /// The high bit of each of eight bytes, out of `EightBytes.load`, that is this one; the byte is below
    /// 128.
    static func places(of byte: UInt8, in word: UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let low = (word & (ones &* 0x7F)) ^ (ones &* UInt64(byte))
        // Zero where it is the byte, and below 128 then.
        let others = low &+ ones &* 0x7F
        return ~(others | word) & (ones &* 0x80)
    }

    /// Whether the bytes may all stand in a field value.
    static func areFieldValue(_ bytes: Span<UInt8>) -> Bool {
        var index = 0
        while index < bytes.count {
            if index &+ 8 <= bytes.count,
                controls(in: EightBytes.load(bytes, at: index)) == 0
            {
                index &+= 8
                continue
            }
            guard isFieldValue(bytes[index]) else { return false }
            index &+= 1
        }
        return true
    }

    /// The byte with `A` to `Z` turned into `a` to `z`; every other byte as it is.
    @inlinable
    package static func lower(_ byte: UInt8) -> UInt8 {
        byte &- 0x41 < 26 ? byte | 0x20 : byte
    }

    /// The value of a hexadecimal digit in either case, nil for any other byte.
    @inlinable
    package static func hexValue(_ byte: UInt8) -> UInt8? {
        if isDigit(byte) { return byte &- 0x30 }
        let folded = byte | 0x20
        return folded &- 0x61 < 6 ? folded &- 0x61 &+ 10 : nil
    }

    /// The text with ASCII letters in lower case, other characters as they are.
    package static func lowercased(_ text: some StringProtocol) -> String {
        // Names are in lower case already, more often than not.
        guard text.utf8.contains(where: { lower($0) != $0 }) else { return String(text) }
        return String(decoding: text.utf8.map(lower), as: UTF8.self)
    }

    /// Whether the two byte sequences are the same but for the case of ASCII letters.
    package static func equalIgnoringCase(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
        guard left.count == right.count else { return false }
        for index in left.indices where lower(left[index]) != lower(right[index]) {
            return false
        }
        return true
    }

    /// Whether the two texts are the same but for the case of ASCII letters.
    package static func equalIgnoringCase(_ left: String, _ right: String) -> Bool {
        equalIgnoringCase(left.utf8.span, right.utf8.span)
    }
}

/// What reading a run of decimal digits gave.
enum DecimalNumber: Equatable {
    /// The number is within 0 to 2^53 - 1.
    case value(Int64)
    /// Digits only, but the number is larger.
    case overflow
    /// Empty, or a byte that is no digit.
    case malformed

    /// Reads the whole of `digits` as `1*DIGIT`.
    init(_ digits: some Collection<UInt8>) {
        guard !digits.isEmpty else {
            self = .malformed
            return
        }
        var total: Int64 = 0
        var overflowed = false
        for digit in digits {
            guard ASCII.isDigit(digit) else {
                self = .malformed
                return
            }
            let (product, first) = total.multipliedReportingOverflow(by: 10)
            let (sum, second) = product.addingReportingOverflow(Int64(digit &- 0x30))
            if first || second || sum > Int64(OutsideNumber.largest) { overflowed = true }
            total = overflowed ? 0 : sum
        }
        self = overflowed ? .overflow : .value(total)
    }

    /// The number, the largest one where it does not fit, nil where it is none.
    var saturated: Int64? {
        switch self {
        case .value(let number): number
        case .overflow: Int64(OutsideNumber.largest)
        case .malformed: nil
        }
    }
}

extension ArraySlice<UInt8> {
    /// The bytes without optional white space at either end.
    func trimmingOWS() -> ArraySlice<UInt8> {
        var part = self
        while let byte = part.first, ASCII.isOWS(byte) { part.removeFirst() }
        while let byte = part.last, ASCII.isOWS(byte) { part.removeLast() }
        return part
    }

    /// The bytes as text; what is not UTF-8 becomes U+FFFD.
    var text: String {
        String(decoding: self, as: UTF8.self)
    }
}
